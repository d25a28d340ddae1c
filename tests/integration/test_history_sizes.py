"""How large histories are, as the server counts them: no fake of ours knows what an event weighs."""

from pathlib import Path

import pytest
from temporalio.client import Client

from benchmarks.histories import measure_run
from contracts.vocabulary import Outcome
from tests.fakes.many_pages import QUESTION
from tests.fakes.many_sources import LARGE_RUNS
from tests.toy.party import party_declared

pytestmark = pytest.mark.integration

SIDES = ("what it is", "how it is made", "what it costs", "who makes it")
BOUNDS = [
    ("28 sources, one iteration", 28, 131_000),
    pytest.param("20 sources, three iterations, reflections", 20, 250_000, marks=pytest.mark.soak),
    pytest.param("100 sources", 100, 500_000, marks=pytest.mark.soak),
]
AGENTS = {
    "query": QUESTION,
    "strategy": "party",
    "metadata": {
        "tasks": [f"{QUESTION} Part {number}" for number in (1, 2, 3)],
        "ask": [[f"{QUESTION} Part {number}, {side}?" for side in SIDES] for number in (1, 2, 3)],
    },
}
MOST_OF_RUN, MOST_OF_AGENT = 300_000, 200_000
MOST_EVENTS = 3_000
WORKFLOW_TASKS = 335
"""Bytes of the three events of a workflow task. How many completions one task takes depends on the load."""
TASKS_PER_ACTIVITY = 0.55
"""As measured on a machine with nothing else to do: each completion mostly comes with others."""


@pytest.mark.parametrize(("name", "sources", "most"), BOUNDS)
async def test_a_history_stays_small(client: Client, tmp_path: Path, name: str, sources: int, most: int) -> None:
    """Details lie in notebooks: the history of a large run holds ids, labels and references."""
    run = await measure_run(client, tmp_path, LARGE_RUNS[name])
    activities, tasks = run.count("activity_task_scheduled"), run.count("workflow_task_completed")
    more = max(0.0, tasks - TASKS_PER_ACTIVITY * activities) * WORKFLOW_TASKS
    assert run.result.outcome is Outcome.COMPLETED, run.result.failed_branches
    assert run.result.counts.sources == sources
    assert run.bytes - more <= most, (run.bytes, more)
    assert run.events <= MOST_EVENTS


@pytest.mark.soak
async def test_histories_of_agents_and_of_their_run_stay_small(client: Client, tmp_path: Path) -> None:
    """Three agents with four searches and twenty sources each: what they found travels as labels, packed."""
    with party_declared():
        run = await measure_run(client, tmp_path, AGENTS)
    assert run.result.counts.sources >= 50
    assert run.bytes <= MOST_OF_RUN, run.bytes
    assert len(run.agents) == 3
    assert max(run.agents) <= MOST_OF_AGENT, run.agents


async def test_histories_of_the_orchestrator_and_its_agents_stay_small(client: Client, tmp_path: Path) -> None:
    """The strategy itself: three agents that search and open pages turn by turn, and a report from what they found."""
    run = await measure_run(client, tmp_path, {"query": QUESTION, "strategy": "orchestrator", "depth": "extended"})
    assert run.result.counts.findings
    assert run.bytes <= MOST_OF_RUN, run.bytes
    assert len(run.agents) == 3
    assert max(run.agents) <= MOST_OF_AGENT, run.agents
