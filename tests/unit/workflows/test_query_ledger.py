"""What counts as asked before."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.evidence import QueryOutcome, QueryRecord
from tests.fakes import states
from workflows.rules.query_matching import asked_before, drop_repeated, normalized_query, record_of, same_query

LONG = "long term health effects of daily caffeine consumption and safe limits of intake"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What is  VACUUM?", "what is vacuum"),
        ("“deep” research – methods", "deep research: methods"),
        ("ｆｕｌｌ width query", "full width query"),
        ("the effects of caffeine on sleep quality", "effect of caffeine on sleep quality"),
        ("postgres vs mysql write performance", "mysql vs postgres write performance"),
        (LONG, LONG + " recommended"),
        ("что такое вакуум", "Что такое вакуум?"),
    ],
)
def test_the_same_question_is_asked_once(one: str, other: str) -> None:
    """Case, punctuation, plurals, the order within a comparison, and one word among many do not make a new query (C0-1)."""
    assert same_query(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Python vs Rust speed comparison 2023", "Python vs Rust speed comparison 2024"),
        (LONG + " 2023", LONG + " 2024"),
        (LONG, LONG + " not"),
        (LONG, LONG + " without sugar"),
        (LONG, LONG + " Germany"),
        (LONG, LONG + " children"),
        (LONG, LONG + " 5%"),
        (LONG, "benefits " + LONG),
        ("how to migrate data from MySQL to Postgres", "how to migrate data from Postgres to MySQL"),
        ("does smoking cause severe depression", "does depression cause severe smoking"),
        ("memory safety of C++ code bases", "memory safety of C# code bases"),
        ("memory safety of C++ code bases", "memory safety of C code bases"),
        ("jaguar speed", "jaguar top speed"),
        ("caffeine effect", "caffeine effects"),
        ("daily caffeine intake limits for good sleep", "daily caffeine intake limits for good sleep overview"),
        (LONG, LONG + " recommended official medical guidance overview"),
        ("compare moving data from MySQL to Postgres", "compare moving data from Postgres to MySQL"),
        ("caffeine effects", "effects caffeine"),
        ("jaguar car -animal speed test", "jaguar car animal speed test"),
        ("when was the treaty of Rome signed", "why was the treaty of Rome signed"),
        ("कि", "का"),
        ("真空是什么", "真空有什么用"),
    ],
)
def test_another_question_is_asked(one: str, other: str) -> None:
    """Numbers, names, negations, directions and short queries are never collapsed (C0-1)."""
    assert not same_query(one, other)
    assert not same_query(other, one)


WORDS = st.lists(
    st.sampled_from("a the not cats cat Cat 2023 2024 vs from to NATO nato sleep effects of on C++ go".split())
).map(" ".join)


@given(st.one_of(WORDS, st.text(max_size=40)), st.one_of(WORDS, st.text(max_size=40)))
def test_being_the_same_goes_both_ways(one: str, other: str) -> None:
    """Any text is the same as itself, and order of comparison does not matter."""
    assert same_query(one, one)
    assert same_query(one, other) == same_query(other, one)
    assert normalized_query(normalized_query(one)) == normalized_query(one)


@given(st.lists(WORDS, max_size=8), st.lists(WORDS, max_size=4))
def test_what_is_left_repeats_nothing(texts: list[str], before: list[str]) -> None:
    """Every text is left or is the same as one that was asked; order is kept."""
    fresh = drop_repeated(texts, before)
    left = iter(texts)
    assert all(text in left for text in fresh)
    for place, text in enumerate(fresh):
        assert not any(same_query(text, other) for other in [*before, *fresh[:place]])
    for text in texts:
        assert not normalized_query(text) or any(same_query(text, other) for other in [*before, *fresh])


def test_what_failed_may_be_asked_again() -> None:
    """Only an answer counts, and only of the provider and kind in question (C0-1)."""
    query = states.sub_query("autovacuum settings for large tables")
    failed = record_of(query, "tavily", found=None)
    answered = record_of(query, "brave", found=0, source_type="news")
    assert (failed.outcome, answered.outcome) == (QueryOutcome.FAILED, QueryOutcome.ANSWERED)
    ledger = [failed, answered]
    text = "Autovacuum settings for large tables?"
    assert asked_before([failed], text) is None
    assert asked_before(ledger, text) == answered
    assert asked_before(ledger, text, provider="tavily") is None
    assert asked_before(ledger, text, provider="brave", source_type="web") is None
    assert asked_before(ledger, text, provider="brave", source_type="news") == answered


def test_an_entry_says_who_was_asked_what() -> None:
    """The ledger's fields are those of the domain (SearchQuery)."""
    entry = record_of(states.sub_query("What is VACUUM?", iteration=2), "corpus", found=3)
    assert entry.normalized_text == "what is vacuum"
    assert (entry.provider, entry.found, entry.iteration) == ("corpus", 3, 2)
    assert QueryRecord.model_validate_json(entry.model_dump_json()) == entry
