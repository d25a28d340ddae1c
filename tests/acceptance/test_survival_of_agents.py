"""SIGKILL while three agents work: the run goes on, the report is the undisturbed one, no answered call is paid again."""

import asyncio
from pathlib import Path

import pytest

from contracts.vocabulary import AgentStatus, Outcome
from tests.acceptance.topology import topology
from tests.comparable import comparable
from tests.integration.runs import QUESTION, start, until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(400)]

TASKS = [QUESTION, "How does vacuum freeze old rows?", "What locks does the engine take?"]
REQUESTS = {
    "toy": {"query": QUESTION, "corpus": "documents", "strategy": "party", "metadata": {"tasks": TASKS}},
    "orchestrator": {"query": QUESTION, "corpus": "documents", "strategy": "orchestrator"},
}
LATENCY = 0.5
"""A call is long enough under way to be hit."""


@pytest.mark.parametrize("which", REQUESTS)
async def test_workers_killed_while_three_agents_work_change_nothing(tmp_path: Path, which: str) -> None:
    """Only calls in flight are paid again; `status` shows the agents, `list` knows one run each (invariant 12)."""
    # A real server and real processes: no host of a test loses the process in the middle of an activity.
    request = REQUESTS[which]
    async with topology(tmp_path, LATENCY) as made:
        made.install("errand = tests.toy.errand:ERRAND", "party = tests.toy.party:PARTY")
        code, _, errors = await made.command("corpus", "add", str(made.documents))
        assert code == 0, errors
        await made.start_workers()
        client = await made.client()
        expected = await (await start(client, request, id="r-undisturbed")).result()
        calls_needed = len(made.calls())
        handle = await start(client, request, id="r-disturbed")
        at_work = [AgentStatus.RUNNING] * len(TASKS)
        await until(handle, lambda status: [agent.status for agent in status.agents] == at_work)
        while made.in_flight() < 2:
            await asyncio.sleep(0.02)
        in_flight = made.in_flight()
        await made.kill_workers()
        await made.start_workers()
        result = await handle.result()
        calls, delivered = len(made.calls()) - calls_needed, made.delivered()
        _, shown, _ = await made.command("status", "r-disturbed")
        _, listed, _ = await made.command("list")
    assert result.outcome is expected.outcome is Outcome.COMPLETED
    expected_report = comparable(expected.report).replace("r-undisturbed", "r-disturbed")
    assert comparable(result.report) == expected_report
    assert calls_needed <= calls <= calls_needed + in_flight
    assert not [request for request, count in delivered.items() if count > 1]
    for number, task in enumerate(TASKS, start=1):
        assert f"agent-{number}   done · " in shown
        assert which != "toy" or task in shown
    assert [line.split()[0] for line in listed.splitlines()] == ["r-disturbed", "r-undisturbed"]
