"""The toy strategy: scout ahead, look, tell. Its plan has two levels: a task that searches nothing, and its leaves."""

from durable_research.contracts.addresses import sub_query_id
from durable_research.contracts.outcome import Mark, Pause, Progress, UnitProgress
from durable_research.contracts.plan import PlanNode
from durable_research.contracts.state import OpenPause, Position, ResearchState, Unit
from durable_research.contracts.vocabulary import Action, NodeKind, NodeStatus, StopReason
from durable_research.workflows.phases.analysis import analyze
from durable_research.workflows.phases.gathering import Gathering
from durable_research.workflows.phases.role_inputs import write_input
from durable_research.workflows.rules.sub_queries import plan_sub_queries
from durable_research.workflows.run.research_run import ResearchRun
from durable_research.workflows.strategies import Finished, Strategy

from tests.toy.roles import SCOUT, SCRIBE, ScoutInput

UNITS = {"scouting": "scout", "looking": "look", "telling": "tell"}


class ToyPosition(Position):
    """The unit that comes next; None behind the last."""

    next_unit: str | None = "scouting"


def position_of(state: ResearchState) -> ToyPosition:
    """The typed position."""
    if not isinstance(state.work.position, ToyPosition):
        held = state.work.position.model_dump() if state.work.position else {"strategy": "toy"}
        state.work.position = ToyPosition.model_validate(held)
    return state.work.position


class ToyStrategy(Strategy):
    """Three units, one after the other."""

    async def advance(self, run: ResearchRun) -> Unit | Finished:
        unit = position_of(run.state).next_unit
        if unit is None:
            return Finished(StopReason.NO_OPEN_GAPS)
        run.state.work.phase = unit
        run.note("phase.started", unit, phase=unit, label=UNITS[unit], iteration=1)
        await {"scouting": self._scout, "looking": self._look, "telling": self._tell}[unit](run)
        run.note("phase.finished", unit, phase=unit, summary=f"{unit} is over")
        return Unit(name=unit)

    async def pause(self, run: ResearchRun, opened: OpenPause) -> Pause:
        order = list(UNITS)
        place = order.index(opened.unit.name) + 1
        position_of(run.state).next_unit = order[place] if place < len(order) else None
        run.state.work.pause = Pause(phase=opened.unit.name, action=Action.PROCEED)
        return run.state.work.pause

    def resume(self, state: ResearchState, *, redo_analysis: bool) -> None:
        if redo_analysis:
            position_of(state).next_unit = "looking"

    def replan(self, state: ResearchState) -> None:
        position_of(state).next_unit = "scouting"

    def progress(self, state: ResearchState) -> Progress:
        order, at = list(UNITS), position_of(state).next_unit
        place = len(order) if at is None else order.index(at)
        marks = [Mark.DONE] * place + [Mark.RUNNING] + [Mark.WAITING] * len(order)
        return Progress(
            summary=f"{place} of {len(order)} units",
            units=[
                UnitProgress(name=name, label=UNITS[name], mark=mark) for name, mark in zip(order, marks, strict=False)
            ],
        )

    async def _scout(self, run: ResearchRun) -> None:
        output = await run.ask(SCOUT, "scout", ScoutInput(most_queries=run.resolved.limits.max_sub_queries))
        queries = plan_sub_queries(output.sub_queries, 1, run.resolved.limits.max_sub_queries)
        question = run.resolved.query
        task = PlanNode(id=f"task-{sub_query_id(question)}", text=question, kind=NodeKind.TASK, needs_search=False)
        below = {"parent": task.id, "depth": 1, "kind": NodeKind.LEAF}
        leaves = [query.model_copy(update=below) for query in queries]
        run.draft_plan("as the scout says", [task, *leaves])

    async def _look(self, run: ResearchRun) -> None:
        await Gathering(run, run.state.work.pending_sub_queries()).carry_out()
        await analyze(run)

    async def _tell(self, run: ResearchRun) -> None:
        run.state.evidence.draft = (await run.ask(SCRIBE, "tell", write_input(run, issues=[]))).draft
        plan = run.state.work.plan
        told = [
            node.model_copy(update={"status": NodeStatus.COMPLETED}) for node in plan.nodes if not node.needs_search
        ]
        run.state.work.plan = plan.with_nodes(*told)
