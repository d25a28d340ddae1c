"""A whole run over the web, by two worker processes, while one request in seven fails."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from contracts import names
from contracts.outcome import ResearchResult
from contracts.sources import Source
from contracts.vocabulary import Outcome, SourceStatus
from tests.acceptance.web_deployment import MODEL, PRICE, answered, web_deployment
from tests.fakes.many_pages import QUESTION, pages
from tests.fakes.messages_api import MessagesApi
from tests.fakes.web_world import Faults, Latencies, Site, WebWorld, page
from tests.integration.runs import start

pytestmark = pytest.mark.acceptance

TOO_MANY, SERVER_ERROR = 0.10, 0.05
MODEL_SEED = 16
"""With it the second call is refused and the eleventh fails."""
BROKEN = Site(14, "/gone", "Crazing of ashen glaze on the Velmar kiln", page("Empty", ""))
"""Found, and nothing in it can be read."""


def request() -> dict[str, Any]:
    """Everything that there is to find, in one iteration."""
    search = {"providers": ["searxng"], "max_results_per_query": 20, "source_types": ["web"]}
    limits = {"max_iterations": 1, "max_sources": 60, "max_sources_per_query": 20}
    return {"query": QUESTION, "search": search, "limits": limits}


async def test_faults_lose_nothing_repeat_nothing_and_cost_what_was_billed(tmp_path: Path) -> None:
    """With 429 and 500 from model, search and pages the run ends well, and every figure is the services' own.

    Every source found is read, or named with its reason; nobody is asked again for what was answered (reliability 1.4).
    """
    faults = Faults(TOO_MANY, SERVER_ERROR, retry_after="1", seed=1)
    world = WebWorld([*pages(24, hosts=12, paragraphs=4), BROKEN], faults=faults, latencies=Latencies(0.02))
    mix = {"status:429:1": TOO_MANY, "status:500": SERVER_ERROR}
    model = MessagesApi(mix=mix, latency=0.05, seed=MODEL_SEED)
    async with web_deployment(tmp_path / "home", world, model, temporal="memory") as made:
        await made.start_workers(2)
        handle = await start(await made.client(), request())
        async with asyncio.timeout(100):
            result: ResearchResult = await handle.result()
        sources = await handle.query(names.SOURCES, result_type=list[Source])

    assert result.outcome is Outcome.COMPLETED
    refusals = [call for call in model.calls if call.status in (429, 500)]
    assert world.failed[429] and world.failed[500] and refusals, "nothing of what is tested happened"

    known = {url for source in sources for url in (source.url, *source.aliases)}
    assert world.found == known
    unread = {source.url: source.status_reason for source in sources if source.status is not SourceStatus.FULL}
    assert unread.keys() == {world.url(BROKEN)}
    assert unread[world.url(BROKEN)]

    assert max(world.served.values()) == 1
    assert max(answered(model.calls).values()) == 1

    usage, charges = result.usage, model.book.charges
    assert usage.model_calls == len(charges) == sum(answered(model.calls).values())
    assert usage.input_tokens == sum(charge.prompt for charge in charges)
    assert usage.output_tokens == sum(charge.output for charge in charges)
    assert usage.cost_usd == pytest.approx(model.book.owed_usd({MODEL: PRICE}), abs=1e-9)
    assert usage.searches == sum(place.startswith("search") for place in world.served)
    assert usage.reads == len(sources)
