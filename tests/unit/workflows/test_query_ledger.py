"""Queries that count as asked before."""

import pytest

from contracts.evidence import QueryOutcome, QueryRecord
from tests.fakes import states
from workflows.rules.query_matching import asked_before, record_of, same_query


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What is  VACUUM?", "what is vacuum"),
        ("“deep” research – methods", "deep research: methods"),
        ("ｆｕｌｌ width query", "full width query"),
        ("что такое вакуум", "Что такое вакуум?"),
    ],
)
def test_the_same_question_is_asked_once(one: str, other: str) -> None:
    """Case and punctuation do not make a new query (C0-1)."""
    assert same_query(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Python vs Rust speed comparison 2023", "Python vs Rust speed comparison 2024"),
        ("how to migrate data from MySQL to Postgres", "how to migrate data from Postgres to MySQL"),
        ("memory safety of C++ code bases", "memory safety of C# code bases"),
        ("jaguar speed", "jaguar top speed"),
        ("safe limits of caffeine", "safe limits of caffeine without sugar"),
        ("jaguar car -animal speed test", "jaguar car animal speed test"),
        ("rate of 5% inflation", "rate of 5 inflation"),
        ("when was the treaty of Rome signed", "why was the treaty of Rome signed"),
        ("कि", "का"),
        ("真空是什么", "真空有什么用"),
    ],
)
def test_another_question_is_asked(one: str, other: str) -> None:
    """Another word, another order or another sign is another query (C0-1)."""
    assert not same_query(one, other)


def test_a_failed_query_may_be_repeated() -> None:
    """Only an answer counts, and only of the provider and kind in question (C0-1)."""
    query = states.sub_query("What are autovacuum settings for large tables?", iteration=2)
    failed = record_of(query, "tavily", found=None)
    answered = record_of(query, "brave", found=3, source_type="news")
    assert (failed.outcome, answered.outcome) == (QueryOutcome.FAILED, QueryOutcome.ANSWERED)
    assert (answered.found, answered.iteration) == (3, 2)
    assert QueryRecord.model_validate_json(answered.model_dump_json()) == answered
    text = "what are AUTOVACUUM settings for large tables"
    assert asked_before([failed], text) is None
    assert asked_before([failed, answered], text) == answered
    assert asked_before([failed, answered], text, provider="tavily") is None
    assert asked_before([failed, answered], text, provider="brave", source_type="web") is None
