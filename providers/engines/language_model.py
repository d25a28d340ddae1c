"""The engine that does the roles with a language model: one request for one answer."""

import json
from typing import Any, Final

from contracts.usage import Usage
from contracts.vocabulary import EngineKind
from providers.chat import Chat, ChatMode, ChatReply, ChatRequest
from providers.engines.capabilities import EndpointCapabilities, LearntModes
from providers.engines.structured_output import draft_of
from providers.errors import AnswerUnusable, InvalidCall, NotConfigured, Unavailable
from providers.interfaces import EngineAnswer, EngineTask
from providers.model_errors import MODEL_VARIABLE
from providers.prices import PriceTable

SHARE_OF_TIME_LIMIT: Final = 0.9
LONGEST_MARGIN_SECONDS: Final = 10.0

JSON_INSTRUCTION: Final = """

Reply with one JSON object and nothing before or after it. It must fit this JSON schema:
{schema}"""

REPAIR_INSTRUCTION: Final = """

An earlier reply to this request could not be used, for these reasons:
{problem}
Do the work again and avoid them."""


class LanguageModelEngine:
    """Does any role with a model behind a `Chat`. Offers the model no tool but the one that takes the answer."""

    kind = EngineKind.MODEL
    paid = True

    def __init__(self, chat: Chat, capabilities: EndpointCapabilities, prices: PriceTable) -> None:
        self._chat = chat
        self._reasoning_tokens = capabilities.reasoning_tokens
        self._modes = LearntModes(capabilities.mode)
        self._prices = prices

    async def answer(self, task: EngineTask) -> EngineAnswer:
        """Do one role with exactly one request.

        Raises `Retryable`, `Rejected`, or an `AnswerUnusable` that carries what the answer cost. A refused way of
        asking for a schema raises `Unavailable`: the next call asks in a weaker way.
        """
        request = self._request(task)
        try:
            reply = await self._chat.complete(request)
        except InvalidCall as error:
            if error.kind == "unsupported_parameter" and self._modes.refused(request.model, request.mode):
                message = f"the model endpoint does not take {request.mode.value} schemas; the next call asks otherwise"
                raise Unavailable(message, retry_after=0) from error
            raise
        usage = self._usage(request, reply)
        try:
            draft, liberties = draft_of(task.role, reply)
        except AnswerUnusable as error:
            error.usage, error.model = usage, reply.model
            raise
        return EngineAnswer(draft, self.kind, reply.model, usage, [*reply.warnings, *liberties])

    def _request(self, task: EngineTask) -> ChatRequest:
        model = task.input.model
        if not model:
            raise NotConfigured(f"no model is named for this role: set {MODEL_VARIABLE}")
        mode = ChatMode.TEXT if task.role.plain_text else self._modes.mode_for(model)
        schema = None if task.role.plain_text else task.role.draft.model_json_schema()
        return ChatRequest(
            model=model,
            system=task.system,
            prompt=task.prompt + _instructions(task, schema if mode is ChatMode.TEXT else None),
            max_tokens=task.role.output_tokens + self._reasoning_tokens,
            timeout_seconds=time_for_call(task.input.time_limit_seconds),
            json_schema=schema,
            mode=mode,
        )

    def _usage(self, request: ChatRequest, reply: ChatReply) -> Usage:
        """Input counts the whole prompt, cached or not; the price goes by the name that was asked for."""
        tokens = reply.tokens
        return Usage(
            model_calls=1,
            input_tokens=tokens.input + tokens.cache_read + tokens.cache_write,
            output_tokens=tokens.output,
            cached_tokens=tokens.cache_read,
            cost_usd=self._prices.cost_usd(request.model, tokens),
        )

    async def close(self) -> None:
        """Let go of the connections."""
        await self._chat.close()


def time_for_call(limit_seconds: float) -> float:
    """Seconds that a request may take so that the caller, whose limit is given, hears of its failure in time."""
    return max(limit_seconds * SHARE_OF_TIME_LIMIT, limit_seconds - LONGEST_MARGIN_SECONDS)


def _instructions(task: EngineTask, schema: dict[str, Any] | None) -> str:
    asked = "" if schema is None else JSON_INSTRUCTION.format(schema=json.dumps(schema))
    repair = "" if task.input.repair is None else REPAIR_INSTRUCTION.format(problem=task.input.repair)
    return asked + repair
