"""The command line itself: names, help, start-up cost."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from client.cli.app import COMMANDS, app, installed_version
from contracts.request import Depth, EngineChoice
from contracts.strategies import PLANNED
from tests.architecture.repository import ROOT
from tests.unit.client.cli.command_line import research
from workers.settings.loading import child_environment

NAMES = [name for group in COMMANDS.values() for name in group]


def test_the_help_lists_every_command_by_purpose() -> None:
    """Each with a sentence, whole on a narrow terminal; the exit codes are there for authors of scripts."""
    shown = research("--help").stdout
    for purpose, group in COMMANDS.items():
        section = " ".join(shown.partition(f"{purpose}:")[2].split())
        for name, (_, summary) in group.items():
            assert f"{name} {summary}" in section
    words = " ".join(shown.split())
    assert all(part in words for part in ("0 completed", "3 partial", "7 no model or search provider", "8 nothing"))


@pytest.mark.parametrize("name", NAMES)
def test_every_command_teaches_by_example(name: str) -> None:
    """Its help has a line that can be pasted."""
    done = research(name, "--help")
    assert done.exit_code == 0
    assert f"  research {name}" in done.stdout


def test_help_names_the_choices_of_the_request() -> None:
    """The options list the values that the request model accepts."""
    shown = " ".join(research("run", "--help").stdout.split())
    assert all(choice in shown for choice in ["supervisor", *PLANNED, *Depth, *EngineChoice])


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["run", "--nonsense"], ["steer", "last"], ["list", "--limit", "0"], ["delete"]]
)
def test_wrong_usage_is_exit_code_2(arguments: list[str]) -> None:
    """As with every other command line."""
    assert research(*arguments).exit_code == 2


def test_help_loads_nothing_heavy() -> None:
    """`research --help` answers at once because server, contracts and terminal library stay unloaded."""
    program = (
        "import sys, client.cli.app\n"
        "print([name for name in ('temporalio', 'pydantic', 'workers', 'anthropic') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_version_is_printed() -> None:
    """As by every other program."""
    assert research("--version").stdout.split() == ["research", installed_version()]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_can_complete(shell: str) -> None:
    """The script that a shell loads, and the names that it gets for a beginning."""
    done = CliRunner().invoke(app, [], prog_name="research", env={"_RESEARCH_COMPLETE": f"source_{shell}"})
    assert "research" in done.output
    typed = {"_RESEARCH_COMPLETE": "complete_bash", "COMP_WORDS": "research st", "COMP_CWORD": "1"}
    completed = CliRunner().invoke(app, [], prog_name="research", env=typed).output.split()
    assert sorted(completed) == ["start", "status", "steer", "stop"]


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
