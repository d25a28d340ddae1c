"""The strategy `recursive`: scope → a person's authorization → vetted sources and trees → executors → report."""

from enum import StrEnum
from functools import partial
from typing import Any, ClassVar, Final

from contracts.agents import AgentTask, TaskResult
from contracts.outcome import Pause, Progress
from contracts.plan import CHOSEN_BY_AGENT, PlanNode
from contracts.recursive_roles import MANAGER, TREE_PLANNER, TreeInput
from contracts.research_trees import ResearchTree
from contracts.roles import ANALYZER, ProposedGap
from contracts.state import OpenPause, ResearchState, Unit
from contracts.texts import plural, shorten
from contracts.vetting import Vetted, need_id
from contracts.vocabulary import NATURAL_STOPS, Action, AgentStatus, EngineKind, NodeStatus, StopReason
from workflows.phases.analysis import analyze_without_model, withdraw
from workflows.phases.pause import call_hook
from workflows.phases.role_calls import ask_for, check_call, spawn_for
from workflows.phases.scope import judge_scope
from workflows.phases.vetting import Vetting, describe_vetted
from workflows.rules.gaps import open_gaps
from workflows.rules.sub_queries import sources_left
from workflows.run.host import side_by_side
from workflows.run.research_run import ResearchRun
from workflows.strategies.protocol import Finished, Strategy
from workflows.strategies.recursive.leaves import STRATEGY, failed, show_executors
from workflows.strategies.units import UnitPosition, carry_out, judge_report, unit_progress, write_draft

CALLER: Final = MANAGER.name
"""Name of the caller in the table of who may call whom."""
MOST_CANDIDATES: Final = 12
"""Pages that are read for one query, where the limit of sources allows so many."""
FEWEST_CANDIDATES: Final = 4
"""Pages for one query, however few may be read."""
VETTING_SHARE: Final = 0.6
"""Share of the sources that vetting of the queries may read; corrections have the others."""


class RecursiveUnit(StrEnum):
    """The units of work, in their order."""

    SCOPE = "scope"
    TREES = "trees"
    EXECUTION = "execution"
    SYNTHESIS = "synthesis"


LABELS: Final = {
    RecursiveUnit.SCOPE: "scope",
    RecursiveUnit.TREES: "trees",
    RecursiveUnit.EXECUTION: "execute",
    RecursiveUnit.SYNTHESIS: "write",
}
ORDER: Final = tuple(RecursiveUnit)


class RecursivePosition(UnitPosition):
    """The unit that comes next, the vetted sources, and the tree of each query."""

    NAME: ClassVar[str] = "recursive"

    next_unit: RecursiveUnit = RecursiveUnit.SCOPE
    vetted: dict[str, Vetted] = {}
    """By need."""
    trees: dict[str, ResearchTree] = {}
    """By query."""
    executors: dict[str, str] = {}
    """Query → its executor, an agent."""


