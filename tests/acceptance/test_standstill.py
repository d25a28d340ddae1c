"""A worker process that stands still for longer than the server waits for it, while models answer."""

import asyncio
import signal
from pathlib import Path

import pytest

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


async def test_the_calls_of_a_worker_that_stands_still_are_not_paid_twice(tmp_path: Path) -> None:
    """The other worker takes its attempts over, waits, and finds the answers once the first one goes on (invariant 12)."""
    world, model = WebWorld(pages_of_subjects(RUNS, 8)), MessagesApi(latency=3.0)
    with running_valkey(tmp_path) as valkey:
        deployment = web_deployment(tmp_path / "home", world, model, temporal="file", redis_url=valkey.url)
        async with asyncio.timeout(SOON), deployment as made:
            still, _ = await made.start_workers(2)
            client = await made.client()
            limits = {"max_iterations": 1, "max_sources": 8}
            search = {"providers": ["searxng"], "source_types": ["web"]}
            runs = [
                await start(client, {"query": question(number), "search": search, "limits": limits})
                for number in range(RUNS)
            ]
            while sum(call.ended is None for call in model.calls) < RUNS - 1:
                await asyncio.sleep(0.05)
            still.running.send_signal(signal.SIGSTOP)
            await asyncio.sleep(STANDSTILL)
            still.running.send_signal(signal.SIGCONT)
            results = [await run.result() for run in runs]
    assert {result.outcome for result in results} == {Outcome.COMPLETED}
    assert max(answered(model.calls).values()) == 1
