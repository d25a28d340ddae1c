"""A worker process that stands still for longer than the server waits for it, while models answer."""

import asyncio
import re
import signal
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowHandle

from benchmarks.fake_processes import pages_of_subjects, question
from benchmarks.web_deployment import answered, web_deployment
from contracts.vocabulary import Outcome
from tests.fakes.messages_api import MessagesApi
from tests.fakes.valkey import running_valkey
from tests.fakes.web_world import WebWorld
from tests.integration.runs import start

pytestmark = [pytest.mark.acceptance, pytest.mark.soak]

RUNS = 4
STANDSTILL = 35.0
"""Longer than heartbeats, leases and the silence of an endpoint are waited for."""
SOON = 240.0


async def calls_by_process(runs: Sequence[WorkflowHandle[Any, Any]]) -> Counter[int]:
    """Return how many calls to a model each process has under way, by its id, which its identity begins with."""
    described = await asyncio.gather(*(run.describe() for run in runs))
    identities = [call.last_worker_identity for each in described for call in each.raw_description.pending_activities]
    found = (re.match(r"models-(\d+)@", identity) for identity in identities)
    return Counter(int(match[1]) for match in found if match)


async def test_the_calls_of_a_stopped_worker_are_not_paid_twice(tmp_path: Path) -> None:
    """The other worker takes its attempts over, waits, and finds the answers once the first one goes on (invariant 12)."""
    world, model = WebWorld(pages_of_subjects(RUNS, 8)), MessagesApi(latency=3.0)
    with running_valkey(tmp_path) as valkey:
        deployment = web_deployment(tmp_path / "home", world, model, temporal="file", redis_url=valkey.url)
        async with asyncio.timeout(SOON), deployment as made:
            workers = await made.start_workers(2)
            client = await made.client()
            limits = {"max_iterations": 1, "max_sources": 8}
            search = {"providers": ["searxng"], "source_types": ["web"]}
            runs = [
                await start(client, {"query": question(number), "search": search, "limits": limits})
                for number in range(RUNS)
            ]
            while sum(call.ended is None for call in model.calls) < RUNS - 1:
                await asyncio.sleep(0.05)
            calls = await calls_by_process(runs)
            still = max(workers, key=lambda worker: calls[worker.running.pid]).running
            assert calls[still.pid] > 0
            still.send_signal(signal.SIGSTOP)
            await asyncio.sleep(STANDSTILL)
            still.send_signal(signal.SIGCONT)
            results = [await run.result() for run in runs]
    assert {result.outcome for result in results} == {Outcome.COMPLETED}
    assert max(answered(model.calls).values()) == 1
