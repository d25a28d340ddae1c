"""Agents of a run: building their requests, and merging their results in task order. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from contracts.addresses import gap_id
from contracts.agents import (
    AT_ONCE,
    AgentRecord,
    AgentRequest,
    AgentShare,
    AgentTask,
    Ledger,
    LostWork,
    NodeEnd,
    NodeSummary,
    PageRead,
    TaskResult,
    agent_progress,
    collect_nodes,
)
from contracts.evidence import Finding, Gap, QueryRecord, Source
from contracts.messages import ReadRecord
from contracts.outcome import AgentDecision, Usage
from contracts.plan import WITHOUT_SEARCH, agent_nodes
from contracts.presets import preset
from contracts.request import Clarify, Verify
from contracts.resolved import EffectiveLimits, ResolvedResearch
from contracts.roles import SYNTHESIZER
from contracts.sentences import AS_DATA, Message, joined
from contracts.state import AccountsState, ClockState, EvidenceState, PeopleState, ResearchState, WorkState
from contracts.state_changes import pack_json
from contracts.tokens import MAX_SHORTENED_CALLS, FidelityTotals
from contracts.vocabulary import (
    AgentRole,
    EngineKind,
    GapStatus,
    NodeKind,
    NodeStatus,
    RunStatus,
    SourceStatus,
    StopReason,
)
from workflows.rules.duplicates import Identities
from workflows.rules.endings import may_be_read_later
from workflows.rules.gaps import VISIBLE, open_gaps, reopen_stated, silent_gap, with_gaps
from workflows.rules.sub_queries import pass_over, queries_to_analyze, unread_hits

READING_FACTOR: Final = 1.3
"""What an agent needs for its first call that reads and the turns before it, divided by that call alone."""
CALLS_OF_READING: Final = 2
"""Of a limit of calls: a turn of an agent, and the reading that it chooses."""
MIN_SECONDS: Final = 1.0
REPORT_SHARE: Final = 0.2
"""Largest share of an agent's time for its report, if its run has little time left."""
MAX_KNOWN: Final = 100
"""Limit of queries, and of pages, in a ledger; older ones may still be cache hits."""
MAX_NOTES_OF_PAGE: Final = 30
"""Limit of notes on one page in a ledger, the newest: as many as a reader of the page is shown."""
MAX_NOTES: Final = 10
"""Notes of one agent that are merged into its run's state."""

Owned = TypeVar("Owned", Finding, QueryRecord)


@dataclass(frozen=True)
class Room:
    """What is left for readings."""

    readings: int | None
    """About how many pages can still be read; None: no limit counts that."""
    limit: StopReason | None = None
    """The limit that allows the fewest."""


