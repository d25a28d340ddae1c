"""Finishing drafts: what every finisher is given, and the drafts of planner, refiner and supervisor."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from activities.roles.labels import label_all, label_key
from activities.roles.lenient_values import clamp, encodable, find_member, line_of
from contracts.addresses import normalized_text
from contracts.base import Contract
from contracts.outcome import CallAccount
from contracts.plan import MOST_QUESTIONS
from contracts.roles import (
    ClarifyDraft,
    ClarifyInput,
    ClarifyOutput,
    FollowUpDraft,
    GapAnalysisDraft,
    GapAssessment,
    PlanDraft,
    PlanInput,
    PlanOutput,
    RecommendationDraft,
    RefineDraft,
    RefineInput,
    RefineOutput,
    ReflectInput,
    ReflectionDraft,
    ReflectOutput,
    RoleInput,
    SubQueryDraft,
)
from contracts.texts import shorten
from contracts.vocabulary import Action, Severity
from providers.errors import InvalidOutput

QUERY_CHARACTERS: Final = 500
QUESTION_CHARACTERS: Final = 300
NOTE_CHARACTERS: Final = 600
FACET_CHARACTERS: Final = 60
BRIEF_CHARACTERS: Final = 2_000
REFLECTION_CHARACTERS: Final = 1_000
GUIDANCE_CHARACTERS: Final = 2_000
LOWEST_PRIORITY: Final = 10
MOST_FOLLOW_UPS: Final = 3
MOST_IMPROVEMENTS: Final = 10
MOST_NOTES: Final = 10

I = TypeVar("I", bound=RoleInput)
D = TypeVar("D", bound=Contract)


@dataclass(frozen=True)
class Draft(Generic[I, D]):
    """An engine's draft on its way to the workflow."""

    request: I
    draft: D
    documents: Mapping[str, str]
    """Stored texts by hash."""
    account: CallAccount
    warnings: list[str] = field(default_factory=list)
    """One short line for each thing that was coerced or dropped; never with words of a page."""

    def account_with_warnings(self) -> CallAccount:
        """The account with all warnings, each once."""
        return self.account.model_copy(
            update={"warnings": list(dict.fromkeys([*self.account.warnings, *self.warnings]))}
        )


def finish_clarification(work: Draft[ClarifyInput, ClarifyDraft]) -> ClarifyOutput:
    """At most three questions, each once; one that was asked before is left out."""
    asked = {normalized_text(question) for one in work.request.rounds for question in one.questions}
    fresh: dict[str, str] = {}
    for draft in [] if work.draft.clear and not work.request.required else work.draft.questions:
        question = line_of(draft, QUESTION_CHARACTERS)
        key = normalized_text(question)
        if key and key not in asked:
            fresh.setdefault(key, question)
    if len(fresh) > MOST_QUESTIONS:
        work.warnings.append(
            f"{len(fresh) - MOST_QUESTIONS} questions beyond the limit of {MOST_QUESTIONS} were dropped"
        )
    questions = list(fresh.values())[:MOST_QUESTIONS]
    if work.request.required and not questions:
        raise InvalidOutput("questions: a person is to be asked: at least one question is needed")
    reason = line_of(work.draft.reason, NOTE_CHARACTERS)
    return ClarifyOutput(questions=questions, reason=reason, account=work.account_with_warnings())


Planning = Draft[PlanInput, PlanDraft]


def finish_plan(work: Planning) -> PlanOutput:
    """The plan that the workflow gets. Raises `InvalidOutput` if no sub-query is left."""
    kept = _first_by_priority(_distinct(work), work)
    if not kept:
        raise InvalidOutput("sub_queries: at least one sub-query with words is needed")
    return PlanOutput(
        research_brief=line_of(work.draft.research_brief, BRIEF_CHARACTERS),
        sub_queries=kept,
        account=work.account_with_warnings(),
    )


def _distinct(work: Planning) -> list[SubQueryDraft]:
    distinct: dict[str, SubQueryDraft] = {}
    for draft in work.draft.sub_queries:
        cleaned = _clean(draft, work)
        key = normalized_text(cleaned.query)
        if not key:
            work.warnings.append("a sub-query without words was dropped")
        elif key in distinct:
            work.warnings.append("a repeated sub-query was dropped")
        else:
            distinct[key] = cleaned
    return list(distinct.values())


def _clean(draft: SubQueryDraft, work: Planning) -> SubQueryDraft:
    priority = int(clamp(draft.priority, 1, LOWEST_PRIORITY))
    if priority != draft.priority:
        work.warnings.append(f"a priority was moved to {priority}")
    return SubQueryDraft(
        query=line_of(draft.query, QUERY_CHARACTERS),
        rationale=line_of(draft.rationale, NOTE_CHARACTERS),
        priority=priority,
        facet=line_of(draft.facet, FACET_CHARACTERS),
    )


