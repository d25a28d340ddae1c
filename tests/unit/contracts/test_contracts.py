"""The vocabulary, identities, presets, the request itself, and sums of usage."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from contracts.addresses import sub_query_id
from contracts.evidence import Source
from contracts.lenient import problem_lines
from contracts.messages import SearchRequest
from contracts.outcome import Usage
from contracts.parse_request import InvalidRequest, error_lines, parse_request
from contracts.plan import PlanRevision
from contracts.presets import effective_gates, effective_limits, preset
from contracts.report import read_report
from contracts.request import Approve, Clarify, Depth, Gates, Limits, ResearchRequest, published_between
from contracts.roles import CLARIFIER, PlanInput
from contracts.strategies import declaration
from contracts.vocabulary import AgentRole, EngineKind, Phase, Quality, ThinkMode


def test_every_phase_has_its_agent() -> None:
    """Six roles and five phases: a role for each phase but gathering, which asks no engine, and one that supervises
    (S0-001, S0-003, S0-005 to S0-007, S0-009, S0-010, S0-094).
    """
    assert list(AgentRole) == ["supervisor", "planner", "gatherer", "analyzer", "synthesizer", "refiner"]
    assert list(Phase) == ["planning", "gathering", "analysis", "synthesis", "refinement"]
    names = {role.name for role in declaration("supervisor").roles if role is not CLARIFIER}
    assert names | {AgentRole.GATHERER} == set(AgentRole)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"query": "x", "limts": {}}', "limts: unknown key"),
        (
            '{"query": "x", "limits": {"max_iterations": "secret"}}',
            "limits.max_iterations: Input should be a valid int",
        ),
        ('{"query": "x", "limits": {"deadline_seconds": 0}}', "limits.deadline_seconds:"),
        ('{"query": "x", "depth": "secret"}', "depth:"),
        ('{"query": "x", "corpus": "../secret"}', "corpus: must be at most 64 letters"),
        ("{}", "query: required"),
        ("[1]", "request: expected an object"),
        ('{"query": "x"', "request: not valid JSON"),
        ('{"query": "\\ud800"}', "request: not valid JSON"),
        ('{"query": "x", "limits": {"max_cost_usd": NaN}}', "limits.max_cost_usd:"),
        ('{"query": "x", "metadata": ' + "[" * 500 + "]" * 500 + "}", "request: not valid JSON"),
        ('{"query": "x", "metadata": {"k": "' + "v" * 3_000 + '"}}', "metadata: larger than 2048 bytes"),
        ('{"query": "x", "output": {"language": "secret words"}}', "output.language: must be `same as question`"),
        ('{"query": "x", "constraints": {"timeframe": "secret"}}', "constraints.timeframe: must be day, week, month"),
        ('{"query": "x", "constraints": {"timeframe": "2025..2020"}}', "constraints.timeframe: ends before it begins"),
        (
            '{"query": "x", "search": {"domains_deny": ["http://secret/"]}}',
            "search.domains_deny.0: must be a host name",
        ),
        ('{"query": "x", "search": {"providers": ["Wikipedia!"]}}', "search.providers.0: must be the name of a search"),
        ('{"query": " "}', "query: must not be empty"),
        ('{"query": "x", "gates": {"approve": "secret"}}', "gates.approve: Input should be 'none', 'plan' or 'phrase'"),
    ],
)
def test_what_cannot_be_used_is_refused_by_its_path(text: str, line: str) -> None:
    """One line per problem, `path: message` in words without a regular expression and without what was sent; nothing is
    ignored.
    """
    with pytest.raises(InvalidRequest) as refused:
        parse_request(text)
    assert any(found.startswith(line) for found in refused.value.lines), refused.value.lines
    assert "^" not in str(refused.value)
    assert "secret" not in str(refused.value)


@given(st.binary(max_size=200))
def test_any_bytes_end_in_a_request_or_in_lines(data: bytes) -> None:
    """No input whatever raises anything else."""
    with contextlib.suppress(InvalidRequest):
        assert parse_request(data).query


def test_problems_of_every_model_are_in_the_same_words() -> None:
    """Neither a report nor an answer that does not fit shows the words of the library that validates it."""
    assert read_report(b"{}") == [("research_id", "required"), ("report", "required")]
    with pytest.raises(ValidationError) as refused:
        PlanRevision.model_validate({"sub_queries": [5]})
    assert problem_lines(refused.value, 8) == error_lines(refused.value)
    assert problem_lines(refused.value, 8)[0].startswith("sub_queries.0: expected a text, or {")


def test_presets_carry_the_documented_figures() -> None:
    """Iterations, sub-queries, sources and deadline of each depth (S0-024, X-24, C0-21)."""
    figures = {
        depth: (limits.max_iterations, limits.max_sub_queries, limits.max_sources, limits.max_new_sources,
                limits.deadline_seconds)
        for depth in (Depth.LIGHT, Depth.MEDIUM, Depth.EXTENDED, Depth.AUTO)
        for limits in [preset("supervisor", depth)]
    }  # fmt: skip
    assert figures == {
        Depth.LIGHT: (1, 3, 15, 15, 300),
        Depth.MEDIUM: (3, 5, 60, 20, 900),
        Depth.EXTENDED: (3, 5, 100, 35, 1_800),
        Depth.AUTO: (3, 5, 60, 20, 900),
    }


def test_explicit_limits_win_over_the_preset() -> None:
    """The reserve shrinks with a short deadline, so that there is time to work at all (X-13, X-24)."""
    limits = effective_limits(preset("supervisor", Depth.MEDIUM), Limits(max_sources=2, deadline_seconds=12))
    assert (limits.max_sources, limits.max_new_sources, limits.max_sources_per_query) == (2, 2, 2)
    assert limits.deadline_seconds == 12
    assert limits.reserve_seconds == 2
    assert limits.max_iterations == 3


def test_a_model_thinks_only_where_a_model_works() -> None:
    """Without a model the gate's rules alone are the think-pause (X-9)."""
    assert effective_gates(Gates(), Gates(), EngineKind.MODEL).think is ThinkMode.AUTO
    assert effective_gates(Gates(), Gates(), EngineKind.EXTRACTIVE).think is ThinkMode.RULES
    assert effective_gates(Gates(), Gates(think=ThinkMode.OFF), EngineKind.MODEL).think is ThinkMode.OFF


