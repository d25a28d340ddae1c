"""What the pages say is so."""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from textwrap import indent

import pytest
import typer

from client.cli.app import app
from contracts import names
from contracts.parse_request import parse_request
from contracts.strategies.declared_strategies import ENTRY_POINTS
from tests.architecture import readme_sample
from tests.architecture.repository import ROOT, load_script, relative, tracked_files
from tests.toy.roles import TOY
from workers.settings.sections import FileSettings

PAGES = [path for path in tracked_files() if path.suffix == ".md" and path.relative_to(ROOT).parts[0] != "activities"]
BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)


@cache
def commands() -> dict[str, set[str]]:
    """Every command of `research` with its options; `corpus add` for a command of a group."""
    return dict(_commands(typer.main.get_command(app), ""))


def _commands(command: object, name: str) -> Iterator[tuple[str, set[str]]]:
    for key, child in getattr(command, "commands", {}).items():
        yield from _commands(child.load() if hasattr(child, "load") else child, f"{name} {key}".strip())
    options = {option for parameter in getattr(command, "params", []) for option in parameter.opts}
    yield name, options | {"--help"}


def code_of(path: Path) -> list[str]:
    """The pieces of a page that are set as code, lines that are continued joined."""
    text = path.read_text(encoding="utf-8")
    shell = [block.replace("\\\n", " ") for language, block in BLOCK.findall(text) if language in ("", "sh", "text")]
    return [line for block in shell for line in block.splitlines()] + re.findall(
        r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    )


def named_commands(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Command and options of each call of `research` on a page; decisions and changelog name earlier ones."""
    if path.name == "CHANGELOG.md" or path.parent.name == "decisions":
        return
    for code in code_of(path):
        found = re.match(r"(?:\$ )?(?:\.venv/bin/)?research ((?:corpus |archive )?[a-z]+)\b(.*)", code.strip())
        if found:
            yield found[1], re.findall(r"(?<![\w-])--[a-z][a-z-]*", found[2].split(" # ")[0])


def test_documented_commands_exist() -> None:
    """Each `research …` that a page shows is a command of the program, with options that it has."""
    for path in PAGES:
        for command, options in named_commands(path):
            assert command in commands(), f"{relative(path)} names `research {command}`"
            unknown = set(options) - commands()[command]
            assert not unknown, f"{relative(path)} gives `research {command}` {unknown}"


def test_every_command_is_documented() -> None:
    """A command that no page names cannot be found by a reader."""
    shown = {command for path in PAGES for command, _ in named_commands(path)}
    missing = {name for name in commands() if name not in ("", "corpus", "archive")} - shown
    assert not missing


def test_documented_make_targets_exist() -> None:
    """Each `make …` that a page shows is a target of the Makefile."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))
    for path in PAGES:
        for code in code_of(path):
            unknown = set(re.findall(r"^(?:\$ )?make ([a-z][a-z-]*)", code.strip())) - targets
            assert not unknown, f"{relative(path)} names `make {unknown}`"


def test_links_lead_somewhere() -> None:
    """Each relative link of a page leads to a file of the repository, and to a heading of it if it names one."""
    for path in PAGES:
        text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"[a-z]+:", link):
                continue
            place, _, heading = link.partition("#")
            target = (path.parent / place).resolve() if place else path
            assert target.exists(), f"{relative(path)} links to {link}"
            if heading:
                assert heading in headings(target), f"{relative(path)} links to {link}"


@cache
def headings(path: Path) -> set[str]:
    """The anchors of a page, made as forges make them."""
    lines = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).strip().replace(" ", "-") for line in lines}


def test_the_configuration_page_is_generated_from_the_code() -> None:
    """docs/configuration.md says what the models say: run `make configuration` after a change (X-23, X-24)."""
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    generator = load_script(ROOT / "docs" / "generate_configuration.py")
    assert generator.filled(page) == page


def test_the_page_for_programs_is_generated_from_the_code() -> None:
    """docs/api.md has the schemas of the models and the examples as they are: run `make configuration`."""
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert load_script(ROOT / "docs" / "generate_api.py").page() == page


def test_the_mapping_of_other_systems_leads_to_real_options() -> None:
    """Each of our names in the tables for newcomers from other systems is a field or a key that exists (X-23)."""
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    known = set(re.findall(r"^\| `([a-zA-Z_.]+)`", page.split("## Coming from")[0], re.MULTILINE))
    rows = re.findall(r"^\| `.*\|(.*)\|$", page.split("## Coming from")[1], re.MULTILINE)
    assert len(rows) > 20
    for row in rows:
        ours = re.findall(r"`([a-z_.]+)`", row) if "planned" not in row else []
        assert not [name for name in ours if name not in known], row


def test_the_example_configuration_is_accepted() -> None:
    """research.example.toml is valid as it stands, and with every suggestion in it switched on."""
    text = (ROOT / "research.example.toml").read_text(encoding="utf-8")
    FileSettings.model_validate(tomllib.loads(text))
    everything = re.sub(r"^# (?=\[|[a-z_\"]+ = )", "", text, flags=re.MULTILINE)
    settings = FileSettings.model_validate(tomllib.loads(everything))
    assert settings.corpus
    assert settings.models.by_tier()
    assert settings.strategy


def test_documented_starts_are_accepted() -> None:
    """Each `temporal workflow start` that a page shows names our workflow, its queue and a valid request."""
    starts = [(relative(path), code) for path in PAGES for code in code_of(path) if "temporal workflow start" in code]
    assert starts
    for page, code in starts:
        assert f"--type {names.DEEP_RESEARCH}" in code, page
        assert f"--task-queue {names.WORKFLOWS_QUEUE}" in code, page
        given = re.search(r"--input '([^']+)'", code)
        assert given is not None, page
        assert parse_request(given[1]).query, page


def test_documented_json_is_json() -> None:
    """Each block marked as JSON parses."""
    for path in PAGES:
        for block in re.findall(r"```json\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL):
            assert json.loads(block), relative(path)


def test_the_command_itself_answers() -> None:
    """The installed `research` prints its help: what README tells to type works."""
    command = [str(Path(sys.executable).with_name("research")), "--help"]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "run" in result.stdout


def test_the_sample_report_of_the_readme_is_what_the_demo_gives() -> None:
    """The sample is a report of today's code; `python -m tests.architecture.readme_sample` writes it anew."""
    block = readme_sample.BLOCK.search(readme_sample.README.read_text("utf-8"))
    assert block is not None
    if block["python"] != readme_sample.python_version():
        pytest.skip(f"the sample is of the documentation of Python {block['python']}")
    assert block["sample"] == readme_sample.make_sample()


def test_the_example_of_a_strategy_is_the_code_that_runs() -> None:
    """Each piece of Python on the page for authors stands, to the letter, in the file that is named before it."""
    page = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    shown = re.findall(r"<!-- (\S+) -->\n```python\n(.*?)```", page, re.DOTALL)
    assert len(shown) == page.count("```python")
    for file, code in shown:
        # Methods stand further to the left on the page, with more room between them.
        text = re.sub(r"\n{2,}", "\n", (ROOT / file).read_text(encoding="utf-8"))
        plain = re.sub(r"\n{2,}", "\n", code)
        assert plain in text or indent(plain, " " * 4) in text, file
    entry = tomllib.loads(re.search(r"```toml\n(.*?)```", page, re.DOTALL)[1])  # type: ignore[index]
    module, _, name = entry["project"]["entry-points"][ENTRY_POINTS]["toy"].partition(":")
    assert getattr(import_module(module), name) is TOY
