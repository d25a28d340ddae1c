"""Rendering: a role's input and the stored texts become the two parts of its prompt, always to the same bytes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from activities.prompt_blocks import (
    DEFAULT_CONTENT_CHARACTERS,
    Rendering,
    brief_block,
    common_values,
    corpus_block,
    draft_block,
    findings_block,
    gap_line,
    listed,
    mark_of,
    source_lines,
    sources_block,
)
from activities.prompt_files import load_prompt
from activities.untrusted import guarded, guarded_line
from contracts import roles
from contracts.roles import RoleInput, RoleSpec
from contracts.vocabulary import GapStatus


@dataclass(frozen=True)
class RenderedPrompt:
    """What an engine is given."""

    system: str
    prompt: str
    version: str


def render_role(
    role: RoleSpec[Any, Any],
    request: RoleInput,
    documents: Mapping[str, str],
    content_characters: int = DEFAULT_CONTENT_CHARACTERS,
) -> RenderedPrompt:
    """The prompt of any role; `documents` are stored texts by hash, `content_characters` the share of one source."""
    file = load_prompt(role.prompt)
    rendering = Rendering(documents, content_characters, mark_of(request))
    values = common_values(request) | VALUES[role.name](request, rendering)
    return RenderedPrompt(file.system, file.filled(values), file.version)


def _planner(request: roles.PlanInput, _: Rendering) -> dict[str, str]:
    turns = [
        f"Question: {guarded_line(turn.question, 2_000)}\nAnswer: {guarded_line(turn.answer, 4_000)}"
        for turn in request.context
    ]
    return {
        "wanted": _wanted(request.min_sub_queries, request.max_sub_queries),
        "corpus": corpus_block(request.corpus),
        "context": "<earlier>\n" + "\n\n".join(turns) + "\n</earlier>\n" if turns else "",
        "previous": listed("Sub-queries of the plan that is to be replaced:", request.previous),
        "system_prompt": f"Additional context: {guarded(request.system_prompt)}" if request.system_prompt else "",
    }


def _wanted(fewest: int, most: int) -> str:
    if most == 1:
        return "one sub-query"
    return f"{min(fewest, most)} to {most} sub-queries, {most} or fewer" if fewest < most else f"{most} sub-queries"


def _analyzer(request: roles.AnalyzeInput, rendering: Rendering) -> dict[str, str]:
    expected = guarded_line(request.sub_query.expected_contribution, 400)
    return {
        "source_count": str(request.source_count),
        "high_quality_sources": str(request.high_quality_sources),
        "brief": brief_block(request.brief),
        "sub_query_id": request.sub_query.id,
        "sub_query": guarded(request.sub_query.text),
        "expected": f"It is asked because the answer should learn: {expected}\n" if expected else "",
        "mark": rendering.mark,
        "sources": sources_block(request, rendering),
        "max_findings": str(request.max_findings),
    }


def _synthesizer(request: roles.WriteInput, rendering: Rendering) -> dict[str, str]:
    open_gaps = [gap for gap in request.gaps if gap.status in (GapStatus.OPEN, GapStatus.UNADDRESSABLE)]
    return {
        "source_count": str(request.source_count),
        "high_quality_sources": str(request.high_quality_sources),
        "finding_count": str(len(request.findings)),
        "gap_count": str(len(open_gaps)),
        "brief": brief_block(request.brief),
        "sub_queries": listed("Sub-queries that were looked into:", [query.text for query in request.sub_queries]),
        "mark": rendering.mark,
        "findings": findings_block(request, rendering) or "(none)",
        "sources": source_lines(request) or "(none)",
        "gaps": "\n".join(gap_line(gap) for gap in request.gaps) or "(none)",
        "improvements": listed("Improvements asked for after the previous draft:", request.improvements),
        "cut_short": f"The research was cut short ({request.cut_short}): say so in the limitations.\n"
        if request.cut_short
        else "",
        "length": f" in about {request.target_words} words" if request.target_words else "",
    }


def _refiner(request: roles.RefineInput, rendering: Rendering) -> dict[str, str]:
    return {
        "remaining_iterations": str(request.remaining_iterations),
        "source_count": str(request.source_count),
        "finding_count": str(request.finding_count),
        "high_confidence_count": str(request.high_confidence_count),
        "mark": rendering.mark,
        "draft": draft_block(request, rendering),
        "gaps": "\n".join(gap_line(gap, suggestions=True) for gap in request.gaps) or "(none)",
        "asked": listed("Queries asked so far:", request.asked),
    }


def _supervisor(request: roles.ReflectInput, _: Rendering) -> dict[str, str]:
    verdict = "passed" if request.gate_valid else "not passed"
    return {
        "phase": request.phase.value,
        "reflection": guarded(request.prompt),
        "metrics": "\n".join(f"- {name}: {value:g}" for name, value in sorted(request.metrics.items())) or "- none",
        "gate": f"{verdict}, {request.gate_score:g} of 10",
        "gaps": listed("Open gaps:", request.open_gaps),
    }


VALUES: Final[dict[str, Callable[[Any, Rendering], dict[str, str]]]] = {
    roles.PLANNER.name: _planner,
    roles.ANALYZER.name: _analyzer,
    roles.SYNTHESIZER.name: _synthesizer,
    roles.REFINER.name: _refiner,
    roles.SUPERVISOR.name: _supervisor,
}
"""What each role's prompt is filled with, besides what all have in common."""
