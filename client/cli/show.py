"""`status`, `report`, `open`, `source`, `sources`, `decisions`: read what there is."""

import asyncio
import re
import webbrowser
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from rich.text import Text

from client.cli import output
from client.cli.command_context import STATUS_OF_SERVER, CommandContext, open_context, status_at_checkpoint
from client.cli.command_errors import CommandError, ExitCode, exit_code, quote
from client.cli.report_files import FORMATS, write_all, write_atomically
from client.client_errors import ClientError
from client.handle import ResearchHandle
from client.run_results import reasons_of, refusal_of
from client.view.decision_wording import opinion_words, providers_line
from client.view.live_view import elapsed_at, waits_at
from client.view.plain_lines import local_clock
from client.view.rendering import agent_words, duration, local_time, money, printable, waits_words
from contracts.evidence import ReportDraft, Source
from contracts.outcome import AgentDecision, ResearchResult, ResearchStatus
from contracts.state import ResearchState
from contracts.texts import plural
from contracts.vocabulary import NATURAL_STOPS, STOP_REASON_TEXTS, Outcome, RunStatus, SourceStatus
from workers.private_files import files_of_person, umask_of_person

SHOWN_FIGURES: Final = ("score", "sub_queries", "source_count", "finding_count", "gap_count")
CODE: Final = re.compile(r"^[a-z]+(_[a-z]+)+(?=:)")
"""A reason's first word in the form of a program."""


async def status(given: str, *, as_json: bool) -> int:
    """Where a run stands: asked of the run if it goes on, else of the session store."""
    async with open_context(reads_only=True) as context:
        research_id = await context.resolve(given)
        known, note = await _status(context, research_id)
    if as_json:
        output.document(known.model_dump(mode="json") | ({"note": note} if note else {}))
    else:
        output.say(_status_table(known))
        if note:
            output.tell(note)
    return ExitCode.COMPLETED


async def report(given: str, *, form: str, out: Path | None) -> int:
    """The report on standard output or in a file."""
    if form not in FORMATS:
        raise CommandError(f"--format is one of {', '.join(FORMATS)}")
    async with open_context(reads_only=True) as context:
        research_id = await context.resolve(given)
        data = (await _documents(context, research_id)).get(form)
        if data is None:
            raise CommandError(f"the run {research_id} has no report as {form}", ExitCode.FAILED)
    if out is None:
        output.raw(data)
        return ExitCode.COMPLETED
    write_atomically(out, data, umask=umask_of_person())
    output.tell(str(out))
    return ExitCode.COMPLETED


async def open_report(given: str) -> int:
    """The report in the browser; its path is printed in any case."""
    async with open_context(reads_only=True) as context:
        research_id = await context.resolve(given)
        documents = await _documents(context, research_id)
        paths = write_all(context.settings.home / "opened" / research_id, documents)
    path = paths.get("html") or paths["md"]
    output.say(str(path))
    with files_of_person():  # what a browser downloads is the person's
        opened = await asyncio.to_thread(webbrowser.open, path.as_uri())
    if not opened:
        output.tell("no browser can be opened here: open the file above yourself")
    return ExitCode.COMPLETED


async def sources(given: str, *, as_json: bool) -> int:
    """All sources with what became of them."""
    async with open_context(reads_only=True) as context:
        state = await context.state(await context.resolve(given))
    numbers = {citation.source_id: citation.number for citation in state.citations}
    ordered = sorted(state.sources.values(), key=lambda each: (numbers.get(each.id, 10**6), each.status, each.title))
    if as_json:
        output.document([each.model_dump(mode="json") | {"citation": numbers.get(each.id)} for each in ordered])
        return ExitCode.COMPLETED
    for each in ordered:
        output.say(_source_line(each, numbers.get(each.id)))
    return ExitCode.COMPLETED


async def source(given: str, source_id: str, *, raw: bool) -> int:
    """The archived text (or bytes) of one source, by id or citation number."""
    async with open_context(reads_only=True) as context:
        state = await context.state(await context.resolve(given))
        wanted = _find_source(state, source_id)
        reference = wanted.raw if raw else wanted.text
        if reference is None:
            why = wanted.status_reason or wanted.status.value.replace("_", " ")
            raise CommandError(f"nothing of {wanted.id} is archived: {why}", ExitCode.FAILED)
        output.raw(await context.stores.content.get(reference))
    return ExitCode.COMPLETED


async def decisions(given: str, *, as_json: bool) -> int:
    """The decision log."""
    async with open_context(reads_only=True) as context:
        state = await context.state(await context.resolve(given))
    log = state.decisions
    texts = {query.id: query.text for query in state.plan.sub_queries}
    if as_json:
        output.document([each.model_dump(mode="json") for each in log])
        return ExitCode.COMPLETED
    for each in log:
        where = f"{each.phase} {each.iteration}" if each.phase else ""
        head = (
            f"{each.seq:>3}  {local_clock(each.timestamp)}  {where:<14} {each.agent}: {each.action.replace('_', ' ')}"
        )
        reason = CODE.sub(lambda code: code[0].replace("_", " "), printable(each.rationale))
        opinion = printable(opinion_words(each))
        reason = f"{reason} ({opinion})" if opinion else reason
        told = "  ".join(part for part in (_particulars(each, texts), reason) if part)
        output.say(Text(head).append(f"  {told}" if told else "", "dim"))
    if state.decisions_dropped:
        output.tell(f"{plural(state.decisions_dropped, 'more decision')} of this run were not kept: the log was full")
    return ExitCode.COMPLETED


