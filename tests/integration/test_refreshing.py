"""A refresh under the server: a schedule starts it under the id of its run, and only what has changed is worked on."""

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowFailureError

from client.handle import ResearchClient
from contracts import failures, names
from contracts.messages import refresh_schedule
from contracts.request import ResearchRequest
from contracts.vocabulary import Outcome
from tests.fakes.web_world import WebWorld
from tests.integration.runs import QUESTION, start
from tests.integration.web_pools import over_the_web, web_workers

pytestmark = pytest.mark.integration


async def test_a_schedule_refreshes_a_run_under_its_own_id(client: Client, tmp_path: Path) -> None:
    """Each page is asked for once more; the report of the run names the page that has changed, and no other."""
    research = ResearchClient(client)
    async with WebWorld() as world, web_workers(client, tmp_path, world):
        limits = {"max_sources": 3}
        first = await start(
            client, over_the_web(strategy="living", depth="light", limits=limits, gates={"approve": "none"})
        )
        result = await first.result()
        assert result.outcome in (Outcome.COMPLETED, Outcome.PARTIAL)
        before = json.loads(await research.handle(first.id).document("report.json"))
        read = {each["url"]: each for each in before["sources"] if each["status"] == "full"}
        cited = next(each["url"] for each in read.values() if each["cited"])
        world.show([
            replace(site, body=site.body.replace("vacuum", "sweep")) if world.url(site) == cited else site
            for site in world.sites
        ])  # fmt: skip
        world.asked.clear()
        request = ResearchRequest(query=QUESTION, strategy="living", continue_from=first.id, refresh=True)
        await research.schedule_refresh(request, first.id, timedelta(days=1))
        await research.schedule_refresh(request, first.id, timedelta(days=2))  # in place of the other one
        schedule = client.get_schedule_handle(refresh_schedule(first.id))
        assert (await schedule.describe()).schedule.spec.intervals[0].every == timedelta(days=2)
        await schedule.trigger()
        again = client.get_workflow_handle(first.id)
        async with asyncio.timeout(60):
            while (await again.describe()).run_id == first.result_run_id:
                await asyncio.sleep(0.05)
        assert (await again.result())["outcome"] == result.outcome.value
        after = json.loads(await research.handle(first.id).document("report.json"))
        assert await research.unschedule_refresh(first.id)
        assert not await research.unschedule_refresh(first.id)
    assert [each["url"] for each in after["changes"]["sources"]] == [cited]
    assert after["changes"]["claims"]
    assert after["changes"]["since"] == before["ended_at"]
    pages = [place for place in world.asked if "searxng" not in place and "robots" not in place]
    assert len(pages) == len(read)
    assert not any("searxng" in place for place in world.asked)


async def test_only_a_refresh_is_started_by_its_entry(client: Client, tmp_path: Path) -> None:
    """A request of another kind, and one that names no run, are refused by field."""
    async with WebWorld() as world, web_workers(client, tmp_path, world):
        for fields, field in (({}, "refresh"), ({"refresh": True}, "refresh"), ({"continue_from": "r-1"}, "refresh")):
            with pytest.raises(WorkflowFailureError) as refused:
                await client.execute_workflow(
                    names.RESEARCH_REFRESH,
                    {"query": QUESTION, **fields},
                    id=f"r-refused-{len(fields)}-{field in fields}",
                    task_queue=names.WORKFLOWS_QUEUE,
                )
            assert refused.value.cause.type == failures.INVALID_REQUEST
            assert str(refused.value.cause).removeprefix(f"{failures.INVALID_REQUEST}: ").startswith(field)
