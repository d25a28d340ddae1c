"""The command line itself: names, help, start-up cost."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from client.cli.app import app, installed_version
from contracts.request import Depth, EngineChoice
from contracts.strategies import PLANNED
from tests.architecture.repository import ROOT
from workers.settings.loading import child_environment

COMMANDS = {
    "run", "ask", "start", "watch", "resume", "steer", "plan", "answer", "approve", "reject", "stop", "cancel", "delete", "status", "list", "report", "open",
    "sources", "source", "decisions", "audit", "export", "corpus", "read", "search", "worker", "serve", "doctor",
}  # fmt: skip
WITH_EXAMPLES = ["run", "ask", "start", "watch", "resume", "steer", "plan", "answer", "approve", "reject", "delete", "report", "source", "audit", "export", "corpus", "read", "search"]  # fmt: skip


def output_of(*arguments: str) -> str:
    """Standard output of a command that ends well."""
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0
    return result.output


def test_every_command_is_there_and_no_other() -> None:
    """The commands of interfaces, section 2, that are built; names that are not built do not pretend."""
    listed = output_of("--help").split("Commands:")[1]
    assert {line.split()[0] for line in listed.splitlines() if line[:2] == "  " and line[2:3].strip()} == (COMMANDS)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_explains_itself(command: str) -> None:
    """Help works for each command."""
    assert "Usage:" in output_of(command, "--help")


@pytest.mark.parametrize("command", WITH_EXAMPLES)
def test_help_teaches_by_example(command: str) -> None:
    """A line that can be copied."""
    assert f"  research {command} " in output_of(command, "--help")


def test_help_names_the_choices_of_the_request() -> None:
    """The options list what the request model knows, although help does not load it."""
    shown = " ".join(output_of("run", "--help").split())
    for choice in ["supervisor", *PLANNED, *Depth, *EngineChoice]:
        assert choice in shown


def test_the_exit_codes_are_told() -> None:
    """A script's author finds them without the documentation."""
    shown = " ".join(output_of("--help").split())
    for part in (
        "0 completed",
        "3 partial",
        "5 cancelled",
        "7 no model or search provider available",
        "8 nothing in the sources",
    ):
        assert part in shown


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["run", "--nonsense"], ["steer", "last"], ["list", "--limit", "0"]]
)
def test_wrong_usage_is_exit_code_2(arguments: list[str]) -> None:
    """As for every other command line."""
    assert CliRunner().invoke(app, arguments).exit_code == 2


def test_help_loads_nothing_heavy() -> None:
    """`research --help` answers at once because engine, contracts and terminal library stay unloaded."""
    program = (
        "import sys\n"
        "import client.cli.app\n"
        "heavy = [name for name in ('temporalio', 'pydantic', 'workers', 'anthropic') if name in sys.modules]\n"
        "print(heavy)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_version_is_told() -> None:
    """As every other program does it."""
    assert output_of("--version").split() == ["research", installed_version()]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_can_complete(shell: str) -> None:
    """The script that a shell loads, and what it then gets for a beginning."""
    done = CliRunner().invoke(app, [], prog_name="research", env={"_RESEARCH_COMPLETE": f"source_{shell}"})
    assert "research" in done.output
    asked = {"_RESEARCH_COMPLETE": "complete_bash", "COMP_WORDS": "research st", "COMP_CWORD": "1"}
    assert CliRunner().invoke(app, [], prog_name="research", env=asked).output.split() == [
        "start", "steer", "stop", "status"
    ]  # fmt: skip


def test_the_list_of_commands_cuts_no_sentence() -> None:
    """Each command is told of in whole on a narrow terminal."""
    shown = " ".join(output_of("--help").split("Commands:")[1].split())
    assert "..." not in shown
    assert "the exit code is that of the run." in shown


def test_folders_of_a_person_are_no_code(tmp_path: Path) -> None:
    """A working directory with folders called like ours changes nothing: they are not imported."""
    for name in ("contracts", "activities", "workers", "providers"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError('a folder of yours was run')\n")
    environment = child_environment() | {"PYTHONPATH": f":{ROOT}", "RESEARCH_HOME": str(tmp_path / "home")}
    for start in (["-c", "from client.cli import main; main()"], ["-m", "client.cli"]):
        done = subprocess.run(
            [sys.executable, *start, "list"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr.splitlines()[0][:11]) == (0, "no runs yet"), done.stderr
