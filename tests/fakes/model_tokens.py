"""The fake's own books: how many tokens each request has, which beginnings are kept, and what is owed."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.fakes.conversation import text_of
from tests.fakes.model_request import ModelRequest
from tests.fakes.model_scenarios import Reply, error

READ_FACTOR, WRITE_FACTOR, MILLION = 0.1, 1.25, 1_000_000


@dataclass(frozen=True)
class Charge:
    """What one answer is charged for; the four kinds of tokens do not overlap."""

    model: str
    role: str
    input: int
    output: int
    read: int = 0
    write: int = 0

    @property
    def prompt(self) -> int:
        return self.input + self.read + self.write


@dataclass
class TokenBook:
    """Counts by characters; refuses what exceeds the window; keeps marked beginnings once they were answered."""

    window: int | None = None
    cacheable: int | None = None
    """The shortest beginning, in tokens, that is kept; null: none is."""
    forgets_after: int | None = None
    """So many answers, and no beginning is kept any longer."""
    characters_per_token: float = 4.0
    tokens_per_other: float = 0.25
    """Tokens of a character that is not of ASCII."""
    counts_tools: bool = False
    """Whether tools and schemas are charged like the prompt that they belong to."""
    charges: list[Charge] = field(default_factory=list)
    kept: set[str] = field(default_factory=set)

    def tokens(self, text: str) -> int:
        other = len(text) - len(text.encode("ascii", "ignore"))
        return int((len(text) - other) / self.characters_per_token + other * self.tokens_per_other)

    def of_request(self, request: ModelRequest) -> int:
        """Tokens of a prompt, tools and schema included."""
        extra = json.dumps([request.body.get("tools"), request.body.get("output_config")])
        return self.tokens(request.system + request.prompt + extra)

    def refusal(self, request: ModelRequest) -> Reply | None:
        """What a real endpoint says when prompt and answer do not fit."""
        if self.window is None:
            return None
        needed = self.of_request(request) + int(request.body["max_tokens"])
        if needed <= self.window:
            return None
        return error(400, f"prompt is too long: {needed} tokens > {self.window} maximum")

    def beginnings(self, request: ModelRequest) -> list[tuple[str, int]]:
        """The marked beginnings of a request, as text and in tokens of the prompt, those that are long enough."""
        seen = json.dumps([request.model, request.body.get("tools"), request.body.get("output_config")])
        tools = self.tokens(json.dumps(request.body.get("tools") or ""))
        found, own = [], ""
        for block in _blocks(request.body):
            own += text_of({**block, "cache_control": None})
            if "cache_control" in block:
                found.append((seen + own, self.tokens(own)))
        charged = tools if self.counts_tools else 0
        return [(text, charged + tokens) for text, tokens in found if tools + tokens >= (self.cacheable or 10**9)]

    def charged(self, request: ModelRequest, beginnings: list[tuple[str, int]], reply: Reply) -> Reply:
        """The reply with its usage, which goes into the books; what arrives as no message counts as not charged."""
        try:
            body = json.loads(reply.body) if reply.is_charged else {}
        except (ValueError, RecursionError):
            return reply
        usage = body.get("usage") if isinstance(body, dict) else None
        if not usage:
            return reply
        if usage.get("input_tokens") != len(request.system + request.prompt) // 4:  # a scenario has counts of its own
            read, write = usage.get("cache_read_input_tokens", 0), usage.get("cache_creation_input_tokens", 0)
            self._charge(request, usage, usage["input_tokens"], read, write)
            return reply
        if self.forgets_after is not None and len(self.charges) >= self.forgets_after:
            self.kept.clear()
        read = max((tokens for text, tokens in beginnings if text in self.kept), default=0)
        write = max([tokens for _, tokens in beginnings], default=0) - read
        self.kept.update(text for text, _ in beginnings)
        total = self.of_request(request) if self.counts_tools else self.tokens(request.system + request.prompt)
        unread = total - read - write
        self._charge(request, usage, unread, read, write)
        if unread == usage["input_tokens"]:
            return reply
        usage["input_tokens"] = unread
        if read or write:
            usage |= {"cache_read_input_tokens": read, "cache_creation_input_tokens": write}
        return replace(reply, body=json.dumps(body).encode())

    def _charge(self, request: ModelRequest, usage: dict[str, Any], unread: int, read: int, write: int) -> None:
        self.charges.append(Charge(request.model, request.role, unread, usage["output_tokens"], read, write))

    def owed_usd(self, prices: Mapping[str, tuple[float, float]]) -> float:
        """What all answers cost, with US dollars per million tokens of input and output by model."""
        total = 0.0
        for charge in self.charges:
            per_input, per_output = prices[charge.model]
            weighted = charge.input + READ_FACTOR * charge.read + WRITE_FACTOR * charge.write
            total += (weighted * per_input + charge.output * per_output) / MILLION
        return total


def _blocks(body: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for content in (body.get("system") or "", *(turn["content"] for turn in body["messages"])):
        found += [{"text": content}] if isinstance(content, str) else content
    return found
