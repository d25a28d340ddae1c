"""The planner without a model."""

import pytest

from contracts.addresses import normalized_text
from contracts.outcome import GateIssue, Guidance
from providers.extractive.facets import FACETS
from providers.extractive.planner import plan
from providers.extractive.question import QuestionType, read_question
from tests.unit.providers.extractive.samples import QUESTION, plan_input


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("How does PostgreSQL prevent transaction ID wraparound?", QuestionType.HOW),
        ("How do I enable foreign keys?", QuestionType.HOW_TO),
        ("Why is the sky blue?", QuestionType.WHY),
        ("What is the difference between VACUUM and VACUUM FULL?", QuestionType.COMPARE),
        ("Which index types are there?", QuestionType.LIST),
        ("What is TOAST?", QuestionType.DEFINE),
        ("What does max_connections control?", QuestionType.DEFINE),
        ("How many columns can a table have?", QuestionType.QUANTITY),
        ("What happens when the disk is full?", QuestionType.CONSEQUENCE),
        ("Does SQLite support triggers?", QuestionType.YES_NO),
    ],
)
def test_tells_types_of_questions_apart(question: str, kind: QuestionType) -> None:
    """The wording of a question decides what sort of answer is looked for."""
    assert read_question(question).kind is kind


@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_plan_keeps_to_its_limits(most: int) -> None:
    """Never more sub-queries than allowed, priorities from 1, each query at least ten characters (S0-042, S0-044)."""
    made = plan(plan_input("How does the vault prevent loss?", max_sub_queries=most))
    assert 1 <= len(made.sub_queries) <= most
    assert [query.priority for query in made.sub_queries] == list(range(1, len(made.sub_queries) + 1))
    assert all(len(query.query) >= 10 and query.rationale and query.facet for query in made.sub_queries)
    assert len({normalized_text(query.query) for query in made.sub_queries}) == len(made.sub_queries)
    assert 2 <= made.research_brief.count(".") <= 3


def test_first_sub_query_is_the_question_and_all_keep_its_key_terms() -> None:
    """Each part of the answer is searched with the words that the question is about (S0-043)."""
    made = plan(plan_input("How does PostgreSQL prevent transaction ID wraparound?"))
    assert made.sub_queries[0].query == "How does PostgreSQL prevent transaction ID wraparound?"
    assert all("wraparound" in query.query for query in made.sub_queries)
    assert len({query.facet for query in made.sub_queries}) == len(made.sub_queries)


def test_comparison_looks_up_each_side() -> None:
    """A comparison has one sub-query for each of its sides."""
    made = plan(plan_input("Compare rollback journal and WAL mode in SQLite"))
    assert {"entity:rollback journal", "entity:WAL mode"} <= {query.facet for query in made.sub_queries}


def test_done_again_it_asks_something_else() -> None:
    """A retry changes its input, so beside the question itself the new plan repeats no sub-query (C0-27)."""
    first = plan(plan_input())
    issue = GateIssue(code="few", message="too few")
    again = plan(plan_input(issues=[issue], previous=[query.query for query in first.sub_queries]))
    old = {normalized_text(query.query) for query in first.sub_queries}
    new = [normalized_text(query.query) for query in again.sub_queries]
    assert new[0] == normalized_text(QUESTION)
    assert len(new) >= 2
    assert not old & set(new[1:])


def test_guidance_of_a_person_is_searched_and_that_of_the_rules_is_not() -> None:
    """What a person or the operator's prompt asks for becomes a search of its own (S0-047, S0-081)."""
    person = Guidance(origin="person", text="Look at encryption of backups.")
    rules = Guidance(origin="rules", text="Widen the plan towards bananas.")
    made = plan(plan_input(guidance=[person, rules], system_prompt="Mention costs of storage."))
    queries = " ".join(query.query for query in made.sub_queries)
    assert "encryption" in queries
    assert "bananas" not in queries


def test_what_a_person_asks_for_is_searched_however_short_it_is() -> None:
    """One short word is a search of its own, padded to the length that a search has; elsewhere it would be too short."""
    person = Guidance(origin="person", text="Look at locks, too.", answer="looks at locks", look_at=["locks"])
    queries = [query.query for query in plan(plan_input("How does it work?", guidance=[person])).sub_queries]
    assert any("locks" in query and len(query) >= 10 for query in queries), queries
    unasked = plan(plan_input("How does it work?", system_prompt="Be blunt."))
    assert not any("blunt" in query.query for query in unasked.sub_queries)


def test_short_question_is_still_searchable() -> None:
    """A question of one word gives searches of at least ten characters."""
    assert all(len(query.query) >= 10 for query in plan(plan_input("WAL?")).sub_queries)


def test_every_facet_of_a_plan_is_known() -> None:
    """Facets of a plan name sections of the brief."""
    for question in ("How does it work?", "Why is it slow?", "Which modes are there?", "What is a vault?"):
        assert all(query.facet in FACETS for query in plan(plan_input(question)).sub_queries)


@pytest.mark.parametrize("question", ["Who built the vault?", "How many keys are there?", "Is the lid closed?"])
def test_short_question_gets_one_more_search_in_other_words(question: str) -> None:
    """No aspects that nobody asked for: the question itself, and once what its documents may call it."""
    made = plan(plan_input(question))
    assert len(made.sub_queries) == 2
    assert made.sub_queries[0].query == question
    assert {query.facet for query in made.sub_queries} == {made.sub_queries[0].facet}


@pytest.mark.parametrize(
    "question", ["What is a vault?", "Which seals does the vault support?", "How do I seal a crate?", "Why is it slow?"]
)
def test_short_question_whose_answer_has_parts_gets_aspects(question: str) -> None:
    """What a thing is, which kinds there are, how to do something, and why: one sentence is seldom the whole answer."""
    made = plan(plan_input(question))
    assert made.sub_queries[0].query == question
    assert len({query.facet for query in made.sub_queries}) > 1
