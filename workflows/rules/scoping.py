"""What an agent is given of the run that starts it: its task, its share, its time, and what was known before. Pure."""

from typing import Final

from contracts.agents import (
    AT_ONCE,
    AgentFindings,
    AgentRecord,
    AgentRequest,
    AgentShare,
    AgentTask,
    Ledger,
    pack_contract,
)
from contracts.evidence import Source
from contracts.messages import ReadRecord
from contracts.presets import preset
from contracts.request import Clarify, Verify
from contracts.resolved import EffectiveChecks, EffectiveLimits, ResolvedResearch
from contracts.state import ResearchState
from contracts.vocabulary import RunStatus, SourceStatus
from workflows.rules.agent_merging import findings_of_agent

LEAST_SECONDS: Final = 1.0
REPORT_SHARE: Final = 0.2
"""Of an agent's time, at most, kept for its report where its run has little time left."""
MOST_KNOWN: Final = 100
"""Queries, and pages, of a ledger: what is beyond is found in the cache."""

TOLD_BY_READING: Final = frozenset(ReadRecord.model_fields) & frozenset(Source.model_fields) - {"quality"}


def scoped_limits(task: AgentTask, share: AgentShare, own: EffectiveLimits, seconds_left: float) -> EffectiveLimits:
    """The limits of an agent: its strategy's own, its task's wishes and its share, whichever is least.

    `seconds_left` is what its run has left for work. The work ends after `task.seconds`; all of it, at the latest,
    after `task.most_seconds`, and what lies between is the reserve for its report.
    """
    most = own.deadline_seconds if task.most_seconds is None else task.most_seconds
    work = own.deadline_seconds - own.reserve_seconds if task.seconds is None else task.seconds
    deadline = max(LEAST_SECONDS, min(most, seconds_left))
    reserve = max(min(own.reserve_seconds, REPORT_SHARE * deadline), deadline - work)
    sources = _least(own.max_sources, task.limits.max_sources, share.sources) or 0
    return own.model_copy(
        update={
            "deadline_seconds": round(deadline, 3),
            "reserve_seconds": round(min(reserve, deadline), 3),
            "max_sources": sources,
            "max_new_sources": min(own.max_new_sources, sources),
            "max_model_calls": _least(own.max_model_calls, task.limits.max_model_calls, share.model_calls),
            "max_tokens": _least(own.max_tokens, task.limits.max_tokens, share.tokens),
            # What a preset says of money is said of a whole run.
            "max_cost_usd": _least(task.limits.max_cost_usd, share.cost_usd),
        }
    )


def scoped_resolution(resolved: ResolvedResearch, task: AgentTask, limits: EffectiveLimits) -> ResolvedResearch:
    """What an agent knows of its run's request: how to search and with what engine, and nothing of what is asked."""
    return ResolvedResearch(
        research_id=resolved.research_id,
        query=task.text,
        language=resolved.language,
        strategy=task.strategy,
        mode=resolved.mode,
        depth=resolved.depth,
        engine=resolved.engine,
        models=resolved.models,
        model_host=resolved.model_host,
        model_prices=resolved.model_prices,
        reasoning_tokens=resolved.reasoning_tokens,
        reasoning_tiers=resolved.reasoning_tiers,
        providers=resolved.providers,
        search=resolved.search,
        corpus=resolved.corpus,
        web=resolved.web,
        limits=limits,
        gates=resolved.gates.model_copy(update={"clarify": Clarify.OFF, "hook": None}),
        verify=Verify.OFF,
        checks=EffectiveChecks(),
        tenant=resolved.tenant,
        priority=resolved.priority,
        search_attributes=resolved.search_attributes,
        canary=resolved.canary,
        exclude=resolved.exclude,
        configuration_digest=resolved.configuration_digest,
        product_version=resolved.product_version,
        egress=resolved.egress,
    )


