"""A toy scoped strategy whose agents have agents: each looks into its own leaf, while those below it look into theirs."""

import asyncio
from functools import partial
from typing import Any

from durable_research.contracts.agents import AgentTask, NodeSummary
from durable_research.contracts.plan import PlanNode
from durable_research.contracts.request import Depth
from durable_research.contracts.roles import ANALYZER
from durable_research.contracts.state import ResearchState, Unit
from durable_research.contracts.strategies import StrategyDeclaration
from durable_research.contracts.vocabulary import NodeKind, ReportSection, StopReason
from durable_research.workflows.phases.analysis import analyze
from durable_research.workflows.phases.gathering import Gathering
from durable_research.workflows.run.host import abandon
from durable_research.workflows.run.research_run import ResearchRun
from durable_research.workflows.strategies import Finished

from tests.toy import declared
from tests.toy.errand import ERRAND_LIMITS, ErrandStrategy, position_of

NEST = StrategyDeclaration(
    name="nest",
    implementation="tests.toy.nest:NestStrategy",
    roles=(ANALYZER,),
    presets=dict.fromkeys((Depth.LIGHT, Depth.MEDIUM, Depth.EXTENDED), ERRAND_LIMITS),
    expected_calls=lambda limits, _: {"analyzer": (1, limits.max_sub_queries)},
    scoped=True,
    report_sections=(ReportSection.OPEN_QUESTIONS, ReportSection.KNOWLEDGE_GAPS),
    most_gaps=1_000,
)


nest_declared = partial(declared, NEST)


def nest(name: str, text: str, *below: AgentTask, **fields: Any) -> AgentTask:
    """Return a task with agents below it."""
    return AgentTask(
        id=name, text=text, strategy="nest", given={"below": [one.model_dump(mode="json") for one in below]}, **fields
    )


def below_of(state: ResearchState) -> list[AgentTask]:
    """The tasks of the agents below one."""
    given = state.work.task.given.get("below", []) if state.work.task else []
    return [AgentTask.model_validate(one) for one in given]


class NestStrategy(ErrandStrategy):
    """One unit: the leaf and the agents below, side by side."""

    async def advance(self, run: ResearchRun) -> Unit | Finished:
        if position_of(run.state).looked:
            return Finished(StopReason.NO_OPEN_GAPS)
        run.state.work.phase = "looking"
        run.hooks.enter_phase()
        scope, text, below = run.state.scope, run.resolved.query, below_of(run.state)
        leaf = PlanNode(id=f"leaf-of-{scope}", text=text, parent=scope, kind=NodeKind.LEAF)
        run.draft_plan(text, [leaf])
        jobs = [asyncio.ensure_future(job) for job in (self._look(run), run.spawn(below, 5, caller="nest"))]
        try:
            await run.host.settle(jobs)
        except asyncio.CancelledError:
            await abandon(run.host, jobs)
            raise
        for job in jobs:
            job.result()
        return Unit(name="looking", iteration_ended=True)

    async def _look(self, run: ResearchRun) -> None:
        await Gathering(run, run.state.work.pending_sub_queries()).carry_out()
        await analyze(run)

    def describe_node(self, state: ResearchState) -> NodeSummary | None:
        task = state.work.task
        if task is None:
            return None
        sources = [
            source.id for source in state.evidence.sources.values() if f"leaf-of-{task.id}" in source.sub_query_ids
        ]
        return NodeSummary(id=task.id, goal=task.text, level=task.level, source_ids=sources)
