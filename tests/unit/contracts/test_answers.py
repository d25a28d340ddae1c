"""Answers of roles: read leniently, and fitted to their requests; outlines of models and of people."""

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from activities.reporting.drafts import parse_draft
from activities.reporting.references import KnownAddresses
from activities.reporting.tree import heading, paragraph, write
from contracts import orchestrator_roles, reflective_roles, roles, supervisor_roles
from contracts.addresses import digest, gap_id
from contracts.checking_roles import CheckerAnswer, CorrectorAnswer, ReviewerAnswer, ReviewInput
from contracts.evidence import DocumentRef, Finding, Gap
from contracts.lenient import UnfitAnswer
from contracts.living_roles import DECOMPOSER, DecomposeInput, DecomposerAnswer
from contracts.outlines import HEADING_CHARACTERS, MAX_HEADINGS, clean_heading, fit_outline
from contracts.parse_request import error_lines
from contracts.plan import PlanRevision, QuestionRound
from contracts.request import Mode
from contracts.roles import RoleAnswer, RoleInput, SourceExtract
from contracts.strategies import declared_roles
from contracts.vocabulary import Action, Confidence, Phase, Severity
from providers.models.answers import schema_text

REFLECT = supervisor_roles.ReflectInput(phase=Phase.PLANNING, prompt="?", gate_valid=True, gate_score=9)
COMPARE, RESEARCH = {"title": "Compare", "step_type": "analysis"}, {"title": "Research"}
GAPS = [Gap(id="gap-1", description="a"), Gap(id="gap-2", description="b")]


def fitted(kind: type[RoleAnswer], request: RoleInput, **fields: Any) -> tuple[Any, list[str]]:
    """The answer as the workflow gets it, and the notes on what was changed."""
    notes: list[str] = []
    answer = kind.model_validate(fields).fitted(request, notes)
    assert type(answer).model_validate_json(answer.model_dump_json()) == answer
    return answer, notes


def test_a_plan_has_distinct_sub_queries_and_the_most_important_ones() -> None:
    """Repeated and empty ones go, beyond the limit the least important; the order stays (S0-042, S0-043, S0-044)."""
    given = [("What is vacuum?", 3), ("  ", 1), ("what  is VACUUM", 1), ("cost", -3), ("Freeze", 99), ("locks", 2)]
    plan, notes = fitted(
        roles.PlannerAnswer,
        roles.PlanInput(max_sub_queries=3),
        research_brief=" A  brief. ",
        sub_queries=[{"query": query, "priority": priority, "facet": "f" * 500} for query, priority in given],
    )
    assert [(one.query, one.priority) for one in plan.sub_queries] == [
        ("What is vacuum?", 3),
        ("cost", 1),
        ("locks", 2),
    ]
    assert plan.research_brief == "A brief."
    assert len(plan.sub_queries[0].facet) == 60
    assert notes == [
        "sub-queries that were empty or repeated were dropped",
        "sub-queries beyond the limit of 3 were dropped: 1",
    ]


@pytest.mark.parametrize(
    ("kind", "request_", "fields"),
    [
        (roles.PlannerAnswer, roles.PlanInput(), {"sub_queries": [{"query": " "}]}),
        (roles.ClarifierAnswer, roles.ClarifyInput(required=True), {"clear": True}),
        (orchestrator_roles.OutlinerAnswer, orchestrator_roles.OutlineInput(), {"steps": []}),
        (reflective_roles.StepPlannerAnswer, reflective_roles.PlanStepsInput(), {"has_enough_context": True}),
        (reflective_roles.StepPlannerAnswer, reflective_roles.PlanStepsInput(most=1), {"steps": [COMPARE, RESEARCH]}),
    ],
)
def test_an_answer_with_nothing_left_is_unfit(
    kind: type[RoleAnswer], request_: RoleInput, fields: dict[str, Any]
) -> None:
    """An empty plan is repaired or replaced, and never an empty list; the message is fit for the repair."""
    with pytest.raises(UnfitAnswer, match=r"^\w+: .*at least one"):
        fitted(kind, request_, **fields)


