"""The `recursive` strategy: scope → a person's authorization → vetted sources and trees → executors → report."""

from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Final

from contracts.agents import NodeEnd, NodeSummary, collect_nodes
from contracts.outcome import Pause, Progress
from contracts.plan import PlanNode
from contracts.recursive_roles import MANAGER
from contracts.research_trees import ResearchTree
from contracts.roles import ANALYZER, ProposedGap
from contracts.sentences import Message, why_stopped
from contracts.state import ResearchState, Unit
from contracts.texts import plural, shorten
from contracts.vetting import Vetted, need_id
from contracts.vocabulary import SPENDING_LIMITS, Action, AgentStatus, EngineKind, NodeStatus, StopReason
from workflows.phases.analysis import analyze_without_model, withdraw
from workflows.phases.last_look import write_last_draft
from workflows.phases.scope import judge_scope, with_current_limits
from workflows.phases.vetting import Vetting
from workflows.rules.gaps import open_gaps, with_gaps
from workflows.rules.sub_queries import sources_left
from workflows.run.host import ended_calls, run_parallel
from workflows.run.inbox import CallNotAllowed, Interrupted
from workflows.run.research_run import ResearchRun
from workflows.strategies.protocol import Finished
from workflows.strategies.recursive.executor_strategy import executor_task, has_failed, plan_tree, show_executors
from workflows.strategies.units import (
    UnitName,
    UnitPosition,
    UnitStrategy,
    carry_out,
    is_unfinished,
    limit_of_agents,
    planned_queries,
    reason_without_findings,
    unit_progress,
    unplanned_requests,
)

MAX_CANDIDATES: Final = 12
"""Pages read per query, if the limit of sources allows it."""
MIN_CANDIDATES: Final = 4
"""Pages per query that vetting may use even if its share of the sources is smaller."""
VETTING_SHARE: Final = 0.6
"""Share of the sources that vetting the queries may read; the rest is for corrections."""


class RecursiveUnit(UnitName):
    """The units of work, in order."""

    SCOPE = "scope"
    TREES = "trees"
    EXECUTION = "execution", "execute"
    SYNTHESIS = "synthesis", "write"


ORDER: Final = tuple(RecursiveUnit)


class RecursivePosition(UnitPosition):
    """The next unit, the vetted sources, and the tree of each query."""

    NAME: ClassVar[str] = "recursive"

    next_unit: RecursiveUnit = RecursiveUnit.SCOPE
    vetted: dict[str, Vetted] = {}
    """By need id."""
    trees: dict[str, ResearchTree] = {}
    """By query id."""
    executors: dict[str, str] = {}
    """Query id → its executor, an agent."""


class RecursiveStrategy(UnitStrategy):
    """One unit per call."""

    position = RecursivePosition
    planning = RecursiveUnit.SCOPE

    async def advance(self, run: ResearchRun) -> Unit | Finished:
        """Do the next unit."""
        state = run.state
        position = RecursivePosition.of(run.state)
        if position.finished:
            return Finished(_stop_reason(state))
        unit = position.next_unit
        work = {
            RecursiveUnit.SCOPE: judge_scope,
            RecursiveUnit.TREES: _plan_trees,
            RecursiveUnit.EXECUTION: _execute,
            RecursiveUnit.SYNTHESIS: write_last_draft,
        }[unit]
        await carry_out(run, unit.value, work, lambda: _summary(state, unit), label=unit.label)
        return Unit(name=unit.value, iteration_ended=unit is RecursiveUnit.TREES)

    async def move_on(self, run: ResearchRun, name: str) -> Pause:
        """Move to the next unit in order."""
        position = RecursivePosition.of(run.state)
        position.next_unit = ORDER[ORDER.index(position.next_unit) + 1]
        return Pause(phase=name, action=Action.PROCEED)

    def resume(self, state: ResearchState, *, redo_analysis: bool) -> None:
        """Retry the tasks of unfinished executors, and plan missing trees."""
        position = RecursivePosition.of(state)
        if redo_analysis:  # a run that ended before its trees were planned was analyzed by query
            withdraw(state, planned_queries(state))
            state.accounts.engine_by_role.pop(ANALYZER.name, None)
        position.finished = False
        position.rewritten = False
        if state.needs_approval and state.work.plan.nodes and not state.work.plan.to_judge:
            # The person is asked again, under the limits of this run.
            state.work.plan = state.work.plan.with_fields(objections=with_current_limits(state))
        if position.next_unit is RecursiveUnit.SCOPE:
            return
        _reopen_queries(state, position)
        unfinished = _withdraw_unfinished(state, position)
        if any(query.id not in position.trees for query in planned_queries(state)):
            position.next_unit = RecursiveUnit.TREES
        elif unfinished or len(position.executors) < len(position.trees):
            position.next_unit = RecursiveUnit.EXECUTION

    async def write_early(
        self, run: ResearchRun, reason: StopReason, *, changed: bool, engine: EngineKind | None
    ) -> None:
        """Write from the executors' findings or, before there are any, from passages of the vetted sources."""
        state = run.state
        if not state.evidence.findings:
            query_ids = {query.id for query in planned_queries(state)}
            state.work.analyzed_sub_queries = [
                name for name in state.work.analyzed_sub_queries if name not in query_ids
            ]
            changed = await analyze_without_model(run) or changed
        await super().write_early(run, reason, changed=changed, engine=engine)

    def progress(self, state: ResearchState) -> Progress:
        """Return the scope, the trees, their execution and the report."""
        position = RecursivePosition.read(state)
        units = [unit_progress(state, position, kind, _summary(state, kind)) for kind in ORDER]
        return Progress(summary=_summary(state, position.next_unit), units=units)


