"""The command line itself: help, completion, start-up cost."""

import subprocess
import sys
from pathlib import Path

import pytest

from client.cli.app import COMMANDS
from contracts.request import Depth, EngineChoice
from contracts.strategies import PLANNED
from tests.architecture.repository import ROOT
from tests.unit.client.cli.command_line import research
from workers.settings.loading import child_environment


def test_the_help_lists_every_command_by_purpose() -> None:
    """Each with a sentence, whole on a narrow terminal; the exit codes are there for authors of scripts."""
    shown = research("--help").stdout
    for purpose, group in COMMANDS.items():
        section = " ".join(shown.partition(f"{purpose}:")[2].split())
        for name, (_, summary) in group.items():
            assert f"{name} {summary}" in section
    words = " ".join(shown.split())
    assert all(part in words for part in ("0 completed", "3 partial", "7 no model or search provider", "8 nothing"))


@pytest.mark.parametrize("name", [name for group in COMMANDS.values() for name in group])
def test_every_command_teaches_by_example(name: str) -> None:
    """Its help has a line that can be pasted; that of `run` lists the values that a request accepts."""
    done = research(name, "--help")
    assert done.exit_code == 0
    assert f"  research {name}" in done.stdout
    if name == "run":
        assert all(choice in done.stdout for choice in ["supervisor", *PLANNED, *Depth, *EngineChoice])


def test_help_loads_nothing_heavy() -> None:
    """`research --help` answers at once because server, contracts and terminal library stay unloaded."""
    program = (
        "import sys, client.cli.app\n"
        "print([name for name in ('temporalio', 'pydantic', 'workers', 'anthropic') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_folders_of_a_person_are_no_code(tmp_path: Path) -> None:
    """A working directory with folders named like our packages changes nothing: they are not imported."""
    for name in ("contracts", "activities", "workers", "providers"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError('a folder of yours was run')\n")
    environment = child_environment() | {"PYTHONPATH": f":{ROOT}", "RESEARCH_HOME": str(tmp_path / "home")}
    for start in (["-c", "from client.cli import main; main()"], ["-m", "client.cli"]):
        command = [sys.executable, *start, "list"]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr.startswith("there is no run yet")) == (0, True), done.stderr