def test_a_person_is_asked_new_questions_only() -> None:
    """At most three, none that was asked before; none where the question is clear."""
    before = roles.ClarifyInput(rounds=[QuestionRound(questions=["Which version?"])])
    questions = ["which version", "A?", "B?", "C?", "D?"]
    answer, notes = fitted(roles.ClarifierAnswer, before, clear=False, questions=questions)
    assert (answer.questions, len(notes)) == (["A?", "B?", "C?"], 1)
    assert fitted(roles.ClarifierAnswer, before, clear=True, questions=questions)[0].questions == []


def test_a_refinement_has_known_gaps_and_new_queries() -> None:
    """Assessments of unknown gaps go, and follow-ups that anybody asked before, in another gap too (S0-071)."""
    request = supervisor_roles.RefineInput(gaps=GAPS, remaining_iterations=1, asked=["What is vacuum?"])
    follow_ups = [{"query": text} for text in ("what is vacuum", "", "new", "other", "third", "fourth")]
    answer, notes = fitted(
        supervisor_roles.RefinerAnswer,
        request,
        gap_analysis=[
            {"gap_id": "gap-1", "severity": "SPLENDID", "follow_up_queries": follow_ups},
            {"gap_id": "gap-1"},
            {"gap_id": "gap-9"},
            {"gap_id": "gap-2", "severity": "Critical", "follow_up_queries": follow_ups},
        ],
        iteration_recommendation={"should_iterate": True, "priority_gaps": ["gap-2", "gap-9", "gap-2"]},
        report_improvements=["a", " ", "a"],
    )
    assert [(one.gap_id, one.severity) for one in answer.gap_analysis] == [
        ("gap-1", Severity.MODERATE),
        ("gap-2", Severity.CRITICAL),
    ]
    queries = [[follow_up.query for follow_up in one.follow_up_queries] for one in answer.gap_analysis]
    assert queries == [["new", "other"], ["third", "fourth"]]
    assert answer.iteration_recommendation.priority_gaps == ["gap-2"]
    assert answer.report_improvements == ["a"]
    assert len(notes) == 1


def test_what_a_run_cannot_do_is_not_asked_for() -> None:
    """A refiner without an iteration left asks for no search, one without pages for no reading; a corrector never for
    citations, which are tried without it.
    """
    page = SourceExtract(id="src-1")
    asked = {
        (remaining, bool(pages)): schema_text(
            supervisor_roles.RefinerAnswer,
            supervisor_roles.RefineInput(remaining_iterations=remaining, read_sources=pages).fields_left_out,
        )
        for remaining in (0, 1)
        for pages in ([], [page])
    }
    assert {key for key, schema in asked.items() if "follow_up_queries" in schema} == {(1, False), (1, True)}
    assert {key for key, schema in asked.items() if "read_further" in schema} == {(0, True), (1, True)}
    actions = json.loads(schema_text(CorrectorAnswer))["$defs"]["ProposedCorrection"]["properties"]["action"]["enum"]
    assert actions == ["keep", "split", "soften", "correct", "remove"]


