"""Independence: pages of one collection, publisher or host are one voice."""

import pytest

from contracts.evidence import bounded_confidence, supported_confidence, voice_of
from contracts.vocabulary import Confidence, Quality


@pytest.mark.parametrize(
    ("url", "publisher", "voice"),
    [
        ("corpus:manual/a.html", None, "corpus:manual"),
        ("corpus:manual/b/c.html", "Somebody", "corpus:manual"),
        ("https://www.example.org/a", None, "example.org"),
        ("https://example.org/b", " The  Press ", "the press"),
        ("https://[broken", None, ""),
    ],
)
def test_voice(url: str, publisher: str | None, voice: str) -> None:
    """A collection is one voice whatever its pages say; on the web the publisher, else the host."""
    assert voice_of(url, publisher) == voice


@pytest.mark.parametrize(
    ("sources", "confidence"),
    [
        ([("a", Quality.HIGH), ("a", Quality.HIGH)], Confidence.MEDIUM),
        ([("a", Quality.HIGH), ("b", Quality.HIGH)], Confidence.HIGH),
        ([("a", Quality.LOW), ("b", Quality.LOW)], Confidence.MEDIUM),
        ([("a", Quality.LOW), ("a", Quality.MEDIUM)], Confidence.LOW),
        ([("", Quality.HIGH)], Confidence.LOW),
    ],
)
def test_support_counts_voices(sources: list[tuple[str, Quality]], confidence: Confidence) -> None:
    """Two pages of one voice are not two."""
    assert supported_confidence(sources) is confidence


def test_a_claim_is_bounded_by_its_support() -> None:
    """Nobody's own word makes a confidence higher than the sources bear out, and a low word stays low."""
    assert bounded_confidence(Confidence.CONFIRMED, Confidence.MEDIUM) is Confidence.MEDIUM
    assert bounded_confidence(Confidence.CONFIRMED, Confidence.HIGH) is Confidence.CONFIRMED
    assert bounded_confidence(Confidence.SPECULATION, Confidence.HIGH) is Confidence.SPECULATION
    assert bounded_confidence(Confidence.HIGH, Confidence.LOW) is Confidence.LOW
