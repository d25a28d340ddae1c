"""Outlines: what a model proposes is made fit, what a person writes is refused by field."""

import random
from typing import Any

import pytest
from pydantic import ValidationError

from activities.reporting.drafts import parse_draft
from activities.reporting.references import KnownAddresses
from activities.reporting.tree import heading, paragraph, write
from contracts.lenient import UnfitAnswer
from contracts.living_roles import DECOMPOSER, DecomposeInput, DecomposerAnswer
from contracts.outlines import HEADING_CHARACTERS, MOST_HEADINGS, fitted_outline, heading_of
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
        (["<b>Costs</b> [here](https://a.test/x)", "_All_ of www.a.test"], ["bCosts/b", "All of"], ["headings were"]),
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


@pytest.mark.parametrize("proposed", [[], ["", "  "], ["Sources"], ["[](https://a.test)"]])
def test_an_outline_without_a_heading_is_asked_for_again(proposed: list[str]) -> None:
    """The message is fit for a repair."""
    with pytest.raises(UnfitAnswer, match="outline: at least one heading is needed"):
        fitted_outline(proposed, [])


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


def test_a_cleaned_heading_stays_as_it_is() -> None:
    """Whatever was mixed into a text, it is short and of plain signs; cleaning it again changes nothing, and neither do
    the text of a draft and the removal of addresses from a report.
    """
    parts = [
        "a", "word ", "#", " ", "-", "_", "*", "`", "<b>", "[x](https://a.test)", "www.a.test", "&lt;", "&", "\\", "|", "~~",
        "$x$", "1. ", "![i](u)", "[ev-1234]", "\n", "\u202e", "\x1b", "日本", "a@b.de", "://", "]", "\u3000",
        "long " * 20,
    ]  # fmt: skip
    chance = random.Random(1)
    for _ in range(500):
        name = heading_of("".join(chance.choice(parts) for _ in range(chance.randint(1, 9))))
        assert heading_of(name) == name == KnownAddresses({}).strip(name)
        assert len(name) <= HEADING_CHARACTERS
        assert name.isprintable()
        text = write([heading(2, name), paragraph("Text.")]).text if name else ""
        assert [block.words for block in parse_draft(text) if block.kind == "heading"] == ([name] if name else [])
