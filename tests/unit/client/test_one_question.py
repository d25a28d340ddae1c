"""Research from Python: the process that does the work, its lines, its end, and the report as a notebook shows it."""

import asyncio
import json
import os
import sys
import time
from pathlib import Path

import pytest

from client import one_question
from client.one_question import EndedCommand, FinishedResearch, ResearchError, execute, research
from client.run_results import bare_result
from contracts.vocabulary import Outcome

STUCK = """
import signal, sys, time
def end(*_):
    print('{"saved": true}')
    sys.exit(5)
signal.signal(signal.SIGINT, end)
print("at work", file=sys.stderr, flush=True)
time.sleep(60)
"""


def command(source: str) -> list[str]:
    return [sys.executable, "-S", "-c", source]


async def test_lines_of_progress_come_and_a_problem_does_not() -> None:
    """Each line is given as it comes; a problem of several lines is the complaint, without the command's name."""
    lines: list[str] = []
    source = (
        "import sys; e = sys.stderr; print(sys.stdin.read()); print('first', file=e);"
        "print('research: the worker ended: trying once more', file=e); print('  an indented line', file=e);"
        "print('research: invalid request:\\n          limits: too low\\nlast', file=e); sys.exit(2)"
    )
    ending = await execute(command(source), b'{"query": "x"}', lines.append)
    assert ending == EndedCommand(2, b'{"query": "x"}\n', "invalid request:\nlimits: too low")
    assert lines == ["first", "  an indented line", "last"]


async def test_a_command_that_reads_no_request_is_no_error() -> None:
    """It may end before it reads: its code says why, not a broken pipe."""
    assert (await execute(command("raise SystemExit(7)"), b"x" * 1_000_000, print)).code == 7


@pytest.mark.parametrize("how", ["cancelled", "a line that is not liked"])
async def test_a_call_that_ends_early_interrupts_its_command_once(tmp_path: Path, how: str) -> None:
    """A cancelled call, and one whose progress raises, end the command as Ctrl-C does, and wait for it."""
    ended = tmp_path / "ended"
    source = STUCK.replace("sys.exit(5)", f"open({str(ended)!r}, 'w').close(); sys.exit(5)")

    def show(line: str) -> None:
        if how == "cancelled":
            call.cancel()
        else:
            raise ValueError(line)

    call = asyncio.ensure_future(execute(command(source), b"", show))
    before = time.monotonic()
    with pytest.raises(asyncio.CancelledError if how == "cancelled" else ValueError):
        await call
    assert ended.exists()
    assert time.monotonic() - before < 30


async def test_a_command_that_ignores_the_interrupt_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has its time to save the state, and no more."""
    monkeypatch.setattr(one_question, "CLOSING_SECONDS", 0.2)
    source = STUCK.replace("SIGINT, end", "SIGINT, signal.SIG_IGN")
    pids: list[int] = []
    stuck = source.replace('"at work"', "__import__('os').getpid()")
    with pytest.raises(ZeroDivisionError):
        await execute(command(stuck), b"", lambda line: pids.append(int(line)) or 1 / 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


@pytest.mark.usefixtures("no_children")
async def test_the_sentences_are_those_of_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A misspelt field is refused with its path and the exit code of an invalid request."""
    monkeypatch.setenv("RESEARCH_HOME", str(tmp_path))
    with pytest.raises(ResearchError, match=r"invalid request:\nstrateg: unknown key") as refused:
        await research("How?", strateg="living", progress=print)
    assert refused.value.exit_code == 2


def finished(**documents: str) -> FinishedResearch:
    result = bare_result("r-1", Outcome.FAILED).with_fields(outcome=Outcome.PARTIAL, report="# How?")
    return FinishedResearch(result, {f"report.{form}": text.encode() for form, text in documents.items()})


def test_a_notebook_shows_the_report_in_a_frame_without_scripts() -> None:
    """The page is escaped as a whole, runs nothing, and opens links to sites beside the notebook, not inside."""
    page = '<p>"a"</p><a href="#s1">1</a><a href="https://site.example/">s</a><script>alert(1)</script>'
    shown = finished(html=page)._repr_html_()
    assert shown.count("<") == 2  # the frame alone
    assert 'sandbox="allow-popups allow-popups-to-escape-sandbox"' in shown
    assert "&lt;a target=&quot;_blank&quot; rel=&quot;noopener noreferrer&quot; href=&quot;https://site" in shown
    assert "&lt;a href=&quot;#s1&quot;" in shown
    assert finished()._repr_html_() == "<pre># How?</pre>"


def test_what_a_report_has_is_read_by_name(tmp_path: Path) -> None:
    """Outcome, cost and text are those of the run; cited sources come by their numbers; files are saved as they are."""
    sources = [{"id": name, "url": f"https://{name}.example/"} for name in ("a", "b", "c")]
    cited = [
        {"number": number, "source_id": name, "evidence_id": "e"} for number, name in ((2, "a"), (1, "c"), (3, "c"))
    ]
    report = {"research_id": "r-1", "report": {"markdown": "# How?"}, "sources": sources, "citations": cited}
    found = finished(md="# How?", json=json.dumps(report))
    assert (found.outcome, found.cost_usd, found.markdown) == ("partial", 0.0, "# How?")
    assert [source.id for source in found.sources] == ["c", "a"]
    assert repr(found).startswith("<r-1: partial")
    assert [path.name for path in found.save(tmp_path / "new" / "folder")] == ["report.md", "report.json"]
    assert (tmp_path / "new" / "folder" / "report.md").read_text() == "# How?"
    with pytest.raises(ResearchError, match="not on this machine"):
        _ = finished().sources
