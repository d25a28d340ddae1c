"""`report`, `open`, `sources` and `decisions`: read the report, sources and decisions of a run."""

import asyncio
import webbrowser
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from rich.text import Text
from typer import Argument, Option

from client.cli.context import CommandContext, RunInfo
from client.cli.options import AsJson, Commands, RunId
from client.cli.output import CommandError, ExitCode, print_bytes, print_hint, print_json, print_progress, print_result
from client.cli.reports import fidelity_in, write_for_person, write_report
from client.handle import DEFAULT_TENANT
from client.run_results import refusal_of
from client.view.picture import illustrate
from client.view.words import CLOCK, LOW_FIDELITY_ADVICE, fidelity_lines, levels_shown, local_time, printable
from contracts.evidence import ReportDraft, Source, source_document
from contracts.outcome import AgentDecision
from contracts.state import ResearchState
from contracts.texts import plural
from contracts.tokens import LOW_FIDELITY
from contracts.vocabulary import Outcome, SourceStatus
from providers.errors import ContentMissing
from workers.own_process import files_of_user

SHOWN_FIGURES: Final = ("turn", "coerced_from", "score", "sub_queries", "source_count", "finding_count", "gap_count")

commands = Commands()


@commands.command("report")
async def report(
    context: CommandContext,
    run_id: RunId = "last",
    *,
    form: Annotated[Literal["md", "html", "json"], Option("--format", help="format of the report")] = "md",
    out: Annotated[Path | None, Option(metavar="FILE", help="write it there")] = None,
    metadata: Annotated[bool, Option("--include-metadata", help="add what share of the content models saw")] = False,
    as_json: AsJson = False,
) -> None:
    """Print the report of a run, or write it to a file; for a running run its draft.

    In HTML a picture of the run's calls is under *Method*, while a server is running that has them.

    research report 7k3f --format html --out report.html
    research report 7k3f --include-metadata --json
    """
    if as_json and not metadata:
        raise CommandError("--json needs --include-metadata; `--format json` prints report.json")
    run = await context.find(run_id)
    documents = await load_documents(context, run)
    if form == "html":
        documents = await illustrate(documents, run.handle)
    data = documents.get(form)
    fidelity = fidelity_in(documents)
    if data is None:
        raise CommandError(f"this run has no report as {form}: use --format md", ExitCode.FAILED)
    if out is not None:
        write_for_person(out, data)
    elif not as_json:
        print_bytes(data)
    if as_json:
        document: dict[str, Any] = {"research_id": run.research_id}
        if out is None:
            document["report"] = data.decode()
        is_low = fidelity is not None and fidelity.fidelity < LOW_FIDELITY
        document |= {
            "fidelity": fidelity and fidelity.model_dump(mode="json"),
            "levels": levels_shown(fidelity) if fidelity else {},
            "advice": LOW_FIDELITY_ADVICE if is_low else "",
        }
        print_json(document)
    elif metadata:
        sources = run.state.evidence.sources if run.state else {}
        for line in fidelity_lines(fidelity, {name: source.title for name, source in sources.items()}):
            print_progress(printable(line))


@commands.command("open")
async def open_report(context: CommandContext, run_id: RunId = "last") -> None:
    """Open the report of a run in the browser, and print its path; `research serve` shows runs on a page."""
    run = await context.find(run_id)
    documents = await illustrate(await load_documents(context, run), run.handle)
    paths = write_report(context.settings.home / "opened" / run.research_id, documents)
    path = paths.get("html") or paths["md"]
    print_result(str(path))
    with files_of_user():  # the browser's downloads belong to the person
        opened = await asyncio.to_thread(webbrowser.open, path.as_uri())
    if not opened:
        print_progress("no browser can be opened here: open the file above yourself")