def _particulars(decision: AgentDecision, texts: Mapping[str, str]) -> str:
    """Of which operation a decision tells, for which sub-query, and the points that were given."""
    known = decision.inputs | (decision.outputs or {})
    operation = str(known.get("operation") or "")
    query = next((text for name, text in texts.items() if name in operation), "")
    parts = [str(known.get("agent") or ""), f"“{query}”" if query else "", operation]
    parts += [f"{key.replace('_', ' ')} {known[key]}" for key in SHOWN_FIGURES if key in known]
    return " · ".join(printable(part) for part in parts if part)


async def _status(context: CommandContext, research_id: str) -> tuple[ResearchStatus, str]:
    """The status, and a note when it is that of the last checkpoint of a run that should be going on."""
    silence = ""
    client = await context.client_if_running()
    going_on = await context.is_running(research_id)
    state = await context.stored_state(research_id)
    if client is not None and going_on:
        try:
            return await client.handle(research_id).status(), ""
        except ClientError as error:
            silence = str(error)
    if state is None and not going_on:
        ended = await context.closed_result(research_id)
        if ended is not None:
            return status_of_result(ended, await context.question(research_id)), ""
    if state is not None:
        saved_at = "" if state.result is not None else await _saved_at(context, research_id)
        status, note = status_at_checkpoint(state, saved_at, going_on=going_on), ""
        if silence:
            note = f"as of the last checkpoint, {_age(saved_at)}: {silence}"
        elif state.result is None and not going_on and not context.server_away:
            left = "the run was interrupted" if status.outcome is None else "its state is kept"
            note = f"{left}: research resume {research_id}"
        return status, note
    if client is None:
        raise CommandError(f"nothing is stored of the run {research_id} yet: try again in a moment", ExitCode.FAILED)
    return await _status_of_server(
        client.handle(research_id)
    ), f"only what the server knows, nothing is stored yet: {silence}"


async def _saved_at(context: CommandContext, research_id: str) -> str:
    """When a session was saved last, as ISO 8601; empty if it is gone by now."""
    sessions = await context.stores.sessions.list()
    return next((each.saved_at for each in sessions if each.research_id == research_id), "")


def _age(saved: str) -> str:
    """How long ago that was."""
    if not saved:
        return "of unknown age"
    return f"{duration((datetime.now(tz=UTC) - datetime.fromisoformat(saved)).total_seconds())} ago"


def status_of_result(result: ResearchResult, question: str) -> ResearchStatus:
    """The status of a run that ended and left no session: it was refused, or could not begin."""
    return ResearchStatus(
        research_id=result.research_id,
        query=question,
        status=RunStatus(result.outcome.value),
        counts=result.counts,
        usage=result.usage,
        last_failure="; ".join(reasons_of(result)),
        outcome=result.outcome,
        stop_reason=result.stop_reason,
        started_at=result.started_at,
        ended_at=result.ended_at or None,
    )


async def _status_of_server(handle: ResearchHandle) -> ResearchStatus:
    """What the server knows of a run by itself."""
    known = await handle.server_status()
    status = STATUS_OF_SERVER.get(known.name.lower() if known else "", RunStatus.RUNNING)
    begun = await handle.started_at()
    elapsed = (datetime.now(tz=UTC) - begun).total_seconds() if status is RunStatus.RUNNING else 0.0
    return ResearchStatus(
        research_id=handle.research_id,
        query=await handle.question() or "",
        status=status,
        elapsed_seconds=max(0.0, elapsed),
        started_at=begun.isoformat(timespec="milliseconds"),
    )


async def _documents(context: CommandContext, research_id: str) -> dict[str, bytes]:
    """The forms of a report. Raises `CommandError` when there is none, with what to do."""
    result: ResearchResult | None = await context.stored_result(research_id)
    client = await context.client_if_running()
    if result is None and client is not None and await context.server_run(research_id):
        handle = client.handle(research_id)
        if await handle.is_running():
            draft = await handle.report()
            if isinstance(draft, ReportDraft):
                return await _draft(context, draft, "the run is going on")
            raise CommandError(f"the run {research_id} has no draft yet: research watch {research_id}", ExitCode.FAILED)
        result = await handle.result()
    documents = {} if result is None else await context.report_documents(result)
    if documents:
        return documents
    if result is not None and result.outcome is Outcome.REFUSED:
        raise CommandError(refusal_of(result), exit_code(result.outcome, result.stop_reason))
    ended = f"ended as {result.outcome.value.replace('_', ' ')}" if result else "was interrupted"
    state = await context.stored_state(research_id)
    if state is not None and state.draft is not None:
        remedy = f"`research resume {research_id} --now` finishes it"
        return await _draft(context, state.draft, f"the run {ended} before its report was finished; {remedy}")
    if result is None and context.server_away:
        raise CommandError(
            f"the run {research_id} has no report yet: ask again once the server answers", ExitCode.FAILED
        )
    raise CommandError(
        f"the run {research_id} {ended} without a report: research resume {research_id}", ExitCode.FAILED
    )


