"""Google's Custom Search through Google's own library, in a thread."""

import asyncio
import ssl
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import httplib2  # type: ignore[import-untyped]
from googleapiclient.discovery import build_from_document  # type: ignore[import-untyped]
from googleapiclient.discovery_cache import get_static_doc  # type: ignore[import-untyped]
from googleapiclient.errors import HttpError  # type: ignore[import-untyped]

from contracts.messages import SearchRequest, SearchResponse
from providers.domains import Domains
from providers.search.filters import filters_of
from providers.search.hits import RawResult, hit_limit, shorten_query
from providers.search.web_api import Record, WebSearch, Wire

LONGEST_PAGE = 10
MOST_RESULTS = 100
"""Of one query: the interface never gives more."""
MOST_SITES = 20
"""Domains that fit into a query: Google reads 32 words of it."""
LANGUAGES = frozenset(
    "ar bg ca cs da de el en es et fi fr hr hu id is it ja ko lt lv nl no pl pt ro ru sk sl sr sv tr".split()
)
"""Values of `lr` that are written as ISO 639 does."""
OWN_LANGUAGES = {"he": "iw", "nb": "no", "nn": "no", "zh": "zh-CN"}
DATES = ("article:published_time", "datepublished", "dc.date", "citation_publication_date", "date")
AUTHORS = ("citation_author", "author", "article:author")
THREADS = ThreadPoolExecutor(16, thread_name_prefix="google-search")
"""Threads of its own: a search that hangs must not hold up the loop's few default ones, which read and store."""


class GoogleResult(Record):
    """One result; `pagemap` has the statements of the page's head."""

    link: str
    title: str | None = None
    snippet: str | None = None
    pagemap: dict[str, Any] = {}

    def statement(self, names: tuple[str, ...]) -> str | None:
        """The first of these statements."""
        tags = self.pagemap.get("metatags")
        head = tags[0] if isinstance(tags, list) and tags and isinstance(tags[0], dict) else {}
        return next((head[name] for name in names if isinstance(head.get(name), str)), None)


class GoogleAnswer(Wire):
    """Answer of `customsearch/v1`; without results the list is missing."""

    kind: str
    items: list[Any] = []


class GoogleSearch(WebSearch):
    """A programmable search engine (GOOGLE_CSE_ID) over the web or a part of it.

    Days restrict by the date that Google found on the page, and drop pages without one.
    """

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Hits in rank order. Raises as `fetch` does."""
        offset, filters = max(0, request.offset), filters_of(request)
        if offset >= MOST_RESULTS:
            return SearchResponse(provider=self.name)
        words, partly = site_words(filters.domains)
        language = OWN_LANGUAGES.get(filters.language or "", filters.language)
        known = language in {*LANGUAGES, *OWN_LANGUAGES.values()}
        days = "date:r:{:%Y%m%d}:{:%Y%m%d}".format(*filters.days.both())
        parameters = {
            "q": shorten_query(request.text, 1_500 - len(words)) + words,
            "cx": self.values["GOOGLE_CSE_ID"],
            "num": max(1, min(LONGEST_PAGE if partly else hit_limit(request), LONGEST_PAGE, MOST_RESULTS - offset)),
            "start": offset + 1,
            **({"lr": f"lang_{language}"} if known else {}),
            **({"sort": days} if filters.days.given else {}),
        }
        warnings = [f"cannot keep to the language {filters.language}"] if language and not known else []
        try:
            async with asyncio.timeout(self.answer_seconds):
                said = await asyncio.get_running_loop().run_in_executor(THREADS, self._ask, parameters)
            items = GoogleAnswer.model_validate(said).items
        except HttpError as error:
            raise self.error(error.resp.status, error.resp.items(), error.content) from None
        except TimeoutError:
            raise self.silent() from None
        except (httplib2.error.HttpLib2Error, ssl.SSLError, OSError) as error:
            raise self.disconnected(error) from None
        except (ValueError, RecursionError):
            raise self.unexpected() from None
        return self.respond(request, items, GoogleResult, _result, warnings=warnings)

    def _ask(self, parameters: Mapping[str, Any]) -> Any:
        call = self._service.cse().list(**parameters)
        call.headers |= {**self.headers, "user-agent": self.client.headers["user-agent"]}
        http = httplib2.Http(timeout=self.answer_seconds, proxy_info=None)
        http.follow_redirects = False
        try:
            return call.execute(http=http, num_retries=0)
        finally:
            http.close()

    @cached_property
    def _service(self) -> Any:
        """The description of the interface that comes with the library."""
        return build_from_document(
            get_static_doc("customsearch", "v1"),
            http=object(),  # each request has its own; without any the library would look for credentials
            client_options={"api_endpoint": f"{self.address}/", "universe_domain": "googleapis.com"},
        )


def site_words(domains: Domains) -> tuple[str, bool]:
    """Domains as words of the query, as many as fit, and whether some remain for the filter on the hits."""
    keep = domains.allow if len(domains.allow) <= MOST_SITES else ()
    avoid = domains.deny[: MOST_SITES - len(keep)]
    either = " OR ".join(f"site:{host}" for host in keep)
    words = (f" ({either})" if keep else "") + "".join(f" -site:{host}" for host in avoid)
    return words, len(keep) + len(avoid) < len(domains.allow) + len(domains.deny)


def _result(result: GoogleResult) -> RawResult:
    author = result.statement(AUTHORS)
    return RawResult(
        url=result.link,
        title=result.title,
        snippet=result.snippet,
        published=result.statement(DATES),
        authors=[author] if author and not author.startswith("http") else (),
    )
