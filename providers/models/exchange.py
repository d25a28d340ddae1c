"""One task put to one model: fitted to its limits, sent within the rate limit, in the strongest mode it supports."""

import json
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Final

from contracts.addresses import digest
from contracts.tool_turns import ToolTurnInput, offered_tools
from providers.errors import InvalidCall
from providers.interfaces import EngineTask, Limiter, Permit
from providers.models.capabilities import LearntLimits, LearntModes
from providers.models.chat import ChatMode, ChatReply, ChatRequest, ToolUse
from providers.models.fitting import FittedPrompt, PromptFitter
from providers.models.model_directory import ModelCandidate
from providers.models.model_errors import shown_name
from providers.models.model_speed import Speeds
from providers.models.prompt_caching import PrefixQueue, mark_prefixes, worth_waiting
from providers.models.structured_output import schema_of
from providers.models.tokens import Calibration, TokenCounter
from providers.models.tool_calls import messages_for, tool_definition

JSON_INSTRUCTION: Final = """

Reply with one JSON object and nothing before or after it. It must fit this JSON schema:
{schema}"""

REPAIR_INSTRUCTION: Final = """

An earlier reply to this request could not be used, for these reasons:
{problem}
Do the work again and avoid them."""

UNSUPPORTED: Final = "unsupported_parameter"
SHORTEST_SECONDS: Final = 0.001
ANSWER_SHARE: Final = 4
"""One in so many tokens of the cap is expected to be written."""
PATIENCE_SHARE: Final = 0.25
"""Of its time, that a call waits for another one to fill the cache with their common prefix."""


@dataclass(frozen=True)
class Exchange:
    """A reply, and the request that it answers."""

    reply: ChatReply
    fitted: FittedPrompt


class UnlimitedPermit:
    """The permit where no rate limit applies."""

    def used(self, tokens: int) -> None:
        """Nothing is counted."""


