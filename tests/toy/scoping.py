"""A toy whose plan is a scope: the manager judges queries and edits, the phrase approves, the rest is the toy's."""

from dataclasses import replace
from functools import partial

from durable_research.contracts.recursive_roles import EXTRACTOR, LIBRARIAN, MANAGER, SCANNER, TREE_PLANNER
from durable_research.contracts.request import Approve, Gates
from durable_research.contracts.roles import ANALYZER
from durable_research.contracts.tree_sizes import tree_calls
from durable_research.workflows.phases.scope import judge_scope
from durable_research.workflows.run.research_run import ResearchRun

from tests.toy import declared
from tests.toy.roles import LIMITS, SCRIBE, TOY
from tests.toy.strategy import ToyStrategy

TREES = LIMITS.model_copy(
    update={"max_sub_queries": 4, "max_nodes": 3, "max_leaves": 5, "max_corrections": 2, "max_levels": 3}
)
SCOPING = replace(
    TOY,
    name="scoping",
    implementation="tests.toy.scoping:ScopingStrategy",
    roles=(MANAGER, LIBRARIAN, SCANNER, TREE_PLANNER, EXTRACTOR, ANALYZER, SCRIBE),
    presets=dict.fromkeys(TOY.presets, TREES),
    expected_calls=lambda limits, _: tree_calls(limits),
    gates=Gates(approve=Approve.PHRASE),
    judges_edits=True,
)


scoping_declared = partial(declared, SCOPING)


class ScopingStrategy(ToyStrategy):
    """Plans with the manager."""

    async def _scout(self, run: ResearchRun) -> None:
        await judge_scope(run)
