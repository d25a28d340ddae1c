"""HTTP of the search services: requests limited in time and size, sent once, never redirected, with typed errors."""

import asyncio
import logging
import re
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Annotated, Any, ClassVar, Final, TypeVar

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
from providers.errors import NotConfigured, ProviderError, Unavailable
from providers.search.service import Service, ensure_address, error_for_status, without_user

ANSWER_SECONDS: Final = 20.0
CONNECT_SECONDS: Final = 5.0
MOST_BYTES: Final = 8_000_000
"""Of an answer, unpacked: 10,000 results fit in."""
MOST_ERROR_BYTES: Final = 64_000
MOST_CONNECTIONS: Final = 50
EXPLAINED_SECONDS: Final = 2.0
"""So long an error may take to say more than its status does."""
GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS

SURROGATE_ESCAPE: Final = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)
"""Pairs and other escapes are stepped over; only a lone half is caught as a group."""


class Wire(BaseModel):
    """A part of a service's answer: what we use is checked, the rest is ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", from_attributes=True)


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _facts(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


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

Detail = Annotated[str | None, BeforeValidator(_text_or_none)]
"""What is good to know of a result: of another type than documented it is left out, not the whole answer."""
Details = Annotated[list[str], BeforeValidator(_texts)]
Facts = Annotated[dict[str, Any], BeforeValidator(_facts)]
Records = Annotated[list[Record | None], WrapValidator(_records)]
"""Results: one that is not of the documented form is None, so that the others keep their places. If that is every one
of them, the answer is none."""


def web_client(user_agent: str) -> httpx2.AsyncClient:
    """The connections that all search services share: no proxies or certificates from the environment."""
    # Below this level the libraries log whole URLs, and with them what a person searches for.
    for library in ("httpx2", "httpcore2", "googleapiclient", "semanticscholar", "anthropic"):
        logging.getLogger(library).setLevel(logging.WARNING)
    return httpx2.AsyncClient(
        trust_env=False,
        follow_redirects=False,
        headers={"user-agent": user_agent, "accept": "application/json", "accept-encoding": "gzip"},
        limits=httpx2.Limits(max_connections=MOST_CONNECTIONS),
        verify=trusted_certificates(),
    )


class WebApi:
    """A service at its address, with its credentials."""

    def __init__(
        self,
        client: httpx2.AsyncClient,
        service: Service,
        base_url: str,
        *,
        headers: Mapping[str, str] | None = None,
        timeout_seconds: float = ANSWER_SECONDS,
    ) -> None:
        """`headers` are credentials. Raises `NotConfigured` for an address or a key that cannot be one, and for a key
        that would be sent in clear.
        """
        ensure_address(base_url, service.address_variable)
        self._headers = dict(headers or {})
        for value in self._headers.values():
            key, variable = value.removeprefix("Bearer "), service.key_variable or service.label
            ensure_key(key, variable)
            ensure_confidential(key, base_url, service.address_variable, variable)
        self._client = client
        self._timeout_seconds = timeout_seconds
        self.service = service
        self.base_url = base_url.rstrip("/")

    async def get(self, answer: type[Answer], path: str, parameters: Mapping[str, str | int]) -> Answer:
        """Ask by GET. Raises what `fetch` does."""
        return self.parse(answer, await self.fetch("GET", self.base_url + path, params=parameters))

    async def post(self, answer: type[Answer], path: str, body: Mapping[str, Any]) -> Answer:
        """Ask by POST with a JSON body. Raises what `fetch` does."""
        return self.parse(answer, await self.fetch("POST", self.base_url + path, json=body))

    async def fetch(self, method: str, url: str, *, headers: Mapping[str, str] | None = None, **sent: Any) -> bytes:
        """The body of a good answer, sent for exactly once.

        Raises `RateLimited`, `Unavailable`, `NotConfigured` or `InvalidCall`.
        """
        seconds, label = self._timeout_seconds, self.service.label
        try:
            # Timeouts of the transport count silence; a body that trickles needs a limit on the whole.
            async with asyncio.timeout(seconds) as limit:
                return await self._exchange(method, url, {**(headers or {}), **self._headers}, sent, limit)
        except (TimeoutError, httpx2.TimeoutException):
            raise Unavailable(f"{label} gave no answer in {seconds:g} s") from None
        except httpx2.InvalidURL:
            raise NotConfigured(f"{self.service.address_variable} is no usable address") from None
        except (httpx2.HTTPError, zlib.error) as error:
            raise Unavailable(f"{label}: the connection failed ({type(error).__name__})") from None

    def parse(self, answer: type[Answer], body: bytes) -> Answer:
        """A body as what it should be. Raises `Unavailable`."""
        try:
            return answer.model_validate_json(body)
        except ValidationError:
            raise self.unexpected() from None

    def unexpected(self) -> Unavailable:
        """The error for an answer of another form than documented."""
        return Unavailable(f"{self.service.label}: the answer is cut or not of the documented form")

    async def _exchange(
        self, method: str, url: str, headers: Mapping[str, str], sent: Mapping[str, Any], limit: asyncio.Timeout
    ) -> bytes:
        waiting = httpx2.Timeout(self._timeout_seconds, connect=min(CONNECT_SECONDS, self._timeout_seconds))
        async with self._client.stream(method, url, headers=headers, timeout=waiting, **sent) as response:
            if response.status_code != httpx2.codes.OK:
                limit.reschedule(None)  # the answer is here: from now on the time for its explanation counts
                raise await self._error(response)
            received = bytearray()
            async for piece in self._unpack(response):
                received += piece
                if len(received) > MOST_BYTES:
                    raise Unavailable(f"{self.service.label}: the answer exceeds {MOST_BYTES // 1_000_000} MB")
        if "html" in response.headers.get("content-type", "").lower() or received.lstrip()[:1] == b"<":
            raise Unavailable(f"{self.service.label}: the answer is a web page instead of JSON")
        return _mend(bytes(received))

    async def _error(self, response: httpx2.Response) -> ProviderError:
        """The status decides, even if the body that explains it does not arrive whole, or not in time."""
        said = bytearray()
        with suppress(TimeoutError, httpx2.HTTPError, zlib.error, Unavailable):
            async with asyncio.timeout(min(self._timeout_seconds, EXPLAINED_SECONDS)):
                async for piece in self._unpack(response):
                    said += piece
                    if len(said) > MOST_ERROR_BYTES:
                        break
        return error_for_status(self.service, response.status_code, response.headers.multi_items(), bytes(said))

    async def _unpack(self, response: httpx2.Response) -> AsyncIterator[bytes]:
        """The body in pieces of limited size, however well it was packed."""
        packing = response.headers.get("content-encoding", "identity").lower()
        if packing not in {"identity", "gzip"}:
            raise Unavailable(f"{self.service.label}: the answer is packed in a way that was not asked for")
        unpacker = zlib.decompressobj(GZIP_WINDOW) if packing == "gzip" else None
        async for piece in response.aiter_raw():
            yield piece if unpacker is None else unpacker.decompress(piece, MOST_BYTES + 1)


class WebSearch:
    """What providers over a `WebApi` share; `instance` tells apart providers of one name at several addresses."""

    service: ClassVar[Service]

    def __init__(
        self,
        client: httpx2.AsyncClient,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout_seconds: float = ANSWER_SECONDS,
        variant: str = "",
    ) -> None:
        """The key travels in a header, so that no URL holds it; `variant` is an engine or a model at the address.

        Raises `NotConfigured`.
        """
        scheme = "Bearer " if self.service.key_header == "authorization" else ""
        headers = {} if api_key is None else {self.service.key_header: scheme + api_key}
        address = self.service.address if base_url is None else base_url
        self._api = WebApi(client, self.service, address, headers=headers, timeout_seconds=timeout_seconds)
        self.address = self._api.base_url
        self.instance = f"{without_user(self.address)} {variant}".rstrip()


def _mend(body: bytes) -> bytes:
    """JSON whose lone halves of surrogate pairs, as a snippet cut within a character leaves them, are replaced."""
    if b"\\ud" not in body and b"\\uD" not in body:
        return body
    return SURROGATE_ESCAPE.sub(lambda found: b"\\ufffd" if found.group(1) else found.group(), body)
