"""The wheel in an environment of its own, beside modules of strangers that have the names of our folders."""

import asyncio
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.acceptance.bench import LONGEST_WAIT, Bench
from tests.architecture.repository import ROOT
from tests.fakes.office_documents import one_page_pdf
from tests.fakes.web import WebServer, reply
from tests.integration.server_homes import give_port
from workers.settings.loading import child_environment

STRANGERS = ("activities", "client", "contracts", "providers", "workers", "workflows")
QUESTION = "How are backups made?"
FOLLOW_UP = "How often are backups made?"
RUN_README = """
import ast, asyncio, sys
cells = compile(sys.stdin.read(), "README.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
names = {}

async def main():
    await eval(cells, names)

asyncio.run(main())
print(names["more"]._repr_html_()[:7])
"""

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]


@dataclass
class Installed(Bench):
    """A bench whose command is that of the wheel."""

    python: Path = Path()
    site: Path = Path()

    def command(self, *arguments: str) -> list[str]:
        return [str(self.python.with_name("research")), *arguments]

    def files(self) -> set[str]:
        """What lies in the environment beside its own Python, without what Python compiles."""
        names = {path.relative_to(self.site).parts[0] for path in self.site.iterdir()}
        return {name for name in names if name != "__pycache__"} | {path.name for path in self.python.parent.iterdir()}


def build(source: Path, target: Path, kind: str) -> Path:
    """Build the sdist or the wheel of a tree without a network."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(target)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (made,) = target.iterdir()
    return made


def install(python: Path, *arguments: str) -> None:
    """Install into an environment what is already on this machine."""
    offline = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", *offline, *arguments]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as it is built from the sdist."""
    root = tmp_path_factory.mktemp("built")
    with tarfile.open(build(ROOT, root / "sdist", "sdist")) as archive:
        archive.extractall(root / "unpacked", filter="data")
    (unpacked,) = (root / "unpacked").iterdir()
    return build(unpacked, root / "wheel", "wheel")


@pytest.fixture(scope="module")
def bench(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """An environment with the wheel, the libraries of this one, strangers' modules and two packages for the product."""
    root = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root / "venv")], check=True)
    python = root / "venv" / "bin" / "python"
    (site,) = (root / "venv" / "lib").glob("python*/site-packages")
    for name in STRANGERS:
        (site / f"{name}.py").write_text(f"raise RuntimeError('a module of strangers was imported: {name}')\n")
    libraries = next(entry for entry in sys.path if entry.endswith("site-packages"))
    (site / "libraries.pth").write_text(f"{libraries}\n")
    install(python, str(wheel))
    provider = shutil.copytree(ROOT / "examples" / "search_provider", root / "provider")
    install(python, "--target", str(site), str(provider))
    shutil.copytree(ROOT / "tests" / "toy", site / "tests" / "toy")
    (site / "toy_strategy-1.0.dist-info").mkdir()
    (site / "toy_strategy-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: toy-strategy\nVersion: 1\n"
    )
    entry = "[durable_research.strategies]\ntoy = tests.toy.roles:TOY\n"
    (site / "toy_strategy-1.0.dist-info" / "entry_points.txt").write_text(entry)
    made = Installed(root / "home", root / "work", python=python, site=site)
    corpus = made.work / "handbook"
    corpus.mkdir(parents=True)
    (corpus / "backups.md").write_text("# Backups\n\nBackups are made every night at two.\n")
    (corpus / "restore.pdf").write_bytes(one_page_pdf("Backups are restored by the person on call."))
    programs = f"{os.environ['PATH']}:{Path(sys.executable).parent}"  # the program `temporal` of the libraries
    made.environment = child_environment() | {"RESEARCH_HOME": str(made.home), "HOME": str(root), "PATH": programs}
    give_port(made.home)
    yield made
    made.stop_server()


def test_sdist_and_repository_give_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    """To the byte, so that a package that somebody builds is the one that was tested."""
    other = build(ROOT, tmp_path / "wheel", "wheel")
    assert hashlib.sha256(wheel.read_bytes()).digest() == hashlib.sha256(other.read_bytes()).digest()


