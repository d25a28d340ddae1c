"""The roles of the strategy `orchestrator` without a model: one agent for each step of the plan, then the report."""

from typing import Final

from contracts.orchestrator_roles import (
    AGENT_TOOL,
    OPEN_TOOL,
    PLAN_TOOL,
    REPORT_TOOL,
    SEARCH_TOOL,
    THINK_TOOL,
    AgentArguments,
    AgentReportArguments,
    IntakeInput,
    OpenArguments,
    OrchestrateInput,
    OutlinedStep,
    OutlineInput,
    OutlinerAnswer,
    SearchArguments,
    ThinkArguments,
    WorkInput,
)
from contracts.roles import ClarifyInput, PlanInput
from contracts.tool_turns import Transcript, TurnAnswer, scripted_turn
from contracts.tools import NoArguments
from providers.extractive.clarifier import clarify
from providers.extractive.planner import plan

TASK_CHARACTERS: Final = 500


def take_in(request: IntakeInput, _: Transcript) -> TurnAnswer:
    """Without a model: questions for what the rules find unclear, else the question is handed over."""
    asked = ClarifyInput(
        query=request.query,
        language=request.language,
        context=request.context,
        rounds=request.rounds,
        required=request.required,
    )
    found = clarify(asked)
    if found.questions:
        return scripted_turn(text="\n".join(found.questions))
    return scripted_turn((PLAN_TOOL, NoArguments()))


def outline(request: OutlineInput) -> OutlinerAnswer:
    """Without a model: one step for each part of an answer."""
    proposed = plan(
        PlanInput(
            query=request.query,
            language=request.language,
            guidance=request.guidance,
            system_prompt=request.system_prompt,
            min_sub_queries=1,
            max_sub_queries=request.most,
            previous=request.previous,
        )
    )
    steps = [OutlinedStep(step=item.query, facet=item.facet) for item in proposed.sub_queries]
    return OutlinerAnswer(approach=proposed.research_brief, steps=steps)


def orchestrate(request: OrchestrateInput, _: Transcript) -> TurnAnswer:
    """Without a model: an agent for each step that none was sent for, all at once; the report when there is none."""
    tasks = [
        (AGENT_TOOL, AgentArguments(task=request.steps[number - 1][:TASK_CHARACTERS], steps=[number]))
        for number in request.unserved
        if 0 < number <= len(request.steps)
    ]
    if tasks and (not request.offered or AGENT_TOOL in request.offered):
        return scripted_turn(*tasks[: request.most_calls])
    if tasks and THINK_TOOL in request.offered:
        # It stands in for a model that has to think here.
        return scripted_turn((THINK_TOOL, ThinkArguments(reasoning=f"{len(tasks)} steps of the plan have no agent.")))
    return scripted_turn((REPORT_TOOL, NoArguments()))


def work(request: WorkInput, _: Transcript) -> TurnAnswer:
    """Without a model: search for the task in its own words, open the first pages that it may open, report."""
    if not request.searches and request.searches_left:
        return scripted_turn((SEARCH_TOOL, SearchArguments(query=request.query[:TASK_CHARACTERS])))
    if request.found and request.pages_left:
        best = sorted(request.found, key=lambda page: (page.rank, page.index))[: request.pages_left]
        pages = sorted(page.index for page in best)[: request.most_calls]
        return scripted_turn(*((OPEN_TOOL, OpenArguments(index=index)) for index in pages))
    return scripted_turn((REPORT_TOOL, AgentReportArguments(open_questions=request.open_gaps)))
