"""Base of the search services: one request limited in time and size, never redirected, with typed errors."""

import json
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2

from contracts.messages import SearchRequest, SearchResponse
from providers.bounded_request import send_once
from providers.certificates import trusted_certificates
from providers.errors import AnswerMalformed, InvalidCall, NotConfigured, ProviderError, RateLimited, Unavailable
from providers.search.declarations import CONTACT_VARIABLE, SearchDeclaration
from providers.search.filters import Filters, filters_of, unmet
from providers.search.hits import RawResult, hits_of
from providers.service_calls import StatusKind, classify, retry_after_seconds

ANSWER_SECONDS: Final = 10.0  # a slower search fails, and the run tries its next provider
MAX_ANSWER_BYTES: Final = 8_000_000  # per answer, unpacked: enough for 10,000 results
MAX_CONNECTIONS: Final = 50
MALFORMED: Final = "the answer is cut or not of the documented form"
QUOTA: Final = re.compile(r"quota|rate.?limit|daily.?limit|limit exceeded|resource_exhausted|too many requests")
BAD_KEY: Final = re.compile(
    r"api key (?:not valid|expired|invalid)|api_key_invalid|keyinvalid|subscription_token|credit balance"
    r"|not enough credits"
)


def web_client(user_agent: str) -> httpx2.AsyncClient:
    """Open the connections shared by all search services, independent of the environment."""
    # Below this level the libraries log whole URLs, and with them a person's searches.
    for library in ("httpx2", "httpcore2", "httpx", "httpcore", "googleapiclient", "semanticscholar"):
        logging.getLogger(library).setLevel(logging.WARNING)
    return httpx2.AsyncClient(
        trust_env=False,
        follow_redirects=False,
        headers={"user-agent": user_agent, "accept": "application/json", "accept-encoding": "gzip"},
        limits=httpx2.Limits(max_connections=MAX_CONNECTIONS),
        verify=trusted_certificates(),
    )


