"""Where packages come from: tools by hash, a base by digest, and a list of what the image holds."""

import re

from tests.architecture import deployment as files
from tests.architecture.repository import ROOT
from tests.architecture.test_dependencies import PROJECT, normalized
from tests.architecture.test_deployment import pinned


def test_the_image_says_what_it_holds() -> None:
    """A list of every installed package is made by pinned tools, goes into the image, and is made alike by `make sbom`."""
    (made,) = [text for name, text in files.stages()[0] if name == "RUN" and "cyclonedx" in text]
    assert "--require-hashes -r requirements-tools.lock" in made
    listed = made.partition("cyclonedx-py ")[2].split()
    here = re.findall(r"cyclonedx-py (.*?)\n\t@", files.makefile(), re.DOTALL)[0].replace("\\\n", " ").split()
    assert listed[-3:] == ["--output-file", "/opt/research/sbom.cdx.json", "/opt/research"]
    assert here[-3:] == ["--output-file", "sbom.cdx.json", "build/runtime"]
    assert listed[:-3] == here[:-3] == ["environment", "--pyproject", "pyproject.toml", "--output-reproducible"]
    assert ("COPY", "--from=build /opt/research /opt/research") in files.stages()[-1]
    for page in ("SECURITY.md", "docs/operations.md"):
        assert "/opt/research/sbom.cdx.json" in (ROOT / page).read_text(encoding="utf-8"), page


def test_the_tools_of_the_supply_chain_are_pinned() -> None:
    """What resolves, lists and looks up packages is itself installed by hash, and from nowhere else."""
    text = (ROOT / "requirements-tools.lock").read_text(encoding="utf-8")
    assert re.findall(r"://|--(?:extra-)?index-url \S|--find-links", text) == []
    entries = re.split(r"\n(?=[A-Za-z0-9])", text)[1:]
    assert [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry] == []
    wanted = {normalized(one.split(">=")[0]) for one in PROJECT["dependency-groups"]["tools"]}
    assert wanted == {"uv", "pip-audit", "cyclonedx-bom"}
    assert wanted <= pinned(ROOT / "requirements-tools.lock").keys()
    installs = [line for line in files.makefile().replace("\\\n", " ").splitlines() if "pip install" in line]
    assert [line for line in installs if "--require-hashes" not in line and "-e ." not in line] == []
