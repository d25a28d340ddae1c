"""The supervisor without a model: reflects on a gate's result, and decides which gaps another search may close."""

import re
from collections import Counter
from collections.abc import Mapping

from contracts.addresses import normalized_text
from contracts.evidence import ASKED_BY_PERSON, Gap
from contracts.roles import (
    FollowUpQuery,
    GapAssessment,
    QualityAssessment,
    Recommendation,
    RefineInput,
    RefinerAnswer,
    ReflectInput,
    SupervisorAnswer,
)
from contracts.vocabulary import Action, GapKind, Phase, Severity
from providers.extractive.question_terms import key_words
from providers.text import STOP_WORDS, stem, words

FOLLOW_UPS = 2
SHORTEST = 10
"""Of a query that nobody asked for, in signs."""
_NOWHERE = re.compile(r"\boccurs? in none of\b")


def reflect(task: ReflectInput) -> SupervisorAnswer:
    """Say what the gate's result means for the next step; it never loosens a gate."""
    action = _action(task)
    figures = ", ".join(f"{name} {value:g}" for name, value in sorted(task.metrics.items()))
    return SupervisorAnswer(
        action=action.value,
        rationale=f"The gate after {task.phase} is {'satisfied' if task.gate_valid else 'not satisfied'}"
        f" ({task.gate_score:g} of 10{'; ' + figures if figures else ''}).",
        quality_assessment=QualityAssessment(
            score=min(10.0, max(1.0, task.gate_score)),
            strengths=["gate satisfied"] if task.gate_valid else [],
            weaknesses=[issue.message for issue in task.issues],
        ),
        guidance="" if task.gate_valid else "; ".join(issue.message for issue in task.issues)[:1_000],
    )


def _action(task: ReflectInput) -> Action:
    if not task.gate_valid:
        return Action.RETRY
    if task.phase == Phase.SYNTHESIS:
        return Action.ITERATE if task.open_gaps and task.iteration < task.max_iterations else Action.COMPLETE
    return Action.PROCEED


def refine(task: RefineInput, documents: Mapping[str, str]) -> RefinerAnswer:
    """Judge every open gap: conservative, another iteration must plausibly help."""
    draft = documents.get(task.draft.hash, "") if task.draft else ""
    expansion = _expansion(draft, task)
    tried = {normalized_text(text) for text in [*task.asked, task.query]}
    analysis = []
    for gap in sorted(task.gaps, key=lambda gap: (gap.priority, gap.id)):
        judged = _judge(gap, task, expansion, tried)
        tried |= {normalized_text(follow.query) for follow in judged.follow_up_queries}
        analysis.append(judged)
    return RefinerAnswer(
        gap_analysis=analysis,
        iteration_recommendation=_recommend(analysis, task),
        report_improvements=_improvements(task),
    )


def _judge(gap: Gap, task: RefineInput, expansion: list[str], tried: set[str]) -> GapAssessment:
    severity = _severity(gap, task)
    if _NOWHERE.search(gap.description) or gap.kind is GapKind.LIMITATION:
        return GapAssessment(gap_id=gap.id, severity=severity.value, addressable=False)
    seen = {stem(word, task.language) for text in [*task.asked, task.query] for word in words(text)}
    subject = key_words(task.query, task.language)[:4]
    proposals = [*gap.suggested_queries]
    if expansion and task.finding_count:
        proposals.append(" ".join([*subject, *expansion[:2]]))
    follow_ups = []
    for text in dict.fromkeys(" ".join(proposal.split())[:300] for proposal in proposals):
        fresh = any(
            stem(word, task.language) not in seen and _known_word(word, task)
            for word in words(text)
            if word.casefold() not in STOP_WORDS
        )
        narrower = task.finding_count == 0 and bool(words(text))
        # What a person asks for is searched for, however short it is.
        asked_for = gap.origin == ASKED_BY_PERSON and text in gap.suggested_queries
        if normalized_text(text) not in tried and (asked_for or (len(text) >= SHORTEST and (fresh or narrower))):
            follow_ups.append(
                FollowUpQuery(
                    query=text, expected_contribution="Passages that hold words which no search has tried yet."
                )
            )
    return GapAssessment(
        gap_id=gap.id,
        severity=severity.value,
        addressable=bool(follow_ups),
        follow_up_queries=follow_ups[:FOLLOW_UPS],
    )


def _known_word(word: str, task: RefineInput) -> bool:
    return task.term_documents.get(stem(word, task.language), 1) > 0


def _severity(gap: Gap, task: RefineInput) -> Severity:
    if task.finding_count == 0 and gap.priority == 1:
        return Severity.CRITICAL
    return Severity.MODERATE if gap.priority == 1 else Severity.MINOR


def _recommend(analysis: list[GapAssessment], task: RefineInput) -> Recommendation:
    worth = [judged.gap_id for judged in analysis if judged.addressable and judged.severity != Severity.MINOR.value]
    go_on = bool(worth) and task.remaining_iterations > 0
    if go_on:
        rationale = f"{len(worth)} of {len(analysis)} open gaps matter and have searches that were not tried yet."
    elif not worth:
        rationale = "No open gap both matters and has a search that was not tried yet."
    else:
        rationale = "No iteration is left."
    return Recommendation(should_iterate=go_on, rationale=rationale, priority_gaps=worth if go_on else [])


def _improvements(task: RefineInput) -> list[str]:
    if task.finding_count and not task.high_confidence_count:
        return ["State that no finding is confirmed by a second document of high quality."]
    return []


def _expansion(draft: str, task: RefineInput) -> list[str]:
    """Words that the quoted passages repeat and that no search has held."""
    _, _, body = draft.partition("\n## ")  # what stands in front says how the brief was made
    quoted = "\n".join(line for line in body.splitlines() if line.lstrip().startswith(">"))
    seen = {stem(word, task.language) for text in [*task.asked, task.query] for word in words(text)}
    counted = Counter(
        word.casefold()
        for word in words(quoted)
        if len(word) > 4
        and word.isalpha()
        and word.casefold() not in STOP_WORDS
        and stem(word, task.language) not in seen
    )
    return [word for word, count in sorted(counted.items(), key=lambda pair: (-pair[1], pair[0])) if count > 1][:6]
