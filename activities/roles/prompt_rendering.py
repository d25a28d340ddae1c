"""Rendering: a role's input and the stored texts become the two parts of its prompt, always to the same bytes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

from activities.roles.checker import checker_values
from activities.roles.corrector import corrector_values
from activities.roles.excerpts import part_of
from activities.roles.labels import label_key
from activities.roles.prompt_blocks import (
    PromptRendering,
    add_heading,
    brief_block,
    common_values,
    corpus_block,
    draft_block,
    findings_block,
    gaps_block,
    left_out,
    list_items,
    part_block,
    shown_sources,
    source_lines,
    sources_block,
)
from activities.roles.prompt_files import load_prompt, prompt_of
from activities.roles.reviewer import reviewer_values
from activities.roles.untrusted import data, guard, guard_line, seal
from contracts import checking_roles, roles
from contracts.expected_calls import CONTENT_CHARACTERS
from contracts.request import Turn
from contracts.roles import RoleInput, RoleSpec
from contracts.vocabulary import GapStatus


@dataclass(frozen=True)
class RenderedPrompt:
    """What an engine is given."""

    system: str
    prompt: str
    version: str
    common_length: int = 0
    """How many leading characters the run's other calls of this role share."""
    left_out: list[str] = field(default_factory=list)
    """What is not shown at all for lack of room: one short line each."""


def render_role(
    role: RoleSpec[Any, Any],
    request: RoleInput,
    documents: Mapping[str, str],
    content_characters: int = CONTENT_CHARACTERS,
    share: float = 1.0,
    excerpts: dict[str, str] | None = None,
) -> RenderedPrompt:
    """The prompt of any role.

    `documents` are stored texts by hash, `content_characters` what is shown of one source at most. With a smaller
    `share` than 1 texts from outside are shortened, all alike, down to as little as makes sense at 0. `excerpts` keeps
    what was found in the sources from one rendering of a request to the next.
    """
    file = prompt_of(role)
    known = {} if excerpts is None else excerpts
    rendering = PromptRendering(documents, content_characters, label_key(request), share, known)
    known_by_all = common_values(request) if role.sees_question else {"language": request.language}
    values = known_by_all | _own_values(role, request, rendering)
    common, own = (seal(part, request.canary) for part in file.parts(values))
    system = with_canary(file.system, request.canary)
    return RenderedPrompt(system, common + own, file.version, len(common), left_out(request, rendering))


def with_canary(system: str, canary: str) -> str:
    """Append the canary and its rule to the system part of a prompt; nothing for a run without one."""
    return f"{system}\n\n{load_prompt('canary').system.format(canary=canary)}" if canary else system


def request_as_shown(
    request: RoleInput, documents: Mapping[str, str], content_characters: int, share: float
) -> RoleInput:
    """The request without the sources that had no room in its prompt: nothing is known of them from this call."""
    if share >= 1 or not isinstance(request, roles.AnalyzeInput):
        return request
    shown = shown_sources(request, PromptRendering(documents, content_characters, share=share))
    return request.model_copy(update={"sources": shown})


def _earlier(context: Sequence[Turn], rendering: PromptRendering) -> str:
    asked, answered = part_of(2_000, rendering.share, 200), part_of(4_000, rendering.share, 200)
    turns = [
        line
        for turn in context
        for line in (
            f"Question: {guard_line(turn.question, asked)}",
            f"Answer: {guard_line(turn.answer, answered)}",
        )
    ]
    return add_heading("Asked and answered before:", data("earlier", turns))


def clarifier_values(request: roles.ClarifyInput, rendering: PromptRendering) -> dict[str, str]:
    """What the prompt of whoever may ask a person is filled with."""
    rounds = [
        line
        for one in request.rounds
        for place, question in enumerate(one.questions)
        for line in (
            f"You asked: {guard_line(question, 300)}",
            f"Answer: {guard_line(one.answers[place] if place < len(one.answers) else '', 2_000) or '(left open)'}",
        )
    ]
    demand = "Ask one question at least: this person wants to be asked." if request.required else ""
    return {
        "context": _earlier(request.context, rendering),
        "rounds": add_heading("Earlier rounds:", data("rounds", rounds)),
        "demand": demand or "Decide whether the person has to be asked something first.",
    }


