"""The benchmark of short answers: its questions, its verdicts, and one whole run; no collection of a package."""

import re
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.answering import Answer, answer, plain, short_answer
from benchmarks.short_answers import (
    COLLECTIONS,
    HALVES,
    SPLITS,
    Collection,
    Question,
    Tally,
    in_second_half,
    load_questions,
    located,
    missing,
    share,
)
from contracts.vocabulary import Outcome
from tests.fakes.corpus import MemoryCorpus

TYPES = {
    *(
        "who",
        "when",
        "where",
        "which",
        "what is",
        "how many",
        "how much",
        "how large",
        "how long",
        "how often",
        "how to",
        "why",
    ),
    *("can", "default", "maximum", "difference", "replaced", "list"),
}
REPORT = """# Which lock?

## Short answer

*Manual: Locks*

> The manual names the `ACCESS\\_SHARE`
> lock. [1]

## Details

> Another lock.
"""
LOCKS = Question("q-1", "en", "which", "Which lock?", answer=("ACCESS_SHARE",), near="lock", within=30)
PRICE = Question("q-2", "en", "how much", "What does it cost?", absent=r"[0-9]+ crowns", near="licence", within=30)


@pytest.mark.parametrize("name", COLLECTIONS)
def test_every_question_is_well_formed_and_in_its_place(name: str) -> None:
    """Ids are unique, patterns compile, types are known, and a third is held out by the hash of the id alone."""
    by_split = {split: load_questions(name, split) for split in (*SPLITS, *HALVES)}
    questions = [question for each in by_split.values() for question in each]
    assert max(Counter(question.id for question in questions).values()) == 1
    for question in questions:
        assert question.id.startswith(f"{name}-")
        assert question.type in TYPES
        assert question.language == COLLECTIONS[name].language
        assert bool(question.answer) != bool(question.absent)
        for pattern in (*question.answer, question.absent, question.near):
            re.compile(pattern)
    assert all(question.held_out for question in by_split["held_out"])
    assert not any(question.held_out for question in by_split["development"])
    for first, second in (("half_a", "half_b"), ("half_c", "half_d")):
        assert not any(in_second_half(question.id) for question in by_split[first])
        assert all(in_second_half(question.id) for question in by_split[second])


def test_the_sets_are_as_broad_as_they_should_be() -> None:
    """At least 150 answerable and 40 unanswerable questions, of every type, to manuals, handbooks and articles."""
    splits = (*SPLITS, *HALVES)
    questions = [question for name in COLLECTIONS for split in splits for question in load_questions(name, split)]
    assert sum(bool(question.answer) for question in questions) >= 150
    assert sum(bool(question.absent) for question in questions) >= 40
    assert {question.type for question in questions} == TYPES
    assert {"manual", "handbook", "articles"} <= {each.kind for each in COLLECTIONS.values()}
    assert len({each.language for each in COLLECTIONS.values()}) >= 3


def test_the_short_answer_is_cut_out_and_made_plain() -> None:
    """Signs of quoting, escapes and ends of lines are no part of it, nor is the next section."""
    assert short_answer(REPORT) == "*Manual: Locks* The manual names the `ACCESS_SHARE` lock. [1]"
    assert short_answer("# Title\n\nNo such section.\n") == ""


def test_a_right_answer_holds_every_pattern() -> None:
    """Case does not matter, one of two patterns is not enough, and an unanswerable question has no right answer."""
    both = Question("q", "en", "list", "Which?", answer=("gist", r"\bgin\b"))
    assert both.is_right("GiST and GIN")
    assert not both.is_right("GiST and engine")
    assert not PRICE.is_right("12 crowns")


def test_a_pattern_counts_only_near_the_subject() -> None:
    """What stands elsewhere in a text answers something else."""
    assert LOCKS.holds("The weakest lock is ACCESS_SHARE.")
    assert not LOCKS.holds("A lock is held. " + "word " * 20 + "ACCESS_SHARE")
    assert not LOCKS.holds("A lock is held.")


def test_a_check_finds_what_does_not_fit() -> None:
    """An answer that is nowhere is a fault, and so is an answer to what should have none."""
    assert not LOCKS.fault(["nothing", "The lock ACCESS_SHARE."])
    assert "does not stand" in LOCKS.fault(["nothing"])
    assert not PRICE.fault(["It costs 12 crowns. " + "word " * 20 + "The licence is free."])
    assert "absent" in PRICE.fault(["The licence costs 12 crowns."])


def test_answers_are_counted_by_what_they_are_worth() -> None:
    """Wrong is confidently wrong only of a completed run; admitted is whatever claims nothing."""
    tally = Tally()
    assert not tally.add(LOCKS, Answer(REPORT, Outcome.COMPLETED, 1, 0.5))
    wrong = REPORT.replace("ACCESS", "ROW")
    assert tally.add(LOCKS, Answer(wrong, Outcome.COMPLETED, 1, 0.5)) == "confidently wrong"
    assert tally.add(LOCKS, Answer(wrong, Outcome.PARTIAL, 1, 0.5)) == "no answer (partial)"
    assert tally.add(PRICE, Answer(REPORT, Outcome.COMPLETED, 1, 0.5)) == "not admitted"
    assert not tally.add(PRICE, Answer(REPORT, Outcome.EMPTY, 0, 0.25))
    assert not tally.add(PRICE, Answer("# Title\n", Outcome.COMPLETED, 0, 0.25))
    assert tally.row() == ["1/3 = 33 %", "1/3 = 33 %", "2/3 = 67 %", "9", "0.42 s"]
    assert share(0, 0) == ""


def test_a_missing_collection_says_what_to_install(tmp_path: Path) -> None:
    """The package and the way around it are named; a folder that is there is not mentioned."""
    absent = Collection("manual", "manual", "en", tmp_path / "nowhere", package="some-doc")
    (line,) = missing([absent, located(absent, str(tmp_path))])
    assert "apt install some-doc" in line
    assert "--collection manual=FOLDER" in line


async def test_a_question_is_answered_by_a_whole_run() -> None:
    """The report of a real run comes back with its outcome: one that answers, and one that admits."""
    answered = await answer(MemoryCorpus(), "manual", "How does the engine prevent transaction ID wraparound?")
    assert answered.outcome is Outcome.COMPLETED
    assert "two billion transactions" in answered.short
    admitted = await answer(MemoryCorpus(), "manual", "What does CockroachDB charge for quantum replication?")
    assert admitted.outcome is Outcome.EMPTY
    assert admitted.findings == 0
    assert plain(admitted.markdown)
