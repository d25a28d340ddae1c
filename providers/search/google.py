"""Google's two search services through Google's own library, in a thread: Custom Search, and Vertex AI Search.

Vertex AI Search has the sites that an operator has chosen for an app there. A key may call its `searchLite` alone; a
service account calls `search`.
"""

import asyncio
import json
import re
import ssl
import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final

import google_auth_httplib2  # type: ignore[import-untyped]
import httplib2  # type: ignore[import-untyped]
import httpx2
from google.auth.exceptions import GoogleAuthError
from google.oauth2 import service_account
from googleapiclient.discovery import build  # type: ignore[import-untyped]
from googleapiclient.errors import HttpError  # type: ignore[import-untyped]

from contracts.messages import SearchRequest, SearchResponse
from providers.errors import NotConfigured
from providers.search.declarations import SearchDeclaration
from providers.search.filters import Filters
from providers.search.hits import RawResult, hit_limit, list_at, shorten_query, text_at
from providers.search.web_api import WebSearch

MAX_PAGE_SIZE: Final = 10
MAX_SITES: Final = 20  # domains that fit into a query: Google reads 32 words of it
DATES: Final = ("article:published_time", "datepublished", "dc.date", "citation_publication_date", "date")
THREADS: Final = ThreadPoolExecutor(16, thread_name_prefix="google-search")
"""Separate threads: a search that hangs must not delay the loop's few default ones, which read and store."""
MAX_SITE_RESULTS: Final = 25
"""Results of one answer about sites that Google has not indexed for the operator, by its documentation."""
MAX_PAGES: Final = 2  # answers to one search, so that 50 results fit
APP: Final = re.compile(
    r"projects/[a-z0-9:._-]{1,100}/locations/[a-z0-9-]{1,40}/collections/[\w-]{1,63}/(?:engines|dataStores)/[\w-]{1,63}"
)
SERVING_CONFIG: Final = "default_search"
SCOPES: Final = ("https://www.googleapis.com/auth/discoveryengine.serving.readwrite",)
ANSWER_FIELDS: Final = ("attributionToken", "totalSize", "summary", "queryExpansionInfo", "semanticState")
"""Fields of an answer that found nothing; it has no list of results."""
MAX_CREDENTIALS_BYTES: Final = 100_000


class GoogleService(WebSearch):
    """Base of both: a call of the library, limited in time, with typed errors."""

    INTERFACE: ClassVar[tuple[str, str]]
    """Name and version of the interface's description in the library."""

    @abstractmethod
    def make_call(self, parameters: Mapping[str, Any]) -> Any:
        """Return the library's call of these parameters."""

    async def call(self, parameters: Mapping[str, Any]) -> Any:
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
            raise self.malformed() from None

    def authorize(self, new_http: Callable[[], httplib2.Http]) -> Mapping[str, str]:
        """Return the headers with the credentials; called in a thread."""
        del new_http
        return self.headers

    def _send(self, parameters: Mapping[str, Any]) -> Any:
        call = self.make_call(parameters)
        call.headers |= {**self.authorize(self._new_http), "user-agent": self.client.headers["user-agent"]}
        http = self._new_http()
        try:
            return call.execute(http=http, num_retries=0)
        finally:
            http.close()

    def _new_http(self) -> httplib2.Http:
        http = httplib2.Http(timeout=self.answer_seconds, proxy_info=None)
        http.follow_redirects = False
        return http

    @cached_property
    def service(self) -> Any:
        """The interface, from the description that comes with the library."""
        return build(
            *self.INTERFACE,
            http=object(),  # each request has its own; without this the library would look for credentials
            client_options={"api_endpoint": f"{self.address}/", "universe_domain": "googleapis.com"},
            static_discovery=True,
        )


class GoogleSearch(GoogleService):
    """A programmable search engine (GOOGLE_CSE_ID); days filter by the date on a page, and drop undated pages."""

    INTERFACE = ("customsearch", "v1")

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
        answer = await self.call(parameters)
        if text_at(answer, "kind"):
            answer.setdefault("items", [])  # missing if nothing was found
        return self.respond(request, list_at(answer, "items"), _custom_result)

    def make_call(self, parameters: Mapping[str, Any]) -> Any:
        """Return the call of the one method."""
        return self.service.cse().list(**parameters)


def _custom_result(result: dict[str, Any]) -> RawResult:
    """Read a result; its date comes from the page's metadata."""
    return RawResult(text_at(result, "link"), text_at(result, "title"), text_at(result, "snippet"), _date(result))


