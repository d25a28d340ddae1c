"""How large histories are, as the server counts them: no fake of ours knows what an event weighs."""

from pathlib import Path

import pytest
from temporalio.client import Client

from benchmarks.histories import measure_run
from contracts.vocabulary import Outcome
from tests.fakes.many_sources import LARGE_RUNS

pytestmark = pytest.mark.integration

BOUNDS = [
    ("28 sources, one iteration", 28, 130_500),
    ("20 sources, three iterations, reflections", 20, 250_000),
    ("100 sources", 100, 500_000),
]
MOST_EVENTS = 3_000
WORKFLOW_TASKS = 335
"""Bytes of the three events of a workflow task. How many completions one task takes depends on the load."""
TASKS_PER_ACTIVITY = 0.55
"""As measured on a machine with nothing else to do: each completion mostly comes with others."""


@pytest.mark.parametrize(("name", "sources", "most"), BOUNDS, ids=[name for name, *_ in BOUNDS])
async def test_a_history_stays_small(client: Client, tmp_path: Path, name: str, sources: int, most: int) -> None:
    """Details lie in notebooks: the history of a large run holds ids, labels and references."""
    run = await measure_run(client, tmp_path, LARGE_RUNS[name])
    activities, tasks = run.count("activity_task_scheduled"), run.count("workflow_task_completed")
    more = max(0.0, tasks - TASKS_PER_ACTIVITY * activities) * WORKFLOW_TASKS
    assert run.result.outcome is Outcome.COMPLETED, run.result.failed_branches
    assert run.result.counts.sources == sources
    assert run.bytes - more <= most, (run.bytes, more)
    assert run.events <= MOST_EVENTS
