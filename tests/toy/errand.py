"""A toy scoped strategy: looks for its task as it stands, or for what it is given to ask, and says what it found."""

from durable_research.contracts.addresses import sub_query_id
from durable_research.contracts.outcome import Mark, Pause, Progress, UnitProgress
from durable_research.contracts.plan import PlanNode
from durable_research.contracts.request import Depth
from durable_research.contracts.roles import ANALYZER
from durable_research.contracts.state import OpenPause, Position, ResearchState, Unit
from durable_research.contracts.strategies import StrategyDeclaration
from durable_research.contracts.vocabulary import Action, StopReason
from durable_research.workflows.phases.analysis import analyze
from durable_research.workflows.phases.gathering import Gathering
from durable_research.workflows.run.research_run import ResearchRun
from durable_research.workflows.strategies import Finished, ScopedStrategy

from tests.toy.roles import LIMITS

ERRAND_LIMITS = LIMITS.model_copy(
    update={"max_sub_queries": 4, "max_sources": 20, "max_new_sources": 20, "max_sources_per_query": 5}
)
ERRAND = StrategyDeclaration(
    name="errand",
    implementation="tests.toy.errand:ErrandStrategy",
    roles=(ANALYZER,),
    presets=dict.fromkeys((Depth.LIGHT, Depth.MEDIUM, Depth.EXTENDED), ERRAND_LIMITS),
    expected_calls=lambda limits, _: {"analyzer": (1, limits.max_sub_queries)},
    scoped=True,
)


class ErrandPosition(Position):
    """Whether it has looked."""

    looked: bool = False


def position_of(state: ResearchState) -> ErrandPosition:
    """The typed position."""
    if not isinstance(state.work.position, ErrandPosition):
        held = state.work.position.model_dump() if state.work.position else {"strategy": "errand"}
        state.work.position = ErrandPosition.model_validate(held)
    return state.work.position


class ErrandStrategy(ScopedStrategy):
    """One unit."""

    async def advance(self, run: ResearchRun) -> Unit | Finished:
        if position_of(run.state).looked:
            return Finished(StopReason.NO_OPEN_GAPS)
        run.state.work.phase = "looking"
        run.hooks.enter_phase()
        task = run.state.work.task
        texts = (task.given.get("ask") if task else None) or [run.resolved.query]
        if not run.state.work.plan.nodes:
            run.draft_plan(run.resolved.query, [PlanNode(id=sub_query_id(text), text=text) for text in texts])
        await Gathering(run, run.state.work.pending_sub_queries()).carry_out()
        await analyze(run)
        return Unit(name="looking", iteration_ended=True)

    async def pause(self, run: ResearchRun, opened: OpenPause) -> Pause:
        position_of(run.state).looked = True
        run.state.work.pause = Pause(phase=opened.unit.name, action=Action.PROCEED)
        return run.state.work.pause

    def resume(self, state: ResearchState, *, redo_analysis: bool) -> None:
        del redo_analysis
        position_of(state).looked = False

    def replan(self, state: ResearchState) -> None:
        position_of(state).looked = False

    def progress(self, state: ResearchState) -> Progress:
        mark = Mark.DONE if position_of(state).looked else Mark.RUNNING
        return Progress(summary="looking", units=[UnitProgress(name="looking", label="look", mark=mark)])

    async def conclude(self, run: ResearchRun) -> str:
        said = run.state.evidence.findings[0].statement if run.state.evidence.findings else "nothing was found"
        return said[:200]
