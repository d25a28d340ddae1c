"""The scope: queries that the manager judges."""

from contracts.roles import SubQuery
from workflows.rules.sub_queries import plan_sub_queries
from workflows.run.research_run import ResearchRun


async def judge_scope(run: ResearchRun) -> None:
    """Stand-in until the scope is there."""
    run.draft_plan("", plan_sub_queries([SubQuery(query=run.resolved.query)], 1, 1))
