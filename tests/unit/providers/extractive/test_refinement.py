"""The refiner and the supervisor without a model."""

import pytest

from contracts.addresses import digest
from contracts.evidence import DocumentRef, Gap
from contracts.outcome import GateIssue
from contracts.roles import ReflectInput
from contracts.vocabulary import Action, GapKind, Phase
from providers.extractive.reflection import refine, reflect
from tests.unit.providers.extractive.samples import BASE, QUESTION, refine_input


def gap(description: str = "No passage holds 'expiry'.", **more: object) -> Gap:
    """An open gap."""
    given = {"id": "gap-1", "description": description, "suggested_queries": ["vault snapshot expiry rules"], **more}
    return Gap.model_validate(given)


def test_new_words_make_a_gap_worth_another_search() -> None:
    """A significant gap with an untried search is addressable and recommended (S0-075, S0-078)."""
    made = refine(refine_input([gap()], finding_count=3, asked=[QUESTION]), {})
    assert made.gap_analysis[0].addressable
    assert made.gap_analysis[0].follow_up_queries[0].query == "vault snapshot expiry rules"
    assert made.iteration_recommendation.should_iterate
    assert made.iteration_recommendation.priority_gaps == ["gap-1"]


def test_search_that_was_asked_before_is_not_proposed() -> None:
    """A follow-up never repeats what was asked; without another one the gap cannot be addressed."""
    asked = [QUESTION, "Vault snapshot expiry rules?"]
    made = refine(refine_input([gap()], finding_count=3, asked=asked), {})
    assert not made.gap_analysis[0].addressable
    assert not made.iteration_recommendation.should_iterate


def test_what_occurs_nowhere_cannot_be_addressed() -> None:
    """A name that is in no document is not searched for again."""
    missing = gap("'CockroachDB' occurs in none of 1,935 documents.", kind=GapKind.LIMITATION)
    made = refine(refine_input([missing]), {})
    assert not made.gap_analysis[0].addressable
    assert not made.iteration_recommendation.should_iterate


def test_words_that_no_document_holds_are_no_new_words() -> None:
    """An iteration must plausibly help, so words with no document are not tried (S0-078)."""
    made = refine(refine_input([gap()], finding_count=3, asked=[QUESTION], term_documents={"expiri": 0, "rule": 0}), {})
    assert not made.gap_analysis[0].addressable


def test_nothing_is_recommended_without_iterations_left_or_for_minor_gaps() -> None:
    """The budget of iterations counts, and minor gaps are not worth one (S0-078)."""
    task = refine_input([gap()], finding_count=3, asked=[QUESTION], remaining_iterations=0)
    assert not refine(task, {}).iteration_recommendation.should_iterate
    task = refine_input([gap(priority=3)], finding_count=3, asked=[QUESTION])
    assert not refine(task, {}).iteration_recommendation.should_iterate


def test_words_of_the_draft_widen_a_search() -> None:
    """Words that the quoted passages repeat may be tried for a gap."""
    draft = (
        "# Q\n\n> Evidence brief of passages.\n>\n> 3 passages quoted\n\n## Short answer\n\n"
        "> The snapshot ledger and the ledger journal.\n\n1. *Vault*\n\n   > The ledger journal is kept.\n"
    )
    reference = DocumentRef(hash=digest(draft))
    made = refine(
        refine_input([gap(suggested_queries=[])], finding_count=2, asked=[QUESTION], draft=reference),
        {digest(draft): draft},
    )
    (follow_up,) = made.gap_analysis[0].follow_up_queries
    assert follow_up.query.endswith(" ledger journal")


def test_what_a_person_asks_for_is_searched_for_however_short_it_is() -> None:
    """Neither its length nor its words decide; what was searched for already is not repeated."""
    wish = gap("Asked while running: vault", suggested_queries=["vault"], origin="steer")
    made = refine(refine_input([wish], finding_count=3, asked=[QUESTION]), {})
    assert [each.query for each in made.gap_analysis[0].follow_up_queries] == ["vault"]
    again = refine(refine_input([wish], finding_count=3, asked=[QUESTION, "Vault?"]), {})
    assert not again.gap_analysis[0].addressable


def reflection(phase: Phase, *, valid: bool = True, gaps: int = 0, iteration: int = 1) -> Action:
    """What the supervisor decides."""
    task = ReflectInput.model_validate(
        {
            **BASE,
            "query": QUESTION,
            "phase": phase,
            "prompt": "",
            "gate_valid": valid,
            "gate_score": 0 if not valid else 8,
            "open_gaps": ["gap"] * gaps,
            "iteration": iteration,
            "max_iterations": 2,
            "issues": [] if valid else [GateIssue(code="few", message="too few findings")],
        }
    )
    made = reflect(task)
    assert 1 <= made.quality_assessment.score <= 10
    assert bool(made.guidance) is not valid
    return Action(made.action)


@pytest.mark.parametrize(
    ("phase", "valid", "gaps", "iteration", "action"),
    [
        (Phase.PLANNING, True, 0, 1, Action.PROCEED),
        (Phase.ANALYSIS, False, 0, 1, Action.RETRY),
        (Phase.SYNTHESIS, True, 1, 1, Action.ITERATE),
        (Phase.SYNTHESIS, True, 1, 2, Action.COMPLETE),
        (Phase.SYNTHESIS, True, 0, 1, Action.COMPLETE),
    ],
)
def test_supervisor_follows_the_gate(phase: Phase, valid: bool, gaps: int, iteration: int, action: Action) -> None:
    """The reflection follows the gate and never loosens it (C0-22)."""
    assert reflection(phase, valid=valid, gaps=gaps, iteration=iteration) is action
