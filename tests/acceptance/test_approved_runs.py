"""Plans that wait for a person, through the real command: edited, refused, approved, and looked at while they are worked on."""

import asyncio
import os
import pty
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from contracts.vocabulary import RunStatus
from tests.acceptance.topology import ROOT, Topology, topology
from tests.integration.runs import QUESTION, until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(240)]

LATENCY = 0.5
NARROWER = "How do vacuum and freezing prevent transaction ID wraparound?"
EDITOR = f"""\
import pathlib, sys

path = pathlib.Path(sys.argv[1])
path.write_text(path.read_text().replace({QUESTION!r}, {NARROWER!r}))
"""
LONGEST_WAIT = 90.0
NO_TEXT = os.fsdecode(b"\xff\xfe")


async def begun(made: Topology, *words: str) -> asyncio.subprocess.Process:
    """Start `research run` without a terminal; it has workers of its own."""
    return await made.begin("run", QUESTION, "--corpus", str(made.documents), *words)


async def wait_until_shown(made: Topology, words: Sequence[str], text: str) -> str:
    """Give a command again and again until its output has a text; return the output."""
    while True:
        _, output, _ = await made.command(*words)
        if re.search(text, output):
            return output
        await asyncio.sleep(0.1)


@pytest.mark.soak
async def test_a_scope_is_edited_authorized_and_watched_at_work(tmp_path: Path) -> None:
    """An edit is judged anew, no other words than the phrase begin the run, and `plan` shows its tree as it grows
    (S4-006, S4-008).
    """
    async with topology(tmp_path, LATENCY) as made:
        editor = tmp_path / "editor.py"
        editor.write_text(EDITOR, encoding="utf-8")
        made.variables["EDITOR"] = f"{sys.executable} {editor}"
        run = await begun(made, "--strategy", "recursive", "--depth", "medium", "--id", "r-tree")
        await wait_until_shown(made, ("plan", "r-tree"), "plan version 1")
        assert set(made.model.counts()) == {"manager"}
        code, _, errors = await made.command("plan", "r-tree", "--edit")
        assert code == 0, errors
        shown = await wait_until_shown(made, ("plan", "r-tree"), "plan version 2")
        assert NARROWER in shown
        assert made.model.counts() == {"manager": 2}
        for words in ((), ("--phrase", "Not Authorized to execute yet"), ("--phrase", ""), ("--version", "1")):
            code, _, errors = await made.command("approve", "r-tree", *words)
            assert code == 2, words
            assert "Authorized to execute" in errors or "version" in errors
        assert made.model.counts() == {"manager": 2}
        code, _, errors = await made.command("approve", "r-tree", "--phrase", "authorized to execute")
        assert code == 0, errors
        grown = await wait_until_shown(made, ("plan", "r-tree"), r"(?m)^ {4,}\S+ answer question")
        assert run.returncode is None
        assert "approved as version 2" in grown
        output, errors = (text.decode() for text in await run.communicate())
        audited, _, _ = await made.command("audit", "r-tree")
    assert run.returncode == 0, errors
    assert "✔ completed" in output
    assert audited == 0


class Terminal:
    """A command at a terminal: what it shows, and what a person types."""

    def __init__(self, made: Topology) -> None:
        self._made = made
        self._screen, self._cable = pty.openpty()
        self.shown = ""

    async def start(self, *words: str) -> asyncio.subprocess.Process:
        program = str(Path(sys.executable).with_name("research"))
        ends = {"stdin": self._cable, "stdout": self._cable, "stderr": self._cable}
        environment = self._made.environment() | {"TERM": "xterm", "COLUMNS": "120", "LINES": "40"}
        process = await asyncio.create_subprocess_exec(program, *words, cwd=ROOT, env=environment, **ends)
        os.close(self._cable)
        asyncio.get_running_loop().add_reader(self._screen, self._read)
        return process

    async def wait_for(self, text: str) -> None:
        async with asyncio.timeout(LONGEST_WAIT):
            while text not in self.shown:
                await asyncio.sleep(0.05)

    def type(self, line: str) -> None:
        os.write(self._screen, f"{line}\n".encode())

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._screen)
        os.close(self._screen)

    def _read(self) -> None:
        try:
            self.shown += os.read(self._screen, 65_536).decode("utf-8", "replace")
        except OSError:  # the command has ended
            asyncio.get_running_loop().remove_reader(self._screen)


@pytest.mark.soak
@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "pipe"])
async def test_a_living_report_is_approved_and_grows(tmp_path: Path, *, terminal: bool) -> None:
    """At a terminal `run` asks in place, without one it says which command approves; nothing is read before (S2-015)."""
    async with topology(tmp_path, LATENCY) as made:
        words = ("--strategy", "living", "--id", "r-grown", "--out", str(tmp_path / "out"))
        if terminal:
            person = Terminal(made)
            run = await person.start("run", QUESTION, "--corpus", str(made.documents), *words)
            await person.wait_for("Begin with this plan?")
            assert set(made.model.counts()) == {"decomposer"}
            person.type("y")
            code = await run.wait()
            shown = person.shown
            person.close()
        else:
            run = await begun(made, *words)
            handle = (await made.client()).get_workflow_handle("r-grown")
            await until(handle, lambda status: status.status is RunStatus.AWAITING_APPROVAL)
            _, plan, _ = await made.command("plan", "r-grown")
            assert "outline:" in plan
            for words in (("steer", "r-grown", NO_TEXT), ("answer", "r-grown", NO_TEXT), ("approve", "--version", "0")):
                refused, _, errors = await made.command(*words)
                assert (refused, "Traceback" in errors) == (2, False), errors
            assert made.model.counts() == {"decomposer": 1}
            approved, _, errors = await made.command("approve", "r-grown")
            assert approved == 0, errors
            output, told = (text.decode() for text in await run.communicate())
            code, shown = run.returncode, output + told
            assert "research approve r-grown" in told
        assert code == 0, shown
        assert "completed" in shown
        assert (tmp_path / "out" / "report.md").read_text(encoding="utf-8").startswith("# ")
