"""One task put to one model: made to fit, asked within the limits, in the strongest way that the endpoint takes."""

import hashlib
import json
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Final

from providers.errors import InvalidCall
from providers.interfaces import EngineTask, Limiter, Permit
from providers.models.capabilities import LearntLimits, LearntModes
from providers.models.chat import ChatMode, ChatReply, ChatRequest
from providers.models.fitting import Fitted, Fitter
from providers.models.model_directory import ModelCandidate
from providers.models.model_errors import shown_name
from providers.models.model_speed import Speeds
from providers.models.prompt_caching import PrefixQueue, cache_marks, worth_waiting
from providers.models.structured_output import schema_of
from providers.models.tokens import Calibration, TokenCounter

JSON_INSTRUCTION: Final = """

Reply with one JSON object and nothing before or after it. It must fit this JSON schema:
{schema}"""

REPAIR_INSTRUCTION: Final = """

An earlier reply to this request could not be used, for these reasons:
{problem}
Do the work again and avoid them."""

SHORTEST_SECONDS: Final = 0.001
ANSWER_SHARE: Final = 4
"""One in so many tokens of the cap is expected to be written."""
PATIENCE_SHARE: Final = 0.25
"""Of its time, that a call waits for another one to write the beginning that both have."""


@dataclass(frozen=True)
class Exchanged:
    """What came of one exchange that was answered."""

    reply: ChatReply
    fitted: Fitted


class _Free:
    """The permit where nothing is limited."""

    def used(self, tokens: int) -> None:
        """Nobody counts."""


