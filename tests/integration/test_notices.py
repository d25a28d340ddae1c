"""Notices of whole runs: a receiver that is away delays nothing, a refusal is said, and without an address none is sent."""

import asyncio
from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle

from client.cli.doctor import _check_notices
from client.handle import ResearchClient
from contracts import names
from contracts.outcome import ResearchResult
from contracts.vocabulary import Outcome
from tests.fakes.web_world import WebWorld
from tests.fakes.webhook_receiver import WebhookReceiver
from tests.integration.runs import start
from tests.integration.web_pools import over_the_web, web_workers
from workers.retention import Retention
from workers.settings.loading import Settings
from workers.settings.sections import NotifySettings
from workers.shared_state import open_shared_state
from workers.stores import open_stores

pytestmark = [pytest.mark.integration, pytest.mark.soak]

REQUEST = over_the_web(limits={"max_sources": 2}, depth="light", gates={"approve": "none", "think": "rules"})


async def notices_of(client: Client, handle: WorkflowHandle[object, ResearchResult]) -> list[str]:
    """The workflows that deliver notices of a run."""
    query = f'WorkflowType="{names.RESEARCH_NOTICE}" AND WorkflowId STARTS_WITH "{handle.id}/"'
    return [run.id async for run in client.list_workflows(query)]


async def deleted_histories(client: Client, research_id: str, home: Path) -> int:
    """Remove a run as `research delete` does: how many histories went with it."""
    settings = Settings(home=home)
    stores = open_stores(settings)
    async with open_shared_state(settings) as shared:
        retention = Retention(stores.sessions, stores.content, shared.calls, client, stores.archive, sole=False)
        return (await retention.remove([research_id])).histories


async def test_a_receiver_that_is_away_delays_no_run_and_gets_its_notice_when_it_is_back(
    client: Client, tmp_path: Path
) -> None:
    """The run ends without it; the first delivery that is answered well is the last, under the same id."""
    async with WebhookReceiver() as away:
        port, url, place = away.port, away.base_url, away.place
    notify = NotifySettings(url=url, allow_hosts=[place])
    async with WebWorld() as world, web_workers(client, tmp_path, world, notify=notify):
        handle = await start(client, REQUEST)
        assert (await handle.result()).outcome is Outcome.COMPLETED
        async with asyncio.timeout(30):
            while not (notices := await notices_of(client, handle)):
                await asyncio.sleep(0.1)
        (notice,) = notices
        await asyncio.sleep(2)  # some attempts find nobody
        delivery = await client.get_workflow_handle(notice).describe()
        assert delivery.status is WorkflowExecutionStatus.RUNNING, "the run has ended before"
        async with WebhookReceiver(503, 204, port=port) as back:
            async with asyncio.timeout(60):
                bodies = await back.until(2)
            await client.get_workflow_handle(notice).result()
            await asyncio.sleep(3)
            assert len(back.requests) == 2
        assert {body["type"] for body in bodies} == {"run.ended"}
        assert len({request.headers["webhook-id"] for request in back.requests}) == 1
        assert bodies[0]["id"] == back.requests[0].headers["webhook-id"] == notice.rpartition("/")[2]
        assert await deleted_histories(client, handle.id, tmp_path) == 2, "the run and its notice"


async def test_a_refused_notice_is_sent_once_and_doctor_says_why(client: Client, tmp_path: Path) -> None:
    """The run is completed, the delivery failed, and its reason is that of the receiver."""
    async with WebWorld() as world, WebhookReceiver(403) as receiver:
        notify = NotifySettings(url=receiver.base_url, allow_hosts=[receiver.place])
        async with web_workers(client, tmp_path, world, notify=notify):
            handle = await start(client, REQUEST)
            assert (await handle.result()).outcome is Outcome.COMPLETED
            await receiver.until(1)
            async with asyncio.timeout(30):
                while (
                    check := await _check_notices(ResearchClient(client))
                ) is None or f"not delivered of {handle.id}" not in check.found:
                    await asyncio.sleep(0.2)
        assert f"not delivered of {handle.id}: the receiver answered 403" in check.found
        assert len([body for body in receiver.bodies() if body["research_id"] == handle.id]) == 1


async def test_without_an_address_nothing_is_started(client: Client, tmp_path: Path) -> None:
    """The history of a run has no child, so that a run costs what it did."""
    async with WebWorld() as world, web_workers(client, tmp_path, world):
        handle = await start(client, REQUEST)
        assert (await handle.result()).outcome is Outcome.COMPLETED
        kinds = {event.event_type for event in (await handle.fetch_history()).events}
        assert not {29, 30, 31} & kinds, "a child workflow"  # START_CHILD_WORKFLOW_EXECUTION_INITIATED and the next


async def test_a_cancelled_run_sends_its_notice_as_well(client: Client, tmp_path: Path) -> None:
    """It names the command that continues it."""
    async with WebWorld() as world, WebhookReceiver() as receiver:
        notify = NotifySettings(url=receiver.base_url, allow_hosts=[receiver.place])
        async with web_workers(client, tmp_path, world, notify=notify):
            handle = await start(client, REQUEST | {"gates": {"approve": "plan"}})
            await receiver.until(1)
            await handle.cancel()
            async with asyncio.timeout(30):
                waiting, ended = await receiver.until(2)
    assert (waiting["type"], ended["type"]) == ("run.waiting", "run.ended")
    assert (ended["state"], ended["outcome"]) == ("cancelled", "cancelled")
    assert f"research resume {handle.id}" in ended["next"]
