"""A line of queued runs on real processes: it outlives the kill of everything, and a lost run frees its place."""

import asyncio
import time
from pathlib import Path

import pytest
from temporalio.client import WorkflowExecutionStatus

from contracts import names
from contracts.outcome import ResearchStatus
from contracts.vocabulary import RunStatus
from tests.acceptance.topology import topology
from tests.integration.runs import QUESTION, start

pytestmark = [pytest.mark.acceptance, pytest.mark.soak, pytest.mark.timeout(600)]

LINE = 8
FREED_SECONDS = 15.0


async def test_a_line_outlives_kills_of_workers_and_server(tmp_path: Path) -> None:
    """Two runs at once of eight: workers are killed, then the server, then a run at work is terminated. A queued run has its
    place within 15 s, the other seven complete, never more than two work at a time, and no answer is paid twice.
    """
    async with topology(tmp_path / "home", 1.5, configuration="[runs]\nat_once = 2\n") as made:
        client = await made.client()
        for _ in range(2):
            await made.start_workers()
        request = {"query": QUESTION, "corpus": "documents", "gates": {"think": "rules"}}
        handles = [await start(client, request, id=f"r-{number}") for number in range(LINE)]
        queued: list[str] = []
        while len(queued) < LINE - 3:
            shown = [await handle.query(names.STATUS, result_type=ResearchStatus) for handle in handles]
            queued = [each.research_id for each in shown if each.status is RunStatus.QUEUED]

        async def at_work() -> list[str]:
            working = []
            for handle in handles:
                described = await handle.describe()
                if described.status is WorkflowExecutionStatus.RUNNING:
                    shown = await handle.query(names.STATUS, result_type=ResearchStatus)
                    working += [handle.id] if shown.status is RunStatus.RUNNING and shown.phase else []
            return working

        await made.kill_workers()
        for _ in range(2):
            await made.start_workers()
        before = await at_work()
        assert 1 <= len(before) <= 2
        made.kill_server()
        await asyncio.sleep(2)
        before = await at_work()
        await client.get_workflow_handle(before[0]).terminate()
        ended = time.monotonic()
        while not set(now := await at_work()) - set(before):
            assert len(now) <= 2
            assert time.monotonic() - ended < FREED_SECONDS
            await asyncio.sleep(0.2)
        print(f"freed in {time.monotonic() - ended:.1f} s")  # noqa: T201  the figure of the page
        results = [await handle.result() for handle in handles if handle.id != before[0]]
        twice = made.answered_twice()
    assert [result.outcome.value for result in results] == ["completed"] * (LINE - 1)
    assert twice == []
