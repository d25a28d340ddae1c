"""A toy strategy with agents: its tasks are told by the request, each is an errand, and a scribe tells what they found."""

from functools import partial

from durable_research.contracts.agents import AT_ONCE, AgentTask
from durable_research.contracts.plan import PlanNode
from durable_research.contracts.request import Depth
from durable_research.contracts.roles import ANALYZER
from durable_research.contracts.strategies import StrategyDeclaration
from durable_research.contracts.vocabulary import NodeKind
from durable_research.workflows.run.research_run import ResearchRun

from tests.toy import declared
from tests.toy.errand import ERRAND
from tests.toy.roles import LIMITS, SCRIBE
from tests.toy.strategy import ToyStrategy

PARTY_LIMITS = LIMITS.model_copy(update={"max_sources": 60, "max_new_sources": 60})
PARTY = StrategyDeclaration(
    name="party",
    implementation="tests.toy.party:PartyStrategy",
    roles=(ANALYZER, SCRIBE),
    presets=dict.fromkeys((Depth.LIGHT, Depth.MEDIUM, Depth.EXTENDED), PARTY_LIMITS),
    expected_calls=lambda limits, _: {"analyzer": (1, limits.max_sub_queries), "scribe": (1, 1)},
)


party_declared = partial(declared, ERRAND, PARTY)


def tasks_of(run: ResearchRun) -> list[AgentTask]:
    """The tasks of the request: `metadata.whole_tasks`, or those of `metadata.tasks`.

    The latter have `metadata.task` each, and `metadata.ask` by their place.
    """
    told = run.resolved.metadata or {}
    if whole := told.get("whole_tasks"):
        return [AgentTask.model_validate(one) for one in whole]
    texts = told.get("tasks") or [run.resolved.query]
    asked = told.get("ask") or [None] * len(texts)
    return [
        AgentTask(
            id=f"agent-{place}",
            text=text,
            strategy="errand",
            given={"ask": ask} if ask else {},
            **told.get("task", {}),
        )
        for place, (text, ask) in enumerate(zip(texts, asked, strict=True), start=1)
    ]


class PartyStrategy(ToyStrategy):
    """Scout the tasks, send an agent for each, tell."""

    async def _scout(self, run: ResearchRun) -> None:
        nodes = [PlanNode(id=task.id, text=task.text, kind=NodeKind.TASK) for task in tasks_of(run)]
        run.draft_plan("agents look for it", nodes)

    async def _look(self, run: ResearchRun) -> None:
        await run.spawn(tasks_of(run), int((run.resolved.metadata or {}).get("at_once", AT_ONCE)))
