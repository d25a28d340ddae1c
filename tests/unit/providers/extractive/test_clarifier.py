"""The clarifier without a model: it asks what it can name, and lets everything else pass."""

import pytest

from contracts.plan import QuestionRound
from contracts.request import Turn
from contracts.roles import ClarifyInput
from providers.extractive.clarifier import clarify

CLEAR = [
    "How does the engine prevent transaction ID wraparound?",
    "Which Python function opens a file?",
    "What is the capital of France?",
    "Compare B-tree and hash indexes for range queries",
    "What is the best index for range queries?",
    "Is it possible to run two servers on one port?",
    "How is Mercury measured in fish?",
]


@pytest.mark.parametrize("query", CLEAR)
def test_a_clear_question_passes(query: str) -> None:
    """Most questions are clear: nobody is asked."""
    draft = clarify(ClarifyInput(query=query))
    assert (draft.clear, draft.questions) == (True, [])


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("How does it work?", "What does “it” stand for"),
        ("mercury", "“Mercury” means several things: the planet or the metal?"),
        ("How old can a jaguar get?", "“Jaguar” means several things"),
        ("vacuum", "What do you want to know about “vacuum”?"),
        ("What is the best database?", "By what is “best” to be judged"),
    ],
)
def test_what_can_be_taken_in_several_ways_is_asked(query: str, asked: str) -> None:
    """A subject that is not named, a word of two meanings, nothing that is asked, a comparison without a measure."""
    draft = clarify(ClarifyInput(query=query))
    assert not draft.clear
    assert draft.questions[0].startswith(asked), draft.questions


def test_earlier_turns_and_answers_make_a_question_clear() -> None:
    """What was asked before names the subject; nobody is asked twice."""
    context = [Turn(question="What is autovacuum?", answer="A daemon.")]
    assert clarify(ClarifyInput(query="How does it work?", context=context)).clear
    rounds = [QuestionRound(questions=["What does “it” stand for in the question?"], answers=["vacuum"])]
    assert clarify(ClarifyInput(query="How does it work?", rounds=rounds)).clear


def test_who_wants_to_be_asked_is_asked() -> None:
    """`required` finds one question even where all is clear."""
    draft = clarify(ClarifyInput(query=CLEAR[0], required=True))
    assert (draft.clear, len(draft.questions)) == (False, 1)
