"""A small web on loopback: sites with pages, and a search engine over them that speaks SearXNG's form.

Each site has a host of its own (127.0.0.2, 127.0.0.3, …), so that politeness and the guard see different hosts.
Faults come by chance, decided by a seed, the place and how often it was asked: the same for every order of arrival.
"""

import asyncio
import html
import json
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from urllib.parse import parse_qsl, urlsplit

from providers.text import question_stems, stems
from tests.fakes.corpus import MANUAL
from tests.fakes.loopback import HttpRequest, LoopbackServer, response

FIRST_HOST = 2
MOST_HOSTS = 200
"""In one block of addresses; there are 256 blocks."""
MOST_RESULTS = 20
NOT_FOUND = b"<!doctype html><title>Not found</title><h1>Not found</h1><p>There is no such page.</p>"
ROBOTS = b"User-agent: *\nDisallow: /private/\n"


@dataclass(frozen=True)
class Site:
    """A page with its place: `host` counts from 0; `body` is HTML."""

    host: int
    path: str
    title: str
    body: str
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = "text/html; charset=utf-8"

    @cached_property
    def words(self) -> set[str]:
        return set(stems(f"{self.title} {self.body}"))


@dataclass(frozen=True)
class Faults:
    """Shares of requests that fail, and what is said to those that are to come later."""

    too_many: float = 0.0
    server_error: float = 0.0
    retry_after: str = "1"
    seed: int = 0

    def status(self, place: str, time: int) -> int:
        """The status of the n-th request for a place."""
        chance = random.Random(f"{self.seed}/{place}/{time}").random()
        if chance < self.too_many:
            return 429
        return 500 if chance < self.too_many + self.server_error else 200


@dataclass(frozen=True)
class Latencies:
    """Seconds until an answer, log-normal around the median by place: the same place always takes as long."""

    median: float = 0.0
    spread: float = 0.5
    seed: int = 0

    def of(self, place: str) -> float:
        if not self.median:
            return 0.0
        return self.median * random.Random(f"{self.seed}/{place}").lognormvariate(0.0, self.spread)


def page(title: str, markdown: str) -> str:
    """A page of HTML from a document of the tests' manual."""
    parts = []
    for block in markdown.strip().split("\n\n"):
        level = len(block) - len(block.lstrip("#"))
        text = html.escape(block.lstrip("# ").replace("\n", " "))
        parts.append(f"<h{level}>{text}</h{level}>" if level else f"<p>{text}</p>")
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><meta name="author" content="The Authors">'
    return f"<!doctype html><html lang=en><head>{head}</head><body><main>{''.join(parts)}</main></body></html>"


def manual_sites() -> list[Site]:
    """The documents of the tests' manual, each on a host of its own."""
    return [
        Site(host, f"/docs/{name.removesuffix('.md')}", name.removesuffix(".md").title(), page(name, text))
        for host, (name, text) in enumerate(MANUAL.items())
    ]


class WebWorld(LoopbackServer):
    """The servers, all at one port: `searxng_url`, `allow_hosts`, `asked`, `failed`."""

    def __init__(
        self,
        sites: list[Site] | None = None,
        *,
        faults: Faults = Faults(),
        latencies: Latencies = Latencies(),
    ) -> None:
        super().__init__(host="0.0.0.0")
        self.sites = manual_sites() if sites is None else sites
        self.faults = faults
        self.latencies = latencies
        self.asked: list[str] = []
        """`search WORDS`, `search/CATEGORY WORDS` or `HOST PATH` of each request, in order of arrival."""
        self.failed: Counter[int] = Counter()
        self.served: Counter[str] = Counter()
        """How often each place was answered well."""
        self.found: set[str] = set()
        """Every address that an answered search gave."""
        self._by_place = {(self.host_of(site), site.path): site for site in self.sites}
        self._times: Counter[str] = Counter()

    def show(self, sites: list[Site]) -> None:
        """Have other pages from now on; the hosts stay those of the beginning."""
        self.sites = sites
        self._by_place = {(self.host_of(site), site.path): site for site in sites}

    @property
    def searxng_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/searxng"

    @property
    def allow_hosts(self) -> list[str]:
        return sorted({f"{self.host_of(site)}:{self.port}" for site in self.sites})

    def variables(self) -> dict[str, str]:
        return {"SEARXNG_URL": self.searxng_url, "RESEARCH_ALLOW_HOSTS": ",".join(self.allow_hosts)}

    def url(self, site: Site) -> str:
        return f"http://{self.host_of(site)}:{self.port}{site.path}"

    @staticmethod
    def host_of(site: Site) -> str:
        block, place = divmod(site.host, MOST_HOSTS)
        return f"127.0.{block}.{FIRST_HOST + place}"

    async def serve(self, request: HttpRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; the connection may carry another."""
        target = urlsplit(request.target)
        host = request.headers.get("host", "").partition(":")[0]
        searching = target.path == "/searxng/search"
        query = dict(parse_qsl(target.query)) if searching else {}
        place = _search(query) if searching else f"{host} {target.path}"
        self.asked.append(place)
        await asyncio.sleep(self.latencies.of(place))
        self._times[place] += 1
        status = 200 if target.path == "/robots.txt" else self.faults.status(place, self._times[place])
        if status != 200:
            self.failed[status] += 1
            writer.write(
                response(status, b"later", {"retry-after": self.faults.retry_after} if status in {429, 503} else None)
            )
        elif searching:
            self.served[place] += 1
            writer.write(response(200, self._found(query.get("q", "")).encode(), {"content-type": "application/json"}))
        else:
            writer.write(self._page(host, target.path, place))
        await writer.drain()
        return True

    def _page(self, host: str, path: str, place: str) -> bytes:
        if path == "/robots.txt":
            return response(200, ROBOTS, {"content-type": "text/plain"})
        site = self._by_place.get((host, path))
        if site is None:
            return response(404, NOT_FOUND, {"content-type": "text/html"})
        self.served[place] += 1
        return response(200, site.body.encode(), {"content-type": site.media_type, **site.headers})

    def _found(self, query: str) -> str:
        wanted = set(question_stems(query))
        scores = [(len(wanted & site.words), -place, site) for place, site in enumerate(self.sites)]
        best = sorted((score for score in scores if score[0]), key=lambda score: (-score[0], -score[1]))
        results = [
            {"url": self.url(site), "title": site.title, "content": f"About {site.title}", "engine": "fake"}
            for _, _, site in best
        ]
        self.found.update(str(result["url"]) for result in results[:MOST_RESULTS])
        return json.dumps({"query": query, "number_of_results": len(results), "results": results[:MOST_RESULTS]})


def _search(query: Mapping[str, str]) -> str:
    """The place of a search: another category is another question."""
    category = query.get("categories", "general")
    return ("search " if category == "general" else f"search/{category} ") + query.get("q", "")
