"""The vocabulary, identities, presets and the request itself."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.addresses import gap_id, sub_query_id
from contracts.evidence import Source
from contracts.messages import SearchRequest
from contracts.parse_request import InvalidRequest, parse_request
from contracts.presets import effective_gates, effective_limits, preset
from contracts.request import Depth, Gates, Limits
from contracts.roles import (
    ANALYZER,
    CLARIFIER,
    PLANNER,
    REFINER,
    SUPERVISOR,
    SYNTHESIZER,
    PlanInput,
)
from contracts.state import ResearchState
from contracts.strategies import declaration
from contracts.vocabulary import (
    AgentRole,
    EngineKind,
    Phase,
    Quality,
    ThinkMode,
)
from tests.fakes import states


def test_six_roles_and_five_phases() -> None:
    """The roles and phases of the supervisor pattern (S0-001, S0-009)."""
    assert {role.value for role in AgentRole} == {
        "supervisor", "planner", "gatherer", "analyzer", "synthesizer", "refiner",
    }  # fmt: skip
    assert list(Phase) == ["planning", "gathering", "analysis", "synthesis", "refinement"]


def test_every_phase_has_its_agent() -> None:
    """A role for each phase but gathering, which asks no engine (S0-003, S0-005, S0-006, S0-007, S0-010, S0-094)."""
    names = {role.name for role in declaration("supervisor").roles if role is not CLARIFIER}
    assert names | {AgentRole.GATHERER} == set(AgentRole)
    assert len(Phase) == len(AgentRole) - 1
    assert (PLANNER.name, ANALYZER.name) == (AgentRole.PLANNER, AgentRole.ANALYZER)
    assert (SYNTHESIZER.name, REFINER.name) == (AgentRole.SYNTHESIZER, AgentRole.REFINER)
    assert SUPERVISOR.name == AgentRole.SUPERVISOR


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"query": "x", "limts": {}}', "limts: unknown key"),
        ('{"query": "x", "limits": {"max_iterations": "3"}}', "limits.max_iterations: Input should be a valid integer"),
        ('{"query": "x", "limits": {"deadline_seconds": 0}}', "limits.deadline_seconds:"),
        ('{"query": "x", "priority": 6}', "priority:"),
        ('{"query": "x", "depth": "abyss"}', "depth:"),
        ('{"query": "x", "corpus": "../etc"}', "corpus: must be at most 64 letters"),
        ('{"query": null}', "query:"),
        ("{}", "query: required"),
        ("[1]", "request: expected an object"),
        ("null", "request: expected an object"),
        ('"text"', "request: expected an object"),
        ('{"query": "x"', "request: not valid JSON"),
        ("", "request: not valid JSON"),
        ('{"query": "\\ud800"}', "request: not valid JSON"),
        ('{"query": "x", "limits": {"max_cost_usd": NaN}}', "limits.max_cost_usd:"),
        ('{"query": "x", "metadata": ' + "[" * 500 + "]" * 500 + "}", "request: not valid JSON"),
        ('{"query": "x", "metadata": {"k": "' + "v" * 3_000 + '"}}', "metadata: larger than 2048 bytes"),
        ('{"query": "x", "output": {"language": "German"}}', "output.language: must be `same as question`"),
        ('{"query": "x", "output": {"sections": []}}', "output.sections: "),
        ('{"query": "x", "search": {"policy": "all"}}', "search.policy: "),
        (
            '{"query": "x", "constraints": {"timeframe": "recently"}}',
            "constraints.timeframe: must be day, week, month or year",
        ),
        ('{"query": "x", "constraints": {"timeframe": "2025..2020"}}', "constraints.timeframe: ends before it begins"),
        (
            '{"query": "x", "search": {"domains_deny": ["http://a.b/"]}}',
            "search.domains_deny.0: must be a host name alone",
        ),
        ('{"query": "x", "search": {"providers": ["Wikipedia!"]}}', "search.providers.0: must be the name of a search"),
        ('{"query": " "}', "query: must not be empty"),
        ('{"query": "x", "strategy": "recursive"}', "strategy: not available yet"),
        ('{"query": "x", "gates": {"approve": "yes"}}', "gates.approve: Input should be 'none', 'plan' or 'phrase'"),
        ('{"query": "x", "limits": {"max_wait_seconds": 0}}', "limits.max_wait_seconds:"),
        ('{"query": "x", "output": {"citation_style": "footnote"}}', "output.citation_style: "),
    ],
)
def test_what_cannot_be_used_is_refused_by_its_path(text: str, line: str) -> None:
    """One line per problem, `path: message` in words without a regular expression; nothing is ignored."""
    with pytest.raises(InvalidRequest) as refused:
        parse_request(text)
    assert any(found.startswith(line) for found in refused.value.lines), refused.value.lines
    assert "^" not in str(refused.value)


@given(st.text(min_size=5, max_size=60))
def test_what_was_sent_is_never_repeated(secret: str) -> None:
    """A wrong value does not appear in the message."""
    with pytest.raises(InvalidRequest) as refused:
        parse_request(json.dumps({"query": "x", "depth": f"zq{secret}", "limits": {"max_sources": f"zq{secret}"}}))
    assert "zq" not in str(refused.value)


@given(st.binary(max_size=200))
def test_any_bytes_end_in_a_request_or_in_lines(data: bytes) -> None:
    """No input whatever raises anything else."""
    with contextlib.suppress(InvalidRequest):
        assert parse_request(data).query


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
    assert effective_gates(Gates(), EngineKind.MODEL).think is ThinkMode.MODEL
    assert effective_gates(Gates(), EngineKind.EXTRACTIVE).think is ThinkMode.RULES
    assert effective_gates(Gates(think=ThinkMode.OFF), EngineKind.MODEL).think is ThinkMode.OFF


def test_the_same_question_has_the_same_id() -> None:
    """Case, white space and end punctuation do not matter (C.8: duplicate sub-queries)."""
    assert sub_query_id("What is  VACUUM?") == sub_query_id("what is vacuum")
    assert gap_id("No cost figures.") == gap_id("no COST figures")


def test_a_packed_state_is_the_same_state() -> None:
    """A checkpoint loses nothing and is small."""
    state = states.state(
        plan=states.plan(states.sub_query("one question of the plan")),
        sources=states.sources(*(states.source(f"corpus:m/{number}") for number in range(20))),
        gaps=[states.gap("open")],
    )
    packed = state.pack()
    assert ResearchState.unpack(packed) == state
    assert len(packed) < len(state.model_dump_json()) / 3


def test_hand_offs_carry_the_documented_fields() -> None:
    """Planner, gatherer and sources have the fields of their contracts, under our names (S0-048, S0-056, S0-057)."""
    planner = set(PlanInput.model_fields)
    assert {"research_id", "query", "iteration", "system_prompt", "max_sub_queries"} <= planner
    assert {"research_id", "text", "provider", "max_results"} <= set(SearchRequest.model_fields)
    kept = {"id", "sub_query_ids", "title", "url", "snippet", "text", "quality"}
    assert kept <= set(Source.model_fields)
    assert {quality.value for quality in Quality} == {"low", "medium", "high", "unknown"}
