"""Which quotation stands where in a brief."""

import pytest

from contracts.vocabulary import Confidence
from providers.extractive.arrangement import arrange
from providers.extractive.brief_quotations import Quotation
from providers.extractive.passages import FoundPassage
from providers.extractive.question import read_question
from tests.unit.providers.extractive.samples import extract


def quotation(marker: str, text: str, score: float) -> Quotation:
    """A quotation with a score of its own."""
    source = extract(marker, text)
    keys = frozenset(text.casefold().split())
    passage = FoundPassage(
        source.id, 0, len(text), text, marker, keys, score, coverage=1.0, own_coverage=1.0, sentences=1
    )
    return Quotation(f"[{marker}]", source, passage, "mechanism", Confidence.MEDIUM)


@pytest.mark.parametrize(
    ("question", "first"),
    [("How does the vault prevent loss?", "[best]"), ("How many copies does the vault keep?", "[surest]")],
)
def test_best_passage_comes_first_where_many_sentences_have_the_form(question: str, first: str) -> None:
    """How something works: of the passages that answer, the one that speaks most of it; else the surest form."""
    best = quotation("best", "To prevent loss the vault writes each snapshot twice.", 1.0)
    surest = quotation("surest", "Three callbacks are called whenever a volume closes.", 0.8)
    made = arrange([best, surest], read_question(question), 900, answers=[surest, best])
    assert next(one.marker for one in made.short_answer) == first
