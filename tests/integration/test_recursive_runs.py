"""The strategy `recursive` on the real server: who called whom, what waits for the yes, and what a look at it changes."""

import asyncio
import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.service import RPCError

from contracts import names
from contracts.outcome import AgentProgress, ResearchStatus
from contracts.recursive_roles import ACTS_AS, MAY_CALL
from contracts.vocabulary import Outcome, RunStatus
from tests.fakes import library_work
from tests.fakes.messages_api import MessagesApi
from tests.fakes.world import model_world
from tests.integration.conftest import running_workers
from tests.integration.runs import QUESTION, start, until

pytestmark = pytest.mark.integration

REQUEST: dict[str, Any] = {"query": QUESTION, "corpus": "manual", "strategy": "recursive", "depth": "medium"}
extracted, checked = library_work.extraction, library_work.self_check
UNCALLED = {"manager", "executor", "reviewer"}
"""Roles at the model that nobody calls: the first, one that judges its own report, and one of every strategy."""


def with_gaps(prompt: str) -> dict[str, Any]:
    return extracted(prompt) | {"identified_gaps": ["The settings of the manual are not covered."]}


def _below(agents: Iterable[AgentProgress]) -> set[str]:
    return {agent.workflow_id for agent in agents if agent.workflow_id}


@pytest.mark.soak
async def test_a_run_is_authorized_and_its_calls_are_those_of_the_table(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the phrase nobody but the manager is asked; then roles call whom they may, at every level.

    Looks at the run and its agents while they work change nothing; no history grows large (S4-002, S4-008).
    """
    monkeypatch.setattr(library_work, "extraction", with_gaps)
    monkeypatch.setattr(library_work, "self_check", lambda prompt: checked(prompt) | {"sufficient": False})
    async with MessagesApi(latency=0.1) as api:
        world = model_world(tmp_path, api.base_url)
        async with running_workers(client, world):
            handle = await start(client, REQUEST)
            await until(handle, lambda status: status.status is RunStatus.AWAITING_APPROVAL)
            with pytest.raises(WorkflowUpdateFailedError):
                await handle.execute_update(names.APPROVE_PLAN, args=[1, "Not Authorized to execute yet"])
            assert (set(api.counts()), world.corpus.searches, world.corpus.reads) == ({"manager"}, [], [])
            await handle.execute_update(names.APPROVE_PLAN, args=[1, " authorized TO execute"])
            ended, agents = asyncio.ensure_future(handle.result()), set[str]()
            while not ended.done():
                status = await handle.query(names.STATUS, result_type=ResearchStatus)
                for agent in _below(status.agents) | agents:
                    with suppress(RPCError):  # it begins just now
                        asked = client.get_workflow_handle(agent).query(names.STATUS, result_type=ResearchStatus)
                        agents |= {agent, *_below((await asked).agents)}
                await asyncio.sleep(0.8)
            result = await ended
            sizes = [
                (await client.get_workflow_handle(name).describe()).raw_description.workflow_execution_info
                for name in (handle.id, *agents)
            ]
            document = json.loads(await world.content.get_text(result.files.json_document))
    assert result.outcome is Outcome.COMPLETED
    made = {(one, ACTS_AS.get(role, role)) for one, roles in document["calls"].items() for role in roles}
    made = {(ACTS_AS.get(one, one), role) for one, role in made}
    assert made == {(caller, role) for caller, roles in MAY_CALL.items() for role in roles}
    called = {role for roles in document["calls"].values() for role in roles}
    assert set(api.counts()) - UNCALLED <= called
    assert len(agents) >= 2
    assert [size.history_size_bytes < 300_000 for size in sizes] == [True] * len(sizes)
    assert not any("Not looked into" in gap["description"] for gap in document["gaps"])