def test_a_refiner_may_state_gaps_of_its_own_with_new_queries() -> None:
    """Nothing else can be searched for: none without a query, none that the list has, none where nothing is searched."""
    known = GAPS[0].model_copy(update={"id": gap_id("how a policy knows the customer")})
    queries = [{"query": text} for text in ("asked", "policy customer setting", "policy role", "third")]
    own = {"description": "How a policy knows the customer", "severity": "critical", "follow_up_queries": queries}

    def stated(
        gaps: list[Gap], remaining: int = 1, others: Sequence[object] = (), **changes: object
    ) -> list[supervisor_roles.OwnGap]:
        request = supervisor_roles.RefineInput(gaps=gaps, remaining_iterations=remaining, asked=["asked"])
        answer, _ = fitted(
            supervisor_roles.RefinerAnswer,
            request,
            gap_analysis=[{"gap_id": "gap-1", "follow_up_queries": [{"query": "policy role"}]}],
            own_gaps=[own | changes, *others],
            iteration_recommendation={},
        )
        assert not answer.own_gaps or not any(one.follow_up_queries for one in answer.gap_analysis)
        return answer.own_gaps

    assert [one.query for one in stated(GAPS)[0].follow_up_queries] == ["policy customer setting", "policy role"]
    assert stated(GAPS)[0].severity is Severity.CRITICAL
    assert stated([known]) == []
    assert stated(GAPS, remaining=0) == []
    assert stated(GAPS, follow_up_queries=[{"query": "asked"}]) == []
    more = [{"description": f"Gap {number}", "follow_up_queries": [{"query": f"q {number}"}]} for number in range(4)]
    same = {"description": "Gap 0", "follow_up_queries": [{"query": "other"}]}
    assert [each.description for each in stated(GAPS, others=[more[0], same, *more[1:]])] == [
        own["description"],
        "Gap 0",
    ]
    assert len(stated(GAPS, others=more)) == supervisor_roles.MAX_OWN_GAPS


def test_a_gap_that_is_none_needs_no_query() -> None:
    """Answered by known findings, or the same as another gap: of two that name each other, the first is settled."""
    finding = Finding(id="f-1", statement="It is so.")
    request = supervisor_roles.RefineInput(gaps=GAPS, remaining_iterations=1, findings=[finding])
    query = {"follow_up_queries": [{"query": "new"}], "read_further": [1]}
    answer, _ = fitted(
        supervisor_roles.RefinerAnswer,
        request,
        gap_analysis=[
            {"gap_id": "gap-1", "answered_by": ["f-9"], "duplicate_of": "gap-2", **query},
            {"gap_id": "gap-2", "duplicate_of": "gap-1", **query},
        ],
        iteration_recommendation={},
    )
    first, second = answer.gap_analysis
    assert (first.answered_by, first.duplicate_of, first.follow_up_queries, first.read_further) == ([], "gap-2", [], [])
    assert (second.duplicate_of, second.read_further) == ("", [1])
    assert [item.query for item in second.follow_up_queries] == ["new"], "a gap may be read on for and searched for"
    reflection = {"settled_gaps": [{"gap_id": "gap-1", "answered_by": ["f-1"]}, {"gap_id": "gap-2"}]}
    reflected, _ = fitted(
        supervisor_roles.SupervisorAnswer,
        REFLECT.model_copy(update={"gaps": GAPS, "findings": [finding]}),
        action="proceed",
        guidance=[
            {"role": "Analyzer", "text": "old"},
            {"role": "analyzer", "text": "new"},
            {"role": "x", "text": "all"},
        ],
        **reflection,
    )
    assert [item.gap_id for item in reflected.settled_gaps] == ["gap-1"]
    assert [(item.role, item.text) for item in reflected.guidance] == [("analyzer", "new"), ("", "all")]
    plain, _ = fitted(supervisor_roles.SupervisorAnswer, REFLECT, action="proceed", guidance="look closer")
    assert [(item.role, item.text) for item in plain.guidance] == [("", "look closer")]


def test_words_and_numbers_out_of_the_vocabulary_are_read_with_care() -> None:
    """An unknown word becomes the careful one, a number out of its range the nearest (S0-034, S0-176)."""
    answer, _ = fitted(supervisor_roles.SupervisorAnswer, REFLECT, action="splendid", quality_assessment={"score": 70})
    assert (answer.action, answer.quality_assessment.score) == (Action.PROCEED, 10)
    assert fitted(supervisor_roles.SupervisorAnswer, REFLECT, action=" Retry ")[0].action is Action.RETRY
    found = roles.ProposedFinding.model_validate({"content": "x", "confidence": "sure", "category": None})
    assert found.confidence is Confidence.LOW
    draft = ReviewInput(draft=DocumentRef(hash=digest("")))
    review, _ = fitted(ReviewerAnswer, draft, coverage=-3, notes=[" ", *"abcdefg"])
    assert (review.scores.coverage, review.notes) == (0, list("abcde"))


