"""Google's Custom Search through Google's own library, in a thread."""

import asyncio
import ssl
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import httplib2  # type: ignore[import-untyped]
from googleapiclient.discovery import build  # type: ignore[import-untyped]
from googleapiclient.errors import HttpError  # type: ignore[import-untyped]

from contracts.messages import SearchRequest, SearchResponse
from providers.search.filters import Filters
from providers.search.hits import RawResult, hit_limit, list_at, shorten_query, text_at
from providers.search.web_api import MALFORMED, WebSearch

MAX_PAGE_SIZE = 10
MAX_SITES = 20  # domains that fit into a query: Google reads 32 words of it
DATES = ("article:published_time", "datepublished", "dc.date", "citation_publication_date", "date")
THREADS = ThreadPoolExecutor(16, thread_name_prefix="google-search")
"""Separate threads: a search that hangs must not delay the loop's few default ones, which read and store."""


class GoogleSearch(WebSearch):
    """A programmable search engine (GOOGLE_CSE_ID); days filter by the date on a page, and drop undated pages."""

    async def find(self, request: SearchRequest, filters: Filters) -> SearchResponse:
        """Make one search request."""
        domains = filters.domains
        allow = domains.allow if len(domains.allow) <= MAX_SITES else ()
        deny = domains.deny[: MAX_SITES - len(allow)]
        site_filter = ""
        if allow:
            site_filter = f" ({' OR '.join(f'site:{host}' for host in allow)})"
        site_filter += "".join(f" -site:{host}" for host in deny)
        if (allow, deny) == (domains.allow, domains.deny):
            limit = hit_limit(request)
        else:
            limit = MAX_PAGE_SIZE
        language = self.declaration.language_code(filters.language)
        parameters: dict[str, str | int] = {
            "q": shorten_query(request.text, 1_500 - len(site_filter)) + site_filter,
            "cx": self.values["GOOGLE_CSE_ID"],
            "num": max(1, min(limit, MAX_PAGE_SIZE)),
        }
        if language:
            parameters["lr"] = f"lang_{language}"
        if filters.days.given:
            parameters["sort"] = "date:r:{}:{}".format(*filters.days.both()).replace("-", "")
        answer = await self._call(parameters)
        if text_at(answer, "kind"):
            answer.setdefault("items", [])  # missing if nothing was found
        return self.respond(request, list_at(answer, "items"), _result)

    async def _call(self, parameters: Mapping[str, Any]) -> Any:
        """Call the library in a thread, and translate its errors."""
        try:
            async with asyncio.timeout(self.answer_seconds):
                return await asyncio.get_running_loop().run_in_executor(THREADS, self._send, parameters)
        except HttpError as error:
            raise self.error(error.resp.status, error.resp.items(), error.content) from None
        except TimeoutError:
            raise self.unavailable(f"no answer in {self.answer_seconds:g} s") from None
        except (httplib2.error.HttpLib2Error, ssl.SSLError, OSError) as error:
            raise self.unavailable(f"the connection failed ({type(error).__name__})") from None
        except (ValueError, RecursionError):
            raise self.unavailable(MALFORMED) from None

    def _send(self, parameters: Mapping[str, Any]) -> Any:
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
        """The interface, from the description that comes with the library."""
        return build(
            "customsearch",
            "v1",
            http=object(),  # each request has its own; without this the library would look for credentials
            client_options={"api_endpoint": f"{self.address}/", "universe_domain": "googleapis.com"},
            static_discovery=True,
        )


def _result(result: dict[str, Any]) -> RawResult:
    """Read a result; its date comes from the page's metadata."""
    tags = list_at(result, "pagemap", "metatags") or [None]
    published = next(filter(None, (text_at(tags[0], name) for name in DATES)), None)
    return RawResult(text_at(result, "link"), text_at(result, "title"), text_at(result, "snippet"), published)
