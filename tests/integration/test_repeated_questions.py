"""What was asked once is not asked again: not by a later run, not by another worker, not where services fail."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from temporalio.client import Client

from contracts import names
from contracts.evidence import Source
from contracts.outcome import ResearchResult, Usage
from contracts.vocabulary import Outcome, SourceStatus
from tests.fakes.many_pages import QUESTION, RELATED, pages
from tests.fakes.web_world import Faults, Site, WebWorld, page
from tests.integration.runs import start
from tests.integration.web_pools import web_workers

pytestmark = pytest.mark.integration


@dataclass
class Asked:
    """One run: what it says that it used, and what the web saw of it."""

    usage: Usage
    searches: int
    pages: int


async def ask(client: Client, world: WebWorld, query: str) -> Asked:
    """One run over all pages that it finds."""
    world.asked.clear()
    search = {"providers": ["searxng"], "max_results_per_query": 20}
    limits = {"max_iterations": 1, "max_sources_per_query": 20}
    handle = await start(client, {"query": query, "search": search, "limits": limits})
    result: ResearchResult = await handle.result()
    places = [place for place in world.asked if not place.endswith("/robots.txt")]
    searches = sum(place.startswith("search") for place in places)
    return Asked(result.usage, searches, len(places) - searches)


async def test_a_repeated_and_a_related_question_ask_for_what_is_new_alone(client: Client, tmp_path: Path) -> None:
    """Asked three times, only the first time goes out; related questions search anew and read no known page again."""
    async with WebWorld(pages(12, hosts=6, paragraphs=2)) as world:
        async with web_workers(client, tmp_path, world):
            runs = [await ask(client, world, query) for query in (QUESTION, QUESTION, QUESTION, *RELATED)]
    first, *again = runs
    assert (first.usage.cached_searches, first.usage.cached_reads) == (0, 0)
    for run in runs:
        assert run.searches == run.usage.searches - run.usage.cached_searches
        assert run.pages == run.usage.reads - run.usage.cached_reads
    for run in again[:2]:
        assert (run.searches, run.pages) == (0, 0)
        assert (run.usage.searches, run.usage.reads) == (first.usage.searches, first.usage.reads)
    assert max(world.served.values()) == 1
    wanted = sum(run.usage.searches + run.usage.reads for run in runs)
    hits = sum(run.usage.cached_searches + run.usage.cached_reads for run in runs)
    assert hits / wanted >= 0.6, f"{hits} of {wanted}"
    related = again[2:]
    assert sum(run.searches for run in related) > 0, "they are other questions"
    assert sum(run.usage.cached_reads for run in related) > 0


@pytest.mark.soak
async def test_failing_searches_and_pages_lose_nothing_and_repeat_nothing(client: Client, tmp_path: Path) -> None:
    """Each source found is read, or named with its reason; nobody is asked again for what was answered (reliability 1.4)."""
    broken = Site(14, "/gone", "Crazing of ashen glaze on the Velmar kiln", page("Empty", ""))
    faults = Faults(too_many=0.1, server_error=0.05, retry_after="1", seed=621)
    search = {"providers": ["searxng"], "max_results_per_query": 20, "source_types": ["web"]}
    limits = {"max_iterations": 1, "max_sources_per_query": 20}
    async with WebWorld([*pages(14, hosts=7, paragraphs=4), broken], faults=faults) as world:
        async with web_workers(client, tmp_path, world):
            handle = await start(client, {"query": QUESTION, "search": search, "limits": limits})
            result: ResearchResult = await handle.result()
            sources = await handle.query(names.SOURCES, result_type=list[Source])
    assert result.outcome is Outcome.COMPLETED
    assert min(world.failed[429], world.failed[500]) > 0, "nothing was disturbed"
    assert world.found == {url for source in sources for url in (source.url, *source.aliases)}
    unread = {source.url: source.status_reason for source in sources if source.status is not SourceStatus.FULL}
    assert unread.keys() == {world.url(broken)}
    assert all(unread.values())
    assert max(world.served.values()) == 1
    assert result.usage.searches == sum(place.startswith("search") for place in world.served)
    assert result.usage.reads == len(sources)
