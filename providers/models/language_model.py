"""The engine that does the roles with language models: one answer per task, from the first model that gives one."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from contracts.base import Contract
from contracts.outcome import Usage
from contracts.vocabulary import EngineKind
from providers.errors import (
    AnswerUnusable,
    InputUnprocessable,
    InvalidOutput,
    NotConfigured,
    ProviderError,
)
from providers.interfaces import EngineAnswer, EngineTask, IsolatedCalls, Limiter
from providers.models.chat import ChatReply, TokenCounts, ToolUse
from providers.models.exchange import Exchange, ModelCalls
from providers.models.failover import Failover, time_for_call, time_share
from providers.models.model_directory import MissingChat, ModelCandidate, ModelDirectory, ModelEndpoint
from providers.models.model_errors import MODEL_VARIABLE
from providers.models.prices import PriceTable
from providers.models.structured_output import DRAFT_FIELDS, draft_of, needs_isolation
from providers.models.tool_calls import turn_of
from providers.shared.circuit_breaker import CircuitBreaker, CircuitState, judge_outcome
from providers.shared.stores.memory_store import MemorySharedStore

SHORTEST_SECONDS: Final = 0.05
"""With less time left no further model is asked."""
UNTRIED, ANSWERING, MISSING, LEFT_ALONE = "not asked yet", "answering", "not configured", "left alone for a while"


@dataclass(frozen=True)
class EndpointHealth:
    """How an endpoint has been doing for this process."""

    name: str
    host: str
    state: str
    """`not asked yet`, `answering`, `not configured`, `left alone for a while`, or `failing (CLASS)`."""
    models: list[str]


class LanguageModelEngine:
    """Does any role. Offers a model the role's own tools, or none but the one that takes the answer."""

    kind = EngineKind.MODEL
    paid = True

    def __init__(
        self,
        directory: ModelDirectory,
        prices: PriceTable,
        *,
        limiter: Limiter | None = None,
        circuits: CircuitBreaker | None = None,
        isolated: IsolatedCalls | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Without children that can be killed (`isolated`) answers are read in this process."""
        self._directory = directory
        self._isolated = isolated
        self._prices = prices
        self._calls = ModelCalls(limiter, clock)
        self._circuits = circuits or CircuitBreaker(MemorySharedStore())
        self._clock = clock
        self._last: dict[str, str] = {}

    async def answer(self, task: EngineTask) -> EngineAnswer:
        """Do one role with at most one answered request: a model that fails without an answer is replaced by the next.

        Raises `Retryable`, `Rejected`, or an `AnswerUnusable` that carries what the answer cost.
        """
        candidates = self._directory.candidates(task.input.model, task.role.tier)
        if not candidates:
            raise NotConfigured(f"no model is named for this role: set {MODEL_VARIABLE}")
        if task.role.tools:
            candidates = _with_tools(candidates)
        deadline = self._clock() + time_for_call(task.input.time_limit_seconds)
        failover = Failover(candidates)
        while (candidate := await self._next(failover)) is not None:
            left = deadline - self._clock()
            if failover.failures and left < SHORTEST_SECONDS:
                break
            try:
                exchange = await self._ask(task, candidate, time_share(left, last=not failover.waiting), failover)
            except ProviderError as error:
                failover.note_failure(candidate, error)
            else:
                return await self._answer(task, candidate, exchange, failover)
        raise failover.error()

    async def health(self) -> list[EndpointHealth]:
        """How each endpoint has been doing, by the calls of this process and the circuits of all."""
        found = []
        for endpoint in self._directory.endpoints.values():
            models = self._directory.models_of(endpoint.name)
            if models or endpoint.name in self._last:
                found.append(EndpointHealth(endpoint.name, endpoint.host, await self._state(endpoint), models))
        return found

    async def close(self) -> None:
        """Let go of the connections."""
        for endpoint in self._directory.endpoints.values():
            await endpoint.chat.close()

    async def _next(self, failover: Failover) -> ModelCandidate | None:
        """The next model whose circuit is closed; if there was none, the first one all the same.

        A circuit saves time where another model stands by; it is no reason for a call to fail.
        """
        while failover.waiting:
            candidate = failover.waiting.pop(0)
            if await self._allows(candidate):
                return candidate
            failover.skipped.append(candidate)
        if failover.failures or not failover.skipped:
            return None
        return failover.skipped.pop(0)

    async def _allows(self, candidate: ModelCandidate) -> bool:
        try:
            return await self._circuits.allow(candidate.endpoint.service)
        except ProviderError:
            # Circuits only save time: without them every endpoint is asked.
            return True

    async def _ask(self, task: EngineTask, candidate: ModelCandidate, seconds: float, failover: Failover) -> Exchange:
        service = candidate.endpoint.service
        window = candidate.capabilities.window
        larger = any(other.capabilities.window > window for other in failover.waiting)
        try:
            exchange = await self._calls.ask(task, candidate, seconds, shrink=not larger)
        except ProviderError as error:
            self._last[candidate.endpoint.name] = type(error).__name__
            await self._report(service, judge_outcome(error))
            raise
        except asyncio.CancelledError:
            await self._report(service, None)
            raise
        self._last[candidate.endpoint.name] = ""
        await self._report(service, ok=True)
        return exchange

    async def _report(self, service: str, ok: bool | None) -> None:
        with suppress(ProviderError):
            await self._circuits.report(service, ok)

    async def _answer(
        self, task: EngineTask, candidate: ModelCandidate, exchange: Exchange, failover: Failover
    ) -> EngineAnswer:
        reply, fitted = exchange.reply, exchange.fitted
        usage = self._usage(candidate, reply.tokens)
        try:
            draft, liberties = await self._draft(task, candidate, reply)
        except AnswerUnusable as error:
            error.usage, error.model = usage, reply.model
            raise
        warnings = [*failover.warnings(candidate), *fitted.warnings, *reply.warnings, *liberties]
        return EngineAnswer(draft, self.kind, reply.model, usage, warnings, fitted.share)

    async def _draft(self, task: EngineTask, candidate: ModelCandidate, reply: ChatReply) -> tuple[Contract, list[str]]:
        if task.role.tools:
            return turn_of(candidate.key, reply)
        if self._isolated is None or not needs_isolation(reply):
            return draft_of(task.role, reply)
        try:
            fields, liberties = await self._isolated.call(DRAFT_FIELDS, task.role, reply)
        except InputUnprocessable as error:
            # Paid and unusable: kept as such, so that it is not read again.
            raise InvalidOutput(f"$: the answer cannot be read: {error}") from None
        return task.role.draft.model_validate(fields), liberties

    def _usage(self, candidate: ModelCandidate, tokens: TokenCounts) -> Usage:
        """Input counts the whole prompt, cached or not; the price goes by the name that was asked for."""
        return Usage(
            model_calls=1,
            input_tokens=tokens.prompt,
            output_tokens=tokens.output,
            cached_tokens=tokens.cache_read,
            cache_write_tokens=tokens.cache_write,
            cost_usd=self._prices.cost_usd(candidate.model, tokens, written=candidate.name),
        )

    async def _state(self, endpoint: ModelEndpoint) -> str:
        if isinstance(endpoint.chat, MissingChat):
            return MISSING
        with suppress(ProviderError):
            if await self._circuits.state(endpoint.service) is CircuitState.OPEN:
                return LEFT_ALONE
        last = self._last.get(endpoint.name)
        if last is None:
            return UNTRIED
        return f"failing ({last})" if last else ANSWERING


def _with_tools(candidates: list[ModelCandidate]) -> list[ModelCandidate]:
    """Those that take tools. Raises `NotConfigured` if none does."""
    able = [each for each in candidates if each.capabilities.tools is not ToolUse.NONE]
    if not able:
        shown = ", ".join(each.shown for each in candidates)
        raise NotConfigured(f"the role calls tools, and {shown} takes none: name another model, or another strategy")
    return able
