"""What the analyzer may say of a source."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.assessment.source_assessment import LITTLE_AUTHORITY, best_quality
from contracts.evidence import CHOSEN_BY_OPERATOR, QualityUpdate, Source, SourceAssessment
from contracts.vocabulary import Quality
from tests.fakes import states
from workflows.phases.analysis import QUALITY_STEPS, update_quality

URL = "https://e.org/a"


def assessed(label: Quality, authority: float = 0.8) -> Source:
    """A source that the rules judged."""
    return judged_by(parts_of(label, authority))


def parts_of(label: Quality, authority: float, **changes: object) -> SourceAssessment:
    """What the rules found."""
    parts = SourceAssessment(
        authority=authority, relevance=0.5, recency=0.5, content_quality=0.5, label=label, reason="university site"
    )
    return parts.model_copy(update=changes)


def judged_by(parts: SourceAssessment) -> Source:
    """A source as it is known after reading."""
    return states.source(
        URL,
        quality=parts.label,
        quality_reason=parts.reason,
        assessment=parts,
        best_quality=best_quality(parts),
    )


def opinion(source: Source, quality: str) -> QualityUpdate:
    """The analyzer's word."""
    return QualityUpdate(source_id=source.id, quality=quality)


@pytest.mark.parametrize(
    ("label", "word", "expected"),
    [
        (Quality.MEDIUM, "high", Quality.HIGH),
        (Quality.MEDIUM, "low", Quality.LOW),
        (Quality.LOW, "high", Quality.MEDIUM),
        (Quality.HIGH, "low", Quality.MEDIUM),
        (Quality.HIGH, "unknown", Quality.HIGH),
        (Quality.HIGH, "excellent", Quality.HIGH),
    ],
)
def test_an_opinion_moves_a_label_by_one_step(label: Quality, word: str, expected: Quality) -> None:
    """The label follows the analyzer by one step, with what it was before as the reason (S0-063, X-20)."""
    source = update_quality(assessed(label), opinion(assessed(label), word))
    assert source.quality is expected
    if expected is not label:
        assert source.quality_reason == f"analyzer: {expected.value} (was {label.value})"


@given(st.sampled_from(QUALITY_STEPS), st.floats(0, 1), st.lists(st.sampled_from(Quality), max_size=5))
def test_steps_do_not_add_up(label: Quality, authority: float, words: list[Quality]) -> None:
    """However often it is asked, a label stays one step from what the rules found, under its ceiling (X-20)."""
    start = source = assessed(label, authority)
    for word in words:
        source = update_quality(source, opinion(source, word.value))
    assert abs(QUALITY_STEPS.index(source.quality) - QUALITY_STEPS.index(label)) <= 1
    if authority < LITTLE_AUTHORITY and label is not Quality.HIGH:
        assert source.quality is not Quality.HIGH
    assert source.assessment == start.assessment


def test_where_anybody_can_write_nothing_is_authoritative() -> None:
    """The analyzer cannot raise a page of a forum or an open encyclopedia to high (X-20)."""
    source = assessed(Quality.MEDIUM, 0.6)
    open_to_all = judged_by(parts_of(Quality.MEDIUM, 0.6, user_generated=True))
    assert update_quality(source, opinion(source, "high")).quality is Quality.HIGH
    assert update_quality(open_to_all, opinion(source, "high")).quality is Quality.MEDIUM
    assert update_quality(open_to_all, opinion(source, "low")).quality is Quality.LOW


def test_what_the_operator_chose_stays() -> None:
    """Neither a corpus nor a declared domain is the model's to judge (C0-24)."""
    corpus = states.source("corpus:m/a", quality_reason=CHOSEN_BY_OPERATOR)
    domain = states.source(URL, quality_reason=CHOSEN_BY_OPERATOR + "; covers 2 of 3 words; 2024")
    for source in (corpus, domain):
        assert update_quality(source, opinion(source, "low")) == source


def test_the_reason_of_an_opinion_that_was_taken_back_is_the_rules_own() -> None:
    """Where an entry of the notebook holds the rules' reason, the label leaves it to the entry."""
    source = assessed(Quality.MEDIUM).model_copy(update={"assessment": None, "quality_reason": "", "entry": "sha256:1"})
    changed = update_quality(source, opinion(source, "high"))
    assert (changed.found_quality, changed.quality_reason) == (Quality.MEDIUM, "analyzer: high (was medium)")
    back = update_quality(changed, opinion(source, "medium"))
    assert (back.quality, back.quality_reason) == (Quality.MEDIUM, "")


def test_a_source_without_a_label_gets_one() -> None:
    """What the rules did not judge takes the analyzer's word (S0-063)."""
    source = states.source(URL, quality=Quality.UNKNOWN, quality_reason="")
    assert update_quality(source, opinion(source, "high")).quality is Quality.HIGH
    judged = update_quality(source, opinion(source, "medium"))
    assert (judged.quality, judged.quality_reason) == (Quality.MEDIUM, "analyzer: medium (was unknown)")
