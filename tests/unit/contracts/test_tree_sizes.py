"""Sizes of trees, what stands against a scope because of them, the manager's verdicts, and the words of approval."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.lenient import UnfitAnswer
from contracts.parse_request import InvalidRequest, parse_request
from contracts.plan import APPROVAL_PHRASE, ObjectionKind, PlanNode, Waiting, WaitKind, raise_limits
from contracts.recursive_roles import EXTRACTOR, MANAGER, JudgedQuery, ManagerAnswer, ScopeInput
from contracts.request import Limits
from contracts.resolved import ModelPrice
from contracts.tree_sizes import count_parts, estimate_trees, structural_objections, tree_calls
from tests.toy.scoping import TREES, scoping_declared

PRICES = {tier: ModelPrice(input=5.0, output=25.0) for tier in ("simple", "analytical", "complex")}
ROLES = {MANAGER: (1, 2), EXTRACTOR: (2, 9)}
WAITING = Waiting(kind=WaitKind.APPROVAL, plan_version=1, phrase=APPROVAL_PHRASE)


# --- sizes -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("query", "parts"),
    [
        ("How does vacuum work?", 1),
        ("What, in short, is vacuum, and how does it work?", 1),
        ("Compare a, b, c, d, e, f", 6),
        ("甲、乙、丙、丁、戊", 5),
        ("one; two; three; four; five; six; seven", 7),
        ("Why? How? When? Who? Where?", 5),
        (",,,,,,,,", 1),
        ("", 1),
    ],
)
def test_what_a_query_enumerates_is_counted(query: str, parts: int) -> None:
    """Things between separators and questions, in any script; a sentence with a few commas is one thing."""
    assert count_parts(query) == parts


@given(st.integers(1, 20), st.integers(1, 13), st.integers(1, 8), st.integers(0, 5), st.integers(1, 120))
def test_more_queries_never_take_fewer_calls(queries: int, nodes: int, leaves: int, rounds: int, sources: int) -> None:
    """Fewest is at most as many as most but for sources, and both grow with the queries."""
    update = {"max_nodes": nodes, "max_leaves": leaves, "max_corrections": rounds, "max_sources": sources}
    limits = TREES.model_copy(update=update)
    calls, more = tree_calls(limits, queries), tree_calls(limits, queries + 1)
    for role, (fewest, most) in calls.items():
        assert fewest <= most or fewest > sources, role
        assert fewest <= more[role][0], role
        assert most <= more[role][1], role
    assert tree_calls(limits)["manager"] == (1, 2)


@given(st.integers(0, 40), st.integers(0, 200_000), st.floats(0, 2), st.integers(0, 5), st.floats(1, 60))
def test_a_limit_is_objected_to_exactly_where_the_least_exceeds_it(
    calls: int, tokens: int, usd: float, sources: int, seconds: float
) -> None:
    """Calls, tokens, cost, sources and time, each with the estimate and the limit (C4-10, X-18)."""
    amounts = {"max_model_calls": calls, "max_tokens": tokens, "max_cost_usd": usd}
    limits = TREES.model_copy(update=amounts | {"max_sources": sources, "deadline_seconds": seconds})
    queries = [PlanNode(id="a", text="How?"), PlanNode(id="b", text="Why?")]
    estimate = estimate_trees([query.text for query in queries], ROLES, PRICES)
    exceeded = {
        "max_model_calls": estimate["max_model_calls"] > calls,
        "max_tokens": estimate["max_tokens"] > tokens,
        "max_cost_usd": (estimate["max_cost_usd"] or 0) > usd,
        "max_sources": estimate["max_sources"] > sources,
        "deadline_seconds": estimate["deadline_seconds"] > seconds,
    }
    found = structural_objections(estimate, limits, queries)
    assert {name for objection in found for name in objection.figures} == {name for name in exceeded if exceeded[name]}
    for objection in found:
        ((name, (amount, limit)),) = objection.figures.items()
        assert (amount > limit, objection.kind) == (True, ObjectionKind.STRUCTURAL)
        assert f"limits.{name} is" in objection.text


def test_each_thing_that_a_query_names_is_a_leaf_with_its_call() -> None:
    """Calls and tokens grow with what is enumerated, and a query names no more than its tree has leaves (C4-10)."""
    short = estimate_trees(["How?"], ROLES, PRICES)
    long = estimate_trees(["Compare a, b, c, d, e, f, g"], ROLES, PRICES)
    assert (short["max_model_calls"], long["max_model_calls"]) == (3, 8)
    assert long["max_tokens"] > short["max_tokens"]
    many = PlanNode(id="a", text="Compare " + ", ".join(f"part {number}" for number in range(20)))
    (objection,) = structural_objections(short, TREES, [many])
    assert objection.figures == {"max_leaves": (20.0, 15.0)}
    assert "split it into 2 queries of at most 15 things each" in objection.text


def test_an_unknown_price_or_no_limit_is_no_objection() -> None:
    """A cost that nobody knows cannot exceed a cap; no model means no calls, tokens and cost."""
    tight = TREES.model_copy(update={"max_cost_usd": 0.000001})
    unknown = estimate_trees(["How?"], ROLES, {})
    assert unknown["max_cost_usd"] is None
    assert structural_objections(unknown, tight, []) == []
    without = estimate_trees(["How?"], {}, {})
    assert set(without.values()) == {1, 0}
    free = TREES.model_copy(update={"max_cost_usd": None})
    assert structural_objections(estimate_trees(["How?"], ROLES, PRICES), free, []) == []


# --- limits of requests ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("strategy", "limit", "value", "line"),
    [
        ("supervisor", "max_nodes", 3, "limits.max_nodes: the strategy supervisor has no trees"),
        ("orchestrator", "max_levels", 2, "limits.max_levels: the strategy orchestrator has no trees"),
        ("scoping", "max_levels", 4, "limits.max_levels: Input should be less than or equal to 3"),
        ("scoping", "max_nodes", 0, "limits.max_nodes: Input should be greater than or equal to 1"),
        ("scoping", "max_leaves", 21, "limits.max_leaves: Input should be less than or equal to 20"),
        ("scoping", "max_corrections", -1, "limits.max_corrections: Input should be greater than or equal to 0"),
        ("scoping", "max_steps", 0, "limits.max_steps: Input should be greater than or equal to 1"),
        ("scoping", "max_steps", 2, "limits.max_steps: the strategy scoping has no steps"),
        ("living", "max_update_characters", 199, "limits.max_update_characters: Input should be greater than or equal"),
        ("living", "max_update_characters", 8_001, "limits.max_update_characters: Input should be less than or equal"),
        ("scoping", "max_update_characters", 800, "limits.max_update_characters: the strategy scoping has no live"),
    ],
)
def test_limits_of_a_strategy_have_bounds_and_are_refused_elsewhere(
    strategy: str, limit: str, value: int, line: str
) -> None:
    """By name, those of trees, steps and updates; within the bounds they are taken, none corrections included
    (S2-009, S2-038, C2-2, X-10).
    """
    with scoping_declared():
        with pytest.raises(InvalidRequest) as refused:
            parse_request(json.dumps({"query": "How?", "strategy": strategy, "limits": {limit: value}}))
        assert str(refused.value).startswith(line)
        limits = {"max_nodes": 40, "max_leaves": 20, "max_corrections": 0, "max_levels": 1}
        taken = parse_request(json.dumps({"query": "How?", "strategy": "scoping", "limits": limits}))
    assert taken.limits == Limits(**limits)


# --- verdicts --------------------------------------------------------------------------------------------------------
def judged(query: str, *, feasible: bool = True, reason: str = "", splits: tuple[str, ...] = ()) -> JudgedQuery:
    return JudgedQuery(query=query, feasible=feasible, reason=reason, splits=list(splits))


def fitted(*queries: JudgedQuery, **fields: object) -> tuple[list[JudgedQuery], list[str]]:
    notes: list[str] = []
    answer = ManagerAnswer(queries=list(queries)).fitted(ScopeInput.model_validate(fields), notes)
    return answer.queries, notes


def test_a_scope_is_distinct_queries_within_the_limit() -> None:
    """What is empty, repeated or beyond the limit is dropped; a feasible query needs no splits (S4-004, S4-005)."""
    found, notes = fitted(
        judged("How?", splits=("Why?",)), judged(" how "), judged(""), judged("Why?"), judged("When?"), most_queries=2
    )
    assert [(one.query, one.splits) for one in found] == [("How?", []), ("Why?", [])]
    assert notes == ["queries beyond the limit of 2 were dropped: 1"]
    wide, _ = fitted(judged("All?", feasible=False, reason="wide", splits=("A?", "all", "a", "B?", "C?", "D?", "E?")))
    assert wide[0].splits == ["A?", "B?", "C?", "D?"]


@pytest.mark.parametrize(
    ("queries", "fields", "problem"),
    [
        ((), {}, "queries: at least one query with words is needed"),
        ((judged("?"),), {}, "queries: at least one query with words is needed"),
        ((judged("A?", feasible=False, reason="wide"),), {}, "queries.0: not feasible, so a reason and narrower"),
        ((judged("A?", feasible=False, splits=("B?",)),), {}, "queries.0: not feasible, so a reason and narrower"),
        ((judged("A?", feasible=False, reason="x", splits=("a",)),), {}, "queries.0: not feasible, so a reason"),
        ((judged("A?"),), {"edited": ["A?", "B?"]}, "queries: query 2 of those to be judged is missing"),
        ((judged("C?"),), {"edited": ["A?"]}, "queries: query 1 of those to be judged is missing"),
    ],
)
def test_a_verdict_without_its_parts_is_repaired(
    queries: tuple[JudgedQuery, ...], fields: dict[str, object], problem: str
) -> None:
    """In words that name the query by its place: no reason, no split, no verdict of an edited query (S4-005)."""
    with pytest.raises(UnfitAnswer) as unfit:
        fitted(*queries, **fields)
    assert str(unfit.value).startswith(problem)


def test_an_edit_is_judged_as_it_is() -> None:
    """Its queries in their order and words, whatever the manager adds or turns around."""
    found, notes = fitted(judged("c?"), judged("b"), judged("A?"), edited=["A?", "B?"], most_queries=1)
    assert [one.query for one in found] == ["A?", "B?"]
    assert notes == ["verdicts of other queries were dropped"]


# --- words of approval -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "words",
    [
        "Authorized to execute", "AUTHORIZED TO EXECUTE", " authorized   to\n execute\t", '"Authorized to execute"',
        "“Authorized to execute.”", "«Authorized to execute»", "‘authorized to execute’", "Authorized to execute!",
        "(Authorized to execute)", "「Authorized to execute」。",
    ],
)  # fmt: skip
def test_the_words_of_approval_are_taken_in_any_case(words: str) -> None:
    """Whole, with white space, quotation marks or a final stop around them (S4-008, C4-9)."""
    assert WAITING.is_phrase(words)


@pytest.mark.parametrize(
    "words",
    [
        "", " ", "authorized", "Not Authorized to execute yet", "not authorized to execute", "Authorized to execute?",
        "I am Authorized to execute", "Authorized to execute, but wait", "Authorized to execute Authorized to execute",
        "Authorised to execute", "Authorizedtoexecute", "To execute, authorized", "Zur Ausführung freigegeben",
        "Autorisé à exécuter", "授权执行", "yes", "Is it “Authorized to execute”", None, 7, True,
        ["Authorized to execute"], {"phrase": "Authorized to execute"}, b"Authorized to execute",
    ],
)  # fmt: skip
def test_other_words_approve_nothing(words: object) -> None:
    """A part, a denial, a question, a longer sentence, another language, another type (S4-008, C4-9)."""
    assert not WAITING.is_phrase(words)
    assert not WAITING.model_copy(update={"phrase": None}).is_phrase(APPROVAL_PHRASE)


def test_a_limit_that_is_raised_as_advised_is_high_enough() -> None:
    """Amounts are rounded up, whole ones stay whole, and every limit that is too low is in the one command."""
    command = raise_limits("r-1", {"max_model_calls": 8.0, "max_cost_usd": 0.123})
    assert command == (
        "research cancel r-1 && research resume r-1 --set limits.max_cost_usd=0.13 --set limits.max_model_calls=8"
    )
