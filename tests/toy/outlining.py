"""A toy whose plan fixes the headings of the report and waits for a yes: the decomposer plans, the rest is the toy's."""

from dataclasses import replace
from functools import partial

from durable_research.contracts.addresses import sub_query_id
from durable_research.contracts.living_roles import DECOMPOSER, DecomposeInput
from durable_research.contracts.plan import PlanNode
from durable_research.contracts.request import Approve, Gates
from durable_research.contracts.roles import ANALYZER
from durable_research.workflows.run.research_run import ResearchRun

from tests.toy import declared
from tests.toy.roles import SCRIBE, TOY
from tests.toy.strategy import ToyStrategy

OUTLINING = replace(
    TOY,
    name="outlining",
    implementation="tests.toy.outlining:OutliningStrategy",
    roles=(DECOMPOSER, ANALYZER, SCRIBE),
    expected_calls=lambda limits, _: {"decomposer": (1, 1), "analyzer": (1, limits.max_sub_queries), "scribe": (1, 1)},
    gates=Gates(approve=Approve.PLAN),
)
ANOTHER_OUTLINE = ["Something else"]


outlining_declared = partial(declared, OUTLINING)


class OutliningStrategy(ToyStrategy):
    """Plans with the decomposer; with `another_outline` in its request, it tries to change the headings afterwards."""

    async def _scout(self, run: ResearchRun) -> None:
        plan = run.state.work.plan
        asked = DecomposeInput(
            constraints=run.resolved.constraints,
            most_queries=run.resolved.limits.max_sub_queries,
            rounds=run.state.people.clarification.rounds,
            previous=[node.text for node in plan.sub_queries],
            previous_outline=plan.outline,
        )
        output = await run.ask(DECOMPOSER, "plan", asked)
        run.draft_plan(
            output.brief,
            [PlanNode(id=sub_query_id(text), text=text) for text in output.expanded_queries],
            outline=output.outline,
            questions=output.clarifying_questions,
            assumptions=output.assumptions,
        )

    async def _look(self, run: ResearchRun) -> None:
        await super()._look(run)
        if (run.resolved.metadata or {}).get("another_outline"):
            run.draft_plan(run.state.work.plan.brief, run.state.work.plan.nodes, outline=ANOTHER_OUTLINE)