def test_a_direct_answer_needs_leave() -> None:
    """A question that may not be answered directly is researched, and so is one whose route nobody can read."""
    closed = reflective_roles.ClassifyInput(may_answer=False)
    for route, may_answer in (("direct", closed), ("scenic", reflective_roles.ClassifyInput())):
        answer, _ = fitted(reflective_roles.CoordinatorAnswer, may_answer, route=route)
        assert answer.route is Mode.DEEP
    step = reflective_roles.ReflectOnStepInput(gaps=GAPS)
    settled = [{"gap_id": "gap-2", "duplicate_of": "gap-1"}, {"gap_id": "gap-1"}]
    reflected, _ = fitted(
        reflective_roles.ReflectorAnswer, step, decision="?", suggested_changes=None, settled_gaps=settled
    )
    assert (reflected.decision, [item.gap_id for item in reflected.settled_gaps]) == ("continue", ["gap-2"])


def test_one_unreadable_item_does_not_make_the_others_worthless() -> None:
    """Verdicts and corrections are read item by item."""
    given = [7, {"claim": "c-1", "verdict": True}, {"claim": "c-2", "verdict": "supported"}]
    verdicts = CheckerAnswer.model_validate({"verdicts": given}).verdicts
    assert [(one.claim, one.verdict) for one in verdicts] == [("c-1", ""), ("c-2", "supported")]
    given = [{"action": "REMOVE", "passages": ["p", 7]}, None]
    proposals = CorrectorAnswer.model_validate({"proposals": given}).proposals
    assert [(one.action, one.passages) for one in proposals] == [("remove", ["p"])]


@pytest.mark.parametrize("role", declared_roles(), ids=lambda role: role.name)
def test_the_schema_has_no_account(role: Any) -> None:
    """A model is never asked for its own cost, and what it writes about it counts for nothing."""
    schema = role.answer.model_json_schema()
    assert "account" not in schema["properties"]
    assert "CallAccount" not in schema.get("$defs", {})


# --- outlines ---------------------------------------------------------------------------------------------------------
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
        ([f"Part {n}" for n in range(100)], [f"Part {n}" for n in range(MAX_HEADINGS)], ["headings beyond the limit"]),
    ],
)
def test_the_headings_of_a_model_are_made_fit(proposed: list[str], headings: list[str], notes: list[str]) -> None:
    """Plain words, each once, no list of sources, no more than there may be; what was dropped is noted (S2-010)."""
    noted: list[str] = []
    assert fit_outline(proposed, noted) == headings
    assert len(noted) == len(notes)
    assert all(text.startswith(start) for text, start in zip(noted, notes, strict=True))


@pytest.mark.parametrize("proposed", [[], ["", "  "], ["Sources"], ["[](https://a.test)"]])
def test_an_outline_without_a_heading_is_asked_for_again(proposed: list[str]) -> None:
    """The message is fit for a repair."""
    with pytest.raises(UnfitAnswer, match="outline: at least one heading is needed"):
        fit_outline(proposed, [])


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
        "title": "# What **it** costs",
    }
    made = DecomposerAnswer.model_validate(given).fitted(asked, notes)
    assert (made.expanded_queries, made.clarifying_questions) == (["How?", "Why?"], ["A?", "B?", "C?"])
    assert (made.title, made.outline, made.assumptions) == ("What it costs", ["Costs"], ["It is new."])
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
        name = clean_heading("".join(chance.choice(parts) for _ in range(chance.randint(1, 9))))
        assert clean_heading(name) == name == KnownAddresses({}).strip(name)
        assert len(name) <= HEADING_CHARACTERS
        assert name.isprintable()
        text = write([heading(2, name), paragraph("Text.")]).text if name else ""
        assert [block.words for block in parse_draft(text) if block.kind == "heading"] == ([name] if name else [])