def _date(result: Any) -> str | None:
    tags = list_at(result, "pagemap", "metatags") or [None]
    return next(filter(None, (text_at(tags[0], name) for name in DATES)), None)


class VertexSearch(GoogleService):
    """Vertex AI Search over the sites of an app (VERTEX_AI_SEARCH_APP), with a key or a service account."""

    INTERFACE = ("discoveryengine", "v1")

    def __init__(self, client: httpx2.AsyncClient, declaration: SearchDeclaration, values: Mapping[str, str]) -> None:
        """Read the service account, if there is one. Raises `NotConfigured`."""
        super().__init__(client, declaration, values)
        self._app = values["VERTEX_AI_SEARCH_APP"].strip().strip("/")
        if not APP.fullmatch(self._app):
            form = "projects/PROJECT/locations/LOCATION/collections/default_collection/engines/APP"
            raise NotConfigured(
                f"VERTEX_AI_SEARCH_APP is no name of an app: write {form}, or dataStores/STORE at its end"
            )
        self._credentials = None if self.headers else _read_account(values[declaration.key_alternative])
        self._lock = threading.Lock()

    async def find(self, request: SearchRequest, filters: Filters) -> SearchResponse:
        """Search, and ask for the next page while results are missing."""
        limit = MAX_SITE_RESULTS if filters.domains.given else hit_limit(request)
        body = {
            "query": shorten_query(request.text, 1_500),
            "pageSize": max(1, min(limit, MAX_SITE_RESULTS)),
            "contentSearchSpec": {"snippetSpec": {"returnSnippet": True}},
        }
        results: list[Any] = []
        for _ in range(MAX_PAGES):
            answer = await self.call(body)
            if any(name in answer for name in ANSWER_FIELDS):
                answer.setdefault("results", [])  # missing if nothing was found
            page = list_at(answer, "results")
            if page is None:
                raise self.malformed()
            results += page
            token = text_at(answer, "nextPageToken")
            if len(results) >= limit or not page or not token:
                break
            body |= {"pageToken": token}
        return self.respond(request, results, _site_result)

    def make_call(self, parameters: Mapping[str, Any]) -> Any:
        """Return the call of the method that the credentials allow."""
        collection = self.service.projects().locations().collections()
        parts = collection.engines() if "/engines/" in self._app else collection.dataStores()
        configs = parts.servingConfigs()
        method = configs.searchLite if self._credentials is None else configs.search
        return method(servingConfig=f"{self._app}/servingConfigs/{SERVING_CONFIG}", body=dict(parameters))

    def authorize(self, new_http: Callable[[], httplib2.Http]) -> Mapping[str, str]:
        """Return the key, or a token of the service account, which Google gives for an hour."""
        if self._credentials is None:
            return self.headers
        with self._lock:
            if not self._credentials.valid:
                http = new_http()
                try:
                    self._credentials.refresh(google_auth_httplib2.Request(http))
                except GoogleAuthError as error:
                    if error.retryable or isinstance(error.__cause__, OSError):
                        raise self.unavailable("its service of tokens is not available") from None
                    raise NotConfigured(
                        f"{self.declaration.label} refuses the service account: see {self.declaration.key_alternative}"
                    ) from None
                finally:
                    http.close()
            return {"authorization": f"Bearer {self._credentials.token}"}


def _read_account(file: str) -> Any:
    """Return the credentials of a service account's file. Raises `NotConfigured`."""
    try:
        with Path(file).open("rb") as stream:
            account = json.loads(stream.read(MAX_CREDENTIALS_BYTES))
        return service_account.Credentials.from_service_account_info(account, scopes=SCOPES)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TypeError, AttributeError, RecursionError, GoogleAuthError):
        reason = "GOOGLE_APPLICATION_CREDENTIALS names no file with the key of a service account"
        raise NotConfigured(f"{reason}: create one in the console, or set VERTEX_AI_SEARCH_API_KEY") from None


def _site_result(result: dict[str, Any]) -> RawResult:
    """Read a result: a page as Google has found it, with the snippet where it made one."""
    found = result.get("document")
    page = found.get("derivedStructData") if isinstance(found, dict) else None
    snippets = list_at(page, "snippets") or ()
    shown = [one for one in snippets if text_at(one, "snippet_status") in (None, "SUCCESS", "OK")]
    snippet = next(filter(None, (text_at(one, "snippet") for one in shown)), None)
    return RawResult(text_at(page, "link"), text_at(page, "title"), snippet, _date(page))
