"""Google's Custom Search through Google's own library, which asks over our connections."""

import asyncio
import concurrent.futures
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import httplib2  # type: ignore[import-untyped]
import httpx2
from googleapiclient.discovery import build_from_document  # type: ignore[import-untyped]
from googleapiclient.discovery_cache import get_static_doc  # type: ignore[import-untyped]

from contracts.messages import SearchRequest, SearchResponse
from providers.domains import Domains
from providers.search.narrowing import Narrowing, google_language, narrowing_of, spell_language
from providers.search.service import Service
from providers.search.web_api import Detail, Facts, Records, WebApi, WebSearch, Wire
from providers.search.web_hits import RawResult, hit_limit, respond, shorten_query

SERVICE: Final = Service(
    "Google", "GOOGLE_BASE_URL", "GOOGLE_API_KEY", "check GOOGLE_CSE_ID and GOOGLE_BASE_URL",
    address="https://customsearch.googleapis.com", key_header="x-goog-api-key",
)  # fmt: skip
LONGEST_PAGE: Final = 10
MOST_RESULTS: Final = 100
"""The interface never gives more of one query."""
LONGEST_QUERY: Final = 1_500
MOST_AT_ONCE: Final = 16
MOST_SITES: Final = 20
"""Domains that fit into a query: Google reads 32 words of it."""
DATES: Final = ("article:published_time", "datepublished", "dc.date", "citation_publication_date", "date")
AUTHORS: Final = ("citation_author", "author", "article:author")
OWN_HEADERS: Final = {"accept", "accept-encoding", "user-agent", "content-length"}
"""Headers of the library that our connections set themselves."""


class GoogleResult(Wire):
    """One result; `pagemap` holds what the page says of itself."""

    link: str
    title: Detail = None
    snippet: Detail = None
    pagemap: Facts = {}

    def statement(self, names: tuple[str, ...]) -> str | None:
        """The first of these statements in the page's head."""
        tags = self.pagemap.get("metatags")
        head = tags[0] if isinstance(tags, list) and tags and isinstance(tags[0], dict) else {}
        return next((head[name] for name in names if isinstance(head.get(name), str)), None)


class GoogleAnswer(Wire):
    """What `customsearch/v1` answers; without results the list is missing."""

    kind: str
    items: Records[GoogleResult] = []


class LoopHttp:
    """What the library takes for its HTTP client: called in a thread, it sends on the event loop.

    The library's own client would follow redirects, repeat requests on its own and read answers without limit.
    """

    def __init__(self, api: WebApi, loop: asyncio.AbstractEventLoop) -> None:
        self._api = api
        self._loop = loop
        self._pending: concurrent.futures.Future[bytes] | None = None
        self._given_up = False

    def request(
        self, uri: str, method: str = "GET", body: Any = None, headers: Mapping[str, str] | None = None, **_: object
    ) -> tuple[Any, bytes]:
        """Response and body, as the library wants them. Raises what `WebApi.fetch` does."""
        passed_on = {name: value for name, value in (headers or {}).items() if name.lower() not in OWN_HEADERS}
        sending = self._api.fetch(method, uri, content=body, headers=passed_on)
        pending = asyncio.run_coroutine_threadsafe(sending, self._loop)
        self._pending = pending
        if self._given_up:  # the loop may have been faster than this thread
            pending.cancel()
        return httplib2.Response({"status": "200"}), pending.result()

    def cancel(self) -> None:
        """Give the request up, if it still runs."""
        self._given_up = True
        if self._pending is not None:
            self._pending.cancel()


