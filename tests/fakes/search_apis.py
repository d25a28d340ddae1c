"""One loopback server in the place of seven search services, each under a path of its own.

`python -m tests.fakes.search_apis --scenario good` prints the address of each service as one line of JSON.
"""

import argparse
import asyncio
import gzip
import json
import re
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from contracts.messages import SearchRequest, SearchResponse
from providers.interfaces import SearchProvider
from providers.models.prices import PriceTable
from providers.search.anthropic_search import AnthropicSearch
from providers.search.declarations import search_declaration
from providers.search.web_api import WebSearch, web_client
from tests.fakes.loopback import HttpRequest, LoopbackServer, reset
from tests.fakes.permissions import PERMITTED
from tests.fakes.search_answers import (
    CSE_ID,
    KEYS,
    MODEL,
    PATHS,
    PROVIDERS,
    Asked,
    Item,
    encoded,
    error,
    found,
    items,
    refused,
)

TRICKLE_SECONDS = 0.02
SCENARIOS = (
    "good", "empty", "401", "403", "403_quota", "408", "429", "500", "503", "html", "cut", "huge", "trickle", "never",
    "reset", "reset_after_headers", "wrong_shape", "list", "deep", "not_json", "redirect", "gzip", "bomb", "oversized",
    "brotli", "surrogate", "404", "unforced", "401_slow", "429_slow",
)  # fmt: skip
STATUSES = {"401": 401, "403": 403, "403_quota": 403, "404": 404, "408": 408, "429": 429, "500": 500, "503": 503}
SLOW = {"401_slow": 401, "429_slow": 429}
"""The status comes, and what explains it never does."""
REASONS = {"403_quota": "dailyLimitExceeded: quota", "429": "RATE_LIMITED", "403": "forbidden"}


