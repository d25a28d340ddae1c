"""The engine that uses language models: one answered request per task, from the first model that answers.

`LanguageModelEngine.answer` tries the models of a tier in order; `_exchange` fits the task to one model and sends it.
"""

import asyncio
import math
import time
from dataclasses import replace
from functools import partial
from typing import Final

from contracts.summaries import SummarizeInput
from contracts.vocabulary import EngineKind
from providers.errors import AnswerUnusable, InvalidCall, NotConfigured, ProviderError, Retryable
from providers.interfaces import EngineAnswer, EngineTask
from providers.models.answers import answer_of, turn_of
from providers.models.chat import (
    FAILOVER_SILENCE_SECONDS,
    MODEL_VARIABLE,
    SILENCE_SECONDS,
    Chat,
    ChatReply,
    ChatRequest,
    ToolUse,
    safe_name,
)
from providers.models.endpoints import EndpointCapabilities, ModelCandidate, ModelDirectory, PriceTable, weakened
from providers.models.fitting import FittedRequest, fewer_tokens, fit_request, larger_first, too_long, window_of
from providers.models.servers import ModelWindow
from providers.request_spans import request_span
from providers.shared.limits import Limiter

MIN_SECONDS: Final = 0.05  # with less time left, no other model is tried
TIME_SHARE: Final = 0.7  # share of the remaining time for a model if another one can be tried after it
FAILURES_OF_ONE_MODEL: Final = {"unknown_model", "unknown_address", "unsupported_parameter"}
NARROWED: Final = "less text of each source was considered: use a model with a larger window"
Failures = list[tuple[ModelCandidate, ProviderError]]


class LanguageModelEngine:
    """Performs any role. Offers a model the role's own tools, or only the one that takes the answer."""

    kind = EngineKind.MODEL
    paid = True

    def __init__(self, directory: ModelDirectory, prices: PriceTable, limiter: Limiter) -> None:
        self._directory = directory
        self._prices = prices
        self._limiter = limiter
        self._weakened: dict[str, EndpointCapabilities] = {}
        """Capabilities by model, after refusals of a parameter."""
        self._windows: dict[str, ModelWindow | None] = {}
        """Windows by model, as their servers said."""
        self._asking = asyncio.Lock()

    async def answer(self, task: EngineTask) -> EngineAnswer:
        """Perform a role with at most one answered request: a model that fails without an answer gives way to the next.

        Raises `Retryable`, `Rejected`, or an `AnswerUnusable` with the cost of the answer.
        """
        waiting = [await self._with_real_window(candidate) for candidate in self._candidates(task)]
        if len(waiting) > 1:
            waiting = await asyncio.to_thread(larger_first, task, waiting)
        limit = task.input.time_limit_seconds
        deadline = time.monotonic() + max(limit * 0.9, limit - 10)  # so that a failure is reported in time
        failures: Failures = []
        while waiting:
            candidate, *waiting = waiting
            seconds_left = deadline - time.monotonic()
            if failures and seconds_left < MIN_SECONDS:
                break
            until = deadline - (seconds_left * (1 - TIME_SHARE) if waiting else 0)
            replaceable = any(other.endpoint is not candidate.endpoint for other in waiting)
            silence = FAILOVER_SILENCE_SECONDS if replaceable else SILENCE_SECONDS
            try:
                reply, fitted = await self._exchange(task, candidate, until, silence)
            except ProviderError as error:
                failures.append((candidate, error))
                waiting = [other for other in waiting if _may_follow(task, error, candidate, other)]
            else:
                return await self._read(task, candidate, reply, fitted, failures)
        transient = [error for _, error in failures if isinstance(error, Retryable)]
        soonest = min(transient, key=lambda one: math.inf if one.retry_after is None else one.retry_after, default=None)
        problem = soonest or failures[0][1]
        fewer = fewer_tokens(task)
        is_too_long = isinstance(problem, InvalidCall) and problem.kind == "context_too_long"
        if task.narrower is None or not fewer or not is_too_long:
            raise problem
        answer = await self.answer(await asyncio.to_thread(task.narrower, fewer))
        return replace(answer, warnings=[NARROWED, *answer.warnings], shown_tokens=answer.shown_tokens or fewer)

    async def close(self) -> None:
        """Close the connections."""
        for endpoint in self._directory.endpoints.values():
            if endpoint.chat is not None:
                await endpoint.chat.close()

    def _candidates(self, task: EngineTask) -> list[ModelCandidate]:
        """Return the models for the task in order of preference. Raises `NotConfigured`."""
        candidates = [
            replace(candidate, capabilities=self._weakened.get(candidate.key, candidate.capabilities))
            for candidate in self._directory.candidates(task.input.model, task.role.tier)
        ]
        if isinstance(task.input, SummarizeInput):
            return candidates[:1]  # a run has its own order of models for summaries
        if not candidates:
            raise NotConfigured(f"no model is named for this role: set {MODEL_VARIABLE}")
        able = [
            candidate
            for candidate in candidates
            if not task.role.tools or candidate.capabilities.tools is not ToolUse.NONE
        ]
        if not able:
            names = ", ".join(candidate.label for candidate in candidates)
            raise NotConfigured(f"the role calls tools, and {names} takes none: name another model or another strategy")
        return able

    async def _with_real_window(self, candidate: ModelCandidate) -> ModelCandidate:
        """Return the candidate with the window that its server gives the model, asked once."""
        server = candidate.endpoint.server
        if server is None:
            return candidate
        async with self._asking:
            if candidate.key not in self._windows:
                self._windows[candidate.key] = await server.window(candidate.model)
        window = self._windows[candidate.key]
        if window is None:
            return candidate
        return replace(candidate, capabilities=candidate.capabilities.with_window(window.tokens))

    async def _exchange(
        self, task: EngineTask, candidate: ModelCandidate, until: float, silence: float
    ) -> tuple[ChatReply, FittedRequest]:
        """Make one answered request within the rate limit; earlier ones, refused for a parameter, are free."""
        chat = candidate.endpoint.chat
        if chat is None:
            raise NotConfigured(f"{candidate.endpoint.remedy} (for the model {candidate.label})")
        while True:
            # In a thread: shortening long pages takes a while, in which other calls continue.
            fitted = await asyncio.to_thread(fit_request, task, candidate)
            expected = fitted.estimate + fitted.request.max_tokens // 4  # few answers come near their cap
            try:
                async with self._limiter.permit(candidate.endpoint.service, expected):
                    left = max(MIN_SECONDS, until - time.monotonic())
                    request = replace(fitted.request, timeout_seconds=left, silence_seconds=silence)
                    reply = await _complete(chat, request, task.role.name, candidate.endpoint.name)
            except InvalidCall as error:
                weaker = weakened(candidate.capabilities, fitted.request, error.kind)
                if weaker is None:
                    raise _explained(error, task, candidate, fitted) from None
                self._weakened[candidate.key] = weaker
                candidate = replace(candidate, capabilities=weaker)
            else:
                return reply, fitted

    async def _read(
        self, task: EngineTask, candidate: ModelCandidate, reply: ChatReply, fitted: FittedRequest, failures: Failures
    ) -> EngineAnswer:
        # Priced by the requested name.
        cost = self._prices.cost_usd(candidate.model, reply.usage, full_name=candidate.name)
        usage = reply.usage.with_fields(cost_usd=cost)
        try:
            # Repairing the JSON of a long text takes up to two seconds, in which other calls continue.
            read = partial(turn_of, candidate.key) if task.role.tools else partial(answer_of, task.role)
            content, notes = await asyncio.to_thread(read, reply)
        except AnswerUnusable as error:
            error.usage = usage
            error.model = reply.model
            raise
        skipped = [
            f"model {failed.label} did not answer ({type(error).__name__}): {candidate.label} did"
            for failed, error in failures
        ]
        warnings = [*skipped, *fitted.warnings, *reply.warnings, *notes]
        return EngineAnswer(
            content,
            self.kind,
            reply.model,
            usage,
            warnings,
            fitted.items,
            fitted.fidelity,
            fitted.estimate,
            fitted.shown_tokens,
        )


