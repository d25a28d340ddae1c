"""Asking the person at this terminal while a run is shown: the view gives way, and comes back after the answer."""

import asyncio
import sys

from client.cli import output
from client.cli.command_errors import CommandError
from client.cli.plan_text import as_text, read_plan
from client.cli.replies_of_person import edit_text, show_plan, tell_waiting
from client.client_errors import MessageRefused
from client.handle import ResearchHandle
from client.view.console import Ask
from contracts.plan import Waiting, WaitKind


class LeftWaiting(Exception):
    """Nobody can be asked here, and the command is not to wait for somebody who answers elsewhere."""

    def __init__(self, waiting: Waiting) -> None:
        super().__init__(waiting.describe())
        self.waiting = waiting


def asker(handle: ResearchHandle, *, quiet: bool, leave: bool) -> Ask:
    """How a person is asked here: in this terminal, else by naming the command, or (`leave`) not at all."""
    if sys.stdin.isatty() and sys.stderr.isatty():
        return TerminalAsker(handle).ask

    async def tell(waiting: Waiting) -> None:
        if leave:
            raise LeftWaiting(waiting)
        if quiet:  # else the lines of the events say it
            tell_waiting(waiting, handle.research_id)

    return tell


class TerminalAsker:
    """Asks on standard error and hears standard input, without a thread that would hold the process."""

    def __init__(self, handle: ResearchHandle) -> None:
        self._handle = handle

    async def ask(self, waiting: Waiting) -> None:
        """Ask until the run has taken an answer; nothing is sent at the end of input."""
        while True:
            try:
                asks = self._questions if waiting.kind is WaitKind.CLARIFICATION else self._plan
                said = await asks(waiting)
            except (MessageRefused, CommandError) as error:
                output.tell(str(error))
                continue
            if said:
                output.tell(said)
            else:
                tell_waiting(waiting, self._handle.research_id)
            return

    async def _questions(self, waiting: Waiting) -> str:
        output.tell("Before anything is planned (an empty line leaves a question open):")
        answers = []
        for place, question in enumerate(waiting.questions, start=1):
            output.tell(f"{place}. {question}")
            line = await read_line("   > ")
            if line is None:
                return ""
            answers.append(line)
        return await self._handle.answer(answers, waiting.round)

    async def _plan(self, waiting: Waiting) -> str:
        known = await self._handle.plan()
        show_plan(known.model_copy(update={"waiting": None}), self._handle.research_id)
        output.tell("Begin with this plan? y: yes · e: edit it · n: reject it · or say what should be different")
        line = await read_line("   > ")
        if line is None:
            return ""
        if line.casefold() in ("y", "yes"):
            phrase = None
            if waiting.phrase is not None:
                phrase = await read_line(f"   type “{waiting.phrase}” > ")
            return await self._handle.approve_plan(known.version, phrase)
        if line.casefold() in ("n", "no"):
            return await self._handle.reject_plan()
        if line.casefold() in ("e", "edit"):
            before = as_text(known, self._handle.research_id)
            after = await edit_text(before)
            if after == before:
                raise CommandError("nothing was changed")
            return await self._handle.revise_plan(read_plan(after), known.version)
        if not line:
            raise CommandError("say y, e or n, or what should be different")
        return await self._handle.revise_plan({"guidance": line}, known.version)


async def read_line(prompt: str) -> str | None:
    """One line of standard input, stripped; None at its end. It can be cancelled, as a thread that reads cannot."""
    sys.stderr.write(prompt)
    sys.stderr.flush()
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(sys.stdin.fileno())
    line = sys.stdin.readline()
    return line.strip() if line else None