def _planner(request: roles.PlanInput, rendering: PromptRendering) -> dict[str, str]:
    told = guard(request.system_prompt or "").strip()
    return {
        "wanted": _count_wanted(request.min_sub_queries, request.max_sub_queries),
        "corpus": corpus_block(request.corpus),
        "context": _earlier(request.context, rendering),
        "previous": list_items("Sub-queries of the plan that is to be replaced:", "previous", request.previous),
        "system_prompt": f"<additional_context>\n{told}\n</additional_context>" if told else "",
    }


def _count_wanted(fewest: int, most: int) -> str:
    if most == 1:
        return "one sub-query"
    return f"{min(fewest, most)} to {most} sub-queries, {most} or fewer" if fewest < most else f"{most} sub-queries"


def _analyzer(request: roles.AnalyzeInput, rendering: PromptRendering) -> dict[str, str]:
    expected = guard_line(request.sub_query.expected_contribution, 400)
    return {
        "source_count": str(request.source_count),
        "high_quality_sources": str(request.high_quality_sources),
        "brief": brief_block(request.brief),
        "sub_query": data("sub_query", [guard_line(request.sub_query.text, 1_000)], f' id="{request.sub_query.id}"'),
        "expected": add_heading(
            "What the answer should learn from it:", data("expected", [expected] if expected else [])
        ),
        "sources": sources_block(request, rendering),
        "max_findings": str(request.max_findings),
    }


def _synthesizer(request: roles.WriteInput, rendering: PromptRendering) -> dict[str, str]:
    open_gaps = [gap for gap in request.gaps if gap.status in (GapStatus.OPEN, GapStatus.UNADDRESSABLE)]
    return {
        "source_count": str(request.source_count),
        "high_quality_sources": str(request.high_quality_sources),
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
        "cut_short": f"The research was cut short ({request.cut_short}): say so in the limitations.\n"
        if request.cut_short
        else "",
        "part": part_block(request, rendering),
        "what": "the report" if request.part is None else "this part",
        "length": f" in about {request.target_words} words" if request.target_words else "",
    }


def _refiner(request: roles.RefineInput, rendering: PromptRendering) -> dict[str, str]:
    return {
        "remaining_iterations": str(request.remaining_iterations),
        "source_count": str(request.source_count),
        "finding_count": str(request.finding_count),
        "high_confidence_count": str(request.high_confidence_count),
        "draft": draft_block(request, rendering),
        "gaps": gaps_block(request.gaps, rendering.label_key, suggestions=True),
        "asked": list_items("Queries asked so far:", "asked", request.asked),
    }


def _supervisor(request: roles.ReflectInput, _: PromptRendering) -> dict[str, str]:
    verdict = "passed" if request.gate_valid else "not passed"
    return {
        "phase": request.phase,
        "reflection": guard(request.prompt),
        "metrics": "\n".join(f"- {name}: {value:g}" for name, value in sorted(request.metrics.items())),
        "gate": f"{verdict}, {request.gate_score:g} of 10",
        "gaps": list_items("Open gaps:", "gaps", request.open_gaps),
    }


VALUES: Final[dict[str, Callable[[Any, PromptRendering], dict[str, str]]]] = {
    roles.CLARIFIER.name: clarifier_values,
    roles.PLANNER.name: _planner,
    roles.ANALYZER.name: _analyzer,
    roles.SYNTHESIZER.name: _synthesizer,
    roles.REFINER.name: _refiner,
    roles.SUPERVISOR.name: _supervisor,
    checking_roles.CHECKER.name: checker_values,
    checking_roles.CORRECTOR.name: corrector_values,
    checking_roles.REVIEWER.name: reviewer_values,
}
"""What each role's prompt is filled with, besides what all have in common."""


def _own_values(role: RoleSpec[Any, Any], request: RoleInput, rendering: PromptRendering) -> dict[str, str]:
    if role.module is not None:
        own: dict[str, str] = import_module(role.module).prompt_values(request, rendering)
        return own
    return VALUES[role.name](request, rendering)
