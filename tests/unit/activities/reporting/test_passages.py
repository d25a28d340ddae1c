"""Passages cut out of stored texts."""

import pytest

from activities.reporting.quoted_passages import cut_passage, cut_passages
from contracts.addresses import digest
from providers.errors import ContentCorrupt, ContentMissing
from tests.unit.activities.reporting.sample import VACUUM, Sample, make_evidence, make_source

SAMPLE = Sample()


def test_passage_has_its_words_and_its_context() -> None:
    """The quote is text[start:end]; prefix and suffix are the characters around it, 32 at most (invariant 10)."""
    passage = cut_passage(SAMPLE.rule, VACUUM)
    assert passage.quote == VACUUM[SAMPLE.rule.start : SAMPLE.rule.end]
    assert VACUUM[: SAMPLE.rule.start].endswith(passage.prefix)
    assert (len(passage.prefix), len(passage.suffix)) == (32, 32)
    assert passage.before.startswith("… ")
    assert passage.after.endswith(" …")


@pytest.mark.parametrize("text", ["", "x", "é🐘é" * 3, "a\r\nb\u0301c", "one two " * 100])
def test_offsets_are_code_points_of_the_stored_text(text: str) -> None:
    """C.8: offsets count characters of the stored text as it is: no normalization of line ends or accents."""
    whole = f"{text}QUOTE{text}"
    passage = cut_passage(make_evidence(make_source("corpus:c/a", "A", whole), whole, "QUOTE"), whole)
    assert passage.quote == "QUOTE"
    assert (passage.prefix, passage.suffix) == (text[-32:], text[:32])


@pytest.mark.parametrize("changed", [VACUUM.replace("two billion", "ten billion"), "\n" + VACUUM, VACUUM[:200], ""])
def test_other_words_at_the_place_are_refused(changed: str) -> None:
    """A quote that the stored text does not hold at its place is never written: it raises ContentCorrupt."""
    with pytest.raises(ContentCorrupt):
        cut_passage(SAMPLE.rule, changed)


def test_evidence_without_stored_text_is_refused() -> None:
    """Evidence without a source, or without its text, raises ContentMissing (invariant 3)."""
    sources = {source.id: source for source in SAMPLE.sources.values()}
    with pytest.raises(ContentMissing):
        cut_passages(SAMPLE.evidence, sources, {})
    with pytest.raises(ContentMissing):
        cut_passages(SAMPLE.evidence, {}, SAMPLE.texts)
    assert digest(VACUUM) in SAMPLE.texts
