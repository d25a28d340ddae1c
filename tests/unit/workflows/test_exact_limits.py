"""Words of rare events, and limits to the last one."""

from typing import Any

import pytest

from contracts.outcome import AgentDecision, GateResult
from contracts.roles import ProposedGap
from contracts.vocabulary import AgentRole, NodeStatus, Phase
from tests.fakes import states
from tests.fakes.host import InProcessHost
from workflows.phases.hook_view import hook_view
from workflows.rules.gaps import silent_gap
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun

LONG = "x" * 300


@pytest.mark.parametrize(
    ("changes", "words", "priority"),
    [
        ({"status": NodeStatus.FAILED}, f"The search for “{LONG[:250]}” failed, so it is not answered.", 1),
        (
            {"status": NodeStatus.SKIPPED, "status_reason": "the time was over"},
            f"“{LONG[:250]}” was not looked into to its end (the time was over).",
            1,
        ),
        ({"status": NodeStatus.COMPLETED}, f"Nothing in the sources answers “{LONG[:250]}”.", 2),
    ],
)
def test_an_unanswered_sub_query_is_stated_with_why(changes: dict[str, Any], words: str, priority: int) -> None:
    """Failed, cut short and without an answer are three things."""
    assert silent_gap(states.sub_query(LONG, **changes)) == ProposedGap(description=words, priority=priority)


def test_a_hook_sees_the_newest_of_everything() -> None:
    """So many of each and no more, in their order."""
    many = range(1, 26)
    queries = [states.sub_query(f"q{number}") for number in many]
    decided = [
        AgentDecision(seq=n, agent=AgentRole.SUPERVISOR, action="proceed", rationale=str(n), timestamp="2026-11-21")
        for n in many
    ]
    view = hook_view(
        states.state(
            plan=states.plan(*queries, brief="b" * 1_001),
            sources=states.sources(*(states.source(f"https://a.test/{number}") for number in many)),
            findings=[states.finding(f"f{number}") for number in many],
            gaps=[states.gap(f"g{number}") for number in many],
            gates=[GateResult(phase="planning", valid=True, quality_score=number / 5) for number in many],
            decisions=decided,
        )
    )
    assert [one["text"] for one in view["plan"]["sub_queries"]] == [f"q{number}" for number in range(6, 26)]
    assert [one["url"] for one in view["sources"].values()] == [f"https://a.test/{number}" for number in range(6, 26)]
    assert [one["statement"] for one in view["findings"]] == [f"f{number}" for number in range(6, 26)]
    assert [one["description"] for one in view["gaps"]] == [f"g{number}" for number in range(1, 11)]
    assert [one["quality_score"] for one in view["gates"]] == [number / 5 for number in range(21, 26)]
    assert [one["rationale"] for one in view["decisions"]] == [str(number) for number in range(16, 26)]
    assert view["plan"]["brief"] == "b" * 999 + "…"


async def test_words_of_a_person_become_a_question_to_search_for() -> None:
    """Once there is a plan: a gap of its own kind, with the words as its query, and a word of what was heard."""
    run = ResearchRun(
        states.state(phase=Phase.ANALYSIS, plan=states.plan(states.sub_query("a"))), Inbox(), InProcessHost({})
    )
    run.steer("What about locks in the other engine?")
    [gap] = run.state.gaps
    assert (gap.description, gap.suggested_queries, gap.kind, gap.origin) == (
        "Asked while running: What about locks in the other engine?",
        ["What about locks in the other engine?"],
        "question",
        "steer",
    )
