"""What a front end starts by name with plain JSON: metadata without a run, and a run that waits for its plan's approval."""

import json
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from contracts import failures
from contracts.names import WORKFLOWS_QUEUE
from tests.fakes.web_world import WebWorld
from tests.integration.runs import QUESTION, until
from tests.integration.web_pools import over_the_web, web_workers

pytestmark = pytest.mark.integration


async def execute(client: Client, name: str, *arguments: Any) -> Any:
    identity = f"front-end-{uuid.uuid4().hex[:8]}"
    return await client.execute_workflow(
        name, args=list(arguments), id=identity, task_queue=WORKFLOWS_QUEUE, execution_timeout=timedelta(minutes=1)
    )


async def test_metadata_are_there_while_nothing_runs(client: Client, tmp_path: Path) -> None:
    """The place of the sessions and the settings in force, by the configuration of the workers; nothing is stored for it
    (S2-006, S2-053, S2-054).
    """
    async with WebWorld() as world, web_workers(client, tmp_path, world):
        known = await execute(client, "research-metadata")
        assert set(known) == {"research_collection", "research_settings_schema"}
        assert Path(known["research_collection"]) == tmp_path / "sessions"
        schema = known["research_settings_schema"]
        assert schema["properties"]["gates"]["properties"]["approve"]["default"] == "plan"
        assert len(json.dumps(known).encode()) <= 16_000
        assert "$ref" not in json.dumps(known)
        assert world.asked == []
        assert not list(tmp_path.glob("sessions/*"))


async def test_a_planned_run_is_approved_as_any_other(client: Client, tmp_path: Path) -> None:
    """The entry ends with the id of a run that waits, searches nothing until then, and is approved by that id; a plain
    client needs names and JSON alone (S2-017, S2-018, S2-043, C2-1).
    """
    async with WebWorld() as world, web_workers(client, tmp_path, world):
        request = over_the_web(strategy="living", limits={"max_sources": 2}, depth="light")
        started = await execute(client, "deep-research-plan", request)
        run = client.get_workflow_handle(started["research_id"])
        described = await run.describe()
        assert described.workflow_type == "deep-research"
        assert await described.memo_value("question") == QUESTION
        await until(run, lambda known: known.status == "awaiting_approval")
        plan = await run.query("plan")
        assert plan["outline"]
        assert world.asked == []
        with pytest.raises(WorkflowUpdateFailedError) as stale:
            await run.execute_update("approve_plan", args=[7])
        assert "version: 7 does not exist" in str(stale.value.cause)
        await run.execute_update("approve_plan", args=[plan["version"]])
        result = await run.result()
        assert result["outcome"] in ("completed", "partial")
        assert world.asked
        with pytest.raises(RPCError, match="already completed"):
            await run.execute_update("approve_plan", args=[plan["version"]])
        piece = {"research_id": started["research_id"], "name": "report.json"}
        report = json.loads((await execute(client, "research-document", piece))["text"])
        assert report["plan"]["outline"] == plan["outline"]


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        (
            {"query": QUESTION, "gates": {"approve": "none"}},
            "gates.approve: the plan of this run waits for an approval",
        ),
        ({"query": QUESTION, "continue_from": "r-1"}, "continue_from: a run goes on under its own id"),
        ({"query": ""}, "query: must not be empty"),
    ],
)
async def test_an_entry_refuses_what_cannot_be_planned(
    client: Client, tmp_path: Path, request_: dict[str, Any], problem: str
) -> None:
    """At once and by field; no run is started (S2-042)."""
    async with WebWorld() as world, web_workers(client, tmp_path, world):
        with pytest.raises(WorkflowFailureError) as refused:
            await execute(client, "deep-research-plan", request_)
        assert isinstance(refused.value.cause, ApplicationError)
        assert refused.value.cause.type == failures.INVALID_REQUEST
        assert refused.value.cause.message.startswith(problem)
