"""Three levels of agents on the real server: what every level shows and has found when the run is to end."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError

from client.handle import ResearchClient
from contracts import names
from contracts.messages import SearchRequest, SearchResponse
from contracts.outcome import AgentProgress, ResearchStatus
from contracts.state import ResearchState
from contracts.vocabulary import AgentStatus, NodeStatus, Outcome, StopReason
from tests.fakes.corpus import MemoryCorpus
from tests.fakes.world import World
from tests.integration.conftest import running_workers
from tests.integration.runs import start
from tests.toy.nest import nest, nest_declared
from tests.toy.party import party_declared
from tests.unit.workflows.test_agents import LOWEST, MIDDLE, PAGES, TOP

pytestmark = pytest.mark.integration

NEVER = "a question whose search never ends"
OVER_WITHIN = 30.0
"""Seconds from the demand to the end of the run, on any machine; the search that it waits for would take 65."""
LEVELS = nest("node-a", TOP, nest("node-b", MIDDLE, nest("node-c", LOWEST, nest("node-d", NEVER))))
REQUEST: dict[str, Any] = {
    "query": TOP,
    "corpus": "manual",
    "strategy": "party",
    "gates": {"think": "rules"},
    "metadata": {"whole_tasks": [LEVELS.model_dump(mode="json")]},
}


class EndlessCorpus(MemoryCorpus):
    """A corpus with one question that it never answers."""

    async def search(self, request: SearchRequest) -> SearchResponse:
        if request.text == NEVER:
            await asyncio.Event().wait()
        return await super().search(request)


@pytest.fixture(autouse=True)
def _declared() -> Iterator[None]:
    with party_declared(), nest_declared():
        yield


def levels_of(status: ResearchStatus) -> list[tuple[int, AgentProgress]]:
    return [each for agent in status.agents for each in agent.walk()]


@pytest.mark.parametrize("ending", ["stop", pytest.param("cancel", marks=pytest.mark.soak)])
async def test_every_level_is_shown_and_gets_messages_when_the_run_is_to_end(
    client: Client, tmp_path: Path, ending: str
) -> None:
    """Status and plan show all levels at work; stopped, the findings of the lowest ones are there in time (S4-041)."""
    world = World(tmp_path, EndlessCorpus(PAGES))
    async with running_workers(client, world):
        handle = await start(client, REQUEST)
        run = ResearchClient(client).handle(handle.id)
        shown = await run.status()
        while [agent.counts.findings for _, agent in levels_of(shown)] != [1, 1, 1, 0]:
            await asyncio.sleep(0.1)
            shown = await run.status()
        plan = await run.plan()
        begun = time.monotonic()
        if ending == "stop":
            await handle.execute_update(names.STOP_AND_REPORT)
            result = await handle.result()
            assert (result.outcome, result.stop_reason) == (Outcome.PARTIAL, StopReason.USER_STOPPED)
        else:
            await handle.cancel()
            with pytest.raises(WorkflowFailureError):
                await handle.result()
        took = time.monotonic() - begun
        state = await handle.query(names.SESSION, result_type=ResearchState)
        after = await handle.query(names.STATUS, result_type=ResearchStatus)
    assert [(level, agent.id) for level, agent in levels_of(shown)] == [
        (1, "node-a"), (2, "node-b"), (3, "node-c"), (4, "node-d")
    ]  # fmt: skip
    assert {agent.status for _, agent in levels_of(shown)} == {AgentStatus.RUNNING}
    reads = sum(agent.usage.reads for _, agent in levels_of(shown))
    assert shown.usage.reads == reads > 0, "what agents at work have used counts, too"
    parents = {node.id: node.parent for node in plan.nodes}
    assert parents == {
        "node-a": None, "node-b": "node-a", "node-c": "node-b", "node-d": "node-c",
        **{f"leaf-of-{name}": name for name in ("node-a", "node-b", "node-c", "node-d")},
    }  # fmt: skip
    assert {node.status for node in plan.nodes if node.id.startswith("node-")} == {NodeStatus.EXECUTING}
    assert {one.sub_query_id for one in state.evidence.findings} >= {f"leaf-of-node-{name}" for name in "abc"}
    assert [agent.status for _, agent in levels_of(after)] == [AgentStatus.CUT_OFF] * 4
    assert took < OVER_WITHIN