async def _complete(chat: Chat, request: ChatRequest, role: str, endpoint: str) -> ChatReply:
    """Send one request, and record its role, model and tokens in the trace."""
    attributes: dict[str, str | int] = {
        "research.role": role,
        "research.endpoint": endpoint,
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": safe_name(request.model),
        "gen_ai.request.max_tokens": request.max_tokens,
    }
    with request_span("model", attributes) as span:
        reply = await chat.complete(request)
        span.set_attributes(
            {
                "gen_ai.response.model": safe_name(reply.model),
                "gen_ai.response.finish_reasons": safe_name(reply.stop_reason or ""),
                "gen_ai.usage.input_tokens": reply.usage.input_tokens,
                "gen_ai.usage.output_tokens": reply.usage.output_tokens,
                "gen_ai.usage.cache_read.input_tokens": reply.usage.cached_tokens,
            }
        )
    return reply


def _explained(error: InvalidCall, task: EngineTask, candidate: ModelCandidate, fitted: FittedRequest) -> InvalidCall:
    """Return the refusal with its figures and the setting that remedies it."""
    setting = f"models.endpoints.{candidate.endpoint.name}"
    message = str(error)
    if error.kind == "context_too_long":
        reason = too_long(task, candidate, fitted.estimate)
        message = f"the endpoint has a smaller window than is known: set {setting}.window; {reason}"
    elif error.kind == "output_too_long":
        message += f": the request allows {fitted.request.max_tokens} tokens: set {setting}.output_limit"
    elif error.kind == "unsupported_parameter" and fitted.request.tools:
        message = f'the model {candidate.label} takes no tools: name another one, and set {setting}.tools = "none"'
    return InvalidCall(message, kind=error.kind)


def _may_follow(task: EngineTask, error: ProviderError, failed: ModelCandidate, following: ModelCandidate) -> bool:
    """Return whether a model may be tried after another's error: a long prompt fits only a larger window."""
    if isinstance(error, InvalidCall):
        larger = window_of(task, following) > window_of(task, failed)
        return error.kind in FAILURES_OF_ONE_MODEL or (error.kind == "context_too_long" and larger)
    return isinstance(error, (Retryable, NotConfigured))
