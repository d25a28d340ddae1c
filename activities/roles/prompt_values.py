"""Values that fill each role's prompt, besides those that all prompts have in common."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from activities.reporting.citations import without_markers
from activities.roles.claim_checking import claim_blocks, doubtful_claim_blocks
from activities.roles.excerpts import part_of
from activities.roles.prompt_blocks import (
    PromptRendering,
    add_heading,
    brief_block,
    corpus_block,
    draft_block,
    earlier_turns,
    findings_block,
    gaps_block,
    hits_block,
    list_items,
    part_block,
    source_lines,
    sources_block,
    steps_block,
    system_prompt_block,
)
from activities.roles.untrusted import data, guard, guard_line
from contracts import checking_roles, orchestrator_roles, reflective_roles, roles
from contracts.call_sizes import DRAFT_CHARACTERS, REVIEWED_CHARACTERS
from contracts.plan import QuestionRound
from contracts.request import Turn
from contracts.vocabulary import GapStatus

Values = dict[str, str]


# --- all strategies --------------------------------------------------------------------------------------------------
def _clarifier(request: roles.ClarifyInput | orchestrator_roles.IntakeInput, rendering: PromptRendering) -> Values:
    return _asking(request.context, request.rounds, rendering, required=request.required)


def _asking(context: list[Turn], rounds: list[QuestionRound], rendering: PromptRendering, *, required: bool) -> Values:
    lines = [
        line
        for one in rounds
        for place, question in enumerate(one.questions)
        for line in (
            f"You asked: {guard_line(question, 300)}",
            f"Answer: {guard_line(one.answers[place] if place < len(one.answers) else '', 2_000) or '(left open)'}",
        )
    ]
    demand = "Ask one question at least: this person wants to be asked." if required else ""
    return {
        "context": earlier_turns(context, rendering.share),
        "rounds": add_heading("Earlier rounds:", data("rounds", lines)),
        "demand": demand or "Decide whether the person has to be asked something first.",
    }


def _claims(request: checking_roles.CheckInput | checking_roles.CorrectInput, rendering: PromptRendering) -> Values:
    key, share = rendering.label_key, rendering.share
    if isinstance(request, checking_roles.CheckInput):
        blocks = claim_blocks(request.claims, key, share)
    else:
        blocks = doubtful_claim_blocks(request.claims, key, share)
    return {"claims": "\n".join(blocks) or "(none)", "count": str(len(blocks))}


def _reviewer(request: checking_roles.ReviewInput, rendering: PromptRendering) -> Values:
    text = rendering.documents.get(request.draft.hash, "").replace("[ev-", " (cited) [ev-")
    return {
        "brief": brief_block(request.brief),
        "sub_queries": list_items("Sub-queries that were looked into:", "sub_queries", request.sub_queries),
        "unanswered": list_items("Of these, without a finding:", "gaps", request.unanswered),
        "draft": draft_block(without_markers(text), part_of(REVIEWED_CHARACTERS, rendering.share)),
    }


# --- supervisor ------------------------------------------------------------------------------------------------------
def _planner(request: roles.PlanInput, rendering: PromptRendering) -> Values:
    fewest, most = min(request.min_sub_queries, request.max_sub_queries), request.max_sub_queries
    several = f"{fewest} to {most} sub-queries, {most} or fewer" if fewest < most else f"{most} sub-queries"
    return {
        "wanted": "one sub-query" if most == 1 else several,
        "corpus": corpus_block(request.corpus),
        "context": earlier_turns(request.context, rendering.share),
        "previous": list_items("Sub-queries of the plan that is to be replaced:", "previous", request.previous),
        "system_prompt": system_prompt_block(request.system_prompt),
    }


def _analyzer(request: roles.AnalyzeInput, rendering: PromptRendering) -> Values:
    expected = guard_line(request.sub_query.expected_contribution, 400)
    return {
        "brief": brief_block(request.brief),
        "sub_query": data("sub_query", [guard_line(request.sub_query.text, 1_000)], f' id="{request.sub_query.id}"'),
        "expected": add_heading(
            "What the answer should learn from it:", data("expected", [expected] if expected else [])
        ),
        "sources": sources_block(request, rendering),
    }


def _synthesizer(request: roles.WriteInput, rendering: PromptRendering) -> Values:
    open_gaps = [gap for gap in request.gaps if gap.status in (GapStatus.OPEN, GapStatus.UNADDRESSABLE)]
    cut_short = f"The research was cut short ({request.cut_short}): say so in the limitations.\n"
    return {
        "finding_count": str(len(request.findings)),
        "gap_count": str(len(open_gaps)),
        "brief": brief_block(request.brief),
        "sub_queries": list_items(
            "Sub-queries that were looked into:", "sub_queries", [query.text for query in request.sub_queries]
        ),
        "findings": findings_block(request, rendering),
        "sources": source_lines(request, rendering),
        "gaps": gaps_block(request.gaps, rendering.label_key),
        "improvements": list_items(
            "Improvements proposed after the previous draft:", "improvements", request.improvements
        ),
        "cut_short": cut_short if request.cut_short else "",
        "part": part_block(request, rendering),
        "what": "the report" if request.part is None else "this part",
        "length": f" in about {request.target_words} words" if request.target_words else "",
    }


def _refiner(request: roles.RefineInput, rendering: PromptRendering) -> Values:
    text = rendering.documents.get(request.draft.hash, "") if request.draft else ""
    return {
        "draft": draft_block(without_markers(text), part_of(DRAFT_CHARACTERS, rendering.share)),
        "gaps": gaps_block(request.gaps, rendering.label_key, suggestions=True),
        "asked": list_items("Queries asked so far:", "asked", request.asked),
    }


def _supervisor(request: roles.ReflectInput, _: PromptRendering) -> Values:
    verdict = "passed" if request.gate_valid else "not passed"
    return {
        "phase": request.phase,
        "reflection": guard(request.prompt),
        "metrics": "\n".join(f"- {name}: {value:g}" for name, value in sorted(request.metrics.items())),
        "gate": f"{verdict}, {request.gate_score:g} of 10",
        "gaps": list_items("Open gaps:", "gaps", request.open_gaps),
    }


# --- reflective ------------------------------------------------------------------------------------------------------
def _coordinator(request: reflective_roles.ClassifyInput, rendering: PromptRendering) -> Values:
    direct = (
        "- `direct`: no research is needed at all: a greeting, arithmetic, a rewording, what was answered before.\n"
    )
    return {
        "context": earlier_turns(request.context, rendering.share),
        "direct": direct if request.may_answer else "",
        "system_prompt": system_prompt_block(request.system_prompt),
    }


def _investigator(request: reflective_roles.InvestigateInput, rendering: PromptRendering) -> Values:
    return {
        "corpus": corpus_block(request.corpus),
        "context": earlier_turns(request.context, rendering.share),
    }


def _step_planner(request: reflective_roles.PlanStepsInput, rendering: PromptRendering) -> Values:
    brief = [request.brief] if request.brief else []
    feedback = [text for text in (request.feedback, *request.suggested_changes) if text]
    return {
        "wanted": f"{request.fewest} to {request.most}" if request.fewest < request.most else str(request.most),
        "corpus": corpus_block(request.corpus),
        "brief": list_items("What earlier turns and instructions add to the question:", "brief", brief),
        "background": hits_block(request.hits, rendering.share),
        "steps": steps_block(request.steps, rendering.share),
        "feedback": list_items("Why the plan is changed, and what is suggested:", "feedback", feedback),
    }


def _researcher(request: reflective_roles.ResearchStepInput, _: PromptRendering) -> Values:
    step = [guard_line(request.step_title, 300), guard_line(request.description, 600)]
    return {
        "step": data("step", [line for line in dict.fromkeys(step) if line]),
        "observations": list_items("What this step has found so far:", "observations", request.observations),
        "titles": list_items("Pages that it has read:", "read", request.titles),
        "asked": list_items("Queries asked so far:", "asked", request.asked),
    }


def _reflector(request: reflective_roles.ReflectOnStepInput, rendering: PromptRendering) -> Values:
    fixed = "The plan cannot be adjusted any more: decide between the others.\n"
    return {
        "steps": steps_block(request.steps, rendering.share),
        "pending": list_items("Steps that are planned and not done:", "pending", request.pending),
        "titles": list_items("Sources so far:", "read", request.source_titles[:20]),
        "gaps": list_items("Open gaps:", "gaps", request.open_gaps),
        "adjusting": "" if request.may_adjust else fixed,
    }


def _responder(request: reflective_roles.RespondInput, rendering: PromptRendering) -> Values:
    return {"context": earlier_turns(request.context, rendering.share)}


# --- orchestrator ----------------------------------------------------------------------------------------------------
def _outliner(request: orchestrator_roles.OutlineInput, rendering: PromptRendering) -> Values:
    return {
        "corpus": corpus_block(request.corpus),
        "context": earlier_turns(request.context, rendering.share),
        "previous": list_items("Steps of the plan that is to be replaced:", "previous", request.previous),
        "system_prompt": system_prompt_block(request.system_prompt),
    }


def _orchestrator(request: orchestrator_roles.OrchestrateInput, _: PromptRendering) -> Values:
    thinking = (
        "- `think_tool`: after agents have reported, think before you send the next ones: what is known, what is thin, "
        "what contradicts itself, what comes next. It stands alone in its turn.\n"
    )
    steps = [f"{number}. {step}" for number, step in enumerate(request.steps, start=1)]
    return {
        "approach": brief_block(request.approach),
        "steps": list_items("The plan:", "plan", steps),
        "thinking": "" if request.reasons else thinking,
    }


def _agent(request: orchestrator_roles.WorkInput, _: PromptRendering) -> Values:
    thinking = "- `think_tool`: think about what is missing. It stands alone in its turn.\n"
    return {"thinking": "" if request.reasons else thinking}


VALUES: Final[Mapping[str, Callable[[Any, PromptRendering], Values]]] = {
    roles.CLARIFIER.name: _clarifier,
    roles.PLANNER.name: _planner,
    roles.ANALYZER.name: _analyzer,
    roles.SYNTHESIZER.name: _synthesizer,
    roles.REFINER.name: _refiner,
    roles.SUPERVISOR.name: _supervisor,
    checking_roles.CHECKER.name: _claims,
    checking_roles.CORRECTOR.name: _claims,
    checking_roles.REVIEWER.name: _reviewer,
    reflective_roles.COORDINATOR.name: _coordinator,
    reflective_roles.INVESTIGATOR.name: _investigator,
    reflective_roles.STEP_PLANNER.name: _step_planner,
    reflective_roles.RESEARCHER.name: _researcher,
    reflective_roles.REFLECTOR.name: _reflector,
    reflective_roles.RESPONDER.name: _responder,
    orchestrator_roles.INTAKE.name: _clarifier,
    orchestrator_roles.OUTLINER.name: _outliner,
    orchestrator_roles.ORCHESTRATOR.name: _orchestrator,
    orchestrator_roles.AGENT.name: _agent,
}
"""By role; a role from outside the product has `prompt_values` in its own module."""