@commands.command("sources")
async def sources(
    context: CommandContext,
    run_id: RunId = "last",
    source_id: Annotated[str | None, Argument(metavar="SOURCE", help="print the text of this id or number")] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """List the sources of a run (cited, read, skipped, and why), or print the archived text of one.

    research sources last 1                the text that the report cites as [1], exactly as it was quoted
    """
    state = await context.full_state(await context.find(run_id))
    if source_id is not None:
        source = find_source(state, source_id)
        if source.text is None:
            reason = source.status_reason or source.status.value.replace("_", " ")
            raise CommandError(f"nothing of {source.id} is archived: {reason}", ExitCode.FAILED)
        print_bytes(await context.stores.content.get(source.text))
        return
    numbers = {citation.source_id: citation.number for citation in state.evidence.citations}
    ordered = sorted(
        state.evidence.sources.values(), key=lambda item: (numbers.get(item.id, 10**6), item.status, item.title)
    )
    if as_json:
        print_json(
            [source_document(item, state.evidence.findings) | {"citation": numbers.get(item.id)} for item in ordered]
        )
        return
    for source in ordered:
        number = numbers.get(source.id)
        line = Text(f"{f'[{number}]' if number is not None else '':>5} {source.id}  ")
        line.append(printable(source.title), "bold" if number is not None else "")
        reason = source.status_reason or source.quality_reason
        status = source.status.value if source.status is not SourceStatus.FULL else source.quality.value
        details = f"  {printable(source.shown_url)}  {status}" + (f": {printable(reason)}" if reason else "")
        print_result(line.append(details, "dim"))
        for warning in source.warnings:
            print_result(Text(f"      {printable(warning)}", "dim"))


@commands.command("decisions")
async def decisions(context: CommandContext, run_id: RunId = "last", *, as_json: AsJson = False) -> None:
    """Print the decisions of a run: time, phase, agent, action and reason."""
    state = await context.full_state(await context.find(run_id))
    if as_json:
        print_json([decision.model_dump(mode="json") for decision in state.people.decisions])
        return
    for decision in state.people.decisions:
        print_result(_decision_line(decision))
    if state.people.decisions_dropped:
        print_progress(f"{plural(state.people.decisions_dropped, 'later decision')} did not fit into the log")


async def load_documents(context: CommandContext, run: RunInfo) -> dict[str, bytes]:
    """Load the forms of a report, or a marked draft. Raises `CommandError` with the remedy."""
    research_id = run.research_id
    result = await run.result()
    documents = {}
    if result is not None:
        documents = await context.report_documents(result)
    if documents:
        return documents
    if result is not None and result.outcome is Outcome.REFUSED:
        raise CommandError(refusal_of(result), ExitCode.of(result.outcome, result.stop_reason))
    draft = await _newest_draft(context, run)
    if draft is None:
        raise CommandError(f"the run {research_id} has no report: see `research status {research_id}`", ExitCode.FAILED)
    finish = f"`research resume {research_id} --now` finishes its report"
    problem = "the run is not over"
    if not run.running:
        problem = f"the run ended or was interrupted before its report; {finish}"
    print_hint(f"this is a draft: {problem}")
    mark = f"> **Draft:** {problem}. Its citations have no numbers yet and were not checked.\n\n"
    return {"md": mark.encode() + draft}


async def _newest_draft(context: CommandContext, run: RunInfo) -> bytes | None:
    """Load the newest text of a run; the state of a running one may be newer than its checkpoint."""
    draft = run.state.evidence.draft if run.state is not None else None
    if run.open is not None and isinstance(newest := await run.open.report(), ReportDraft):
        draft = newest
    if draft is None:
        return None
    try:
        return await context.stores.content.get(draft.document)
    except ContentMissing:
        if run.handle is None:
            raise
        tenant = run.resolved.tenant if run.resolved else DEFAULT_TENANT
        return (await run.handle.document("draft.md", tenant=tenant)).encode()


def find_source(state: ResearchState, source_id: str) -> Source:
    """Find a source by its citation number, its id or the beginning of it. Raises `CommandError`."""
    number = source_id.strip("[]")
    if number.isdecimal():
        source_id = next((item.source_id for item in state.evidence.citations if item.number == int(number)), source_id)
    matches = [
        source for name, source in state.evidence.sources.items() if name == source_id or name.startswith(source_id)
    ]
    if len(matches) != 1:
        count = "no source" if not matches else "more than one source"
        raise CommandError(f"{count} {source_id[:80]!r} in this run: see `research sources`")
    return matches[0]


def _decision_line(decision: AgentDecision) -> Text:
    phase = f"{decision.phase} {decision.iteration}" if decision.phase else ""
    values = decision.inputs | (decision.outputs or {})
    details = [str(values[name]) for name in ("agent", "operation") if values.get(name)]
    details += [f"{name.replace('_', ' ')} {values[name]}" for name in SHOWN_FIGURES if name in values]
    text = "  ".join(filter(None, (" · ".join(map(printable, details)), printable(decision.rationale))))
    action = f"{decision.agent}: {decision.action.replace('_', ' ')}"
    line = Text(f"{decision.seq:>3}  {local_time(decision.timestamp, CLOCK)}  {phase:<14} {action}")
    return line.append(f"  {text}" if text else "", "dim")