def _reopen_queries(state: ResearchState, position: RecursivePosition) -> None:
    """Have searches and pages without an answer repeated for each pending query, and its tree planned again."""
    for query in planned_queries(state):
        if query.status is not NodeStatus.PENDING:
            continue
        position.trees.pop(query.id, None)
        executor = position.executors.get(query.id)
        state.work.agents = [record for record in state.work.agents if record.task.id != executor]
        need = need_id(query.text)
        if (vetted := position.vetted.get(need)) is not None:
            examined = [source for source in vetted.examined if source.source_id in state.evidence.sources]
            position.vetted[need] = vetted.with_fields(examined=examined, complete=False)


def _withdraw_unfinished(state: ResearchState, position: RecursivePosition) -> set[str]:
    """Have the tasks of unfinished executors given again, without the gaps that these left; return their names."""
    records = {record.task.id: record for record in state.work.agents}
    unfinished = {name for name in position.executors.values() if is_unfinished(records.get(name))}
    for name in unfinished & records.keys():
        record = records[name]
        result = record.result
        # Its share is used up: it gets another of what this run's limits leave.
        is_spent = result is not None and result.stop_reason in SPENDING_LIMITS
        share = None if is_spent else record.share
        records[name] = record.with_fields(status=AgentStatus.CUT_OFF, share=share)
    state.work.agents = list(records.values())
    origins = {f"sub_query:{name}" for name in unfinished}
    state.evidence.gaps = [gap for gap in state.evidence.gaps if gap.origin not in origins]
    return unfinished


def _stop_reason(state: ResearchState) -> StopReason:
    """Return the stop reason: that of the first executor that hit a limit, else by findings and open gaps.

    If a model judged the results of every executor sufficient, the open gaps count as not worth pursuing.
    """
    if (limit := limit_of_agents(state)) is not None:
        return limit
    if not state.evidence.findings:
        return reason_without_findings(state)
    if not state.evidence.unaddressed_gaps():
        return StopReason.NO_OPEN_GAPS
    has_all_trees = len(RecursivePosition.read(state).executors) == len(planned_queries(state))
    is_complete = has_all_trees and not unplanned_requests(state)
    by_model = state.resolution.engine is EngineKind.MODEL
    is_content = by_model and is_complete and _are_sufficient(collect_nodes(state.work.agents))
    if is_content:
        return StopReason.COVERAGE_SUFFICIENT
    return StopReason.NO_ACTIONABLE_GAPS


def _are_sufficient(nodes: Sequence[NodeSummary]) -> bool:
    """Return true if these executors and all their descendants judged their results sufficient."""
    return all(node.end is NodeEnd.SUFFICIENT and _are_sufficient(node.below) for node in nodes)


def _summary(state: ResearchState, kind: RecursiveUnit) -> str:
    """Return the results of a unit in a few words."""
    match kind:
        case RecursiveUnit.SCOPE:
            return plural(len(planned_queries(state)), "query")
        case RecursiveUnit.TREES:
            trees = RecursivePosition.read(state).trees.values()
            executors = sum(len(tree.nodes) for tree in trees)
            leaves = sum(len(tree.leaves) for tree in trees)
            return f"{plural(executors, 'executor')}, {plural(leaves, 'task')}"
        case RecursiveUnit.EXECUTION:
            return plural(len(state.evidence.findings), "finding")
        case RecursiveUnit.SYNTHESIS:
            return plural(state.evidence.draft_words, "word")