class GoogleSearch(WebSearch):
    """A programmable search engine (its id is `cse_id`) over the web or a part of it.

    One domain goes into `siteSearch`, several into the query as `site:`; days restrict by `sort=date:r:…`, which goes
    by the date that Google found on the page and drops pages without one.
    """

    name = "google"
    service = SERVICE

    def __init__(self, client: httpx2.AsyncClient, *, cse_id: str, **given: Any) -> None:
        """The others are those of `WebSearch`. Raises `NotConfigured`."""
        super().__init__(client, **given, variant=cse_id)
        self._cse_id = cse_id
        # Threads of its own: the loop's default ones are few, and waiting here would hold up reading and storing.
        self._threads = concurrent.futures.ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="google-search")

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Hits in rank order. Raises `RateLimited`, `Unavailable`, `NotConfigured` or `InvalidCall`."""
        offset = max(0, request.offset)
        if offset >= MOST_RESULTS:
            return SearchResponse(provider=self.name)
        narrowing = narrowing_of(request)
        sites = sites_of(narrowing.domains)
        filters, warnings = _filters(narrowing)
        most = LONGEST_PAGE if sites.partly else min(hit_limit(request), LONGEST_PAGE)
        parameters: dict[str, str | int] = {
            "q": shorten_query(request.text, LONGEST_QUERY - len(sites.words)) + sites.words,
            "cx": self._cse_id,
            "num": max(1, min(most, MOST_RESULTS - offset)),
            "start": offset + 1,
            **sites.parameters,
            **filters,
        }
        answer = await self._answer(parameters)
        return respond(request, self.name, answer.items, _result, warnings=warnings)

    async def _answer(self, parameters: Mapping[str, str | int]) -> GoogleAnswer:
        loop = asyncio.get_running_loop()
        http = LoopHttp(self._api, loop)
        try:
            return GoogleAnswer.model_validate(await loop.run_in_executor(self._threads, self._ask, parameters, http))
        except (ValueError, RecursionError):
            raise self._api.unexpected() from None
        finally:
            http.cancel()

    def _ask(self, parameters: Mapping[str, str | int], http: LoopHttp) -> Any:
        return self._service.cse().list(**parameters).execute(http=http, num_retries=0)

    @cached_property
    def _service(self) -> Any:
        """The library's description of the interface, from the copy that comes with it."""
        return build_from_document(
            get_static_doc("customsearch", "v1"),
            http=object(),  # each request brings its own; without any, credentials would be searched for
            client_options={"api_endpoint": f"{self._api.base_url}/", "universe_domain": "googleapis.com"},
        )


@dataclass(frozen=True)
class Sites:
    """Domains as parameters and as words of the query; `partly` if too many are left to the filter on the hits."""

    parameters: dict[str, str]
    words: str
    partly: bool


def sites_of(domains: Domains) -> Sites:
    """One domain by the parameter, which keeps to it or avoids it; the others in the query, as many as fit."""
    keep, avoid = domains.allow, domains.deny
    parameters: dict[str, str] = {}
    if len(keep) == 1:
        parameters, keep = {"siteSearch": keep[0], "siteSearchFilter": "i"}, ()
    elif len(avoid) == 1 and not keep:
        parameters, avoid = {"siteSearch": avoid[0], "siteSearchFilter": "e"}, ()
    kept = keep if len(keep) <= MOST_SITES else ()
    avoided = avoid[: MOST_SITES - len(kept)]
    either = " OR ".join(f"site:{host}" for host in kept)
    words = (f" ({either})" if kept else "") + "".join(f" -site:{host}" for host in avoided)
    return Sites(parameters, words, partly=len(kept) + len(avoided) < len(keep) + len(avoid))


def _filters(narrowing: Narrowing) -> tuple[dict[str, str], list[str]]:
    """Language and days as parameters, and what of them Google does not know."""
    known, warnings = spell_language(narrowing.language, google_language)
    parameters = {"lr": known} if known else {}
    if narrowing.days.given:
        first, last = narrowing.days.between()
        parameters["sort"] = f"date:r:{first:%Y%m%d}:{last:%Y%m%d}"
    return parameters, warnings


def _result(result: GoogleResult) -> RawResult:
    author = result.statement(AUTHORS)
    return RawResult(
        url=result.link,
        title=result.title,
        snippet=result.snippet,
        published=result.statement(DATES),
        authors=[author] if author and not author.startswith("http") else (),
    )
