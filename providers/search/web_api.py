"""HTTP of the search services: one request limited in time and size, never redirected, and errors by their kind."""

import asyncio
import json
import logging
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Annotated, Any, Final, TypeVar
from urllib.parse import urlsplit

import httpx2
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from providers.certificates import trusted_certificates
from providers.credentials import ensure_confidential, ensure_key
from providers.errors import InvalidCall, NotConfigured, ProviderError, RateLimited, Unavailable
from providers.retry_after import retry_after_seconds
from providers.search.declarations import SearchDeclaration

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


def _records(value: object, validated: ValidatorFunctionWrapHandler) -> Any:
    if not isinstance(value, list):
        return validated(value)
    records: list[Any] = []
    for item in value:
        try:
            records += validated([item])
        except ValidationError:
            records.append(None)
    if records and all(record is None for record in records):
        raise ValueError("no record is of the documented form")
    return records


Answer = TypeVar("Answer", bound=Wire)
Record = TypeVar("Record", bound=Wire)

Detail = Annotated[str | None, BeforeValidator(lambda value: value if isinstance(value, str) else None)]
"""An optional text of a result; a value of another type is dropped, not the whole result."""
Details = Annotated[
    list[str],
    BeforeValidator(lambda value: [v for v in value if isinstance(v, str)] if isinstance(value, list) else []),
]
Facts = Annotated[dict[str, Any], BeforeValidator(lambda value: value if isinstance(value, dict) else {})]
Records = Annotated[list[Record | None], WrapValidator(_records)]
"""Results in their order. A malformed one is None, so that the ranks of the others stay; if all are, the answer is."""


def web_client(user_agent: str) -> httpx2.AsyncClient:
    """The connections that all search services share; nothing of the environment changes them."""
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

    `instance` tells apart services of one name at several addresses, for the cache.
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
        self.instance = " ".join([without_user(self.address), *map(values.__getitem__, declaration.other_variables)])
        self.key = values.get(declaration.key_variable)
        bearer = "Bearer " if declaration.key_header == "authorization" else ""
        self.headers = {declaration.key_header: bearer + self.key} if self.key else {}
        self._client = client

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
                self._client.stream(method, url, headers=self.headers, timeout=waiting, **sent) as response,
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
        """The error that a status stands for; the explanation is looked at and never passed on."""
        service, given = self.declaration, list(headers)
        said = explanation[:4_000].decode("utf-8", "replace").lower()
        hint = f": {service.refused_hint}" if service.refused_hint else ""
        # 432 and 433: Tavily's plan, or its limit of paying as one goes, is used up.
        if status in {429, 432, 433} or (status == 403 and QUOTA.search(said)):
            wait = retry_after_seconds(given)
            return RateLimited(f"{service.label} asks to wait, or its quota is used up ({status})", retry_after=wait)
        if status in {408, 409, 425, 499} or status >= 500 or status < 300:
            return Unavailable(f"{service.label} is not available ({status})", retry_after=retry_after_seconds(given))
        if status < 400:
            variable = service.address_variable
            return NotConfigured(f"{service.label} has moved ({status}): set {variable} to its new address")
        if status in {401, 403} or (status in {400, 422} and BAD_KEY.search(said)):
            remedy = (
                f": set {service.key_variable}" if service.key_variable else hint or f": {service.address_variable}"
            )
            return NotConfigured(f"{service.label} refuses the credentials or this client ({status}){remedy}")
        if status == 402 or (status == 400 and "credit balance" in said):
            account = service.key_variable or service.label
            return NotConfigured(f"the account behind {account} cannot pay for it ({status})")
        if status in {404, 405}:
            hint = hint or f": see {service.address_variable}"
            message = f"{service.label} has nothing at this address ({status}){hint}"
            return InvalidCall(message, kind="unknown_address")
        forced = status in {400, 422} and "tool_choice" in said
        kind = "unsupported_parameter" if forced else "refused"
        return InvalidCall(f"{service.label} refuses the search ({status}){hint}", kind=kind)


def check_values(declaration: SearchDeclaration, values: Mapping[str, str]) -> None:
    """Raise `NotConfigured`, which names the variable and never the value, for a key or an address that is none."""
    key, given = values.get(declaration.key_variable), values.get(declaration.address_variable)
    variable = declaration.address_variable
    address = given or declaration.address
    if key:
        ensure_key(key, declaration.key_variable)
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
        ensure_confidential(key, address, variable, declaration.key_variable)


def without_user(address: str) -> str:
    """The same address without the user and the password that may be in it."""
    scheme, _, rest = address.partition("://")
    place, slash, path = rest.partition("/")
    return f"{scheme}://{place.rpartition('@')[2]}{slash}{path}"
