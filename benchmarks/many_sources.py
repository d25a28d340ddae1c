"""Large runs within one process: a web of hundreds of pages, and a model that leaves no question settled at once.

Titles, addresses, snippets, statements and guidance are as long as those of real runs usually are; the same question
gets the same answer, so that the history of a run has the same size wherever it is measured.
"""

import json
import random
import re
from pathlib import Path
from typing import Any, Final

from activities.preparation import ResearchConfiguration
from contracts.evidence import DocumentRef, SearchHit
from contracts.messages import SearchRequest, SearchResponse
from contracts.resolved import ProviderChoice
from contracts.vocabulary import EngineKind, Tier
from providers.domains import ANYWHERE, Domains
from providers.errors import SourceUnreadable
from providers.interfaces import ExtractedDocument
from tests.fakes import model_work
from tests.fakes.many_pages import QUESTION, pages
from tests.fakes.model_engine import engine_over
from tests.fakes.model_request import ModelRequest
from tests.fakes.model_scenarios import SCENARIOS, Reply, answered, good
from tests.fakes.model_work import key_words, question_of
from tests.fakes.web_world import Site
from tests.fakes.world import World

PROVIDER: Final = "searxng"
PAGES, HOSTS = 400, 60
SCENARIO: Final = "thorough"
"""Five sub-queries, and a gap in each analysis but those of the last iteration."""


class ManySources:
    """A search provider and the reader of what it finds."""

    name = PROVIDER

    def __init__(self) -> None:
        made = pages(PAGES, hosts=HOSTS, paragraphs=6)
        self._sites = {address_of(site): site for site in made}

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Pages drawn by the words: another question has mostly others."""
        chosen = random.Random(request.text).sample(sorted(self._sites), request.max_results)
        return SearchResponse(provider=self.name, hits=[self._hit(url, rank) for rank, url in enumerate(chosen, 1)])

    def _hit(self, url: str, rank: int) -> SearchHit:
        text = text_of(self._sites[url])
        return SearchHit(
            url=url,
            title=title_of(self._sites[url]),
            snippet=text[:400],
            rank=rank,
            provider=self.name,
            published_at=f"20{10 + rank % 16}-03-{1 + rank % 28:02d}",
        )

    async def read(
        self, url: str, *, tenant: str = "default", domains: Domains = ANYWHERE, given: DocumentRef | None = None
    ) -> ExtractedDocument:
        """The page as it is read."""
        del tenant, domains, given
        site = self._sites.get(url)
        if site is None:
            raise SourceUnreadable("not_found", "no such page")
        text = text_of(site)
        return ExtractedDocument(
            url=url,
            title=title_of(site),
            text=text,
            raw=site.body.encode(),
            media_type="text/html",
            authors=["Ida Marrow", "Teo Quill"],
            publisher=f"The Society of Kilns, chapter {site.host}",
            published_at="2024-05-17",
            language="en",
        )


def address_of(site: Site) -> str:
    """The address that a page has here."""
    return f"https://chapter-{site.host}.kilns.edu{site.path}/on-the-firing-of-ashen-glazes-and-their-crazing"


def title_of(site: Site) -> str:
    """The long title that a page has here."""
    return f"{site.title}: on the firing of ashen glazes | The Society of Kilns"


def text_of(site: Site) -> str:
    """The text of a page of `tests.fakes.many_pages`."""
    body = site.body.partition("<main>")[2].partition("</main>")[0]
    for tag in ("p", "h1"):
        body = body.replace(f"<{tag}>", "").replace(f"</{tag}>", "\n\n")
    return body.strip()


def thorough_plan(prompt: str) -> dict[str, Any]:
    """Five sub-queries, each with its reasons."""
    question = question_of(prompt).rstrip("?. ")
    wishes = ("what experience shows", "how it works", "which settings there are", "what it costs", "where it fails")
    return {
        "research_brief": f"{question}: what is measured comes first, then how it works, and last what is disputed.",
        "sub_queries": [
            {
                "query": f"{question}: {wish}",
                "rationale": f"Without knowing {wish} nobody could judge whether the answer holds in practice.",
                "priority": number,
                "facet": wish,
            }
            for number, wish in enumerate(wishes, start=1)
        ],
    }


def thorough_reflection(prompt: str) -> dict[str, Any]:
    """Content, with advice for what comes next."""
    seen = " ".join(key_words(prompt)[:4])
    return model_work.reflection(prompt) | {
        "guidance": f"After {seen}: prefer sources that give figures with their year, and say where two of them differ."
    }


def thorough(request: ModelRequest) -> Reply:
    """Work in long sentences; each iteration but the last finds something missing."""
    if request.mode == "turn":
        return good(request)
    work = {"planner": thorough_plan, "supervisor": thorough_reflection}.get(request.role)
    if work is not None:
        return answered(request, json.dumps(work(request.prompt)))
    iteration = re.search(r"Iteration: (\d+) of (\d+)", request.prompt)
    return answered(request, request.good_answer(with_gap=iteration is not None and iteration[1] != iteration[2]))


SCENARIOS[SCENARIO] = thorough


def large_world(folder: Path, model_url: str) -> World:
    """A world over these pages whose model is at the address."""
    web = ManySources()
    configuration = ResearchConfiguration(
        models={tier.value: ["test-model"] for tier in Tier},
        model_host=lambda _: "127.0.0.1",
        choose_providers=lambda _, __: [
            ProviderChoice(name=PROVIDER, available=True, reason="configured", host="search.example.org")
        ],
        product_version="0.1.0",
    )
    engines = {EngineKind.MODEL: engine_over({"default": model_url})}
    return World(folder, None, engines, configuration, {PROVIDER: web}, web)


def large_request(sources: int, *, iterations: int, depth: str, per_query: int, think: str = "model") -> dict[str, Any]:
    """A request that reads this many sources in all."""
    limits = {
        "max_iterations": iterations,
        "max_sources": sources,
        "max_sources_per_query": per_query,
        "deadline_seconds": 1_800,
    }
    return {"query": QUESTION, "depth": depth, "gates": {"think": think}, "limits": limits}


LARGE_RUNS: Final = {
    "28 sources, one iteration": large_request(28, iterations=1, depth="extended", per_query=8),
    "20 sources, three iterations, reflections": large_request(20, iterations=3, depth="medium", per_query=5),
    "100 sources": large_request(100, iterations=3, depth="extended", per_query=10),
}
"""By what is measured."""
