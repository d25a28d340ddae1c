"""Base of the search services: one request limited in time and size, never redirected, and errors by their kind."""

import asyncio
import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import httpx2
from pydantic import (
    BaseModel,
    ConfigDict,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
)

from contracts.messages import SearchRequest, SearchResponse
from providers.certificates import trusted_certificates
from providers.credentials import ensure_confidential, ensure_key
from providers.errors import InvalidCall, NotConfigured, ProviderError, RateLimited, Unavailable
from providers.retry_after import retry_after_seconds
from providers.search.declarations import SearchDeclaration
from providers.search.filters import unmet
from providers.search.hits import RawResult, hits_of

ANSWER_SECONDS: Final = 10.0
"""A search that takes longer fails, and the run goes on with its next provider."""
CONNECT_SECONDS: Final = 5.0
EXPLANATION_SECONDS: Final = 2.0
"""Time for the body of an error, after its status has arrived."""
MOST_BYTES: Final = 8_000_000
"""Of one answer, unpacked: 10,000 results fit in."""
MOST_CONNECTIONS: Final = 50
QUOTA: Final = re.compile(r"quota|rate.?limit|daily.?limit|limit exceeded|resource_exhausted|too many requests")
BAD_KEY: Final = re.compile(r"api key (?:not valid|expired)|api_key_invalid|keyinvalid|subscription_token")