class ModelCalls:
    """Asks models, and learns from each answer what the next request should look like."""

    def __init__(self, limiter: Limiter | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._limiter = limiter
        self._clock = clock
        self._modes = LearntModes()
        self._limits = LearntLimits()
        self._without_caching: set[str] = set()
        self._speeds = Speeds()
        self._calibration = Calibration()
        self._counter = TokenCounter()
        self._prefixes = PrefixQueue(clock)

    async def ask(
        self, task: EngineTask, candidate: ModelCandidate, seconds: float, *, shrink: bool = True
    ) -> Exchanged:
        """Exactly one answered request; refused ways of asking come before it and cost nothing.

        With `shrink` less is sent to a window that turns out smaller than known. Raises `Retryable` or `Rejected`.
        """
        deadline = self._clock() + seconds
        while True:
            limited = replace(candidate, capabilities=self._limits.applied(_key(candidate), candidate.capabilities))
            mode = self._mode(task, limited)
            request, fitted = await self._request(task, limited, mode, deadline - self._clock())
            try:
                reply = await self._sent(request, task, limited, fitted, deadline)
            except InvalidCall as error:
                if error.kind == "context_too_long" and not (shrink and self._too_long(limited, request, fitted)):
                    raise
                if error.kind != "context_too_long" and not self._learnt(limited, request, error):
                    raise
                continue
            self._learn_size(limited, fitted, reply)
            return Exchanged(reply, fitted)

    def _mode(self, task: EngineTask, candidate: ModelCandidate) -> ChatMode:
        if task.role.plain_text:
            return ChatMode.TEXT
        return self._modes.mode_for(_key(candidate), candidate.capabilities.mode)

    def _too_long(self, candidate: ModelCandidate, request: ChatRequest, fitted: Fitted) -> bool:
        """Whether asking for less is worth another try."""
        return self._limits.too_long(_key(candidate), fitted.estimated + request.max_tokens)

    def _learnt(self, candidate: ModelCandidate, request: ChatRequest, error: InvalidCall) -> bool:
        """Whether the refusal leaves another way of asking."""
        key = _key(candidate)
        if error.kind == "output_too_long":
            return self._limits.output_too_long(key, request.max_tokens)
        if error.kind == "unsupported_caching":
            self._without_caching.add(key)
            return request.cache_system or request.cache_common
        return error.kind == "unsupported_parameter" and self._modes.refused(key, request.mode)

    async def _request(
        self, task: EngineTask, candidate: ModelCandidate, mode: ChatMode, seconds: float
    ) -> tuple[ChatRequest, Fitted]:
        schema = None if task.role.plain_text else schema_of(task.role.draft)
        instructions = _instructions(task, schema if mode is ChatMode.TEXT else None)
        around = instructions if schema is None or mode is ChatMode.TEXT else instructions + json.dumps(schema)
        pace = self._speeds.pace(_key(candidate))
        fitter = Fitter(task, shown_name(candidate.model), candidate.capabilities, around, pace, seconds)
        request = ChatRequest(
            model=candidate.model,
            system=task.system,
            prompt=task.prompt + instructions,
            max_tokens=task.role.output_tokens,
            timeout_seconds=seconds,
            json_schema=schema,
            mode=mode,
        )
        fitted = fitter.fitted(await self._ratio(fitter, candidate, request))
        prompt = fitted.prompt + instructions
        sized = replace(request, prompt=prompt, max_tokens=fitted.max_tokens, common_length=fitted.common_length)
        return self._marked(sized, candidate), fitted

    async def _ratio(self, fitter: Fitter, candidate: ModelCandidate, request: ChatRequest) -> float:
        """Tokens to an estimated one: as learnt, or as counted where the window may be too small."""
        ratio = self._calibration.high(_key(candidate), candidate.capabilities.token_factor)
        if not candidate.capabilities.counts_tokens or not fitter.is_near_limit(ratio):
            return ratio
        counted = await self._counter.count(candidate, request)
        return ratio if counted is None else counted / fitter.estimated()

    def _marked(self, request: ChatRequest, candidate: ModelCandidate) -> ChatRequest:
        key = _key(candidate)
        if key in self._without_caching:
            return request
        ratio = self._calibration.low(key, candidate.capabilities.token_factor)
        return cache_marks(request, candidate.capabilities, ratio)

    async def _sent(
        self, request: ChatRequest, task: EngineTask, candidate: ModelCandidate, fitted: Fitted, deadline: float
    ) -> ChatReply:
        expected = fitted.estimated + request.max_tokens // ANSWER_SHARE
        async with self._turn(request, candidate, fitted), self._permit(task, candidate, expected) as permit:
            began = self._clock()
            left = max(SHORTEST_SECONDS, deadline - began)
            reply = await candidate.endpoint.chat.complete(replace(request, timeout_seconds=left))
            tokens = reply.tokens
            if tokens.known:
                permit.used(tokens.input + tokens.cache_write + tokens.cache_read + tokens.output)
                fresh = tokens.input + tokens.cache_write
                self._speeds.learn(_key(candidate), fresh, tokens.output, self._clock() - began)
        return reply

    def _turn(
        self, request: ChatRequest, candidate: ModelCandidate, fitted: Fitted
    ) -> AbstractAsyncContextManager[None]:
        """Only a beginning that is kept, and that is a good part of the request, is worth waiting for."""
        if not worth_waiting(request, fitted.estimated):
            return nullcontext()
        beginning = json.dumps(
            [
                _key(candidate),
                request.mode,
                request.json_schema,
                request.system,
                request.prompt[: request.common_length],
            ]
        )
        key = hashlib.sha256(beginning.encode()).hexdigest()
        return self._prefixes.turn(key, request.timeout_seconds * PATIENCE_SHARE)

    def _permit(self, task: EngineTask, candidate: ModelCandidate, tokens: int) -> AbstractAsyncContextManager[Permit]:
        if self._limiter is None:
            return nullcontext(_Free())
        holder = f"{task.input.research_id}/{task.input.operation}"
        return self._limiter.permit(candidate.endpoint.service, holder=holder, tokens=tokens)

    def _learn_size(self, candidate: ModelCandidate, fitted: Fitted, reply: ChatReply) -> None:
        if reply.tokens.known:
            counted = reply.tokens.input + reply.tokens.cache_read + reply.tokens.cache_write
            self._calibration.learn(_key(candidate), fitted.raw, counted)


def _key(candidate: ModelCandidate) -> str:
    return f"{candidate.endpoint.name}:{candidate.model}"


def _instructions(task: EngineTask, schema: dict[str, Any] | None) -> str:
    asked = "" if schema is None else JSON_INSTRUCTION.format(schema=json.dumps(schema))
    repair = "" if task.input.repair is None else REPAIR_INSTRUCTION.format(problem=task.input.repair)
    return asked + repair