class RecursiveStrategy(Strategy):
    """One unit per call."""

    async def advance(self, run: ResearchRun) -> Unit | Finished:
        """Do the unit that comes next."""
        position = RecursivePosition.of(run.state)
        if position.finished:
            return Finished(_stop_reason(run.state))
        kind = position.next_unit
        work = {
            RecursiveUnit.SCOPE: judge_scope,
            RecursiveUnit.TREES: _plan_trees,
            RecursiveUnit.EXECUTION: _execute,
            RecursiveUnit.SYNTHESIS: write_draft,
        }[kind]
        await carry_out(run, kind.value, LABELS[kind], work, lambda: _summary(run.state, kind))
        return Unit(name=kind.value, iteration_ended=kind is RecursiveUnit.TREES)

    async def pause(self, run: ResearchRun, opened: OpenPause) -> Pause:
        """Call the hook, and move on."""
        position, name = RecursivePosition.of(run.state), opened.unit.name
        await call_hook(run, name, f"The unit {name} is done: {_summary(run.state, position.next_unit)}")
        if position.next_unit is RecursiveUnit.SYNTHESIS:
            run.state.pause = judge_report(run, position, name)
        else:
            position.next_unit = ORDER[ORDER.index(position.next_unit) + 1]
            run.state.pause = Pause(phase=name, action=Action.PROCEED)
        return run.state.pause

    def resume(self, state: ResearchState, *, redo_analysis: bool) -> None:
        """Give the tasks of unfinished executors again, and plan trees that are missing."""
        position = RecursivePosition.of(state)
        if redo_analysis:  # a run that ended before its trees was analyzed by query
            withdraw(state, queries_of(state))
            state.engine_by_role.pop(ANALYZER.name, None)
        position.finished, position.rewritten = False, False
        if position.next_unit is RecursiveUnit.SCOPE:
            return
        for query in queries_of(state):
            if query.status is NodeStatus.PENDING:
                _plan_again(state, position, query)
        results = {record.task.id: record.result for record in state.agents}
        unfinished = [name for name in position.executors.values() if _is_unfinished(results.get(name))]
        state.agents = [
            record.model_copy(update={"status": AgentStatus.CUT_OFF}) if record.task.id in unfinished else record
            for record in state.agents
        ]
        of_unfinished = {f"sub_query:{name}" for name in unfinished}
        state.gaps = [gap for gap in state.gaps if gap.origin not in of_unfinished]
        if any(query.id not in position.trees for query in queries_of(state)):
            position.next_unit = RecursiveUnit.TREES
        elif unfinished or len(position.executors) < len(position.trees):
            position.next_unit = RecursiveUnit.EXECUTION

    def replan(self, state: ResearchState) -> None:
        """Judge the scope once more, with the person's message as guidance."""
        RecursivePosition.of(state).next_unit = RecursiveUnit.SCOPE

    async def write_early(
        self, run: ResearchRun, reason: StopReason, *, changed: bool, engine: EngineKind | None
    ) -> None:
        """Write from what executors found; before their work, from the passages of what was vetted."""
        state = run.state
        if not state.findings:
            names = {query.id for query in queries_of(state)}
            state.analyzed_sub_queries = [name for name in state.analyzed_sub_queries if name not in names]
            changed = await analyze_without_model(run) or changed
        await super().write_early(run, reason, changed=changed, engine=engine)

    def progress(self, state: ResearchState) -> Progress:
        """Return the scope, the trees, their execution and the report."""
        position = RecursivePosition.read(state)
        units = [unit_progress(state, position, kind, LABELS, _summary(state, kind)) for kind in ORDER]
        return Progress(summary=_summary(state, position.next_unit), units=units)


def queries_of(state: ResearchState) -> list[PlanNode]:
    """Return the queries of the scope, in their order."""
    return [node for node in state.plan.sub_queries if node.origin != CHOSEN_BY_AGENT]


def _plan_again(state: ResearchState, position: RecursivePosition, query: PlanNode) -> None:
    """Drop the tree of a query that had searches or pages without an answer: these are done, and it is planned anew."""
    position.trees.pop(query.id, None)
    executor = position.executors.get(query.id)
    state.agents = [record for record in state.agents if record.task.id != executor]
    need = need_id(query.text)
    if (record := position.vetted.get(need)) is not None:
        examined = [one for one in record.examined if one.source_id in state.sources]
        position.vetted[need] = record.model_copy(update={"examined": examined, "complete": False})


def _is_unfinished(result: TaskResult | None) -> bool:
    return result is None or bool(result.is_stub or result.problem or result.failed_branches)


def _summary(state: ResearchState, kind: RecursiveUnit) -> str:
    """Return the results of a unit in a few words."""
    trees = RecursivePosition.read(state).trees.values()
    executors, leaves = sum(len(tree.nodes) for tree in trees), sum(len(tree.leaves) for tree in trees)
    return {
        RecursiveUnit.SCOPE: plural(len(queries_of(state)), "query"),
        RecursiveUnit.TREES: f"{plural(executors, 'executor')}, {plural(leaves, 'task')}",
        RecursiveUnit.EXECUTION: plural(len(state.findings), "finding"),
        RecursiveUnit.SYNTHESIS: plural(state.draft.word_count if state.draft else 0, "word"),
    }[kind]


def _stop_reason(state: ResearchState) -> StopReason:
    if not state.findings:
        reasons = [record.result.stop_reason for record in state.agents if record.result is not None]
        return next((reason for reason in reasons if reason not in NATURAL_STOPS), StopReason.NO_ACTIONABLE_GAPS)
    return StopReason.NO_ACTIONABLE_GAPS if state.unaddressed_gaps() else StopReason.NO_OPEN_GAPS