class Wire(BaseModel):
    """A part of a service's answer: the declared fields are checked, the rest is ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Record(Wire):
    """One result: a malformed value of an optional field counts as missing."""

    @field_validator("*", mode="wrap")
    @classmethod
    def _tolerate(cls, value: Any, validated: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        field = cls.model_fields[info.field_name or ""]
        try:
            return validated(value)
        except ValidationError:
            if field.is_required():
                raise
            return field.get_default(call_default_factory=True)


Answer = TypeVar("Answer", bound=Wire)
Result = TypeVar("Result", bound=Record)


def web_client(user_agent: str) -> httpx2.AsyncClient:
    """The connections that all search services share, independent of the environment."""
    # Below this level the libraries log whole URLs, and with them what a person searches for.
    for library in ("httpx2", "httpcore2", "httpx", "httpcore", "googleapiclient", "semanticscholar"):
        logging.getLogger(library).setLevel(logging.WARNING)
    return httpx2.AsyncClient(
        trust_env=False,
        follow_redirects=False,
        headers={"user-agent": user_agent, "accept": "application/json", "accept-encoding": "gzip"},
        limits=httpx2.Limits(max_connections=MOST_CONNECTIONS),
        verify=trusted_certificates(),
    )


class WebSearch:
    """Base of the providers: a service at its address, with its key in a header, so that no URL contains it.

    `instance` separates services of one name at several addresses, for the cache.
    """

    answer_seconds = ANSWER_SECONDS

    def __init__(self, client: httpx2.AsyncClient, declaration: SearchDeclaration, values: Mapping[str, str]) -> None:
        """`values` are the declared variables by name. Raises `NotConfigured` for a key or address that is none."""
        missing = [variable for variable in declaration.required_variables if not values.get(variable)]
        if missing:
            raise NotConfigured(f"{declaration.label} needs {' and '.join(missing)}")
        check_values(declaration, values)
        self.name = declaration.name
        self.declaration = declaration
        self.values = values
        self.address = (values.get(declaration.address_variable) or declaration.address).rstrip("/")
        scheme, _, rest = self.address.partition("://")
        place, slash, path = rest.partition("/")
        without_user = f"{scheme}://{place.rpartition('@')[2]}{slash}{path}"
        self.instance = " ".join([without_user, *map(values.__getitem__, declaration.other_variables)])
        bearer = "Bearer " if declaration.key_header == "authorization" else ""
        key = values.get(declaration.key_variable)
        self.headers = {declaration.key_header: bearer + key} if key else {}
        self.client = client

    async def get(self, answer: type[Answer], path: str, parameters: Mapping[str, str | int]) -> Answer:
        """Send a GET and read its JSON. Raises what `fetch` does."""
        return self.parse(answer, await self.fetch("GET", self.address + path, params=parameters))

    async def post(self, answer: type[Answer], path: str, body: Mapping[str, Any]) -> Answer:
        """Send a POST with a JSON body and read its JSON. Raises what `fetch` does."""
        return self.parse(answer, await self.fetch("POST", self.address + path, json=body))

    async def fetch(self, method: str, url: str, **sent: Any) -> bytes:
        """Send exactly one request; the body of its answer, which has status 200.

        Raises `RateLimited`, `Unavailable`, `NotConfigured` or `InvalidCall`.
        """
        waiting = httpx2.Timeout(self.answer_seconds, connect=min(CONNECT_SECONDS, self.answer_seconds))
        try:
            # Timeouts of the transport count silence; a body that trickles needs a limit on the whole.
            async with (
                asyncio.timeout(self.answer_seconds) as limit,
                self.client.stream(method, url, headers=self.headers, timeout=waiting, **sent) as response,
            ):
                if response.status_code == httpx2.codes.OK:
                    return await self._body(response)
                limit.reschedule(None)
                said = b""
                with suppress(TimeoutError, httpx2.HTTPError, Unavailable):
                    async with asyncio.timeout(min(EXPLANATION_SECONDS, self.answer_seconds)):
                        said = await self._body(response)
                raise self.error(response.status_code, response.headers.multi_items(), said)
        except (TimeoutError, httpx2.TimeoutException):
            raise self.silent() from None
        except httpx2.InvalidURL:
            raise NotConfigured(f"{self.declaration.address_variable} is no usable address") from None
        except httpx2.HTTPError as error:
            raise self.disconnected(error) from None

    async def _body(self, response: httpx2.Response) -> bytes:
        received = bytearray()
        async for piece in response.aiter_bytes():
            received += piece
            if len(received) > MOST_BYTES:
                raise Unavailable(f"{self.declaration.label}: the answer exceeds {MOST_BYTES // 1_000_000} MB")
        return bytes(received)

    def parse(self, answer: type[Answer], body: bytes) -> Answer:
        """Read a body in its documented form. Raises `Unavailable`."""
        try:
            if b"\\ud" in body.lower():  # half a character, where a snippet was cut: replaced, for JSON has no halves
                body = json.dumps(json.loads(body), ensure_ascii=False).encode("utf-8", "replace")
            return answer.model_validate_json(body)
        except (ValueError, RecursionError):
            raise self.unexpected() from None

    def respond(
        self,
        request: SearchRequest,
        results: Sequence[Any],
        form: type[Result],
        read: Callable[[Result], RawResult],
        *,
        warnings: Sequence[str] = (),
        dates_of_publication: bool = True,
    ) -> SearchResponse:
        """The response, with a cost that is unknown where a plan decides. Raises `Unavailable`.

        `results` are the service's own, from the request's offset on; a malformed one takes its rank and gives no hit,
        and if all are malformed, so is the answer. `warnings` are those that only the provider knows;
        `dates_of_publication` is false where the service's dates are other ones.
        """
        found: list[RawResult | None] = []
        for result in results:
            try:
                found.append(read(form.model_validate(result)))
            except ValidationError:
                found.append(None)
        if found and not any(found):
            raise self.unexpected()
        return SearchResponse(
            provider=self.name,
            hits=hits_of(request, self.name, found, dates_of_publication=dates_of_publication),
            cost_usd=None if self.declaration.paid else 0.0,
            warnings=[*unmet(request, self.declaration), *warnings],
        )

    def unexpected(self) -> Unavailable:
        """The error for an answer of another form than documented."""
        return Unavailable(f"{self.declaration.label}: the answer is cut or not of the documented form")

    def silent(self) -> Unavailable:
        """The error for an answer that did not arrive in time."""
        return Unavailable(f"{self.declaration.label} gave no answer in {self.answer_seconds:g} s")

    def disconnected(self, error: Exception) -> Unavailable:
        """The error for a connection that failed."""
        return Unavailable(f"{self.declaration.label}: the connection failed ({type(error).__name__})")

    def error(self, status: int, headers: Iterable[tuple[str, str]], explanation: bytes = b"") -> ProviderError:
        """The error for a status; the explanation is read and never passed on."""
        service, wait = self.declaration, retry_after_seconds(list(headers))
        said = explanation[:4_000].decode("utf-8", "replace").lower()
        hint = f": {service.refused_hint}" if service.refused_hint else ""
        # 432 and 433: Tavily's plan, or its limit of paying as one goes, is used up.
        if status in {429, 432, 433} or (status == 403 and QUOTA.search(said)):
            return RateLimited(f"{service.label} asks to wait, or its quota is used up ({status})", retry_after=wait)
        if status in {408, 409, 425, 499} or status >= 500 or status < 300:
            return Unavailable(f"{service.label} is not available ({status})", retry_after=wait)
        if status < 400:
            variable = service.address_variable
            return NotConfigured(f"{service.label} has moved ({status}): set {variable} to its new address")
        if status in {401, 403} or (status in {400, 422} and BAD_KEY.search(said)):
            set_key = f": set {service.key_variable}" if service.key_variable else ""
            remedy = set_key or hint or f": {service.address_variable}"
            return NotConfigured(f"{service.label} refuses the credentials or this client ({status}){remedy}")
        if status == 402 or (status == 400 and "credit balance" in said):
            account = service.key_variable or service.label
            return NotConfigured(f"the account behind {account} cannot pay for it ({status})")
        if status in {404, 405}:
            message = (
                f"{service.label} has nothing at this address ({status}){hint or f': see {service.address_variable}'}"
            )
            return InvalidCall(message, kind="unknown_address")
        kind = "unsupported_parameter" if "tool_choice" in said else "refused"
        return InvalidCall(f"{service.label} refuses the search ({status}){hint}", kind=kind)


def check_values(declaration: SearchDeclaration, values: Mapping[str, str]) -> None:
    """Raise `NotConfigured`, which names the variable and never the value, for a key or an address that is none."""
    key, variable = values.get(declaration.key_variable), declaration.address_variable
    address = values.get(variable) or declaration.address
    if not address.startswith(("https://", "http://")):
        raise NotConfigured(f"{variable} must begin with https:// or http://")
    try:
        parts = urlsplit(address)
        usable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise NotConfigured(f"{variable} is no usable address")
    if key:
        ensure_key(key, declaration.key_variable)
        ensure_confidential(key, address, variable, declaration.key_variable)
