"""A loopback server that speaks POST /v1/messages, with a reply for each scenario."""

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from tests.fakes.conversation import Remembered, blocks_of
from tests.fakes.loopback import HttpRequest, LoopbackServer, reset, response
from tests.fakes.model_request import ModelRequest, read_request
from tests.fakes.model_scenarios import Reply, check, error, reply_to, streamed
from tests.fakes.model_tokens import TokenBook

TRICKLE_SECONDS = 0.05
TRICKLE_PIECES = 20
"""One second for a whole body."""


@dataclass
class Call:
    """One request that arrived; `delivered` is false until the whole reply was handed to the connection."""

    number: int
    request_hash: str
    role: str
    model: str
    mode: str
    scenario: str
    started: float
    ended: float | None = None
    status: int | None = None
    delivered: bool = False


@dataclass
class Plan:
    """Which scenario a call gets: the n-th of `sequence`, then by chance from `mix`, then `otherwise`."""

    otherwise: str = "good"
    sequence: Sequence[str] = ()
    mix: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    by_role: Mapping[str, str] = field(default_factory=dict)
    by_model: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in (self.otherwise, *self.sequence, *self.mix, *self.by_role.values(), *self.by_model.values()):
            check(name)

    def scenario(self, number: int, role: str, model: str = "") -> str:
        """The scenario of the call with this number, from 0."""
        if number < len(self.sequence):
            return self.sequence[number]
        if model in self.by_model:
            return self.by_model[model]
        if role in self.by_role:
            return self.by_role[role]
        chance = random.Random(f"{self.seed}/{number}").random()
        for name, share in self.mix.items():
            if chance < share:
                return name
            chance -= share
        return self.otherwise


class MessagesApi(LoopbackServer):
    """The endpoint: `base_url`, `calls`, `requests`, `counts()`."""

    def __init__(
        self,
        scenario: str = "good",
        *,
        plan: Sequence[str] = (),
        mix: Mapping[str, float] | None = None,
        by_role: Mapping[str, str] | None = None,
        by_model: Mapping[str, str] | None = None,
        book: TokenBook | None = None,
        seed: int = 0,
        latency: float = 0.0,
        longest: float = 0.0,
        port: int = 0,
    ) -> None:
        super().__init__(port=port)
        self.plan = Plan(scenario, plan, mix or {}, seed, by_role or {}, by_model or {})
        self.book = book or TokenBook()
        self.latency = latency
        self.longest = longest
        """Longest time before a reply, which is then drawn evenly from `latency` on; 0: each takes `latency`."""
        self.calls: list[Call] = []
        self.requests: list[ModelRequest] = []
        self.headers: list[dict[str, str]] = []
        self.refused: list[str] = []
        """Why requests were refused that break the rules of the Messages API."""
        self._remembered = Remembered()
        self.waiting = asyncio.Event()
        """Set once a call waits for a reply that never comes."""

    def counts(self) -> Counter[str]:
        return Counter(call.role for call in self.calls)

    async def serve(self, asked: HttpRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection may carry another."""
        if (asked.method, asked.target) != ("POST", "/v1/messages"):
            return await _send(writer, error(404, "no such route"))
        try:
            request = read_request(asked.body)
            self._remembered.refuse(request.body)
        except ValueError as problem:
            self.refused.append(str(problem))
            return await _send(writer, error(400, str(problem)))
        self.headers.append(asked.headers)
        return await self._answer(request, reader, writer)

    async def _answer(self, request: ModelRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        number = len(self.calls)
        due = asyncio.get_running_loop().time() + random.uniform(self.latency, max(self.latency, self.longest))
        scenario = self.plan.scenario(number, request.role, request.model)
        call = Call(number, request.request_hash, request.role, request.model, request.mode, scenario, time.time())
        self.calls.append(call)
        self.requests.append(request)
        beginnings = self.book.beginnings(request)
        reply = self.book.refusal(request) or reply_to(request, scenario)
        call.status = reply.status
        try:
            await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
            reply = self.book.charged(request, beginnings, reply)
            self._remember(request, reply)
            if reply.delivery == "never":
                self.waiting.set()
                await reader.read()  # until the client hangs up
                return False
            going_on = await _send(writer, self.answer_for(request, reply))
            call.delivered = reply.delivery == "whole" and not reader.at_eof()
            return going_on
        finally:
            call.ended = time.time()

    def answer_for(self, request: ModelRequest, reply: Reply) -> Reply:
        """The reply as it goes over the wire."""
        return streamed(reply) if request.body.get("stream") else reply

    def _remember(self, request: ModelRequest, reply: Reply) -> None:
        with suppress(ValueError, RecursionError):
            message = json.loads(reply.body) if request.mode == "turn" and reply.is_charged else None
            if isinstance(message, dict):
                self._remembered.keep(request.model, blocks_of(message))


async def _send(writer: asyncio.StreamWriter, reply: Reply) -> bool:
    """Hand a reply to the connection in its own way; whether the connection may carry another."""
    if reply.delivery == "reset":
        reset(writer)
        return False
    if reply.delivery == "whole":
        writer.write(response(reply.status, reply.body, reply.headers))
        await writer.drain()
        return True
    writer.write(response(reply.status, b"", {**reply.headers, "content-length": str(len(reply.body) or 100)}))
    await writer.drain()
    if reply.delivery == "reset_after_headers":
        reset(writer)
        return False
    if reply.delivery == "truncated":
        writer.write(reply.body[: len(reply.body) // 2])
        await writer.drain()
        writer.close()
        return False
    size = -(-len(reply.body) // TRICKLE_PIECES)
    for start in range(0, len(reply.body), size):
        writer.write(reply.body[start : start + size])
        await writer.drain()
        await asyncio.sleep(TRICKLE_SECONDS)
    return True
