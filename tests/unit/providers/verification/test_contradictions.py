"""Statements of different sources that cannot both be true."""

import pytest

from providers.verification.contradictions import find_contradictions


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The dam was finished in 1962.", "The dam was finished in 1964."),
        ("The wall of the dam is 84 metres high.", "The wall of the dam is 91 metres high."),
        ("The pass is open in winter.", "The pass is not open in winter."),
        ("Sales rose by 5 % in 2020.", "Sales fell by 5 % in 2020."),
    ],
)
def test_same_subject_with_another_number_or_a_denial(one: str, other: str) -> None:
    """One number apart, or one of them denies what the other says."""
    assert find_contradictions([one, "Whales sing.", other], [["a"], ["b"], ["c"]]) == [(0, 2)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("MySQL was released in 1995.", "PostgreSQL was released in 1996."),
        ("Version 1.0 was released in 2010.", "Version 2.0 was released in 2014."),
        ("The museum opens at 9.", "The museum closes at 17."),
        ("Norway has 5 million inhabitants.", "Sweden has 10 million inhabitants."),
        ("The dam holds forty million cubic metres.", "The dam was finished in 1962."),
        ("The dam was finished in 1962.", "The dam was finished in 1962."),
        ("The wall is 84 metres high.", "The wall is about 84 m high."),
    ],
)
def test_other_subjects_and_the_same_words_are_no_contradiction(one: str, other: str) -> None:
    """Other names, other matters, and the same in other forms."""
    assert find_contradictions([one, other], [["a"], ["b"]]) == []


def test_one_source_does_not_contradict_itself() -> None:
    """A page that gives two years is no contradiction between sources."""
    pair = ["The dam was finished in 1962.", "The dam was finished in 1964."]
    assert find_contradictions(pair, [["a"], ["a"]]) == []
