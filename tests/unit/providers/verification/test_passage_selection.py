"""Passages chosen from whole texts."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from providers.verification.passage_selection import LONGEST, SHORTEST, select_passages, spans_of

DAM = (
    "# The dam\r\n\r\nThe dam at Halvern was finished in 1962 and holds back forty million cubic metres of water. 🐘\r\n"
    "Its wall is 84 metres high, and the cafe\u0301 on its crest opens in summer for visitors.\r\n\r\n"
    "A second dam was planned further down the valley, yet the town council refused it twice.\r\n"
)
TOWN = (
    "The town of Halvern lies in a valley. It has a market square, two churches and a school for nine hundred pupils.\n"
)


def test_the_passage_that_speaks_of_the_question_comes_first() -> None:
    """Offsets are those of the stored text, whatever its line ends, accents and emoji."""
    (found,) = select_passages(["How high is the wall of the dam?"], [TOWN, DAM], most=8, most_of_a_text=3)
    assert "🐘\r\nIts wall is 84 metres high" in DAM[found[0].start : found[0].end]
    assert found[0].text == 1
    assert select_passages(["Which whales sing in winter?"], [TOWN, DAM], most=8, most_of_a_text=3) == [[]]


def test_no_source_and_no_sentence_fills_the_list() -> None:
    """So many of one text at most, and what says the same again is left out."""
    sentences = [f"The harbour of Lindenau has a crane of type {name} for heavy loads of {name} stone.\n\n"
                 for name in ("alpha", "beta", "gamma", "delta", "epsilon")]  # fmt: skip
    own, copy = "".join(sentences), sentences[0]
    (found,) = select_passages(["crane harbour Lindenau heavy loads"], [own, copy], most=8, most_of_a_text=2)
    assert sum(span.text == 0 for span in found) <= 2
    (same,) = select_passages(["crane harbour Lindenau heavy loads"], [copy, copy], most=8, most_of_a_text=3)
    assert len(same) == 1


PIECES = st.sampled_from(
    ["The dam is high. ", "\r\n", "\n\n", "\n", "\r", "🐘", "cafe\u0301 ", "word " * 40, "x" * 700, "1962 "]
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(PIECES, max_size=30).map("".join))
def test_spans_are_ranges_of_the_text(text: str) -> None:
    """Every span has 50 to 500 characters, begins and ends with words, and none overlaps the next (invariant 10)."""
    spans = list(spans_of(text))
    assert all(
        SHORTEST <= end - start <= LONGEST and text[start:end] == text[start:end].strip() for start, end in spans
    )
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(spans))


@pytest.mark.parametrize("text", ["", "\n", "word", "a " * 20_000])
def test_any_text_can_be_searched(text: str) -> None:
    """Texts without a sentence are no error."""
    assert len(select_passages(["word"], [text], most=8, most_of_a_text=3)) == 1
