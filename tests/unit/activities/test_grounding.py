"""Quotes in stored texts."""

import unicodedata
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.roles.grounding import LONGEST_QUOTE, SHORTEST_QUOTE, Headings, find_quote
from activities.roles.lenient_values import one_line
from activities.roles.untrusted import INVISIBLE

TEXT = "# Vacuum\r\n\r\nRoutine  vacuuming\r\nis needed 🧹 because of wraparound. It café-reads.\n"


def quoted(text: str, quote: str, start: int | None = None) -> str | None:
    """The words of the text that the quote was found as."""
    found = find_quote(text, quote, start)
    return None if found is None else text[slice(*found)]


@pytest.mark.parametrize(
    ("quote", "words"),
    [
        ("because of wraparound.", "because of wraparound."),
        ("Routine vacuuming is needed 🧹", "Routine  vacuuming\r\nis needed 🧹"),
        ("  needed 🧹 because\n", "needed 🧹 because"),
        ("It café-reads.", "It café-reads."),
    ],
)
def test_white_space_may_differ_and_offsets_are_exact(quote: str, words: str) -> None:
    """CRLF, double blanks and emoji do not move the offsets of the stored words (invariant 10)."""
    assert quoted(TEXT, quote) == words


@pytest.mark.parametrize(
    "quote",
    [
        "because of Wraparound.",
        "because of the wraparound.",
        "because of wraparound!",
        "needed … because",
        "“because of wraparound.”",
        "",
        "   ",
        "is",
    ],
)
def test_anything_else_is_no_quote(quote: str) -> None:
    """A changed letter, a word more, other punctuation, an ellipsis or a mere word grounds nothing."""
    assert find_quote(TEXT, quote) is None


@pytest.mark.parametrize(("form", "other_form"), [("NFC", "NFD"), ("NFD", "NFC")])
def test_the_same_letters_in_another_composition_are_found(
    form: Literal["NFC", "NFD"], other_form: Literal["NFC", "NFD"]
) -> None:
    """A text with composed letters is found by a quote with decomposed ones, and the other way round."""
    text = unicodedata.normalize(form, "Über Größe und Café steht hier genug.")
    other = unicodedata.normalize(other_form, "Größe und Café steht")
    assert quoted(text, other) == unicodedata.normalize(form, other)


def test_signs_that_nobody_sees_do_not_hide_a_quote() -> None:
    """A model is not shown zero-width characters; the stored words with them are the evidence."""
    text = "Some text: auto\u00advacuum runs\u200b often enough."
    assert quoted(text, "autovacuum runs often") == "auto\u00advacuum runs\u200b often"


def test_a_known_start_is_believed_only_where_the_words_stand() -> None:
    """Of two equal passages the one at the given offset is meant; a wrong offset is ignored."""
    text = "the same words. And again the same words."
    assert find_quote(text, "the same words.", 26) == (26, 41)
    assert find_quote(text, "the same words.", 3) == (0, 15)
    assert find_quote(text, "the same words.", -15) == (0, 15)


def test_a_long_quote_ends_with_a_sentence() -> None:
    """A quote over 1,200 characters keeps whole sentences."""
    sentence = "This sentence says nothing at all. "
    words = quoted(sentence * 100, sentence * 60)
    assert words is not None
    assert len(words) <= LONGEST_QUOTE
    assert words.endswith("at all.")


@given(st.text(min_size=1, max_size=60), st.text(max_size=40), st.text(max_size=40))
def test_whatever_is_found_stands_there(quote: str, before: str, after: str) -> None:
    """Words cut out of a text are found in it as they stand, unless they are too few to support anything."""
    text = before + quote + after
    found = find_quote(text, quote)
    long_enough = len(one_line(INVISIBLE.sub("", quote.strip()))) >= SHORTEST_QUOTE
    assert (None if found is None else text[slice(*found)]) == (quote.strip() if long_enough else None)


def test_the_heading_above_a_place() -> None:
    """The nearest heading counts; comments in code are no headings."""
    text = "intro\n# One\na\n```sh\n# comment\n```\nb\n## Two ##\nc"
    headings = Headings(text)
    assert headings.above(0) == ""
    assert headings.above(text.index("\nb\n") + 1) == "One"
    assert headings.above(len(text) - 1) == "Two"


def test_headings_are_short() -> None:
    """A heading of evidence has at most 120 characters."""
    assert len(Headings("# " + "word " * 100 + "\ntext").above(600)) <= 120
