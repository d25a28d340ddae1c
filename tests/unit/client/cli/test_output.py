"""The command line itself: its start, printed text, errors, ids and files of reports."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from rich.text import Text
from typer import BadParameter

from client.cli import output
from client.cli.context import new_id, resolve_id
from client.cli.options import check_id
from client.cli.output import CommandError, ExitCode, run_guarded
from client.cli.reports import LINE_CHARACTERS, default_folder, shown_text, write_atomically, write_report
from client.view.words import event_lines, pasteable
from contracts.outcome import Event
from contracts.vocabulary import Outcome, StopReason
from tests.architecture.repository import ROOT
from workers.settings.loading import child_environment

ATTACK = "\x1b]0;owned\x07\x9b31m\u202eevil"


def test_text_in_any_form_drives_no_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    """Results, cut lines, progress and JSON have no control character, also in a pipe; our own colours pass."""
    colours = output.SafeConsole(file=(file := io.StringIO()), force_terminal=True, color_system="standard")
    colours.print(Text(ATTACK, style="red"))
    assert ("\x1b[31m" in file.getvalue(), "\x1b]" in file.getvalue()) == (True, False)
    assert not set(file.getvalue()) & set("\x07\x9b\u202e")
    output.print_result(ATTACK)
    output.print_result(Text(ATTACK), cut=True)
    output.print_progress(ATTACK)
    output.print_json({"title": ATTACK})
    shown = "".join(capfd.readouterr())
    assert shown.count("evil") == 4
    assert not set(shown) & set("\x1b\x07\x9b\u202e")


def test_printed_commands_can_be_pasted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """They are written as the command was called, unless the shell finds it by its name."""
    line = "next: research open last · see `research doctor`; ./research/x stays"
    assert pasteable(line) == line
    program = tmp_path / "bin" / "research"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(program), "run"])
    assert pasteable(line) == f"next: {program} open last · see `{program} doctor`; ./research/x stays"
    texts = {"wait.started": "waiting: research approve r", "source.added": "read: research plan of 1990"}
    shown = event_lines(Event(seq=1, type=name, time="", text=text) for name, text in texts.items())
    assert shown == [f"waiting: {program} approve r", "read: research plan of 1990"]
    monkeypatch.setenv("PATH", str(program.parent))
    assert pasteable(line) == line


def test_text_on_a_terminal_ends_its_last_line_and_stays_as_it_is_in_a_file(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The prompt of the shell begins a line of its own; a file has the bytes that were hashed."""
    output.print_bytes(b"no end")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    output.print_bytes(b"no end")
    output.print_bytes(b"an end\n")
    assert capfdbinary.readouterr().out == b"no endno end\nan end\n"


def test_the_summary_keeps_quotes_and_lists_apart_from_the_sources() -> None:
    """A wrapped quote is a quote in each line, a list item is indented, and an empty line stands before the sources."""
    words = "heat " * 30
    markdown = f"# T\n\n## Passages\n\n> {words}[1]\n>\n> ```\n>     x = 1\n> ```\n\n- {words}\n\n## Sources\n"
    report = {
        "report": {"markdown": markdown},
        "sources": [{"id": "src-1", "title": "Pumps"}],
        "citations": [{"number": 1, "source_id": "src-1"}],
    }
    lines = shown_text(report, whole=False)
    assert all(len(line) <= LINE_CHARACTERS for line in lines)
    start = lines.index("Passages") + 2
    assert lines[start].startswith("> heat")
    assert lines[start + 1].startswith("> heat")
    assert lines[start + 1].endswith("[1]")
    assert lines[start + 2 : start + 7] == [">", "> ```", ">     x = 1", "> ```", ""]
    assert (lines[start + 7][:6], lines[start + 8][:6]) == ("- heat", "  heat")
    assert lines[-3:] == ["", "[1] Pumps", ""]
    report["sources"], report["citations"] = [], []
    assert shown_text(report, whole=False)[-2:] == [lines[start + 8], ""]