def _first_by_priority(drafts: list[SubQueryDraft], work: Planning) -> list[SubQueryDraft]:
    """The most important ones, in the planner's order."""
    most = work.request.max_sub_queries
    if len(drafts) <= most:
        return drafts
    work.warnings.append(f"{len(drafts) - most} sub-queries beyond the limit of {most} were dropped")
    chosen = sorted(range(len(drafts)), key=lambda place: (drafts[place].priority, place))[:most]
    return [drafts[place] for place in sorted(chosen)]


Refinement = Draft[RefineInput, RefineDraft]


def finish_refinement(work: Refinement) -> RefineOutput:
    """What the workflow gets: gaps that exist, severities of ours, follow-ups that were not asked before."""
    known = _gaps_by_name(work)
    asked = {normalized_text(text) for text in work.request.asked}
    assessments: dict[str, GapAssessment] = {}
    for draft in work.draft.gap_analysis:
        gap_id = known.get(draft.gap_id.strip(), "")
        if not gap_id:
            work.warnings.append("an assessment of an unknown gap was ignored")
        elif gap_id in assessments:
            work.warnings.append("a second assessment of a gap was ignored")
        else:
            assessments[gap_id] = _assessment(gap_id, draft, asked, work)
    return RefineOutput(
        gap_analysis=list(assessments.values()),
        iteration_recommendation=_recommendation(known, work),
        report_improvements=_improvements(work.draft.report_improvements),
        account=work.account_with_warnings(),
    )


def _gaps_by_name(work: Refinement) -> dict[str, str]:
    """The gaps of this call by what an answer may call them: a model knows them by the labels of its prompt."""
    gaps = {gap.id: gap.id for gap in work.request.gaps}
    return gaps | label_all(gaps, label_key(work.request))


def _assessment(gap_id: str, draft: GapAnalysisDraft, asked: set[str], work: Refinement) -> GapAssessment:
    severity = find_member(Severity, draft.severity)
    if severity is None:
        work.warnings.append("an unknown severity was taken for moderate")
    return GapAssessment(
        gap_id=gap_id,
        severity=severity or Severity.MODERATE,
        addressable=draft.addressable,
        follow_up_queries=_follow_ups(draft.follow_up_queries, asked, work),
    )


def _follow_ups(drafts: list[FollowUpDraft], asked: set[str], work: Refinement) -> list[FollowUpDraft]:
    kept: list[FollowUpDraft] = []
    for draft in drafts:
        query = line_of(draft.query, QUERY_CHARACTERS)
        key = normalized_text(query)
        if not key or key in asked:
            work.warnings.append("a follow-up that was empty or already asked was dropped")
        elif len(kept) < MOST_FOLLOW_UPS:
            # Shared by all gaps: two gaps must not ask the same either.
            asked.add(key)
            contribution = line_of(draft.expected_contribution, NOTE_CHARACTERS)
            kept.append(FollowUpDraft(query=query, expected_contribution=contribution))
    return kept


def _recommendation(known: dict[str, str], work: Refinement) -> RecommendationDraft:
    draft = work.draft.iteration_recommendation
    named_gaps = list(dict.fromkeys(gap_id.strip() for gap_id in draft.priority_gaps))
    if not known.keys() >= set(named_gaps):
        work.warnings.append("an unknown gap was left out of the recommendation")
    return RecommendationDraft(
        should_iterate=draft.should_iterate,
        rationale=line_of(draft.rationale, NOTE_CHARACTERS),
        priority_gaps=list(dict.fromkeys(known[name] for name in named_gaps if name in known)),
    )


def _improvements(texts: list[str]) -> list[str]:
    cleaned = (line_of(text, NOTE_CHARACTERS) for text in texts)
    return list(dict.fromkeys(text for text in cleaned if text))[:MOST_IMPROVEMENTS]


def finish_reflection(work: Draft[ReflectInput, ReflectionDraft]) -> ReflectOutput:
    """What the workflow gets: an action of ours, a score from 1 to 10."""
    draft, assessment = work.draft, work.draft.quality_assessment
    action = find_member(Action, draft.action)
    if action is None:
        work.warnings.append("an unknown action was taken for proceed")
    score = clamp(assessment.score, 1, 10)
    if score != assessment.score:
        work.warnings.append(f"a score was moved to {score:g}")
    return ReflectOutput(
        action=action or Action.PROCEED,
        rationale=_note(draft.rationale),
        score=score,
        strengths=_notes(assessment.strengths),
        weaknesses=_notes(assessment.weaknesses),
        guidance=shorten(encodable(draft.guidance).strip(), GUIDANCE_CHARACTERS),
        account=work.account_with_warnings(),
    )


def _note(text: str) -> str:
    return line_of(text, REFLECTION_CHARACTERS)


def _notes(texts: list[str]) -> list[str]:
    return [note for text in texts[:MOST_NOTES] if (note := _note(text))]