def test_a_strategy_may_ask_for_an_approval_where_the_request_names_none() -> None:
    """Explicit values win, also a `none`, and also after a request was written as JSON without its defaults (X-1)."""
    own = Gates(approve=Approve.PLAN, clarify=Clarify.REQUIRED)
    made = effective_gates(own, Gates(), EngineKind.MODEL)
    assert (made.approve, made.clarify, made.requires_approval, made.clarifies) == ("plan", "required", True, True)
    request = parse_request('{"query": "x", "gates": {"approve": "none", "clarify": "off"}}')
    again = ResearchRequest.model_validate(request.model_dump(mode="json", exclude_none=True, exclude_defaults=True))
    made = effective_gates(own, again.gates, EngineKind.MODEL)
    assert (made.approve, made.clarify, made.requires_approval, made.clarifies) == ("none", "off", False, False)
    nobody = effective_gates(Gates(), Gates(), EngineKind.MODEL)
    assert (nobody.approve, nobody.clarify) == (Approve.NONE, Clarify.OFF)
    assert not Gates().requires_approval


def test_the_same_question_has_the_same_id() -> None:
    """Case, white space and end punctuation do not matter (C.8: duplicate sub-queries)."""
    assert sub_query_id("What is  VACUUM?") == sub_query_id("what is vacuum")


def test_hand_offs_carry_the_documented_fields() -> None:
    """Planner, gatherer and sources have the fields of their contracts, under our names (S0-048, S0-056, S0-057)."""
    planner = set(PlanInput.model_fields)
    assert {"research_id", "query", "iteration", "system_prompt", "max_sub_queries"} <= planner
    assert {"research_id", "text", "provider", "max_results"} <= set(SearchRequest.model_fields)
    kept = {"id", "sub_query_ids", "title", "url", "snippet", "text", "quality"}
    assert kept <= set(Source.model_fields)
    assert {quality.value for quality in Quality} == {"low", "medium", "high", "unknown"}


@pytest.mark.parametrize(
    ("timeframe", "expected"),
    [
        (None, (None, None)),
        ("day", ("2026-03-30", None)),
        ("week", ("2026-03-24", None)),
        ("month", ("2026-02-28", None)),
        ("year", ("2025-03-30", None)),
        ("2020..", ("2020-01-01", None)),
        ("2020..2021", ("2020-01-01", "2021-12-31")),
        ("2020-02..2024-02", ("2020-02-01", "2024-02-29")),
        ("2020-05-17..2020-06-30", ("2020-05-17", "2020-06-30")),
        ("2023-02-31..2023-99-99", ("2023-02-28", "2023-12-31")),
    ],
)
def test_a_timeframe_has_a_first_and_a_last_day(timeframe: str | None, expected: tuple[str | None, str | None]) -> None:
    """Back from the day of the run, or between two dates, whole years and months included."""
    assert published_between(timeframe, "2026-03-31") == expected


COSTS = st.none() | st.integers(0, 10**10).map(lambda tenths: tenths / 1e10)
COUNTS = st.integers(0, 10**6)
TOKENS = ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens")
COUNTED = ("model_calls", *TOKENS, "searches", "cached_searches", "reads", "cached_reads")
USAGES = st.builds(Usage, cost_usd=COSTS, **dict.fromkeys(COUNTED, COUNTS))


def added(usages: list[Usage]) -> Usage:
    together = Usage()
    for item in usages:
        together = together.plus(item)
    return together


@given(st.lists(USAGES, max_size=8), st.randoms(use_true_random=False))
def test_sums_do_not_depend_on_their_order(usages, random) -> None:
    """Counts, money and what is known of it: the same to the last digit in whatever order they were added."""
    shuffled = list(usages)
    random.shuffle(shuffled)
    assert added(usages) == added(shuffled)


def test_an_unknown_cost_stays_unknown_and_its_known_part_counts() -> None:
    """Null never becomes 0, and a cap can still go by what is known."""
    mixed = added([Usage(cost_usd=0.25), Usage(searches=1, cost_usd=None), Usage(cost_usd=0.5)])
    assert (mixed.cost_usd, mixed.known_cost_usd) == (None, 0.75)
    assert added([Usage(cost_usd=0.25), Usage(cost_usd=0.5)]).known_cost_usd == 0.75