class ModelCalls:
    """Sends tasks to models, and learns from each answer what the next request should look like."""

    def __init__(self, limiter: Limiter | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._limiter = limiter
        self._clock = clock
        self._modes = LearntModes()
        self._limits = LearntLimits()
        self._without_caching: set[str] = set()
        self._without_forcing: set[str] = set()
        self._speeds = Speeds()
        self._calibration = Calibration()
        self._counter = TokenCounter()
        self._prefixes = PrefixQueue(clock)

    async def ask(
        self, task: EngineTask, candidate: ModelCandidate, seconds: float, *, shrink: bool = True
    ) -> Exchange:
        """Exactly one answered request; refused modes and sizes come before it and cost nothing.

        With `shrink` less is sent to a window that turns out smaller than known. Raises `Retryable` or `Rejected`.
        """
        deadline = self._clock() + seconds
        while True:
            limited = replace(candidate, capabilities=self._limits.apply(candidate.key, candidate.capabilities))
            request, fitted = await self._build(task, limited, deadline - self._clock())
            try:
                return Exchange(await self._send(request, task, limited, fitted, deadline), fitted)
            except InvalidCall as error:
                if not self._learn_refusal(candidate.key, request, fitted, error.kind, shrink=shrink):
                    raise _refused_tools(candidate, error) if request.tools else error from None

    def _learn_refusal(
        self, key: str, request: ChatRequest, fitted: FittedPrompt, kind: str | None, *, shrink: bool
    ) -> bool:
        """Whether the refusal leaves another request to try."""
        if kind == "context_too_long":
            return shrink and self._limits.reduce_window(key, fitted.estimate + request.max_tokens)
        if kind == "output_too_long":
            return self._limits.reduce_output(key, request.max_tokens)
        if kind == "unsupported_caching":
            self._without_caching.add(key)
            return request.cache_system or request.cache_common or request.cache_messages
        if kind != UNSUPPORTED:
            return False
        if request.tools:
            self._without_forcing.add(key)
            return request.must_call
        return self._modes.weaken(key, request.mode)

    async def _build(
        self, task: EngineTask, candidate: ModelCandidate, seconds: float
    ) -> tuple[ChatRequest, FittedPrompt]:
        key, capabilities = candidate.key, candidate.capabilities
        tools = _tools(task)
        plain = task.role.plain_text or bool(tools)
        mode = ChatMode.TEXT if plain else self._modes.mode_for(key, capabilities.mode)
        schema = None if plain else schema_of(task.role.draft)
        instructions = _instructions(task, schema if mode is ChatMode.TEXT else None)
        extra = instructions if schema is None or mode is ChatMode.TEXT else instructions + json.dumps(schema)
        extra += json.dumps(tools) if tools else ""
        name, pace = shown_name(candidate.model), self._speeds.pace(key)
        fitter = PromptFitter(task, name, key, capabilities, extra, pace, seconds)
        request = ChatRequest(
            model=candidate.model,
            system=task.system,
            prompt=task.prompt + instructions,
            max_tokens=task.role.output_tokens,
            timeout_seconds=seconds,
            json_schema=schema,
            mode=mode,
            messages=messages_for(key, task.messages),
            tools=tools,
            must_call=task.role.must_call and capabilities.tools is ToolUse.FORCED and key not in self._without_forcing,
        )
        fitted = fitter.fit(await self._ratio(fitter, candidate, request))
        sized = replace(
            request,
            prompt=fitted.prompt if fitted.messages else fitted.prompt + fitted.end + instructions,
            messages=_with_end(fitted.messages, fitted.end + instructions),
            max_tokens=fitted.max_tokens,
            common_length=fitted.common_length,
        )
        if key in self._without_caching:
            return sized, fitted
        return mark_prefixes(sized, capabilities, self._calibration.low(key, capabilities.token_factor)), fitted

    async def _ratio(self, fitter: PromptFitter, candidate: ModelCandidate, request: ChatRequest) -> float:
        """Counted tokens per estimated token: as learnt, or by a count where the window may be too small."""
        ratio = self._calibration.high(candidate.key, candidate.capabilities.token_factor)
        if not candidate.capabilities.counts_tokens or not fitter.is_near_limit(ratio):
            return ratio
        counted = await self._counter.count(candidate, request)
        return ratio if counted is None else counted / fitter.estimate()

    async def _send(
        self, request: ChatRequest, task: EngineTask, candidate: ModelCandidate, fitted: FittedPrompt, deadline: float
    ) -> ChatReply:
        expected = fitted.estimate + request.max_tokens // ANSWER_SHARE
        async with self._turn(request, candidate, fitted), self._permit(task, candidate, expected) as permit:
            began = self._clock()
            left = max(SHORTEST_SECONDS, deadline - began)
            reply = await candidate.endpoint.chat.complete(replace(request, timeout_seconds=left))
            tokens = reply.tokens
            if tokens.known:
                permit.used(tokens.prompt + tokens.output)
                seconds = self._clock() - began
                self._speeds.learn(candidate.key, tokens.prompt - tokens.cache_read, tokens.output, seconds)
                self._calibration.learn(candidate.key, fitted.raw_estimate, tokens.prompt)
        return reply

    def _turn(
        self, request: ChatRequest, candidate: ModelCandidate, fitted: FittedPrompt
    ) -> AbstractAsyncContextManager[None]:
        """Only a cached prefix that is a good part of the request is worth waiting for."""
        if not worth_waiting(request, fitted.estimate):
            return nullcontext()
        common = request.prompt[: request.common_length]
        offered = request.json_schema or list(request.tools)
        prefix = json.dumps([candidate.key, request.mode, offered, request.system, common])
        return self._prefixes.turn(digest(prefix), request.timeout_seconds * PATIENCE_SHARE)

    def _permit(self, task: EngineTask, candidate: ModelCandidate, tokens: int) -> AbstractAsyncContextManager[Permit]:
        if self._limiter is None:
            return nullcontext(UnlimitedPermit())
        holder = f"{task.input.research_id}/{task.input.operation}"
        return self._limiter.permit(candidate.endpoint.service, holder=holder, tokens=tokens)


def _refused_tools(candidate: ModelCandidate, error: InvalidCall) -> InvalidCall:
    """The error with what an operator can do where a model is found to take no tools."""
    if error.kind != UNSUPPORTED:
        return error
    setting = f'models.endpoints.{candidate.endpoint.name}.tools = "none"'
    return InvalidCall(
        f"the model {candidate.shown} takes no tools: name another one, and set {setting}", kind=UNSUPPORTED
    )


def _tools(task: EngineTask) -> list[dict[str, Any]]:
    if not isinstance(task.input, ToolTurnInput):
        return []
    return [tool_definition(tool) for tool in offered_tools(task.role, task.input)]


def _with_end(messages: list[dict[str, Any]], end: str) -> list[dict[str, Any]]:
    """The messages with some words more at the end of the last one."""
    if not messages or not end.strip():
        return messages
    *before, last = messages
    return [*before, {**last, "content": [*last["content"], {"type": "text", "text": end.strip()}]}]


def _instructions(task: EngineTask, schema: dict[str, Any] | None) -> str:
    answer = "" if schema is None else JSON_INSTRUCTION.format(schema=json.dumps(schema))
    repair = "" if task.input.repair is None else REPAIR_INSTRUCTION.format(problem=task.input.repair)
    return answer + repair