# --- the request ---------------------------------------------------------------------------------------------------
def agent_request(state: ResearchState, record: AgentRecord, now: float, seconds_left: float) -> AgentRequest:
    """Return the request for one agent that starts at `now` (seconds since the epoch).

    `seconds_left` is the run's remaining time for work. Raises ValueError without a resolution.
    """
    resolved = state.resolution
    task = record.task
    run_limits = resolved.limits
    # Limits that an agent has from its run in place of its strategy's preset.
    own = preset(task.strategy, resolved.depth).with_fields(
        # The reads of all agents together stay within their run's limit.
        max_parallel_reads=max(1, run_limits.max_parallel_reads // AT_ONCE),
        max_parallel=run_limits.max_parallel,
        max_searches_per_step=run_limits.max_searches_per_step,
        max_reads_per_step=run_limits.max_reads_per_step,
    )
    if run_limits.max_levels:
        own = own.with_fields(
            max_leaves=run_limits.max_leaves,
            max_corrections=run_limits.max_corrections,
            max_levels=run_limits.max_levels,
        )
    limits = scoped_limits(task, record.share or AgentShare(), own, seconds_left)
    ledger = build_ledger(state, record)
    packed_ledger = ""
    if ledger != Ledger():
        packed_ledger = pack_json(ledger.model_dump(mode="json", exclude_defaults=True, context=AS_DATA))
    return AgentRequest(
        task=task,
        resolved=scoped_resolution(resolved, task, limits),
        started_at=state.clock.started_at,
        deadline_at=now + limits.deadline_seconds,
        approved_version=state.people.approved_version,
        lost_providers=state.work.lost_providers,
        call_sizes=state.accounts.call_sizes,
        answers_counted=[*state.accounts.answers_counted, *(record.result.answers_counted if record.result else ())],
        packed_ledger=packed_ledger,
        packed_earlier=state_of_earlier(state, task).pack() if task.pages_read else "",
        run_entry=state.work.resolved_entry,
    )


def scoped_limits(task: AgentTask, share: AgentShare, own: EffectiveLimits, seconds_left: float) -> EffectiveLimits:
    """Return the limits of an agent: the lower of its strategy's and its share's.

    `seconds_left` is the run's remaining time for work. The agent's work ends after `task.seconds`, its report after
    `task.most_seconds`.
    """
    max_seconds = own.deadline_seconds if task.most_seconds is None else task.most_seconds
    work = own.deadline_seconds - own.reserve_seconds if task.seconds is None else task.seconds
    deadline = max(MIN_SECONDS, min(max_seconds, seconds_left))
    reserve = max(min(own.reserve_seconds, REPORT_SHARE * deadline), deadline - work)
    sources = min(own.max_sources, share.sources)
    return own.with_fields(
        deadline_seconds=round(deadline, 3),
        reserve_seconds=round(min(reserve, deadline), 3),
        max_sources=sources + task.protects,
        max_new_sources=min(own.max_new_sources, sources) + task.protects,
        # A preset's values are for a whole run.
        max_model_calls=share.model_calls,
        max_tokens=share.tokens,
        max_cost_usd=share.cost_usd,
        max_searches=share.searches,
    )


def scoped_resolution(resolved: ResolvedResearch, task: AgentTask, limits: EffectiveLimits) -> ResolvedResearch:
    """Return the part of a run's request that an agent gets, with its task as the question.

    Search and engine settings are the run's. From the thread above the run it gets the sources, not the questions.
    """
    earlier = resolved.follow_up
    return ResolvedResearch(
        research_id=resolved.research_id,
        language=resolved.language,
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
        protected_sources=resolved.protected_sources,
        web=resolved.web,
        tenant=resolved.tenant,
        priority=resolved.priority,
        search_attributes=resolved.search_attributes,
        canary=resolved.canary,
        exclude=resolved.exclude,
        tokens=resolved.tokens,
        configuration_digest=resolved.configuration_digest,
        product_version=resolved.product_version,
        egress=resolved.egress,
        follow_up=earlier.with_fields(query="", summary="", turns=[]) if earlier else None,
        query=task.text,
        delegated=True,
        strategy=task.strategy,
        limits=limits,
        gates=resolved.gates.with_fields(clarify=Clarify.OFF, hook=None),
        verify=Verify.OFF,
        constraints=resolved.constraints.with_fields(audience=None, region=None),
    )


def scoped_state(request: AgentRequest, now: float) -> ResearchState:
    """Return an agent's initial state at `now` (seconds since the epoch). Raises ValueError for invalid requests."""
    evidence = EvidenceState()
    if request.packed_earlier:
        evidence = ResearchState.unpack(request.packed_earlier).evidence
    evidence.ledger = request.ledger()
    return ResearchState(
        work=WorkState(
            resolved=request.resolved,
            resolved_entry=request.run_entry,
            status=RunStatus.RUNNING,
            task=request.task,
            lost_providers=dict(request.lost_providers),
        ),
        evidence=evidence,
        people=PeopleState(approved_version=request.approved_version),
        accounts=AccountsState(call_sizes=dict(request.call_sizes), answers_counted=list(request.answers_counted)),
        clock=ClockState(started_at=request.started_at, clock_started_at=now, deadline_at=request.deadline_at),
    )


def state_of_earlier(state: ResearchState, task: AgentTask) -> ResearchState:
    """Return what of a run's state an agent had found in the pages that it has read: findings, passages, open gaps."""
    evidence = state.evidence
    findings = [one for one in evidence.findings if one.sub_query_id == task.id and not one.by_rules]
    cited = {name for finding in findings for name in finding.evidence_ids}
    pages = {name: evidence.sources[name] for name in task.pages_read if name in evidence.sources}
    named = {name for finding in findings for name in finding.source_ids}
    pages |= {name: page for name, page in evidence.sources.items() if name in named}
    return ResearchState(
        evidence=EvidenceState(
            sources={name: page.with_fields(sub_query_ids=[], rank=1, iteration=1) for name, page in pages.items()},
            findings=findings,
            passages={name: item for name, item in evidence.passages.items() if name in cited},
            gaps=[
                gap for gap in evidence.gaps if gap.origin == f"sub_query:{task.id}" and gap.status is GapStatus.OPEN
            ],
        )
    )


def divide_shares(left: AgentShare, number: int) -> list[AgentShare]:
    """Divide the rest of a budget into equal shares; the first ones get the remainder of sources and calls."""

    def part(whole: int, index: int) -> int:
        return whole // number + (index < whole % number)

    return [
        AgentShare(
            sources=part(left.sources, index),
            model_calls=None if left.model_calls is None else part(left.model_calls, index),
            tokens=None if left.tokens is None else left.tokens // number,
            cost_usd=None if left.cost_usd is None else left.cost_usd / number,
            searches=None if left.searches is None else part(left.searches, index),
        )
        for index in range(number)
    ]


def with_part(share: AgentShare, part: AgentShare) -> AgentShare:
    """Return a share with its part of what others gave back; sources and searches stay as they were divided."""
    return share.with_fields(
        model_calls=None if share.model_calls is None else share.model_calls + (part.model_calls or 0),
        tokens=None if share.tokens is None else share.tokens + (part.tokens or 0),
        cost_usd=None if share.cost_usd is None else share.cost_usd + (part.cost_usd or 0.0),
    )


def agents_at_once(left: AgentShare, reading: Usage, usd: float | None, number: int) -> int:
    """Return how many of a number of agents can work at once, so that each can have a call that reads and its turns.

    `reading` is the likely size of such a call, and `usd` its likely price. One agent always works.
    """
    readings = readings_in(left, reading.tokens, usd)
    return max(1, number if readings is None else min(number, readings))


def readings_in(left: AgentShare, tokens: int, usd: float | None) -> int | None:
    """Return how many readings, with the turns that choose them, fit into the rest of a budget; None without a limit.

    `tokens` and `usd` are those of a usual reading.
    """
    counts = []
    if left.tokens is not None:
        counts.append(int(left.tokens / (READING_FACTOR * max(1, tokens))))
    if left.cost_usd is not None and usd:
        counts.append(int(left.cost_usd / (READING_FACTOR * usd)))
    return min(counts) if counts else None


def readings_paid(
    left: AgentShare, turns: Usage, reading: Usage, reserved_usd: float | None, usd: float | None
) -> Room:
    """Return how many readings the rest of a budget pays for after `turns`, which choose them.

    A reading is made only if all that it may cost, `reserved_usd`, is left; in the end it costs `usd`, as others did.
    """
    counts = dict[StopReason, int]()
    if left.model_calls is not None:
        counts[StopReason.BUDGET_CALLS] = (left.model_calls - turns.model_calls) // CALLS_OF_READING
    if left.tokens is not None:
        counts[StopReason.BUDGET_TOKENS] = _count(left.tokens - turns.tokens, reading.tokens, reading.tokens)
    if left.cost_usd is not None and reserved_usd and usd:
        counts[StopReason.BUDGET_COST] = _count(left.cost_usd - turns.known_cost_usd, reserved_usd, usd)
    if not counts:
        return Room(None)
    limit = min(counts, key=lambda reason: counts[reason])
    return Room(max(0, counts[limit]), limit)


def _count(left: float, first: float, each: float) -> int:
    """Return how many readings fit: the last one needs `first`, those before it `each` with the turns beside them."""
    beside = (READING_FACTOR - 1) * each
    if left < first + beside:
        return 0
    return 1 + int((left - first - beside) / (READING_FACTOR * each))


# --- the ledger ----------------------------------------------------------------------------------------------------
def build_ledger(state: ResearchState, record: AgentRecord) -> Ledger:
    """Return the queries and pages of a run when the task was assigned, including those of its own ledger."""
    queries = [*state.evidence.ledger.queries, *state.evidence.query_ledger[: record.known_queries]]
    own = list(state.evidence.sources.values())[: record.known_sources]
    known = {source.id: source for source in (*state.evidence.ledger.pages, *own)}.values()
    pages = [source for source in known if source.status is SourceStatus.FULL and source.text and source.content_hash]
    # An agent that goes on has its own findings as such.
    own_findings = record.task.id if record.task.pages_read else None
    found = [
        finding
        for finding in state.evidence.findings[: record.known_findings]
        if not finding.by_rules and finding.sub_query_id != own_findings
    ]
    notes = {page.id: [*state.evidence.ledger.notes.get(page.id, ())] for page in pages[-MAX_KNOWN:]}
    for finding in found:
        for source in notes.keys() & set(finding.source_ids):
            notes[source].append(finding.statement)
    results = [other.result for other in state.work.agents if other.result and other.task.id != record.task.id]
    whole = [name for result in results for name, page in result.pages_read.items() if not page.hidden]
    return Ledger(
        read_whole=list(dict.fromkeys([*state.evidence.ledger.read_whole, *whole])),
        queries=queries[-MAX_KNOWN:],
        notes={page: statements[-MAX_NOTES_OF_PAGE:] for page, statements in notes.items() if statements},
        pages=[page.with_fields(sub_query_ids=[], rank=1, iteration=1, analyzed=False) for page in pages[-MAX_KNOWN:]],
    )


def known_record(page: Source) -> ReadRecord:
    """Return the record of a ledger page, as a cache hit."""
    names = [name for name in ReadRecord.model_fields if name in Source.model_fields and name != "quality"]
    values = {name: getattr(page, name) for name in names}
    return ReadRecord(quality=page.found_quality or page.quality, cached=True, **values)


# --- the result ----------------------------------------------------------------------------------------------------
def task_result(
    state: ResearchState,
    reason: StopReason,
    summary: str,
    problem: str = "",
    node: NodeSummary | None = None,
    pages_read: Mapping[str, PageRead] | None = None,
) -> TaskResult:
    """Return an agent's result, from its own state, its part of a tree, and what it has read."""
    pass_over(state, unread_hits(state))
    results = state_for_run(state)
    return TaskResult(
        stop_reason=reason,
        problem=problem,
        defects=state.work.defects,
        summary=summary,
        finding_ids=[finding.id for finding in state.evidence.findings],
        source_ids=[source.id for source in state.evidence.readable_sources()],
        gap_ids=[gap.id for gap in state.evidence.gaps if gap.status in VISIBLE],
        pages_read=dict(pages_read or {}),
        counts=state.counts(),
        usage=state.accounts.usage.with_fields(active_seconds=0.0),
        usage_by_role=state.accounts.usage_by_role,
        answers_counted=state.accounts.answers_counted,
        repeated_by_role=state.accounts.repeated_by_role,
        lost=lost_work(state),
        failed_branches=state.work.failed_branches,
        node=None if node is None else complete_node(state, node, reason),
        calls=state.accounts.calls,
        agents=[agent_progress(record) for record in state.work.agents],
        call_sizes=state.accounts.call_sizes,
        packed=results.pack(),
    )


def add_earlier_usage(result: TaskResult, earlier: TaskResult | None) -> TaskResult:
    """Return the result of a start with the usage of the starts before it, what the journal gave again counted once."""
    if earlier is None or result.is_stub:
        return result
    again = result.repeated_by_role
    fresh = {role: usage.beyond(again.get(role, Usage())) for role, usage in result.usage_by_role.items()}
    roles = dict.fromkeys([*earlier.usage_by_role, *fresh])
    by_role = {role: earlier.usage_by_role.get(role, Usage()).plus(fresh.get(role, Usage())) for role in roles}
    repeated = sum_usage(again.values())
    return result.with_fields(usage=earlier.usage.plus(result.usage.beyond(repeated)), usage_by_role=by_role)


def sum_usage(usages: Iterable[Usage]) -> Usage:
    """Return the sum of usages."""
    total = Usage()
    for usage in usages:
        total = total.plus(usage)
    return total


def state_for_run(state: ResearchState) -> ResearchState:
    """Return the parts of an agent's state that are passed to its run."""
    work = state.work
    evidence = state.evidence
    accounts = state.accounts
    return ResearchState(
        work=WorkState(
            plan=work.plan,
            analyzed_sub_queries=work.analyzed_sub_queries,
            lost_providers=work.lost_providers,
            degraded=work.degraded,
        ),
        evidence=EvidenceState(
            notebook=evidence.notebook,
            sources=evidence.sources,
            aliases=evidence.aliases,
            passed_over=evidence.passed_over,
            query_ledger=evidence.query_ledger,
            duplicates=evidence.duplicates,
            documents_searched=evidence.documents_searched,
            term_documents=evidence.term_documents,
            spellings=evidence.spellings,
            passages=evidence.passages,
            findings=evidence.findings,
            gaps=evidence.gaps,
        ),
        accounts=AccountsState(
            fallbacks=accounts.fallbacks,
            rule_answers=accounts.rule_answers,
            engine_by_role=accounts.engine_by_role,
            models_used=accounts.models_used,
            prompt_versions=accounts.prompt_versions,
            fidelity=accounts.fidelity,
            shortened_calls=accounts.shortened_calls,
            dropped_content_ids=accounts.dropped_content_ids,
            content_archive_hashes=accounts.content_archive_hashes,
        ),
        people=PeopleState(decisions=state.people.decisions),
    )


NODE_ENDS: Final = {
    StopReason.BUDGET_TIME: NodeEnd.TIME,
    **dict.fromkeys((StopReason.BUDGET_CALLS, StopReason.BUDGET_TOKENS, StopReason.BUDGET_COST), NodeEnd.BUDGET),
    **dict.fromkeys((StopReason.USER_STOPPED, StopReason.USER_CANCELLED), NodeEnd.STOPPED),
    StopReason.CALL_NOT_ALLOWED: NodeEnd.FAILED,
    **dict.fromkeys((StopReason.PROVIDER_OUTAGE, StopReason.INTERNAL_ERROR), NodeEnd.FAILED),
}
"""Node ends for work that was cut short, by stop reason."""


def complete_node(state: ResearchState, node: NodeSummary, reason: StopReason) -> NodeSummary:
    """Return an agent's node with those of its own agents, in task order, its own usage, and its end."""
    usage = state.accounts.usage.with_fields(active_seconds=0.0)
    for record in state.work.agents:
        usage = usage.beyond(record.result.usage if record.result else Usage())
    children = collect_nodes(state.work.agents)
    end = NODE_ENDS.get(reason, node.end)
    return node.with_fields(usage=usage, below=children, end=end)


def lost_work(state: ResearchState) -> LostWork:
    """Return the unanswered work of an agent, including that of its earlier start which is still not done."""
    earlier = state.work.task.lost if state.work.task else LostWork()
    known = Identities(state.evidence.sources, state.evidence.aliases)
    searches = [node for node in state.work.plan.sub_queries if node.kind is NodeKind.QUERY]
    asked = {node.text: node.status for node in searches if node.origin != WITHOUT_SEARCH}
    sources = [
        source
        for source in state.evidence.sources.values()
        if source.status is SourceStatus.FULL or may_be_read_later(source)
    ]
    pages = [source.as_hit() for source in sources if not source.analyzed]
    return LostWork(
        queries=[
            text for text in {**asked, **dict.fromkeys(earlier.queries)} if asked.get(text) is not NodeStatus.COMPLETED
        ],
        pages=[*pages, *(hit for hit in earlier.pages if known.identity_of(hit) not in state.evidence.sources)],
    )


# --- the merge -----------------------------------------------------------------------------------------------------
def merge_agent(state: ResearchState, task: AgentTask, result: TaskResult) -> list[AgentDecision]:
    """Merge an agent's results, and return its strategy's decisions for the run's log.

    Leaves and tasks of its plan are added below its task's node, with their findings, gaps and sources; everything else
    belongs to the task's node itself.
    """
    if result.packed:
        results = ResearchState.unpack(result.packed)
    else:
        results = ResearchState()
    evidence = state.evidence
    found = results.evidence
    # The run's own entries take precedence over the agent's.
    evidence.passages = found.passages | evidence.passages
    evidence.aliases = found.aliases | evidence.aliases
    evidence.term_documents = found.term_documents | evidence.term_documents
    evidence.spellings = found.spellings | evidence.spellings
    state.work.lost_providers = results.work.lost_providers | state.work.lost_providers
    nodes = agent_nodes(results.work.plan.nodes, state.work.plan.nodes, task.id)
    state.work.plan = state.work.plan.with_nodes(*nodes)
    owners = _Owners(task.id, frozenset(node.id for node in nodes))
    known = {finding.id for finding in evidence.findings}
    new_findings = [owners.take(finding, state) for finding in found.findings if finding.id not in known]
    evidence.findings = [*evidence.findings, *new_findings]
    if not result.is_stub:
        evidence.gaps = _merge_gaps(state, results, owners)
    new_sources = _merge_sources(state, results, owners)
    pass_over(state, [hit.with_fields(sub_query_id=owners.of(hit.sub_query_id)) for hit in found.passed_over])
    _merge_node(state, task, result, results, new_sources)
    unanalyzed = {query.id for query in queries_to_analyze(results)}
    analyzed = [*([] if unanalyzed else [task.id]), *(node.id for node in nodes if node.id not in unanalyzed)]
    state.work.analyzed_sub_queries = _union(state.work.analyzed_sub_queries, analyzed)
    evidence.query_ledger = [*evidence.query_ledger, *(owners.take(record, state) for record in found.query_ledger)]
    for entry in found.notebook:
        evidence.note_entry(entry)
    evidence.duplicates += found.duplicates
    if found.documents_searched is not None:
        evidence.documents_searched = found.documents_searched
    _merge_accounts(state.accounts, results.accounts)
    state.work.degraded = _union(state.work.degraded, _prefix_notes(task, results.work.degraded))
    state.work.failed_branches = _union(state.work.failed_branches, _prefix_notes(task, result.failed_branches))
    return [
        decision.with_fields(agent=owners.of(decision.agent))
        for decision in results.people.decisions
        if decision.agent not in set(AgentRole) and not decision.action.startswith("execute_")
    ]


def _merge_accounts(accounts: AccountsState, others: AccountsState) -> None:
    """Merge the content that an agent's models were shown, and the engines and models that answered it."""
    accounts.prompt_versions = others.prompt_versions | accounts.prompt_versions
    for phase, totals in others.fidelity.items():
        own = accounts.fidelity.get(phase, FidelityTotals())
        accounts.fidelity = {**accounts.fidelity, phase: own.plus(totals)}
    shortened = _union(accounts.shortened_calls, others.shortened_calls)
    accounts.shortened_calls = shortened[-MAX_SHORTENED_CALLS:]
    accounts.dropped_content_ids = _union(accounts.dropped_content_ids, others.dropped_content_ids)
    accounts.content_archive_hashes = _union(accounts.content_archive_hashes, others.content_archive_hashes)
    accounts.models_used = _union(accounts.models_used, others.models_used)
    by_model = {role for role, kind in accounts.engine_by_role.items() if kind == EngineKind.MODEL.value}
    accounts.engine_by_role |= {role: kind for role, kind in others.engine_by_role.items() if role not in by_model}
    for role, count in others.rule_answers.items():
        accounts.rule_answers[role] = accounts.rule_answers.get(role, 0) + count
    if SYNTHESIZER.name in others.fallbacks:  # no model has room for the protected sources
        accounts.fallbacks = others.fallbacks | accounts.fallbacks


@dataclass(frozen=True)
class _Owners:
    """The nodes of a run's plan that an agent's work belongs to."""

    task: str
    nodes: frozenset[str]
    """Leaves and tasks of the agent's own plan."""

    def of(self, name: str | None) -> str:
        """Return the run's node for a name used by the agent."""
        if name in self.nodes and name is not None:
            return name
        return self.task

    def take(self, item: Owned, state: ResearchState) -> Owned:
        """Return an agent's finding or query as one of the run."""
        return item.with_fields(sub_query_id=self.of(item.sub_query_id), iteration=state.work.iteration)


def _merge_gaps(state: ResearchState, results: ResearchState, owners: _Owners) -> list[Gap]:
    """Return the gaps of run and agent; open gaps from an earlier start of this task are replaced.

    A gap that both have is closed if either has closed it.
    """
    origins = {f"sub_query:{name}" for name in (owners.task, *owners.nodes)}
    replaced = (GapStatus.OPEN, GapStatus.SUPERSEDED)
    gaps = {gap.id: gap for gap in state.evidence.gaps if gap.origin not in origins or gap.status not in replaced}
    for gap in results.evidence.gaps:
        origin = f"sub_query:{owners.of(gap.origin.removeprefix('sub_query:'))}"
        known = gaps.get(gap.id)
        if known is None:
            gaps[gap.id] = gap.with_fields(origin=origin, iteration=state.work.iteration)
        elif gap.status is GapStatus.ADDRESSED and known.status is not GapStatus.ADDRESSED:
            gaps[gap.id] = known.with_fields(status=gap.status, resolved_by=gap.resolved_by)
    return list(gaps.values())


def _merge_sources(state: ResearchState, results: ResearchState, owners: _Owners) -> int:
    """Merge sources, attributed to the agent's nodes; return the number of newly readable ones."""
    new = 0
    for source in results.evidence.sources.values():
        known = state.evidence.sources.get(source.id)
        is_readable = source.status is SourceStatus.FULL
        nodes = [name for name in source.sub_query_ids if name in owners.nodes] or [owners.task]
        found_by = _union(known.sub_query_ids if known else [], nodes)
        if known is None or (is_readable and known.status is not SourceStatus.FULL):
            new += is_readable
            merged = source.with_fields(sub_query_ids=found_by, iteration=state.work.iteration)
        else:
            merged = known.with_fields(
                sub_query_ids=found_by,
                hit_entries=_union(known.hit_entries, source.hit_entries),
                analyzed=known.analyzed or source.analyzed,
            )
        state.evidence.sources[source.id] = merged
    return new


def _merge_node(state: ResearchState, task: AgentTask, result: TaskResult, results: ResearchState, new: int) -> None:
    node = next((node for node in state.work.plan.nodes if node.id == task.id), None)
    if node is None:
        return
    stated = node.stated_gaps if result.is_stub else result.gap_ids
    if not result.finding_ids and not stated and not result.is_stub:
        # An agent that was cut short, or whose searches failed, does not show that nothing can be found.
        problem = result.problem or joined(result.failed_branches[:1])
        silent = silent_gap(node.skipped(problem) if problem else node)
        state.evidence.gaps = reopen_stated(state.evidence.gaps, [silent])
        state.evidence.gaps = with_gaps(state, open_gaps(state, [silent], f"sub_query:{node.id}"))
        stated = [gap_id(silent.description)]
    finding_ids = [finding.id for finding in state.evidence.findings if finding.sub_query_id == node.id]
    state.work.plan = state.work.plan.with_nodes(
        node.with_fields(
            status=NodeStatus.FAILED if result.is_stub else NodeStatus.COMPLETED,
            error=result.problem if result.is_stub else None,
            finding_count=len(_union(finding_ids, result.finding_ids)),
            result_count=node.result_count + sum(record.found for record in results.evidence.query_ledger),
            new_source_count=node.new_source_count + new,
            duplicate_count=node.duplicate_count + results.evidence.duplicates,
            stated_gaps=list(stated),
        )
    )


def _prefix_notes(task: AgentTask, notes: Sequence[str]) -> list[str]:
    return [Message("of_agent", agent=task.id, note=note) for note in notes[:MAX_NOTES]]


def _union(first: Iterable[str], second: Iterable[str]) -> list[str]:
    return list(dict.fromkeys([*first, *second]))
