"""Research from Python: one question, one object with its report.

The work is done by a process of its own, the command `research run`, so that an event loop that waits for a cell of a
notebook holds nothing up, and a run is stopped, continued and recorded as on the command line.
"""

import asyncio
import contextlib
import json
import signal
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Final

from client.run_results import reasons_of
from client.view.words import ending_text
from contracts.names import MODULE_PREFIX
from contracts.outcome import ResearchResult
from contracts.report import HTML_FILE, JSON_FILE, MARKDOWN_FILE, Report, ReportSource

COMMAND: Final = (sys.executable, "-P", "-m", f"{MODULE_PREFIX}client.cli")
COMPLAINT: Final = "research: "
CONTINUED: Final = " " * len(COMPLAINT)
"""Begins a problem on standard error, and each further line of it."""
LINE_BYTES: Final = 1_000_000
"""Longest line of progress."""
FRAME_PIXELS: Final = 640
FAILED: Final = 4
CLOSING_SECONDS: Final = 30.0
"""Time that a command has after an interrupt: its run closes in half of it."""
OUTSIDE_LINK: Final = '<a href="http'

Progress = Callable[[str], object]
"""Gets each line of progress."""


class ResearchError(Exception):
    """No report came of a question: the message is that of the command line, problem first, then remedy."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        """That of the command: 2 invalid request, 4 failed, 5 cancelled, 6 timed out, 7 nothing to work with."""


@dataclass(frozen=True, repr=False)
class FinishedResearch:
    """A run that has ended with a report; shown in a notebook, it is the report with its sources and verdicts."""

    result: ResearchResult
    documents: Mapping[str, bytes]
    """The files of the report by their names: `report.md`, `report.html`, `report.json`."""
    options: tuple[str, ...] = ()
    """Options of the command line that a follow-up question takes over: model, endpoint, configuration."""

    def __repr__(self) -> str:
        """Return the question's id and how it ended, in one line."""
        return f"<{self.research_id}: {ending_text(self.result)}>"

    @property
    def research_id(self) -> str:
        """Return the id, by which every command finds the run."""
        return self.result.research_id

    @property
    def outcome(self) -> str:
        """Return `completed`, `partial` or `empty`."""
        return self.result.outcome.value

    @property
    def cost_usd(self) -> float | None:
        """Return the cost of the model calls in US dollars; None if the price of a model is not known."""
        return self.result.usage.cost_usd

    @property
    def markdown(self) -> str:
        """Return the report as Markdown."""
        return self.result.report or ""

    @property
    def report(self) -> Report:
        """Return the content of `report.json`: claims, verdicts, citations, sources. Raises `ResearchError`."""
        if JSON_FILE not in self.documents:
            raise ResearchError("the stored report is not on this machine: only its Markdown is known here", FAILED)
        return Report.model_validate_json(self.documents[JSON_FILE])

    @property
    def sources(self) -> list[ReportSource]:
        """Return the cited sources in the order of their numbers."""
        report = self.report
        by_id = {source.id: source for source in report.sources}
        cited = dict.fromkeys(citation.source_id for citation in sorted(report.citations, key=lambda one: one.number))
        return [by_id[source_id] for source_id in cited]

    async def ask(self, question: str, *, progress: Progress | None = None, **request: Any) -> "FinishedResearch":
        """Ask a follow-up question: a new run that considers the sources of this one first.

        `progress` and `request` are those of `research`. Raises as `research` does.
        """
        texts = {path: value if isinstance(value, str) else json.dumps(value) for path, value in request.items()}
        assignments = [f"--set={path}={text}" for path, text in texts.items()]
        words = ["ask", *self.options, *assignments, "--", self.research_id, question]
        return await _finish(words, b"", self.options, progress or show_line)

    def save(self, folder: str | Path) -> list[Path]:
        """Write the files of the report into a folder, which is created, and return their paths. Raises OSError."""
        target = Path(folder).expanduser()
        target.mkdir(parents=True, exist_ok=True)
        for name, content in self.documents.items():
            (target / name).write_bytes(content)
        return [target / name for name in self.documents]

    def _repr_html_(self) -> str:
        """Return the report for a notebook: in a frame that runs no script, and whose style stays inside."""
        if HTML_FILE not in self.documents:
            return f"<pre>{escape(self.markdown)}</pre>"
        page = self.documents[HTML_FILE].decode()
        page = page.replace(OUTSIDE_LINK, f'<a target="_blank" rel="noopener noreferrer" href="{OUTSIDE_LINK[9:]}')
        style = f"width:100%;height:{FRAME_PIXELS}px;border:1px solid #8888;resize:vertical"
        sandbox = "allow-popups allow-popups-to-escape-sandbox"
        title = escape(f"Report of {self.research_id}")
        return f'<iframe title="{title}" style="{style}" sandbox="{sandbox}" srcdoc="{escape(page)}"></iframe>'


