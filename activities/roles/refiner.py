"""The refiner's draft as an assessment of known gaps."""

from typing import Final

from activities.roles.finisher import Draft
from activities.roles.labels import label_key, labelled
from activities.roles.lenient_values import bounded, encodable, named, one_line
from contracts.identity import normalized_text
from contracts.roles import (
    FollowUpDraft,
    GapAnalysisDraft,
    GapAssessment,
    RecommendationDraft,
    RefineDraft,
    RefineInput,
    RefineOutput,
)
from contracts.vocabulary import Severity

Work = Draft[RefineInput, RefineDraft]

MOST_FOLLOW_UPS: Final = 3
MOST_IMPROVEMENTS: Final = 10
QUERY_CHARACTERS: Final = 500
NOTE_CHARACTERS: Final = 600


def finish_refinement(work: Work) -> RefineOutput:
    """What the workflow gets: gaps that exist, severities of ours, follow-ups that nobody asked before."""
    known = _known(work)
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
        account=work.accounted(),
    )


def _known(work: Work) -> dict[str, str]:
    """The gaps of this call by what an answer may call them: a model knows them by the labels of its prompt."""
    gaps = {gap.id: gap.id for gap in work.request.gaps}
    return gaps | labelled(gaps, label_key(work.request))


def _assessment(gap_id: str, draft: GapAnalysisDraft, asked: set[str], work: Work) -> GapAssessment:
    severity = named(Severity, draft.severity)
    if severity is None:
        work.warnings.append("an unknown severity was taken for moderate")
    return GapAssessment(
        gap_id=gap_id,
        severity=severity or Severity.MODERATE,
        addressable=draft.addressable,
        follow_up_queries=_follow_ups(draft.follow_up_queries, asked, work),
    )


def _follow_ups(drafts: list[FollowUpDraft], asked: set[str], work: Work) -> list[FollowUpDraft]:
    kept: list[FollowUpDraft] = []
    for draft in drafts:
        query = bounded(one_line(encodable(draft.query)), QUERY_CHARACTERS)
        key = normalized_text(query)
        if not key or key in asked:
            work.warnings.append("a follow-up that was empty or already asked was dropped")
        elif len(kept) < MOST_FOLLOW_UPS:
            # Shared by all gaps: two gaps must not ask the same either.
            asked.add(key)
            contribution = bounded(one_line(encodable(draft.expected_contribution)), NOTE_CHARACTERS)
            kept.append(FollowUpDraft(query=query, expected_contribution=contribution))
    return kept


def _recommendation(known: dict[str, str], work: Work) -> RecommendationDraft:
    draft = work.draft.iteration_recommendation
    named_gaps = list(dict.fromkeys(gap_id.strip() for gap_id in draft.priority_gaps))
    if not known.keys() >= set(named_gaps):
        work.warnings.append("an unknown gap was left out of the recommendation")
    return RecommendationDraft(
        should_iterate=draft.should_iterate,
        rationale=bounded(one_line(encodable(draft.rationale)), NOTE_CHARACTERS),
        priority_gaps=list(dict.fromkeys(known[name] for name in named_gaps if name in known)),
    )


def _improvements(texts: list[str]) -> list[str]:
    cleaned = (bounded(one_line(encodable(text)), NOTE_CHARACTERS) for text in texts)
    return list(dict.fromkeys(text for text in cleaned if text))[:MOST_IMPROVEMENTS]