class WebSearch(ABC):
    """Base of the providers: a service at its address, with its key in a header so that no URL contains it.

    Of a service that takes it only as a parameter, the key is in `key_fields`, which `fetch` sends; no error and no log
    has a URL.

    `instance` distinguishes, for the cache, services of one name at several addresses.
    """

    answer_seconds = ANSWER_SECONDS

    def __init__(self, client: httpx2.AsyncClient, declaration: SearchDeclaration, values: Mapping[str, str]) -> None:
        """Take the declared variables by name. Raises `NotConfigured` for a missing or malformed one."""
        if problem := declaration.problem(values):
            raise NotConfigured(f"{declaration.label}: {problem}")
        self.name = declaration.name
        self.declaration = declaration
        self.values = values
        self.address = declaration.address_in(values).rstrip("/")
        parts = urlsplit(self.address)
        without_user = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        self.instance = " ".join([without_user, *map(values.__getitem__, declaration.other_variables)])
        bearer = "Bearer " if declaration.key_header == "authorization" else ""
        key = values.get(declaration.key_variable)
        self.headers: dict[str, str] = {}
        self.key_fields: dict[str, str] = {}
        if key and declaration.key_parameter:
            self.key_fields[declaration.key_parameter] = key
        elif key:
            self.headers[declaration.key_header] = bearer + key
        contact = values.get(CONTACT_VARIABLE, "").removeprefix("mailto:")
        self.contact = contact if "@" in contact else ""
        """The operator's mail address, for services that ask for one; empty without."""
        self.client = client

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Return hits in rank order. Raises `RateLimited`, `Unavailable`, `NotConfigured` or `InvalidCall`."""
        return await self.find(request, filters_of(request))

    @abstractmethod
    async def find(self, request: SearchRequest, filters: Filters) -> SearchResponse:
        """Make one search request; no hits is an answer, a failure is raised."""

    async def get(self, path: str, parameters: Mapping[str, str | int]) -> dict[str, Any]:
        """Send a GET and read its JSON object. Raises as `fetch` does."""
        return await self.fetch("GET", self.address + path, params=parameters)

    async def fetch(self, method: str, url: str, **sent: Any) -> dict[str, Any]:
        """Send exactly one request; return the JSON object of an answer with status 200. Raises as `search` does."""
        body = await self.fetch_bytes(method, url, **sent)
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            raise self.malformed() from None
        if not isinstance(answer, dict):
            raise self.malformed()
        return answer

    async def fetch_bytes(self, method: str, url: str, **sent: Any) -> bytes:
        """Send exactly one request, with the key; return the body of an answer with status 200. Raises as `fetch`."""
        if self.key_fields:
            place = "data" if "data" in sent else "params"
            sent[place] = {**sent.get(place, {}), **self.key_fields}
        try:
            answer = await send_once(
                self.client,
                method,
                url,
                seconds=self.answer_seconds,
                max_bytes=MAX_ANSWER_BYTES,
                headers=self.headers,
                service=self.name,
                **sent,
            )
        except httpx2.InvalidURL:
            variable = self.declaration.address_variable
            raise NotConfigured(f"{variable} is no usable address: write it as https://HOST:PORT") from None
        if answer.is_refused:  # even if its body is unusable
            raise self.error(answer.status, answer.headers, answer.body)
        if answer.failure:
            raise self.unavailable(answer.failure)
        return answer.body

    def respond(
        self,
        request: SearchRequest,
        results: Sequence[Any] | None,
        read: Callable[[dict[str, Any]], RawResult],
        warnings: Sequence[str] = (),
    ) -> SearchResponse:
        """Return the response; its cost is unknown if it depends on a plan.

        `results` are the service's own. One without an address takes up its rank and gives no hit. Raises `Unavailable`
        if none has one. `warnings` are those that only the provider can give.
        """
        if results is None:
            raise self.malformed("it has no list of results")
        raw_results = [read(result) if isinstance(result, dict) else None for result in results]
        if raw_results and not any(result and result.url for result in raw_results):
            raise self.malformed(f"none of its {len(raw_results)} results has an address")
        return SearchResponse(
            provider=self.name,
            hits=hits_of(request, self.name, raw_results),
            cost_usd=None if self.declaration.paid else 0.0,
            warnings=[*unmet(request, self.declaration), *warnings],
        )

    def malformed(self, why: str = "") -> AnswerMalformed:
        """Return the error for an answer that came, but not in the documented form."""
        place = self.declaration.address_variable or "its page"
        reason = f"{MALFORMED}: {why}" if why else MALFORMED
        return AnswerMalformed(f"{self.declaration.label}: {reason} (see {place})")

    def unavailable(self, reason: str) -> Unavailable:
        """Return the error for an answer that did not arrive, or is not as documented."""
        return Unavailable(f"{self.declaration.label}: {reason}")

    def error(self, status: int, headers: Iterable[tuple[str, str]], explanation: bytes) -> ProviderError:
        """Return the error for a status; the explanation is read but never passed on."""
        service = self.declaration
        wait = retry_after_seconds(list(headers))
        reason = explanation[:4_000].decode("utf-8", "replace").lower()
        kind = classify(status)
        # 432 and 433: Tavily's plan, or its pay-as-you-go limit, is used up.
        if kind is StatusKind.BUSY or status in {432, 433} or (status == 403 and QUOTA.search(reason)):
            return RateLimited(f"{service.label} asks to wait, or its quota is used up ({status})", retry_after=wait)
        if kind in (StatusKind.UNAVAILABLE, StatusKind.DONE):
            return Unavailable(f"{service.label} is not available ({status})", retry_after=wait)
        hint = service.refused_hint or f"see {service.address_variable}"
        if kind is StatusKind.DENIED or (status in {400, 422} and BAD_KEY.search(reason)):
            remedy = f"see {service.key_variable}" if service.key_variable else hint
            return NotConfigured(f"{service.label} refuses the key, the account or this client ({status}): {remedy}")
        if kind in (StatusKind.MOVED, StatusKind.UNKNOWN_ADDRESS):
            return NotConfigured(f"{service.label} is not at this address ({status}): {hint}")
        return InvalidCall(f"{service.label} refuses the search ({status}): {hint}")
