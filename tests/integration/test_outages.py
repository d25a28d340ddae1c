"""Outages of what runs depend on: calls wait for them, and no run fails or pays twice because of one."""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowFailureError

from client.client_errors import NoWorker
from client.handle import ResearchClient
from client.view.words import waits_of
from contracts.outcome import ResearchResult
from contracts.vocabulary import Outcome, StopReason
from tests.fakes.messages_api import MessagesApi
from tests.fakes.web_world import Faults, WebWorld
from tests.fakes.world import model_world
from tests.integration.conftest import running_workers
from tests.integration.runs import QUESTION, start
from tests.integration.web_pools import over_the_web, web_workers

pytestmark = pytest.mark.integration

STRATEGIES = ("supervisor", "reflective", "orchestrator")
REQUEST = {"query": QUESTION, "corpus": "manual", "gates": {"think": "rules"}}


class PagesAway(Faults):
    """Searches are answered, and no page is."""

    def status(self, place: str, time: int) -> int:
        del time
        return 200 if place.startswith("search") else 503


async def suffer(api: MessagesApi, scenarios: Sequence[str], seconds: float, shown: Awaitable[list[str]]) -> list[str]:
    """Let the endpoint fail in these ways once a call was answered, one after the other, and until something is shown."""
    while len(api.calls) < len(STRATEGIES):
        await asyncio.sleep(0.05)
    good = api.plan
    for scenario in scenarios:
        api.plan = replace(good, otherwise=scenario)
        await asyncio.sleep(seconds)
    result = await asyncio.wait_for(shown, 60)
    api.plan = good
    return result


def answered_twice(api: MessagesApi) -> list[str]:
    answered = Counter(call.request_hash for call in api.calls if call.status == 200 and call.delivered)
    return [request for request, count in answered.items() if count > 1]


async def first_retry(client: Client, research_id: str) -> str:
    """Return the words of the first wait that is shown as a retry."""
    handle = ResearchClient(client).handle(research_id)
    while True:
        try:
            status = await handle.status()
        except NoWorker:  # a loaded machine answers later
            continue
        if any(call.attempt > 1 for call in status.awaiting):
            return next(words for words in waits_of(status, datetime.now(tz=UTC)) if "attempt" in words)
        await asyncio.sleep(0.2)


async def test_a_model_endpoint_that_fails_for_a_while_delays_runs_of_every_strategy(
    client: Client, tmp_path: Path
) -> None:
    """Some seconds of 500, 503, 529 and resets: each status names the wait, all complete, nothing is paid twice (F3, F4)."""
    async with MessagesApi(latency=0.2) as api, running_workers(client, model_world(tmp_path, api.base_url)):
        handles = [await start(client, REQUEST | {"strategy": name}) for name in STRATEGIES]
        shown = asyncio.gather(*(first_retry(client, handle.id) for handle in handles))
        for words in await suffer(api, ("status:500", "status:503", "status:529", "reset"), 0.5, shown):
            assert re.match(r"\d+:\d\d .+ \(attempt \d+: .+\)$", words), words
        results: list[ResearchResult] = await asyncio.gather(*(handle.result() for handle in handles))
    assert [result.outcome for result in results] == [Outcome.COMPLETED] * 3, [one.failed_branches for one in results]
    assert [result.degraded for result in results] == [[]] * 3
    assert answered_twice(api) == []


@pytest.mark.soak
async def test_a_run_that_reaches_no_search_provider_is_refused_and_can_be_resumed(
    client: Client, tmp_path: Path
) -> None:
    """The refusal names the reason of each provider, before anything is paid; once one answers, the run completes."""
    async with WebWorld() as world:
        pass
    async with web_workers(client, tmp_path, world):
        run = await start(client, over_the_web())
        with pytest.raises(WorkflowFailureError):
            await run.result()
        refused = await ResearchClient(client).handle(run.id).result()
        async with world:
            resumed = await start(client, over_the_web(continue_from=run.id), id=run.id)
            result = await resumed.result()
    assert (refused.outcome, refused.stop_reason) == (Outcome.REFUSED, StopReason.NO_PROVIDERS)
    assert "searxng: 127.0.0.1 is not reachable" in refused.limitations[0]
    assert refused.resumable
    assert result.outcome is Outcome.COMPLETED


@pytest.mark.soak
async def test_pages_that_were_away_are_read_by_the_resumed_run(client: Client, tmp_path: Path) -> None:
    """As most sites are away, each page is asked for twice; once they answer, each is read, and no search is repeated."""
    async with WebWorld(faults=PagesAway(retry_after="400")) as world, web_workers(client, tmp_path, world):
        run = await start(client, over_the_web())
        with pytest.raises(WorkflowFailureError):
            await run.result()
        away = await ResearchClient(client).handle(run.id).result()
        asked = Counter(place for place in world.asked if place.startswith("127.") and "robots" not in place)
        world.faults = Faults()
        world.asked.clear()
        result = await (await start(client, over_the_web(continue_from=run.id), id=run.id)).result()
    assert (away.outcome, away.stop_reason) == (Outcome.FAILED, StopReason.PROVIDER_OUTAGE)
    assert set(asked.values()) == {2}
    assert sorted(world.asked) == sorted(asked)
    assert (result.outcome, result.counts.sources) == (Outcome.COMPLETED, len(asked))
