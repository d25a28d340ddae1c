"""SIGKILL in every phase: the run goes on, the report is the undisturbed one, no answered call is paid again."""

import asyncio
from pathlib import Path

import pytest

from contracts.outcome import ResearchResult
from contracts.vocabulary import Outcome, Phase
from tests.acceptance.topology import Topology, topology, without_times
from tests.integration.runs import QUESTION, start, until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(400)]

REQUEST = {"query": QUESTION, "corpus": "documents"}
PHASES = (Phase.PLANNING, Phase.GATHERING, Phase.ANALYSIS, Phase.SYNTHESIS)
LATENCY = 1.0


async def prepared(made: Topology) -> None:
    code, _, errors = await made.command("corpus", "add", str(made.documents))
    assert code == 0, errors


async def undisturbed(home: Path) -> tuple[ResearchResult, int]:
    async with topology(home) as made:
        await prepared(made)
        await made.start_workers()
        handle = await start(await made.client(), REQUEST, id="r-survivor")
        return await handle.result(), len(made.calls())


async def test_workers_killed_in_every_phase_change_nothing(tmp_path: Path) -> None:
    """All workers killed once in each phase: same report, at most the calls in flight repeated (S0-131, invariant 12)."""
    expected, calls_needed = await undisturbed(tmp_path / "calm")
    async with topology(tmp_path / "storm", LATENCY) as made:
        await prepared(made)
        await made.start_workers()
        handle = await start(await made.client(), REQUEST, id="r-survivor")
        in_flight = 0
        for phase in PHASES:
            await until(handle, lambda status, phase=phase: status.phase is phase or status.outcome is not None)
            while phase is not Phase.GATHERING and not made.in_flight():
                await asyncio.sleep(0.02)
            in_flight += made.in_flight()
            await made.kill_workers()
            await made.start_workers()
        result = await handle.result()
        repeated = len(made.calls()) - calls_needed
        twice = [request for request, count in made.delivered().items() if count > 1]
    assert result.outcome is expected.outcome is Outcome.COMPLETED
    assert without_times(result.report) == without_times(expected.report)
    assert repeated <= in_flight
    assert not twice
