"""One step: turn by turn the researcher names searches, which are carried out and analyzed, until it is content."""

from typing import Final

from contracts.call_sizes import MOST_SOURCES
from contracts.plan import PlanNode
from contracts.reflective_roles import RESEARCHER, ResearchStepInput, Route
from contracts.request import Depth
from contracts.state import ResearchState
from contracts.vocabulary import EngineKind, GapStatus, NodeStatus
from workflows.phases.analysis import analyze
from workflows.phases.gathering import Gathering
from workflows.run.research_run import ResearchRun
from workflows.strategies.reflective.reflective_position import position_of
from workflows.strategies.reflective.steps import (
    asked_for,
    is_analysis,
    observations_of,
    query_nodes,
    reads_left,
    titles_of,
)

SHOWN_TITLES: Final = 10


async def research_step(run: ResearchRun, step: PlanNode) -> None:
    """Carry out a step within its limits. What was begun before an interruption is finished first."""
    state, position = run.state, position_of(run.state)
    if not state.plan.children(step):
        position.turns = 0
    state.plan = state.plan.with_nodes(step.model_copy(update={"status": NodeStatus.EXECUTING}))
    if is_analysis(step):
        _show_all_sources(state, step)
        await analyze(run)
    else:
        while await _take_turn(run, step):
            pass
    done = _ended(state, step)
    state.plan = state.plan.with_nodes(done)
    if asked_for(step):
        names = {node.id for node in state.plan.children(step)}
        found = [finding.id for finding in state.findings if finding.sub_query_id in names]
        status = GapStatus.ADDRESSED if done.finding_count else GapStatus.UNADDRESSABLE
        update = {"status": status, "resolved_by": found}
        state.gaps = [gap.model_copy(update=update) if gap.id == step.gap_id else gap for gap in state.gaps]


def _ended(state: ResearchState, step: PlanNode) -> PlanNode:
    """The step with what became of it: it failed if every one of its searches did, and a resumed run does it again."""
    searches = state.plan.children(step)
    lost = bool(searches) and all(search.status is NodeStatus.FAILED for search in searches)
    return step.model_copy(
        update={
            "status": NodeStatus.FAILED if lost else NodeStatus.COMPLETED,
            "error": searches[0].error if lost else None,
            "finding_count": sum(search.finding_count for search in searches),
        }
    )


async def _take_turn(run: ResearchRun, step: PlanNode) -> bool:
    """Name searches, search, read, analyze; whether another turn may follow."""
    state, limits, position = run.state, run.resolved.limits, position_of(run.state)
    if not open_queries(state, step):
        queries = await _next_queries(run, step)
        if not queries:
            return False
        state.plan = state.plan.with_nodes(*query_nodes(step, queries, state.iteration))
        position.turns += 1
    room = reads_left(state, step, limits.max_reads_per_step)
    await Gathering(run, open_queries(state, step), most=room).carry_out()
    await analyze(run)
    return _looks_again(run)


def _looks_again(run: ResearchRun) -> bool:
    """Whether the researcher looks at what its searches brought and names others; at light depth they are fixed."""
    by_model = run.resolved.engine is EngineKind.MODEL
    return by_model and run.resolved.depth is not Depth.LIGHT and position_of(run.state).route is not Route.QUICK


async def _next_queries(run: ResearchRun, step: PlanNode) -> list[str]:
    state, limits, position = run.state, run.resolved.limits, position_of(run.state)
    left = limits.max_searches_per_step - len(state.plan.children(step))
    if left <= 0 or (position.turns and not reads_left(state, step, limits.max_reads_per_step)):
        return []
    if position.route is Route.QUICK:
        return [step.text]
    request = ResearchStepInput(
        step_title=step.text,
        description=step.expected_contribution,
        most_queries=left,
        asked=[node.text for node in state.plan.sub_queries],
        observations=observations_of(state, step),
        titles=titles_of(state, step)[:SHOWN_TITLES],
        turn=position.turns + 1,
    )
    output = await run.ask(RESEARCHER, f"research/{step.id}/{position.turns + 1}", request)
    known = {node.id for node in state.plan.nodes}
    return [node.text for node in query_nodes(step, output.queries, state.iteration) if node.id not in known]


def open_queries(state: ResearchState, step: PlanNode) -> list[PlanNode]:
    """Searches of a step that have yet to be made."""
    waiting = (NodeStatus.PENDING, NodeStatus.EXECUTING)
    return [node for node in state.plan.children(step) if node.status in waiting]


def _show_all_sources(state: ResearchState, step: PlanNode) -> None:
    """A step that only thinks is an analysis of everything that was read: nothing is searched for it."""
    node = query_nodes(step, [step.expected_contribution or step.text], state.iteration)[0]
    if any(known.id == node.id for known in state.plan.nodes):
        return
    state.plan = state.plan.with_nodes(node.model_copy(update={"status": NodeStatus.COMPLETED}))
    for source in state.readable_sources()[:MOST_SOURCES]:
        owners = [*source.sub_query_ids, node.id]
        state.sources[source.id] = source.model_copy(update={"sub_query_ids": owners})