def test_an_installed_command_works_beside_strangers_modules(bench: Installed) -> None:
    """A folder is indexed, a PDF read in a child process, a question answered by a package's strategy, and audited."""
    added = bench.run("corpus", "add", "handbook")
    assert added.stdout == "handbook: 2 documents\n", added.stderr
    done = bench.run("run", QUESTION, "--corpus", "handbook", "--strategy", "toy", "--json", "--out", "toy")
    assert done.returncode == 0, done.stderr
    assert "strangers" not in done.stderr
    report = json.loads((bench.work / "toy" / "report.json").read_text())
    assert {source["title"] for source in report["sources"]} >= {"Backups"}
    assert any(source["url"].endswith(".pdf") and source["text_hash"] for source in report["sources"])
    assert bench.run("audit", "last").returncode == 0
    doctor = bench.run("doctor")
    assert doctor.returncode == 0, doctor.stdout
    assert "strangers" not in doctor.stdout + doctor.stderr


def test_what_passes_through_the_sandbox_is_there_by_name(bench: Installed) -> None:
    """Workflow code of the wheel is loaded once for all runs, as in a clone: each name of the list is a module."""
    source = (
        "import importlib; from durable_research.workers.pools import PASSTHROUGH_MODULES as names;"
        "print(len([importlib.import_module(name) for name in set(names) if not name.endswith('.checkout')]))"
    )
    done = subprocess.run([bench.python, "-c", source], cwd=bench.work, capture_output=True, text=True, check=False)
    assert int(done.stdout) > 10, done.stderr


def test_the_example_of_the_readme_runs_as_it_is(bench: Installed) -> None:
    """`await research(…)`, a follow-up question, and the report as a notebook shows it."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (cells,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    done = subprocess.run(
        [bench.python, "-c", RUN_README],
        input=cells, cwd=bench.work, env=bench.environment, capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    first, last = done.stdout.splitlines()
    assert first.startswith("completed 0.0 ['Backups'")
    assert last == "<iframe"
    assert sorted(path.name for path in (bench.work / "report").iterdir()) == [
        "report.html",
        "report.json",
        "report.md",
    ]
    example = [str(bench.python), str(ROOT / "examples" / "one_question.py"), QUESTION, "handbook", FOLLOW_UP]
    ended = subprocess.run(example, cwd=bench.work, env=bench.environment, capture_output=True, text=True, check=True)
    assert ended.stdout.startswith("completed 0.0\nBackups corpus:handbook/backups.md\n")
    assert ended.stdout.endswith("follow-up/report.md\n")


async def test_a_search_provider_of_a_package_is_used(bench: Installed) -> None:
    """Its imports from `durable_research` are the modules of the wheel."""
    answer = reply(
        json.dumps({"found": [{"link": "https://moss.example/", "title": "Moss"}]}), content_type="application/json"
    )
    async with WebServer({"/find?words=moss&most=10": answer}) as service:
        keys = {"EXAMPLE_API_KEY": "planted-key", "EXAMPLE_BASE_URL": service.base_url}
        process = await asyncio.create_subprocess_exec(
            *bench.command("doctor", "--search", "moss", "--provider", "example"),
            env=bench.environment | keys, cwd=bench.work, stdout=subprocess.PIPE,
        )  # fmt: skip
        printed, _ = await process.communicate()
    assert "https://moss.example/" in printed.decode()


def test_workers_of_a_wheel_carry_out_runs_of_a_clone(bench: Installed) -> None:
    """Names in Temporal and in the stores are those of both: the run that a clone starts, an installed worker does."""
    serving = bench.start("serve", "--no-mcp", "--no-chat", "--no-page")
    try:
        end = time.monotonic() + LONGEST_WAIT
        while not any("ready" in line or "workers" in line for line in serving.lines) and time.monotonic() < end:
            time.sleep(0.1)
        for words, shown in (
            (("start", QUESTION, "--corpus", "handbook", "--id", "of-both", "--json"), '"how": "started"'),
            (("watch", "of-both", "--json", "--out", "clone"), '"outcome": "completed"'),
            (("audit", "of-both"), "of-both"),
        ):
            done = subprocess.run(
                [sys.executable, "-m", "client.cli", *words],
                cwd=bench.work, env=bench.environment | {"PYTHONPATH": str(ROOT)},
                capture_output=True, text=True, check=False, timeout=240,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            assert shown in done.stdout
    finally:
        serving.process.terminate()
        serving.end()


def test_an_uninstalled_wheel_leaves_nothing(bench: Installed) -> None:
    """One name came into the environment, and it goes."""
    before = bench.files()
    assert {"durable_research", "research"} <= before
    remove = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(bench.python),
        "uninstall",
        "--quiet",
        "--yes",
        "durable-research",
    ]
    subprocess.run(remove, check=True, capture_output=True)
    gone = before - bench.files()
    assert {name.partition("-")[0] for name in gone} == {"durable_research", "research"}
    assert subprocess.run([bench.python, "-c", "import durable_research"], check=False, capture_output=True).returncode