# --- trees -----------------------------------------------------------------------------------------------------------
async def _plan_trees(run: ResearchRun) -> None:
    """Vet sources for each query and have its tree planned, all queries in parallel. Raises `Interrupted`.

    A query whose tree failed is a failed branch; if failures leave no tree at all, the research ends.
    """
    state = run.state
    limits = run.resolved.limits
    position = RecursivePosition.of(run.state)
    due = [query for query in planned_queries(state) if query.id not in position.trees]
    if not due:
        return
    left = sources_left(state, limits)
    room = max(min(left, MIN_CANDIDATES * len(due)), int(left * VETTING_SHARE))
    limit = max(1, min(MAX_CANDIDATES, room // len(due)))
    vetted = {key for key, record in position.vetted.items() if record.complete}
    failed = dict[str, str]()
    reason = StopReason.INTERNAL_ERROR
    if unvetted := [query for query in due if need_id(query.text) not in vetted]:
        try:
            await Vetting(run, position.vetted, "planner", limit).carry_out([query.text for query in unvetted])
        except CallNotAllowed as refused:
            failed = {query.id: str(refused) for query in unvetted}
            reason = refused.reason

    with_sources = [query for query in due if query.id not in failed and position.vetted[need_id(query.text)].accepted]

    async def plan(query: PlanNode) -> ResearchTree:
        vetted = position.vetted[need_id(query.text)]
        step = f"plan-tree/{query.id}"
        return await plan_tree(run, MANAGER.name, step, vetted, goal=query.text, most_nodes=limits.max_nodes)

    trees = await run_parallel(run.host, [partial(plan, query) for query in with_sources], limits.max_parallel)
    for query, tree, why in ended_calls(with_sources, trees):
        if why is None:
            position.trees[query.id] = tree.result()
        else:
            failed[query.id] = why
            reason = StopReason.CALL_NOT_ALLOWED if isinstance(tree.exception(), CallNotAllowed) else reason
    for query in due:
        if why := failed.get(query.id):
            run.branch_failed(Message("no_tree", query=shorten(query.text, 150), why=why))
            lost = state.work.plan.newest(query).failed(why)
            state.work.plan = state.work.plan.with_nodes(lost)
        elif query not in with_sources and state.work.plan.newest(query).status is not NodeStatus.FAILED:
            # A failed search proves nothing.
            _state_missing_sources(run, query)
    if failed and not position.trees:
        raise Interrupted(reason)  # the report is written from the vetted passages


def _state_missing_sources(run: ResearchRun, query: PlanNode) -> None:
    """State a gap for a query without a vetted source."""
    state = run.state
    draft = ProposedGap(description=f"No credible source was found for “{shorten(query.text, 250)}”.", priority=1)
    opened = open_gaps(state, [draft], f"sub_query:{query.id}")
    state.evidence.gaps = with_gaps(state, opened)
    answered = state.work.plan.newest(query).completed().with_fields(stated_gaps=[gap.id for gap in opened])
    state.work.plan = state.work.plan.with_nodes(answered)
    run.note("status", f"no source was vetted: {query.text}", level="warning")


# --- executors -------------------------------------------------------------------------------------------------------
async def _execute(run: ResearchRun) -> None:
    """Run an executor for each tree, in parallel; its findings belong to its query. Raises `Interrupted`."""
    state = run.state
    limits = run.resolved.limits
    position = RecursivePosition.of(run.state)
    tasks = []
    for number, query in enumerate(planned_queries(state), start=1):
        if (tree := position.trees.get(query.id)) is not None:
            name = position.executors.setdefault(query.id, f"executor-{number}")
            tasks.append(executor_task(name, tree, limits.max_nodes))
            show_executors(run, tasks[-1:], query.id, 1)
    ended = {record.task.id for record in state.work.agents if record.is_over}
    if todo := [task for task in tasks if task.id not in ended]:
        results = await run.spawn(todo, limits.max_parallel, caller=MANAGER.name)
        for task, result in zip(todo, results, strict=True):
            if has_failed(result):
                why = result.problem or why_stopped(result.stop_reason)
                run.branch_failed(Message("of_agent", agent=task.id, note=why))
    counts = {node.id: node.finding_count for node in state.work.plan.nodes}
    for query in planned_queries(state):
        if (executor := position.executors.get(query.id)) is not None:
            # Includes findings that another query already had.
            state.work.plan = state.work.plan.with_nodes(
                state.work.plan.newest(query).with_fields(
                    status=NodeStatus.COMPLETED, finding_count=counts.get(executor, 0)
                )
            )