async def research(
    question: str,
    *,
    corpus: str | Path | None = None,
    model: str | None = None,
    model_url: str | None = None,
    config: str | Path | None = None,
    research_id: str | None = None,
    progress: Progress | None = None,
    **request: Any,
) -> FinishedResearch:
    """Research one question and return its report; starts a server where none runs.

    `corpus` is a folder of documents or the name of a corpus; without one the web is searched. `request` has further
    fields of a request, such as `strategy="living"`, `web=True`, `limits={"max_cost_usd": 1}`. With the `research_id`
    of an earlier run it is joined or resumed, or its stored report returned. `progress` gets each line of progress;
    without it a notebook or a terminal shows the newest one. Raises `ResearchError` where no report comes of it. A
    cancelled call cancels the run, whose state is saved.
    """
    fields = {"query": question, "corpus": None if corpus is None else str(corpus), **request}
    named = {"--model": model, "--model-url": model_url, "--config": config}
    options = tuple(f"{name}={value}" for name, value in named.items() if value is not None)
    words = ["run", *options, "--request=-"]
    if research_id is not None:
        words.append(f"--id={research_id}")
    given = {name: value for name, value in fields.items() if value is not None}
    return await _finish(words, json.dumps(given).encode(), options, progress or show_line)


def show_line(line: str) -> None:
    """Show the newest line of progress in a notebook or a terminal, over the one before it; an empty line ends it."""
    if "ipykernel" in sys.modules or sys.stdout.isatty():
        sys.stdout.write(f"\r{line[:118]:<118}" + ("" if line else "\r"))
        sys.stdout.flush()


async def _finish(
    words: Sequence[str], request: bytes, options: tuple[str, ...], progress: Progress
) -> FinishedResearch:
    """Execute a command of the command line and return what it finished. Raises `ResearchError`."""
    with tempfile.TemporaryDirectory(prefix="durable-research-") as folder:
        command = [*COMMAND, words[0], "--json", f"--out={folder}", *words[1:]]
        ending = await execute(command, request, progress)
        progress("")
        documents = {}
        for name in (MARKDOWN_FILE, HTML_FILE, JSON_FILE):
            with contextlib.suppress(FileNotFoundError):
                documents[name] = (Path(folder) / name).read_bytes()
    if not ending.printed:
        raise ResearchError(ending.complaint or f"the command ended with code {ending.code}", ending.code)
    result = ResearchResult.model_validate_json(ending.printed)
    if not documents:
        remedy = [f"continue: research_id={result.research_id!r}"] if result.resumable else []
        raise ResearchError("\n".join([ending_text(result), *reasons_of(result), *remedy]), ending.code)
    return FinishedResearch(result, documents, options)


@dataclass(frozen=True)
class EndedCommand:
    """The end of a process of the command line."""

    code: int
    printed: bytes
    """Standard output: one JSON document, or nothing."""
    complaint: str
    """The last problem on standard error; empty without one."""


async def execute(command: Sequence[str], request: bytes, progress: Progress) -> EndedCommand:
    """Run a command to its end, with a request on its standard input; each line of progress is given to `progress`.

    If this call is cancelled or `progress` raises, the command is interrupted as by Ctrl-C, so that its run is
    cancelled and saved, and killed if that takes too long.
    """
    # In a session of its own: Ctrl-C of a terminal reaches this process alone, and the command is interrupted once.
    process = await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=PIPE, stderr=PIPE, limit=LINE_BYTES, start_new_session=True
    )
    try:
        return await _converse(process, request, progress)
    finally:
        if process.returncode is None:
            await _interrupt(process)


async def _converse(process: Process, request: bytes, progress: Progress) -> EndedCommand:
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    with contextlib.suppress(ConnectionError):  # it ended before it read the request: its complaint says why
        process.stdin.write(request)
        await process.stdin.drain()
    process.stdin.close()
    complaint: list[str] = []
    printing = asyncio.create_task(process.stdout.read())
    try:
        async for raw in process.stderr:
            line = raw.decode("utf-8", "replace").rstrip()
            if line.startswith(COMPLAINT):
                complaint = [line.removeprefix(COMPLAINT)]
            elif complaint and line.startswith(CONTINUED):
                complaint.append(line.removeprefix(CONTINUED))
            else:
                progress(line)
        printed = await printing
    finally:
        printing.cancel()
    return EndedCommand(await process.wait(), printed, "\n".join(complaint))


async def _interrupt(process: Process) -> None:
    """End a command as by Ctrl-C; kill it if its run does not close in time."""
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)
    try:
        with contextlib.suppress(TimeoutError):
            # Its output is read, since a full pipe would hold it up.
            await asyncio.wait_for(process.communicate(), CLOSING_SECONDS)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    await process.wait()
