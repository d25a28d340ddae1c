"""Outlines: what a model proposes is made fit, what a person writes is refused by field."""

from typing import Any

import pytest
from pydantic import ValidationError

from contracts.lenient import UnfitAnswer
from contracts.living_roles import DECOMPOSER, DecomposeInput, DecomposerAnswer
from contracts.outlines import MOST_HEADINGS, fitted_outline
from contracts.parse_request import error_lines
from contracts.plan import PlanRevision, QuestionRound

LONG = "word " * 2_000
"""10 kB."""
ANSWER: dict[str, Any] = {"expanded_queries": ["What is it?"], "outline": ["It"]}


@pytest.mark.parametrize(
    ("proposed", "headings", "notes"),
    [
        (["## **How** it `works`", "Costs"], ["How it works", "Costs"], ["headings were shortened, or lost their"]),
        (["Costs", "costs.", "", "Limits"], ["Costs", "Limits"], ["headings that were empty, repeated or lists"]),
        (["Costs", "2. References:"], ["Costs"], ["headings that were empty, repeated or lists of sources"]),
        (
            ["<b>Costs</b> [here](https://a.test/x)", "_All_ of www.a.test"],
            ["bCosts/b", "All of"],
            ["headings were sh"],
        ),
        (["C# and F#", "R&D: 5 % a year?"], ["C# and F#", "R&D: 5 % a year?"], []),
        ([f"Part {n}" for n in range(100)], [f"Part {n}" for n in range(MOST_HEADINGS)], ["headings beyond the limit"]),
    ],
)
def test_the_headings_of_a_model_are_made_fit(proposed: list[str], headings: list[str], notes: list[str]) -> None:
    """Plain words, each once, no list of sources, no more than there may be; what was dropped is noted (S2-010)."""
    noted: list[str] = []
    assert fitted_outline(proposed, noted) == headings
    assert len(noted) == len(notes)
    assert all(text.startswith(start) for text, start in zip(noted, notes, strict=True))


@pytest.mark.parametrize(
    ("revision", "problem"),
    [
        ({"outline": []}, "outline: expected at least 1, and there is none"),
        ({"outline": ["Costs", "costs"]}, "outline: two headings are equal; leave one of them out"),
        ({"outline": [f"Part {n}" for n in range(100)]}, "outline: List should have at most 20 items"),
        ({"outline": ["Costs", LONG]}, "outline.1: String should have at most 120 characters"),
        ({"outline": ["## Costs"]}, "outline.0: expected plain words, without Markdown, HTML and addresses"),
        ({"outline": ["<b>Costs</b>"]}, "outline.0: expected plain words"),
        ({"outline": ["[Costs](https://a.test)"]}, "outline.0: expected plain words"),
        ({"outline": ["a\u202eb"]}, "outline.0: expected plain words"),
        ({"outline": ["…"]}, "outline.0: there are no words in it"),
        ({"outline": ["Costs", "Sources"]}, "outline.1: every report has its list of sources at the end"),
        ({"questions": list("abcd")}, "questions: List should have at most 3 items"),
        ({"questions": [" "]}, "questions.0: must not be empty"),
        ({"assumptions": ["x" * 301]}, "assumptions.0: String should have at most 300 characters"),
    ],
)
def test_an_outline_of_a_person_is_refused_by_field(revision: dict[str, Any], problem: str) -> None:
    """Field, problem and remedy; nothing of it is put right silently (S2-042)."""
    with pytest.raises(ValidationError) as refused:
        PlanRevision.model_validate(revision)
    assert error_lines(refused.value)[0].startswith(problem)


def test_what_a_decomposer_proposes_is_bounded_and_new() -> None:
    """Queries within the limit, at most three questions, none that was asked before; a plan without queries or headings
    is no plan (S2-010, S2-024).
    """
    assert not DECOMPOSER.tools  # nothing to search or read with
    asked = DecomposeInput(query="x", most_queries=2, rounds=[QuestionRound(questions=["Which one?"], answers=["a"])])
    notes: list[str] = []
    given = {
        "expanded_queries": ["How?", "how", "", "Why?", "When?"],
        "clarifying_questions": ["which one", "A?", "B?", "C?", "D?"],
        "outline": ["Costs"],
        "assumptions": ["It is new.", "it is new"],
    }
    made = DecomposerAnswer.model_validate(given).fitted(asked, notes)
    assert (made.expanded_queries, made.clarifying_questions) == (["How?", "Why?"], ["A?", "B?", "C?"])
    assert (made.outline, made.assumptions) == (["Costs"], ["It is new."])
    assert len(notes) == 3
    for name, value in (("expanded_queries", ["?"]), ("outline", ["#"])):
        with pytest.raises(UnfitAnswer, match=f"{name}: at least one"):
            DecomposerAnswer.model_validate(ANSWER | {name: value}).fitted(asked, [])
