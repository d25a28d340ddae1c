"""One step: turn by turn the researcher names searches, which are carried out and analyzed, until it is content."""

from typing import Final

from contracts.expected_calls import MOST_SOURCES
from contracts.plan import PlanNode
from contracts.reflective_roles import RESEARCHER, ResearchStepInput, Route
from contracts.request import Depth
from contracts.state import ResearchState
from contracts.vocabulary import EngineKind, NodeStatus
from workflows.phases.analysis import analyze
from workflows.phases.gathering import Gathering
from workflows.run.research_run import ResearchRun
from workflows.strategies.reflective.reflective_position import position_of
from workflows.strategies.reflective.steps import is_analysis, observations_of, query_nodes, reads_left, titles_of

SHOWN_TITLES: Final = 10


async def research_step(run: ResearchRun, step: PlanNode) -> None:
    """Carry out a step within its limits. What was begun before an interruption is finished first."""
    state, position = run.state, position_of(run.state)
    if step.status is NodeStatus.PENDING:
        position.turns = 0
    state.plan = state.plan.with_nodes(step.model_copy(update={"status": NodeStatus.EXECUTING}))
    if is_analysis(step):
        _show_all_sources(state, step)
        await analyze(run)
    else:
        while await _take_turn(run, step):
            pass
    found = sum(node.finding_count for node in state.plan.children(step))
    done = step.model_copy(update={"status": NodeStatus.COMPLETED, "finding_count": found})
    state.plan = state.plan.with_nodes(done)


async def _take_turn(run: ResearchRun, step: PlanNode) -> bool:
    """Name searches, search, read, analyze; whether another turn may follow."""
    state, limits, position = run.state, run.resolved.limits, position_of(run.state)
    if not _open_queries(state, step):
        queries = await _next_queries(run, step)
        if not queries:
            return False
        state.plan = state.plan.with_nodes(*query_nodes(step, queries, state.iteration))
        position.turns += 1
    room = reads_left(state, step, limits.max_reads_per_step)
    await Gathering(run, _open_queries(state, step), most=room).carry_out()
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


def _open_queries(state: ResearchState, step: PlanNode) -> list[PlanNode]:
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
