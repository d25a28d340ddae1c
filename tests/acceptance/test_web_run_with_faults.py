"""A whole run over the web, by a worker process, while one request in seven fails."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from contracts import names
from contracts.evidence import Source
from contracts.outcome import ResearchResult
from contracts.vocabulary import Outcome, SourceStatus
from tests.acceptance.web_deployment import MODEL, PRICE, answered, web_deployment
from tests.fakes.many_pages import QUESTION, pages
from tests.fakes.messages_api import MessagesApi
from tests.fakes.web_world import Faults, Latencies, Site, WebWorld, page
from tests.integration.runs import start

pytestmark = pytest.mark.acceptance

TOO_MANY, SERVER_ERROR = 0.10, 0.05
WEB_SEED, MODEL_SEED = 621, 241
"""With them a search and three pages are refused, a search and a page fail; an analysis fails, the report is refused."""
BROKEN = Site(14, "/gone", "Crazing of ashen glaze on the Velmar kiln", page("Empty", ""))
"""Found, and nothing in it can be read."""


def request() -> dict[str, Any]:
    """Everything that there is to find, in one iteration."""
    search = {"providers": ["searxng"], "max_results_per_query": 20, "source_types": ["web"]}
    limits = {"max_iterations": 1, "max_sources": 60, "max_sources_per_query": 20}
    gates = {"think": "rules", "policy": "advisory"}
    return {"query": QUESTION, "search": search, "limits": limits, "gates": gates}


async def test_faults_lose_nothing_repeat_nothing_and_cost_what_was_billed(tmp_path: Path) -> None:
    """With 429 and 500 from model, search and pages the run ends well, and every figure is the services' own.

    Every source found is read, or named with its reason; nobody is asked again for what was answered (reliability 1.4).
    """
    faults = Faults(TOO_MANY, SERVER_ERROR, retry_after="1", seed=WEB_SEED)
    world = WebWorld([*pages(24, hosts=12, paragraphs=4), BROKEN], faults=faults, latencies=Latencies(0.02))
    mix = {"status:429:1": TOO_MANY, "status:500": SERVER_ERROR}
    model = MessagesApi(mix=mix, latency=0.05, seed=MODEL_SEED)
    async with web_deployment(tmp_path / "home", world, model, temporal="memory") as made:
        await made.start_workers()
        handle = await start(await made.client(), request())
        async with asyncio.timeout(100):
            result: ResearchResult = await handle.result()
        sources = await handle.query(names.SOURCES, result_type=list[Source])

    assert result.outcome is Outcome.COMPLETED
    of_searches = [place for place in world.asked if place.startswith("search")]
    assert len(of_searches) > len(set(of_searches)), "no search had to be made again"
    assert min(world.failed[429], world.failed[500]) > 1, "pages were not disturbed"
    assert {call.status for call in model.calls} == {200, 429, 500}

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
