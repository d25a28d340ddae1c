"""A refresh: the sources of a finished run are read again, and what rests on a text that differs is withdrawn.

A source that cannot be read again counts as it is archived: its passages can still be shown and checked.
"""

import asyncio
from collections.abc import Collection, Mapping

from temporalio.exceptions import ActivityError

from contracts import activities
from contracts.evidence import Source
from contracts.messages import ReadRecord, ReadRequest
from contracts.names import READING_QUEUE
from contracts.outcome import Usage
from contracts.state import ResearchState
from contracts.texts import plural
from contracts.vocabulary import AgentRole
from workflows.phases.drafts import withdraw_evidence
from workflows.phases.gathering import conditions_of, fields_read
from workflows.run.budget import account
from workflows.run.calls import call_options, is_cancelled, reason_of
from workflows.run.host import abandon
from workflows.run.research_run import ResearchRun


async def read_again(run: ResearchRun) -> dict[str, ReadRecord]:
    """Read the due sources again, side by side; the records of those whose text differs, by source id.

    A source stays due until its record is taken over (`withdraw_sources`). Raises `Interrupted`.
    """
    state, refresh = run.state, run.state.refresh
    if refresh is None:
        return {}
    sources = [state.sources[name] for name in refresh.due if name in state.sources]
    at_once = asyncio.Semaphore(run.resolved.limits.max_parallel)

    async def read(source: Source) -> ReadRecord:
        async with at_once:
            remaining = run.clock.remaining_work_seconds()
            options = call_options(READING_QUEUE, f"read-again/{source.id}", f"read again: {source.title}", remaining)
            return await run.host.execute(activities.READ_SOURCE, _request(run, source), options)

    reads = [asyncio.ensure_future(read(source)) for source in sources]
    try:
        await run.within_limits(run.host.settle(reads))
    finally:
        await abandon(run.host, [each for each in reads if not each.done()])
    changed, same = dict[str, ReadRecord](), list[str]()
    for source, done in zip(sources, reads, strict=True):
        error = done.exception()
        if isinstance(error, ActivityError) and not is_cancelled(error):
            refresh.lost[source.id] = reason = reason_of(error)
            run.note("source.failed", f"not read again: {source.title} ({reason})", kind=reason, title=source.title)
        elif error is not None:
            raise error
        elif source.text is None or done.result().text.hash != source.text.hash:
            changed[source.id] = done.result()
            run.note("source.changed", f"changed: {source.title}", source_id=source.id, title=source.title)
            continue
        else:
            refresh.lost.pop(source.id, None)
        same.append(source.id)
    account(state, AgentRole.GATHERER, Usage(reads=len(sources)))
    refresh.due = [name for name in refresh.due if name not in same]
    read_count = len(sources) - len(refresh.lost)
    text = f"{plural(read_count, 'source')} read again, {len(changed)} changed, {len(refresh.lost)} not to be had"
    run.note("status", text, changed=len(changed), lost=len(refresh.lost))
    return changed


def _request(run: ResearchRun, source: Source) -> ReadRequest:
    request = ReadRequest(
        source_id=source.id,
        url=source.url,
        title=source.title,
        exposes_private_text=run.exposes_private_text(source.url),
        permitted=run.is_permitted,
        known_entry=source.entry or "",
    )
    questions = [query.text for query in run.state.plan.sub_queries]
    return request.model_copy(update=conditions_of(run, source.url, questions))


async def withdraw_sources(run: ResearchRun, changed: Mapping[str, ReadRecord]) -> None:
    """Take the findings of changed sources out of report and state, and their new texts in. Raises `Interrupted`."""
    state = run.state
    withdrawn = [key for key, item in state.evidence.items() if item.source_id in changed]
    await withdraw_evidence(run, withdrawn)
    forget_sources(state, changed)
    for name, record in changed.items():
        source = state.sources[name]
        state.note_entry(record.entry)
        fresh = {"analyzed": False, "hit_entries": [], "found_quality": None}
        state.sources[name] = source.model_copy(update=fields_read(record, source.url, source.title) | fresh)
    if state.refresh is not None:
        state.refresh.due = [name for name in state.refresh.due if name not in changed]


def forget_sources(state: ResearchState, names: Collection[str]) -> None:
    """Remove the passages of sources, and the findings that rest on them alone."""
    state.evidence = {key: item for key, item in state.evidence.items() if item.source_id not in names}
    stays = []
    for finding in state.findings:
        evidence = [key for key in finding.evidence_ids if key in state.evidence]
        sources = [name for name in finding.source_ids if name not in names]
        if evidence:
            stays.append(finding.model_copy(update={"evidence_ids": evidence, "source_ids": sources}))
    state.findings = stays