async def _draft(context: CommandContext, draft: ReportDraft, why: str) -> dict[str, bytes]:
    """The text of a draft, marked as what it is, also within the file."""
    output.tell(f"this is a draft: {why}")
    mark = f"> **Draft:** {why}. Its citations have no numbers yet, and nothing checked them.\n\n"
    return {"md": mark.encode() + await context.stores.content.get(draft.document)}


def _find_source(state: ResearchState, given: str) -> Source:
    number = given.strip("[]")
    if number.isdecimal():
        given = next((each.source_id for each in state.citations if each.number == int(number)), given)
    matches = [each for name, each in state.sources.items() if name == given or name.startswith(given)]
    if len(matches) != 1:
        what = "no source" if not matches else "more than one source"
        raise CommandError(f"{what} {quote(given)} in this run: research sources ID shows them")
    return matches[0]


def _source_line(source: Source, number: int | None) -> Text:
    mark = f"[{number}]" if number is not None else ""
    line = Text(f"{mark:>5} {source.id}  ")
    line.append(printable(source.title), "bold" if number is not None else "")
    why = source.status_reason or source.quality_reason
    state = source.status.value if source.status is not SourceStatus.FULL else source.quality.value
    line.append(f"  {printable(source.url)}  {state}" + (f": {printable(why)}" if why else ""), "dim")
    return line


def _status_table(status: ResearchStatus) -> Text:
    counts = status.counts
    found = [plural(counts.sources, "source"), plural(counts.findings, "finding"), plural(counts.gaps_open, "open gap")]
    limit = f" of {duration(status.deadline_seconds)}" if status.deadline_seconds else ""
    begun, now = status.engine != "", datetime.now(tz=UTC)
    rows: Sequence[tuple[str, str]] = (
        ("run", f"{status.research_id}  {status.status.value.replace('_', ' ')}"),
        ("queued", f"place {status.queue_place} of {status.queue_length}" if status.queue_place else ""),
        ("question", printable(status.query)),
        ("phase", ", ".join(part for part in (status.phase or "-", status.progress.summary) if part) if begun else ""),
        *_steps(status),
        *((agent.id, f"{agent_words(agent)}: {printable(agent.task)}") for agent in status.agents),
        (
            "with",
            " · ".join(part for part in (status.strategy, status.engine, status.corpus or "") if part)
            if status.engine
            else "",
        ),
        ("text", status.egress),
        ("searching", providers_line(status.providers) if status.web else ""),
        ("started", local_time(status.started_at)),
        ("time", f"{duration(elapsed_at(status, now))}" + limit if begun or status.elapsed_seconds else ""),
        ("waiting", waits_words(waits) if (waits := waits_at(status, now)) else ""),
        *_asked_of_person(status),
        ("used", money(status) if status.engine else ""),
        ("found", ", ".join(found) if status.engine else ""),
        ("decided", printable(_decided(status.last_decision))),
        *(("guidance", printable(f"{said.origin}: “{said.text}”")) for said in status.guidance),
        ("failed", printable(status.last_failure)),
        ("ended", _ended(status)),
    )
    return Text("\n".join(f"{label:<9} {value}" for label, value in rows if value))


def _asked_of_person(status: ResearchStatus) -> list[tuple[str, str]]:
    """What a person is waited for, until when, and the commands that answer."""
    waiting = status.waiting
    if waiting is None or status.outcome is not None:
        return []
    rows = [("asked", f"{waiting.describe()}, until {local_time(waiting.expires_at)}")]
    rows += [("", f"{place}. {printable(question)}") for place, question in enumerate(waiting.questions, start=1)]
    return rows + [("", way) for way in waiting.ways(status.research_id)]


def _steps(status: ResearchStatus) -> list[tuple[str, str]]:
    """The steps of a strategy that works in steps, each with how far it is and what it brought."""
    units = [unit for unit in status.progress.units if unit.label.startswith("step ")]
    return [(unit.label, f"{unit.mark.value}: {printable(unit.detail)}") for unit in units]


def _decided(decision: str) -> str:
    """`decide_iteration: why` without the sign that joins the words of an action."""
    action, colon, why = decision.partition(":")
    return f"{action.replace('_', ' ')}{colon}{why}"


def _ended(status: ResearchStatus) -> str:
    if status.stop_reason is None:
        return ""
    when = f"{local_time(status.ended_at)}: " if status.ended_at else ""
    lacking = status.outcome is Outcome.PARTIAL and status.stop_reason in NATURAL_STOPS
    return f"{when}{'the report says what it lacks' if lacking else STOP_REASON_TEXTS[status.stop_reason]}"