def ledger_of(state: ResearchState, record: AgentRecord) -> Ledger:
    """What the run had asked and read when the task was given: never what agents beside it do meanwhile."""
    queries = state.query_ledger[: record.known_queries]
    known = list(state.sources.values())[: record.known_sources]
    pages = [source for source in known if source.status is SourceStatus.FULL and source.text and source.content_hash]
    plain = {"sub_query_ids": [], "rank": 1, "iteration": 1, "analyzed": False, "snippet": "", "sections": []}
    return Ledger(queries=queries[-MOST_KNOWN:], pages=[page.model_copy(update=plain) for page in pages[-MOST_KNOWN:]])


def known_record(page: Source) -> ReadRecord:
    """A page of a ledger as its reading told of it. Raises ValueError for one that was not read."""
    if page.text is None or page.content_hash is None:
        raise ValueError("a page of a ledger was read")
    told = page.model_dump(include=set(TOLD_BY_READING))
    return ReadRecord(
        **{name: value for name, value in told.items() if value is not None},
        quality=page.found_quality or page.quality,
        cached=True,
    )


def agent_request(state: ResearchState, record: AgentRecord, now: float, seconds_left: float) -> AgentRequest:
    """The request of one agent that begins now (seconds since the epoch).

    Raises ValueError without a resolution.
    """
    resolved, task = state.resolution, record.task
    run = resolved.limits
    # What all agents read at once stays within what their run may.
    reads = max(1, run.max_parallel_reads // AT_ONCE)
    side_by_side = {"max_parallel": run.max_parallel, "max_parallel_reads": reads}
    own = preset(task.strategy, resolved.depth).model_copy(update=side_by_side)
    limits = scoped_limits(task, record.share or AgentShare(), own, seconds_left)
    earlier = next((one for one in state.agents if one.task.id == task.continues), None)
    before = findings_of_agent(state, earlier.result) if earlier and earlier.result else AgentFindings()
    if earlier and earlier.result:
        task = task.model_copy(update={"given": {**earlier.result.report.continuation, **task.given}})
    ledger = ledger_of(state, record)
    return AgentRequest(
        task=task,
        resolved=scoped_resolution(resolved, task, limits),
        started_at=state.started_at,
        deadline_at=now + limits.deadline_seconds,
        approved_version=state.approved_version,
        lost_providers=state.lost_providers,
        packed_ledger=pack_contract(ledger) if ledger != Ledger() else "",
        packed_before=pack_contract(before) if before != AgentFindings() else "",
    )


def scoped_state(request: AgentRequest, resolved_entry: str, now: float) -> ResearchState:
    """The state that an agent begins with, at `now` (seconds since the epoch). Raises ValueError for what is broken."""
    if request.packed_state:
        return ResearchState.unpack(request.packed_state)
    before, ledger = request.before(), request.ledger()
    state = ResearchState(
        resolved=request.resolved,
        resolved_entry=resolved_entry,
        status=RunStatus.RUNNING,
        task=request.task,
        ledger=ledger,
        approved_version=request.approved_version,
        lost_providers=dict(request.lost_providers),
        started_at=request.started_at,
        clock_started_at=now,
        deadline_at=request.deadline_at,
        sources={source.id: source for source in before.sources},
        aliases=dict(before.aliases),
        findings=before.findings,
        evidence={item.id: item for item in before.evidence},
        gaps=before.gaps,
        notebook=list(before.notebook),
    )
    state.note_entry(resolved_entry)
    return state


def shares_of(left: AgentShare, number: int) -> list[AgentShare]:
    """What is left, in so many equal shares of whole things; the first ones get what cannot be divided."""
    return [
        AgentShare(
            sources=_part(left.sources, number, place),
            model_calls=None if left.model_calls is None else _part(left.model_calls, number, place),
            tokens=None if left.tokens is None else left.tokens // number,
            cost_usd=None if left.cost_usd is None else left.cost_usd / number,
        )
        for place in range(number)
    ]


def _part(whole: int, number: int, place: int) -> int:
    return whole // number + (place < whole % number)


def _least(*values: float | None) -> int | None:
    given = [value for value in values if value is not None]
    return min(given) if given else None  # type: ignore[return-value]  # sums of money are floats, all else is whole
