"""`thread`: all questions of a thread with their answers, here or as one document with one list of sources."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

from pydantic import TypeAdapter
from rich.text import Text
from typer import Option

from activities.reporting.audit import READ, REPORT
from activities.reporting.render import FORMS, RenderedForms
from client.cli.audit import EXPORT_SECONDS, EXPORTS, FILE, MEMORY_BYTES
from client.cli.context import CommandContext, RunInfo
from client.cli.options import AsJson, Commands, RunId
from client.cli.output import CommandError, print_hint, print_json, print_result
from client.cli.reports import shown_text, write_for_person
from client.exchange.thread import ThreadPart
from client.run_results import reasons_of
from client.view.picture import illustrate_thread
from client.view.words import printable, thread_words
from contracts.evidence import DocumentRef
from contracts.names import MODULE_PREFIX
from contracts.outcome import ResearchResult
from contracts.report import VERDICT_SIGNS, QuestionThread, Report, ThreadAnswer
from contracts.vocabulary import Outcome
from providers.errors import ContentCorrupt, ContentMissing, InputUnprocessable
from providers.isolation.pool import SubprocessPool

RENDER: Final = f"{MODULE_PREFIX}client.exchange.thread:render_thread"
PARTS: Final = TypeAdapter(list[ThreadPart])
SUFFIXES: Final = {suffix: form for form, (_, suffix) in EXPORTS.items()}
"""Export format by the end of a file's name."""
RENDERED: Final = (".html", ".md", ".json")
"""Ends of the names of files that have a form of the report itself."""

commands = Commands()


