"""One loopback server in the place of the search services, each under a path of its own, and their real clients."""

import asyncio
import gzip
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from contracts.messages import SearchRequest, SearchResponse
from providers.interfaces import SearchProvider
from providers.models.endpoints import PriceTable
from providers.search.anthropic_search import AnthropicSearch
from providers.search.declarations import search_declaration
from providers.search.web_api import WebSearch, web_client
from tests.fakes.loopback import HttpRequest, LoopbackServer, reset, response
from tests.fakes.search_answers import (
    ACCOUNT_TOKEN,
    APP,
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
    "good", "empty", "401", "403", "403_quota", "404", "408", "429", "503", "html", "cut", "trickle",
    "never", "reset", "reset_after_headers", "wrong_shape", "list", "deep", "not_json", "redirect", "bomb",
    "oversized", "stalled",
)  # fmt: skip


@cache
def bomb() -> bytes:
    """A small answer that becomes 60 MB; it is packed once for all tests."""
    return gzip.compress(b"[" + b" " * 60_000_000 + b"]", 1)


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
        status: int = 200,
    ) -> None:
        """`headers` and `status` come with every answer; `answer` replaces the service's own good one."""
        super().__init__()
        if scenario not in SCENARIOS:
            raise ValueError(f"no scenario {scenario}")
        self.scenario = scenario
        self.items = items(results) if isinstance(results, int) else list(results)
        self.headers = [*headers, *([("location", location)] if scenario == "redirect" else [])]
        self.answer = answer
        self.status = status
        self.asked: list[Asked] = []

    def url(self, provider: str) -> str:
        return f"{self.base_url}/{provider}"

    async def serve(self, request: HttpRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection may carry another."""
        method, headers, body = request.method, request.headers, request.body
        parts = urlsplit(request.target)
        provider, _, path = parts.path.lstrip("/").partition("/")
        parameters = dict(parse_qsl(parts.query, keep_blank_values=True))
        if headers.get("x-http-method-override"):
            method, parameters, body = headers["x-http-method-override"], dict(parse_qsl(body.decode())), b""
        if path == "token":
            return await self._give_token(provider, headers, body, writer)
        if headers.get("content-type", "").startswith("application/x-www-form-urlencoded") and body:
            parameters, body = dict(parse_qsl(body.decode(), keep_blank_values=True)), b""
        asked = Asked(provider, method, f"/{path}", parameters, headers, json.loads(body) if body else {})
        self.asked.append(asked)
        if provider not in PROVIDERS or not re.fullmatch(PATHS[provider], f"{method} {asked.path}"):
            return await self._send(writer, 404, "text/html", b"<html>no such route</html>")
        refusal = refused(asked)
        if refusal is None and self.scenario[:3].isdecimal():
            reasons = {"403_quota": "dailyLimitExceeded: quota", "429": "RATE_LIMITED", "403": "forbidden"}
            refusal = error(asked, int(self.scenario[:3]), reasons.get(self.scenario, "internal"))
        if refusal is not None:
            return await self._send(writer, refusal[0], *encoded(refusal[1]))
        if self.scenario == "reset":
            reset(writer)
            return False
        if self.scenario == "never":
            await reader.read()  # until the client hangs up
            return False
        return await self._send(writer, 302 if self.scenario == "redirect" else self.status, *self._body(asked))

    async def _give_token(
        self, provider: str, headers: Mapping[str, str], body: bytes, writer: asyncio.StreamWriter
    ) -> bool:
        """Exchange the signed statement of a service account for a token, as Google's service of tokens does."""
        sent = dict(parse_qsl(body.decode()))
        self.asked.append(Asked(provider, "POST", "/token", sent, headers, {}))
        if self.scenario == "401" or not sent.get("assertion"):
            refusal = {"error": "invalid_grant", "error_description": "Invalid JWT Signature."}
            return await self._send(writer, 400, *encoded(refusal))
        return await self._send(writer, 200, *encoded({"access_token": ACCOUNT_TOKEN, "expires_in": 3_599}))

    def _body(self, asked: Asked) -> tuple[str, bytes]:
        if self.scenario == "html":
            return "text/html", b"<!doctype html><title>Just a moment</title>"
        special: dict[str, Callable[[], bytes]] = {
            "wrong_shape": lambda: b'{"unexpected": true}',
            "list": lambda: b"[1, 2]",
            "deep": lambda: b"[" * 200_000,
            "not_json": lambda: b"nothing found",
            "bomb": bomb,
            "oversized": lambda: b"[" + b" " * 9_000_000 + b"]",
        }
        if self.scenario in special:
            return "application/json", special[self.scenario]()
        things = [] if self.scenario == "empty" else self.items
        return encoded(found(asked, things) if self.answer is None else self.answer)

    async def _send(self, writer: asyncio.StreamWriter, status: int, kind: str, body: bytes) -> bool:
        """Hand an answer to the connection in the way of the scenario; whether the connection may carry another."""
        packed = {"content-encoding": "gzip"} if self.scenario == "bomb" else {}
        given = {"content-type": kind, "content-length": str(len(body)), **dict(self.headers), **packed}
        writer.write(response(status, b"", given))
        await writer.drain()
        if self.scenario == "reset_after_headers":
            reset(writer)
            return False
        if self.scenario == "stalled":
            await asyncio.Event().wait()
        if self.scenario == "trickle":
            for byte in body:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(TRICKLE_SECONDS)
            return True
        writer.write(body[: len(body) // 2] if self.scenario == "cut" else body)
        await writer.drain()
        if self.scenario == "cut":
            writer.close()
        return self.scenario != "cut"


QUESTION = "how are backups made?"


@asynccontextmanager
async def open_provider(
    name: str, base_url: str, seconds: float = 10.0, **values: str | None
) -> AsyncIterator[SearchProvider]:
    """The real client of a service with its planted key; `values` replaces variables, None takes one away."""
    declaration = search_declaration(name)
    given = {
        "GOOGLE_CSE_ID": CSE_ID,
        "VERTEX_AI_SEARCH_APP": APP,
        "RESEARCH_MODEL": MODEL,
        declaration.key_variable: KEYS.get(name),
    }
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


def asking(name: str, text: str = QUESTION, *, max_results: int = 10, **narrowed: Any) -> SearchRequest:
    """A request as the gatherer makes it; `narrowed` are its fields for types, domains, language and days."""
    return SearchRequest(
        permitted=True,
        research_id="r-1",
        operation=f"search/sq-1/{name}",
        provider=name,
        text=text,
        max_results=max_results,
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
