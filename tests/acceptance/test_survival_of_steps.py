"""SIGKILL in the middle of a step: the run goes on, the report is the undisturbed one, no answered call is paid again."""

import asyncio
from pathlib import Path

import pytest

from contracts.vocabulary import Outcome
from tests.acceptance.topology import topology
from tests.comparable import comparable
from tests.integration.runs import QUESTION, start, until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(400)]

REQUEST = {"query": QUESTION, "corpus": "documents", "strategy": "reflective", "depth": "light"}
LATENCY = 0.25
"""A call is long enough under way to be hit."""


async def test_workers_killed_within_a_step_change_nothing(tmp_path: Path) -> None:
    """Only calls in flight are paid again; status and decisions show its steps (S0-131, invariant 12)."""
    # A real server and real processes: no host of a test loses the process in the middle of an activity.
    async with topology(tmp_path, LATENCY) as made:
        code, _, errors = await made.command("corpus", "add", str(made.documents))
        assert code == 0, errors
        await made.start_workers()
        client = await made.client()
        expected = await (await start(client, REQUEST, id="r-undisturbed")).result()
        calls_needed = len(made.calls())
        handle = await start(client, REQUEST, id="r-disturbed")
        await until(handle, lambda status: status.phase == "step-2" or status.outcome is not None)
        while not made.in_flight():
            await asyncio.sleep(0.02)
        in_flight = made.in_flight()
        await made.kill_workers()
        await made.start_workers()
        result = await handle.result()
        calls, delivered = len(made.calls()) - calls_needed, made.delivered()
        _, shown, _ = await made.command("status", "r-disturbed")
        _, decisions, _ = await made.command("decisions", "r-disturbed")
    assert result.outcome is expected.outcome is Outcome.COMPLETED
    expected_report = comparable(expected.report).replace("r-undisturbed", "r-disturbed")
    assert comparable(result.report) == expected_report
    assert calls_needed <= calls <= calls_needed + in_flight
    assert not [request for request, count in delivered.items() if count > 1]
    assert decisions.count("reflector: continue") == 2
    assert "step-3" in decisions
    assert "\nphase     synthesis, step 3 of 3\nstep 1    done: 5 findings: Research what it is" in shown