# --- trees -----------------------------------------------------------------------------------------------------------
async def _plan_trees(run: ResearchRun) -> None:
    """Vet sources for each query and have its tree planned, all queries side by side. Raises `Interrupted`."""
    state, position = run.state, RecursivePosition.of(run.state)
    due = [query for query in queries_of(state) if query.id not in position.trees]
    if not due:
        return
    left = sources_left(state, run.resolved.limits)
    room = max(min(left, FEWEST_CANDIDATES * len(due)), int(left * VETTING_SHARE))
    most = max(1, min(MOST_CANDIDATES, room // len(due)))
    check_call(run, CALLER, TREE_PLANNER.name)
    unvetted = [query.text for query in due if not _is_vetted(position, query)]
    if unvetted:
        await Vetting(run, position.vetted, "planner", most).carry_out(unvetted)
    with_sources = [query for query in due if position.vetted[need_id(query.text)].accepted]
    calls = [partial(_plan_tree, run, position.vetted[need_id(query.text)], query) for query in with_sources]
    trees = await side_by_side(run.host, calls, run.resolved.limits.max_parallel)
    for query, tree in zip(with_sources, trees, strict=True):
        position.trees[query.id] = tree.result()
    for query in due:
        if query not in with_sources:
            _close_without_sources(run, query)


def _is_vetted(position: RecursivePosition, query: PlanNode) -> bool:
    record = position.vetted.get(need_id(query.text))
    return record is not None and record.complete


async def _plan_tree(run: ResearchRun, vetted: Vetted, query: PlanNode) -> ResearchTree:
    """Return the tree of one query over its vetted sources."""
    limits = run.resolved.limits
    request = TreeInput(
        goal=query.text,
        vetted=describe_vetted(run.state, vetted),
        most_nodes=limits.max_nodes,
        most_leaves=limits.max_leaves,
        most_levels=limits.max_levels,
    )
    answer = await ask_for(run, CALLER, TREE_PLANNER, f"plan-tree/{query.id}", request)
    return answer.tree(request)


def _close_without_sources(run: ResearchRun, query: PlanNode) -> None:
    """State that a query has no vetted source: no leaf is invented for it. A search that failed proves nothing."""
    state = run.state
    if state.plan.newest(query).status is NodeStatus.FAILED:
        return
    draft = ProposedGap(description=f"No credible source was found for “{shorten(query.text, 250)}”.", priority=1)
    opened = open_gaps(state, [draft], f"sub_query:{query.id}")
    state.gaps = [*state.gaps, *opened]
    update = {"status": NodeStatus.COMPLETED, "stated_gaps": [gap.id for gap in opened]}
    state.plan = state.plan.with_nodes(state.plan.newest(query).model_copy(update=update))
    run.note("status", f"no source was vetted: {query.text}", level="warning")


# --- executors -------------------------------------------------------------------------------------------------------
async def _execute(run: ResearchRun) -> None:
    """Have an executor for each tree work, side by side; its findings belong to its query. Raises `Interrupted`."""
    state, position = run.state, RecursivePosition.of(run.state)
    over = {record.task.id for record in state.agents if record.is_over}
    tasks = [
        _executor_task(run, position, number, query)
        for number, query in enumerate(queries_of(state), start=1)
        if query.id in position.trees
    ]
    todo = [task for task in tasks if task.id not in over]
    if todo:
        results = await spawn_for(run, CALLER, todo, run.resolved.limits.max_parallel)
        for task, result in zip(todo, results, strict=True):
            if failed(result):
                run.branch_failed(f"{task.id}: {result.problem or result.stop_reason.text}")
    for query in queries_of(state):
        if (name := position.executors.get(query.id)) is not None:
            # Also those that another query had already.
            found = sum(node.finding_count for node in state.plan.nodes if node.id == name)
            update = {"status": NodeStatus.COMPLETED, "finding_count": found}
            state.plan = state.plan.with_nodes(state.plan.newest(query).model_copy(update=update))


def _executor_task(run: ResearchRun, position: RecursivePosition, number: int, query: PlanNode) -> AgentTask:
    """Return the task of the executor of a query, with its node in the plan."""
    tree, name = position.trees[query.id], position.executors.setdefault(query.id, f"executor-{number}")
    most = run.resolved.limits.max_nodes
    given: dict[str, Any] = {"tree": tree.model_dump(mode="json"), "most_nodes": most}
    task = AgentTask(id=name, text=tree.root.goal, strategy=STRATEGY, given=given)
    show_executors(run, [task], query.id, 1)
    return task
