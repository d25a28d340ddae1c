"""What the analyzer may say of a source."""

import pytest

from activities.assessment.source_assessment import best_quality
from contracts.evidence import Source, SourceAssessment
from contracts.roles import QualityUpdate
from contracts.vocabulary import Quality
from tests.fakes import states
from workflows.phases.analysis import update_quality

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


def test_where_anybody_can_write_nothing_is_authoritative() -> None:
    """The analyzer cannot raise a page of a forum or an open encyclopedia to high (X-20)."""
    source = assessed(Quality.MEDIUM, 0.6)
    open_to_all = judged_by(parts_of(Quality.MEDIUM, 0.6, user_generated=True))
    assert update_quality(source, opinion(source, "high")).quality is Quality.HIGH
    assert update_quality(open_to_all, opinion(source, "high")).quality is Quality.MEDIUM
    assert update_quality(open_to_all, opinion(source, "low")).quality is Quality.LOW