@commands.command("thread")
async def thread(
    context: CommandContext,
    run_id: RunId = "last",
    *,
    out: Annotated[
        Path | None,
        Option(metavar="FILE", help="write one document there: .html, .md, .json, .docx, .pdf, .bib or .csl.json"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show all questions of a thread, or write them as one document in which each source stands once.

    ID is any run of the thread. `research audit FILE.json` checks the document as it checks a report.

    research thread last
    research thread 7k3f --out thread.html
    """
    if out is not None:
        form_of(out)  # before anything is read
    loaded = await load_thread(context, (await context.find(run_id)).research_id, context.tenant)
    if out is not None:
        write_for_person(out, await export_thread(context, loaded, out))
        return
    summary = QuestionThread.of(loaded.answers)
    if as_json:
        print_json(summary.model_dump(mode="json"))
        return
    _print_thread(loaded, summary)


def form_of(path: Path) -> str:
    """Return the end of a file's name that decides the format. Raises `CommandError` for any other."""
    for suffix in (*SUFFIXES, *RENDERED):
        if path.name.lower().endswith(suffix):
            return suffix
    raise CommandError(f"the name of {path.name} has no known end: use {', '.join((*RENDERED, *SUFFIXES))}")


# --- which runs are a thread ------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class LoadedThread:
    """The runs of a thread, oldest first, with their `report.json` as far as they have one."""

    answers: Sequence[ThreadAnswer]
    documents: Mapping[str, bytes] = field(default_factory=dict)
    """By id of the run."""


def members_of(research_id: str, above: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the ids of the runs that share the first question with a run, in the order of `above`.

    `above` has, of each stored run, the ids above it in its thread, the first question first. A run that is no longer
    stored still connects those that name it.
    """

    def first_of(name: str) -> str:
        seen = {name}
        while (names := above.get(name)) and names[0] not in seen:
            name = names[0]
            seen.add(name)
        return name

    first = first_of(research_id)
    return [name for name in above if first_of(name) == first]


async def load_thread(
    context: CommandContext, research_id: str, tenant: str | None = None, *, documents: bool = True
) -> LoadedThread:
    """Load the runs of a thread, of one tenant if that is given, with their `documents`.

    Raises `CommandError` if none is stored.
    """
    sessions = await context.stores.sessions.list()
    runs = [
        await context.load_run(name) for name in members_of(research_id, {s.research_id: s.thread for s in sessions})
    ]
    own = [run for run in runs if run.resolved is not None and tenant in (None, run.resolved.tenant)]
    own.sort(key=lambda run: run.stored_state().clock.started_at)
    answers = []
    found: dict[str, bytes] = {}
    for run in own:
        result = await run.result()
        answered = result is not None and result.files is not None
        if documents and result is not None and result.files is not None:
            try:
                found[run.research_id] = await context.stores.content.get(result.files.json_document)
            except (ContentMissing, ContentCorrupt):
                answered = False
                result = result.with_fields(limitations=["its stored report is gone or damaged", *result.limitations])
        answers.append(answer_of(run, result, answered=answered))
    if not answers:
        raise CommandError(f"nothing is stored of the thread of {research_id}: see `research list`")
    return LoadedThread(answers, found)


def answer_of(run: RunInfo, result: ResearchResult | None, *, answered: bool) -> ThreadAnswer:
    """Return the line of a run in its thread; `result` is None as long as it is at work."""
    state = run.stored_state()
    resolved = run.stored_resolution()
    counts = state.counts() if result is None else result.counts
    reasons: list[str] = []
    if result is not None and (result.outcome is not Outcome.COMPLETED or not answered):
        reasons = reasons_of(result)
    return ThreadAnswer(
        research_id=run.research_id,
        query=resolved.query,
        follows=resolved.follow_up.research_id if resolved.follow_up else "",
        strategy=resolved.strategy,
        status=state.work.status.value if result is None else result.outcome.value,
        reason="; ".join(reasons),
        started_at=state.clock.started_at,
        ended_at="" if result is None else result.ended_at,
        cost_usd=state.accounts.usage.cost_usd if result is None else result.usage.cost_usd,
        sources_offered=counts.sources_offered,
        sources=counts.sources,
        sources_earlier=counts.sources_earlier,
        passages_cited=counts.passages_cited,
        passages_earlier=counts.passages_earlier,
        verdict_counts={} if result is None else result.verification.verdict_counts,
        answered=answered,
    )


# --- one document -----------------------------------------------------------------------------------------------------
async def render_loaded(context: CommandContext, loaded: LoadedThread) -> RenderedForms:
    """Render a thread as one report, in a process that can be killed. Raises `CommandError`."""
    if not loaded.documents:
        raise CommandError("no question of this thread has a report yet: see `research thread`")
    async with SubprocessPool(1, cpu_seconds=EXPORT_SECONDS, memory_bytes=MEMORY_BYTES) as pool:
        try:
            parts = []
            for answer in loaded.answers:
                report = None
                if answer.research_id in loaded.documents:
                    report = await pool.call(READ, loaded.documents[answer.research_id], returns=REPORT)
                    if not isinstance(report, Report):
                        name = answer.research_id
                        raise CommandError(f"the stored report of {name} cannot be read: see `research audit {name}`")
                parts.append(ThreadPart(answer=answer, report=report))
            texts = await _texts_of(context, [part.report for part in parts if part.report is not None])
            forms: RenderedForms = await pool.call(RENDER, parts, texts, returns=FORMS, seconds=EXPORT_SECONDS)
        except InputUnprocessable as error:
            raise CommandError(f"the thread cannot be written as one document: {error}") from None
        return forms


async def export_thread(context: CommandContext, loaded: LoadedThread, path: Path) -> bytes:
    """Return a thread as one document, in the format of a file's name. Raises `CommandError`."""
    suffix = form_of(path)
    forms = await render_loaded(context, loaded)
    if suffix == ".html":
        runs = [(answer.query, await context.handle_if_running(answer.research_id)) for answer in loaded.answers]
        return (await illustrate_thread(forms.html, runs)).encode()
    if suffix in RENDERED:
        return {".md": forms.markdown, ".json": forms.document}[suffix].encode()
    make, _ = EXPORTS[SUFFIXES[suffix]]
    async with SubprocessPool(1, cpu_seconds=EXPORT_SECONDS, memory_bytes=MEMORY_BYTES) as pool:
        report = await pool.call(READ, forms.document.encode(), returns=REPORT)
        data: bytes = await pool.call(make, report, returns=FILE, seconds=EXPORT_SECONDS)
    return data


async def _texts_of(context: CommandContext, reports: Sequence[Report]) -> dict[str, str]:
    """Return the stored texts of all quoted sources by hash; a missing one is shown by its passages alone."""
    texts: dict[str, str] = {}
    for report in reports:
        quoted = {item.source_id for item in report.evidence}
        for source in report.sources:
            if source.id not in quoted or source.text_hash is None or source.text_hash in texts:
                continue
            try:
                texts[source.text_hash] = await context.stores.content.get_text(DocumentRef(hash=source.text_hash))
            except (ContentMissing, ContentCorrupt):
                print_hint(f"the stored text of {printable(source.title)} is gone: its passages are shown alone")
    return texts


# --- the terminal -----------------------------------------------------------------------------------------------------
def _print_thread(loaded: LoadedThread, summary: QuestionThread) -> None:
    """Print each question with the first section of its answer, signs of its verdicts, cost and id; then the sum."""
    for number, answer in enumerate(loaded.answers, start=1):
        print_result(Text(f"{number} · {printable(answer.query)}", style="bold"))
        print_result("")
        document = loaded.documents.get(answer.research_id)
        if document is not None:
            for line in shown_text(json.loads(document), whole=False):
                print_result(f"  {line}" if line else "")
        for line in answer_lines(answer):
            print_result(f"  {line}")
        print_result("")
    last = loaded.answers[-1].research_id
    cost = cost_words(summary.cost_usd)
    print_result(f"{len(loaded.answers)} questions, {cost}" if len(loaded.answers) > 1 else f"1 question, {cost}")
    print_hint(f"go on: research ask {last} · one document: research thread {last} --out thread.html")


def answer_lines(answer: ThreadAnswer) -> list[str]:
    """Return how an answer ended, its verdicts by sign, what came from earlier ones, its cost and its id."""
    status = answer.status.replace("_", " ")
    reason = f": {printable(str(answer.reason))}" if answer.reason else ""
    signs = "  ".join(
        f"{sign} {answer.verdict_counts[name]}"
        for name, sign in VERDICT_SIGNS.items()
        if answer.verdict_counts.get(name)
    )
    lines = [f"{status}{reason}"]
    if signs:
        lines.append(signs)
    if origin := thread_words(answer):
        lines.append(origin)
    return [*lines, f"{cost_words(answer.cost_usd)} · {answer.research_id}"]


def cost_words(cost: float | None) -> str:
    """Return a cost in US dollars in words."""
    return "cost unknown" if cost is None else f"{cost:.2f} USD"
