"""What was asked once is not asked again: not by a later run, not by another worker, not by fifty searches at once."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from contracts.names import POOLS
from contracts.outcome import ResearchResult, Usage
from tests.fakes.many_pages import QUESTION, RELATED, pages
from tests.fakes.web_world import WebWorld
from tests.integration.runs import start
from workers.composition import compose
from workers.pools import run_pools
from workers.settings.loading import Settings
from workers.settings.sections import WebSearchSettings, WebSettings

pytestmark = pytest.mark.integration


@dataclass
class Asked:
    """One run: what it says that it used, and what the web saw of it."""

    usage: Usage
    searches: int
    pages: int


def settings_of(home: Path, world: WebWorld, **more: Any) -> Settings:
    """The configuration of every worker of these tests."""
    return Settings(
        home=home,
        temporal_variables={"TEMPORAL_ADDRESS": "elsewhere"},
        web=WebSettings(allow_hosts=world.allow_hosts),
        web_search=WebSearchSettings(addresses={"SEARXNG_URL": world.searxng_url}),
        **more,
    )


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
        settings = settings_of(tmp_path, world)
        async with compose(settings, client) as contents, run_pools(client, contents, tuple(POOLS)):
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