def test_the_process_ends_with_a_message_whatever_happens(capsys: pytest.CaptureFixture[str]) -> None:
    """An unforeseen error prints its traceback, too; Ctrl-C has exit code 5."""

    def ended_by(error: BaseException) -> tuple[int, list[str]]:
        def command() -> int:
            raise error

        return run_guarded(command), capsys.readouterr().err.splitlines()

    code, lines = ended_by(KeyError("surprise"))
    assert (code, lines[-1]) == (1, "research: internal error (KeyError): please report it with the lines above")
    assert "KeyError: 'surprise'" in lines
    assert ended_by(KeyboardInterrupt()) == (5, ["research: stopped"])


def test_every_end_of_a_run_has_its_exit_code() -> None:
    """Scripts rely on them."""
    codes = [ExitCode.of(outcome, StopReason.INTERNAL_ERROR).value for outcome in Outcome]
    names = [outcome.value for outcome in Outcome]
    assert dict(zip(names, codes, strict=True)) == {
        "completed": 0, "partial": 3, "empty": 8, "refused": 4, "cancelled": 5, "timed_out": 6, "failed": 4,
    }  # fmt: skip
    assert ExitCode.of(Outcome.REFUSED, StopReason.INVALID_INPUT) == 2
    assert ExitCode.of(Outcome.REFUSED, StopReason.NO_PROVIDERS) == 7


def test_a_run_is_named_by_its_id_a_beginning_or_an_end() -> None:
    """`last` is the newest; an ambiguous or unknown name is refused with the way to the list."""
    known = ["r-20261121-7k3f", "r-20261121-9xyz", "backups"]
    assert resolve_id("last", known) == known[0]
    assert [resolve_id(given, known) for given in ("7k3f", known[1], "back")] == known
    for given, problem in (("r-2026", "fits several runs"), ("z9", "see `research list`"), ("", "no run ''")):
        with pytest.raises(CommandError, match=problem):
            resolve_id(given, known)
    assert check_id(new_id()).startswith("r-2")
    for given in ("last", "../x", "x" * 65):
        with pytest.raises(BadParameter, match=r"up to 64 letters|newest run"):
            check_id(given)


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("How does PostgreSQL prevent transaction ID wraparound?", "how-does-postgresql-prevent-transaction-id"),
        ("什么是数据库?", "report"),
        ("../../etc/passwd", "etc-passwd"),
        ("x" * 80, "x" * 48),
    ],
)
def test_a_folder_has_a_plain_short_name(question: str, name: str) -> None:
    """No part of a question can leave the folder `reports`."""
    folder = default_folder(question, "r-1")
    assert (folder.parent, folder.name[11:]) == (Path("reports"), name)


def test_another_runs_report_is_not_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same question on the same day gets a folder of its own; the same run gets its folder again; no half of a file stays."""
    monkeypatch.chdir(tmp_path)
    first = default_folder("Why?", "r-20261121-aaaa")
    write_report(first, {"json": json.dumps({"research_id": "r-20261121-aaaa"}).encode(), "md": b"old"})
    assert default_folder("Why?", "r-20261121-aaaa") == first
    assert default_folder("Why?", "r-20261121-bbbb").name == f"{first.name}-r-20261121-bbbb"
    assert default_folder("Why?", "spring-1") != default_folder("Why?", "autumn-1")
    write_report(first, {"md": b"new"})
    assert (first / "report.md").read_bytes() == b"new"
    target = tmp_path / "folder"
    target.mkdir()
    with pytest.raises(OSError, match="folder"):
        write_atomically(target, b"half a file")
    assert {path.name for path in tmp_path.iterdir()} == {"folder", "reports"}


def test_help_loads_nothing_heavy() -> None:
    """`research --help` answers at once because server, contracts and terminal library stay unloaded."""
    program = (
        "import sys, client.cli.app\n"
        "print([name for name in ('temporalio', 'pydantic', 'workers', 'anthropic') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.soak
def test_a_command_over_stored_runs_loads_no_language() -> None:
    """Most of the time of `research list` is its start: what divides text into sentences and stems stays unloaded."""
    program = "import sys, client.cli.context; print([name for name in ('nupunkt', 'snowballstemmer') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.soak
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