class SearchApis(LoopbackServer):
    """The services: `url(provider)`, `asked`."""

    def __init__(
        self,
        scenario: str = "good",
        *,
        results: Sequence[Item] | int = 30,
        headers: Sequence[tuple[str, str]] = (),
        answer: Any = None,
        location: str = "http://elsewhere.invalid/",
        port: int = 0,
    ) -> None:
        """`headers` come with every answer; `answer` replaces the service's own good one."""
        super().__init__(port=port)
        if scenario not in SCENARIOS:
            raise ValueError(f"no scenario {scenario}")
        self.scenario = scenario
        self.items = items(results) if isinstance(results, int) else list(results)
        self.headers = list(headers)
        self.answer = answer
        self.location = location
        self.asked: list[Asked] = []
        self.waiting = asyncio.Event()
        """Set once a request waits for an answer that never comes."""

    def url(self, provider: str) -> str:
        """What a client of this service is given as its address."""
        return f"{self.base_url}/{provider}"

    async def serve(self, request: HttpRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection may carry another."""
        method, headers, body = request.method, request.headers, request.body
        parts = urlsplit(request.target)
        provider, _, path = parts.path.lstrip("/").partition("/")
        parameters = dict(parse_qsl(parts.query, keep_blank_values=True))
        if headers.get("x-http-method-override"):
            method, parameters, body = headers["x-http-method-override"], dict(parse_qsl(body.decode())), b""
        asked = Asked(provider, method, f"/{path}", parameters, headers, json.loads(body) if body else {})
        self.asked.append(asked)
        if provider not in PROVIDERS or not re.fullmatch(PATHS[provider], f"{method} {asked.path}"):
            return await _send(writer, 404, "text/html", b"<html>no such route</html>", [])
        return await self._answer(asked, reader, writer)

    async def _answer(self, asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        refusal = refused(asked)
        if refusal is not None:
            return await _send(writer, refusal[0], *encoded(refusal[1]), self.headers)
        if self.scenario in STATUSES:
            status, said = error(asked, STATUSES[self.scenario], REASONS.get(self.scenario, "internal"))
            return await _send(writer, status, *encoded(said), self.headers)
        if self.scenario in SLOW:
            _head(writer, SLOW[self.scenario], "application/json", 5_000, self.headers)
            await writer.drain()
            await reader.read()  # until the client hangs up
            return False
        if self.scenario == "unforced" and asked.body["tool_choice"]["type"] == "tool":
            said = error(asked, 400, "Thinking may not be enabled when tool_choice forces tool use.")
            return await _send(writer, said[0], *encoded(said[1]), self.headers)
        if self.scenario == "redirect":
            return await _send(writer, 302, "text/html", b"", [*self.headers, ("location", self.location)])
        if self.scenario == "never":
            self.waiting.set()
            await reader.read()  # until the client hangs up
            return False
        if self.scenario == "reset":
            reset(writer)
            return False
        kind, body = self._body(asked)
        packing = {"gzip": "gzip", "bomb": "gzip", "brotli": "br"}.get(self.scenario)
        extra = [*self.headers, *([("content-encoding", packing)] if packing else [])]
        deliver = {"cut": _cut, "trickle": _trickle, "reset_after_headers": _reset_after_headers}
        return await deliver.get(self.scenario, _send)(writer, 200, kind, body, extra)

    def _body(self, asked: Asked) -> tuple[str, bytes]:
        if self.scenario == "html":
            return "text/html", b"<!doctype html><title>Just a moment</title>"
        special: dict[str, Callable[[], bytes]] = {
            "wrong_shape": lambda: b'{"unexpected": true}',
            "list": lambda: b"[1, 2]",
            "deep": lambda: b"[" * 200_000,
            "not_json": lambda: b"nothing found",
            "bomb": _bomb,
            "oversized": lambda: b"[" + b" " * 9_000_000 + b"]",
        }
        if self.scenario in special:
            return "application/json", special[self.scenario]()
        things = [] if self.scenario == "empty" else items(10_000) if self.scenario == "huge" else self.items
        good = found(asked, things, ignore_limits=self.scenario == "huge") if self.answer is None else self.answer
        kind, body = encoded(good)
        if self.scenario == "surrogate":
            body = body.replace(b"About", b"Cut \\ud83d \\ud83d\\ude00 \\\\ud83d")
        return kind, gzip.compress(body) if self.scenario == "gzip" else body


@cache
def _bomb() -> bytes:
    """A small body that unpacks to 60 MB."""
    return gzip.compress(b"[" + b" " * 60_000_000 + b"]", 1)


async def _send(
    writer: asyncio.StreamWriter, status: int, kind: str, body: bytes, headers: Sequence[tuple[str, str]]
) -> bool:
    _head(writer, status, kind, len(body), headers)
    writer.write(body)
    await writer.drain()
    return True


async def _cut(
    writer: asyncio.StreamWriter, status: int, kind: str, body: bytes, headers: Sequence[tuple[str, str]]
) -> bool:
    _head(writer, status, kind, len(body), headers)
    writer.write(body[: len(body) // 2])
    await writer.drain()
    writer.close()
    return False


async def _trickle(
    writer: asyncio.StreamWriter, status: int, kind: str, body: bytes, headers: Sequence[tuple[str, str]]
) -> bool:
    _head(writer, status, kind, len(body), headers)
    for byte in body:
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(TRICKLE_SECONDS)
    return True


async def _reset_after_headers(
    writer: asyncio.StreamWriter, status: int, kind: str, body: bytes, headers: Sequence[tuple[str, str]]
) -> bool:
    _head(writer, status, kind, len(body), headers)
    await writer.drain()
    reset(writer)
    return False


def _head(
    writer: asyncio.StreamWriter, status: int, kind: str, length: int, headers: Sequence[tuple[str, str]]
) -> None:
    given = [("content-type", kind), ("content-length", str(length)), *headers]
    lines = [f"HTTP/1.1 {status} Fake", *(f"{name}: {value}" for name, value in given), "", ""]
    writer.write("\r\n".join(lines).encode("utf-8"))


QUESTION = "how are backups made?"


@asynccontextmanager
async def open_provider(
    name: str, base_url: str, seconds: float = 10.0, **values: str | None
) -> AsyncIterator[SearchProvider]:
    """The real client of a service with its planted key; `values` replaces variables, None takes one away."""
    declaration = search_declaration(name)
    given = {"GOOGLE_CSE_ID": CSE_ID, "RESEARCH_MODEL": MODEL, declaration.key_variable: KEYS.get(name)}
    given |= {declaration.address_variable: base_url, **values}
    variables = {variable: value for variable, value in given.items() if value is not None}
    async with web_client("durable-research/test") as client:
        if name == "anthropic":
            provider: SearchProvider = AnthropicSearch(client, declaration, variables, PriceTable())
        else:
            provider = declaration.open(client, variables)
        assert isinstance(provider, WebSearch)
        provider.answer_seconds = seconds
        yield provider


def asking(
    name: str, text: str = QUESTION, *, max_results: int = 10, offset: int = 0, **narrowed: Any
) -> SearchRequest:
    """A request as the gatherer makes it; `narrowed` are its fields for types, domains, language and days."""
    return SearchRequest(
        permission=PERMITTED,
        research_id="r-1",
        operation=f"search/sq-1/{name}",
        provider=name,
        text=text,
        max_results=max_results,
        offset=offset,
        **narrowed,
    )


async def search(
    name: str,
    server: SearchApis,
    text: str = QUESTION,
    *,
    seconds: float = 10.0,
    values: dict[str, str | None] | None = None,
    **given: Any,
) -> SearchResponse:
    """One search by the real client."""
    async with open_provider(name, server.url(name), seconds, **(values or {})) as provider:
        return await provider.search(asking(name, text, **given))


async def _main() -> None:
    parser = argparse.ArgumentParser(description="Fake search services on the loopback interface.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--scenario", default="good", choices=SCENARIOS)
    given = parser.parse_args()
    async with SearchApis(given.scenario, port=given.port) as server:
        sys.stdout.write(json.dumps({name: server.url(name) for name in PROVIDERS}) + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main())
