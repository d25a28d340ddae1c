"""The protocol of chat completions as clients use it: requests, models, answers, errors, and chores of chat windows.

Fields that have no meaning for research (temperature, tools, the limit of an answer) are ignored.
"""

import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from pydantic import BaseModel, Field, ValidationError

from client.view.words import printable
from contracts.outcome import Usage
from contracts.parse_request import error_lines
from contracts.request import Depth
from contracts.texts import shorten

OWNER: Final = "deep-research"
MAX_MESSAGES: Final = 500
PIECE_CHARACTERS: Final = 4_000
"""Longest content of one chunk."""
ANNOTATED_CHARACTERS: Final = 16_000
"""Most characters of the annotations of one chunk: a window that reads lines of 64 kB loses a longer one, or all."""
DEPTHS: Final = {
    **dict.fromkeys(("none", "minimal", "low"), Depth.LIGHT),
    "medium": Depth.MEDIUM,
    **dict.fromkeys(("high", "xhigh", "max"), Depth.EXTENDED),
}
"""Depth by the protocol's `reasoning_effort`."""


# --- requests --------------------------------------------------------------------------------------------------------
class ContentPart(BaseModel):
    """A part of a message; only texts are read."""

    type: str = Field(max_length=64)
    text: str | None = None


class ConversationMessage(BaseModel):
    """A message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[ContentPart] | None = None

    @property
    def text(self) -> str:
        """Return its text; parts are joined by blank lines."""
        if isinstance(self.content, list):
            return "\n\n".join(part.text for part in self.content if part.text).strip()
        return (self.content or "").strip()


class StreamOptions(BaseModel):
    """Options of a stream."""

    include_usage: bool | None = None


class ToolFunction(BaseModel):
    """A function that the client offers."""

    name: str = Field(default="", max_length=200)


class OfferedTool(BaseModel):
    """A tool that the client offers."""

    function: ToolFunction = ToolFunction()


class CompletionRequest(BaseModel):
    """The body of a request."""

    model: str = Field(max_length=200)
    messages: list[ConversationMessage] = Field(min_length=1, max_length=MAX_MESSAGES)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    user: str | None = Field(default=None, max_length=500)
    n: int | None = Field(default=None, ge=1, le=1)
    reasoning_effort: str | None = Field(default=None, max_length=20)
    tools: list[OfferedTool] | None = Field(default=None, max_length=500)

    @property
    def depth(self) -> Depth | None:
        """Return the depth of the research that the request names. Raises `ProtocolError` for an unknown effort."""
        if self.reasoning_effort is None:
            return None
        if self.reasoning_effort not in DEPTHS:
            raise ProtocolError(f"reasoning_effort: choose one of {', '.join(DEPTHS)}", param="reasoning_effort")
        return DEPTHS[self.reasoning_effort]


def read_request(body: bytes) -> CompletionRequest:
    """Parse the body of a request. Raises `ProtocolError`, without the values of the request."""
    try:
        request = CompletionRequest.model_validate_json(body)
    except ValidationError as error:
        raise ProtocolError("invalid request: " + "; ".join(error_lines(error))) from None
    last = next((message for message in reversed(request.messages) if message.role == "user"), None)
    if last is None or not last.text:
        parts = last.content if last is not None and isinstance(last.content, list) else []
        problem = "has only parts that are not text" if parts else "is missing or empty"
        raise ProtocolError(
            f"messages: the message of the user {problem}: write the question as text", param="messages"
        )
    return request


@dataclass(frozen=True)
class ModelId:
    """A model on offer: `deep-research/STRATEGY`, or `deep-research/STRATEGY/CORPUS`."""

    strategy: str
    corpus: str | None = None

    def __str__(self) -> str:
        parts = [OWNER, self.strategy]
        if self.corpus is not None:
            parts.append(self.corpus)
        return "/".join(parts)

    def document(self) -> dict[str, Any]:
        """Return the model as the protocol lists it."""
        return {"id": str(self), "object": "model", "created": 0, "owned_by": OWNER}


def list_models(strategies: Sequence[str], corpora: Sequence[str]) -> dict[str, ModelId]:
    """Return the models on offer by id: each strategy alone, then with each corpus."""
    models = [ModelId(strategy, corpus) for corpus in (None, *corpora) for strategy in strategies]
    return {str(model): model for model in models}


def find_model(name: str, models: dict[str, ModelId]) -> ModelId:
    """Return the model of a name. Raises `ProtocolError` with the names that exist."""
    if name in models:
        return models[name]
    known = shorten(", ".join(models), 2_000)
    raise ProtocolError(
        f"there is no model {printable(shorten(name, 80))!r}; there are: {known}", 404, "model_not_found"
    )


# --- errors ----------------------------------------------------------------------------------------------------------
class ProtocolError(Exception):
    """A request that is not answered with a completion; the message states the problem, then the remedy."""

    def __init__(self, message: str, status: int = 400, code: str | None = None, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param

    def document(self) -> dict[str, Any]:
        """Return the error as the protocol has it."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        return {"error": {"message": str(self), "type": kind, "param": self.param, "code": self.code}}


# --- answers ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Completion:
    """A whole answer."""

    content: str
    annotations: list[dict[str, Any]] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    tool: str = ""
    """A function of the client that is called with the content, which is then JSON; empty for a message."""


@dataclass(frozen=True)
class CompletionWriter:
    """Writes the answer to one request, as one document or in chunks."""

    id: str
    model: str
    created: int = field(default_factory=lambda: int(time.time()))

    def whole(self, completion: Completion, reasoning: str = "") -> dict[str, Any]:
        """Return an answer as one document; `reasoning` says what was done."""
        message: dict[str, Any] = {"role": "assistant", "content": completion.content, "refusal": None}
        if completion.annotations:
            message |= {"annotations": completion.annotations}
        if reasoning:
            message |= {"reasoning_content": reasoning}
        finish = "stop"
        if completion.tool:
            message |= {"content": None, "tool_calls": [self._call(completion)]}
            finish = "tool_calls"
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
        return self._head("chat.completion") | {"choices": [choice], "usage": _usage(completion.usage)}

    def opening(self, reasoning: str) -> dict[str, Any]:
        """Return the first chunk, whose id is that of the run."""
        return self._chunk({"role": "assistant", "content": "", "reasoning_content": reasoning})

    def progress(self, line: str) -> dict[str, Any]:
        """Return a chunk that says what is under way."""
        return self._chunk({"reasoning_content": f"{line}\n"})

    def ending(self, completion: Completion, *, with_usage: bool) -> list[dict[str, Any]]:
        """Return the chunks of the content, that of its annotations, the end and, if requested, the usage."""
        if completion.tool:
            chunks = [self._chunk({"tool_calls": [{"index": 0, **self._call(completion)}]})]
            return [*chunks, self._chunk({}, "tool_calls")]
        text = completion.content
        pieces = [text[start : start + PIECE_CHARACTERS] for start in range(0, len(text), PIECE_CHARACTERS)]
        chunks = [self._chunk({"content": piece}) for piece in pieces]
        chunks += [self._chunk({"annotations": part}) for part in _in_parts(completion.annotations)]
        chunks.append(self._chunk({}, "stop"))
        if with_usage:
            chunks.append(self._head("chat.completion.chunk") | {"choices": [], "usage": _usage(completion.usage)})
        return chunks

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return self._head("chat.completion.chunk") | {"choices": [choice]}

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}

    def _call(self, completion: Completion) -> dict[str, Any]:
        function = {"name": completion.tool, "arguments": completion.content}
        return {"id": f"call-{self.id}", "type": "function", "function": function}


def _in_parts(annotations: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return annotations in parts of bounded length, in their order."""
    parts: list[list[dict[str, Any]]] = []
    room = 0
    for annotation in annotations:
        length = len(json.dumps(annotation))
        if length > room:
            parts.append([])
            room = ANNOTATED_CHARACTERS
        parts[-1].append(annotation)
        room -= length
    return parts


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }


# --- chores of chat windows ------------------------------------------------------------------------------------------
TASK: Final = "### Task:"
"""How Open WebUI begins what it asks a model for itself."""
HISTORY: Final = "<chat_history>"
EMOJI: Final = "Your task is to reflect the speaker's"
QUOTED_MESSAGE: Final = 'Message: """'
"""How it asks for a face: first words of its present versions, and the mark of earlier ones."""
COMPACTION: Final = "### Messages Being Compacted:"
"""In its request to shorten a long conversation; where the answer is empty, it quotes the messages itself."""
MERGING: Final = "You have been provided with a set of responses from"
"""How it asks for one answer made of those of several models."""
TASK_KEY: Final = re.compile(r'\{\s{0,8}"(title|tags|follow_ups|queries|text|prompt)" ?:')
"""The key of the JSON object that such a request asks for."""
EMPTY_ANSWERS: Final = {"tags": [], "follow_ups": [], "queries": [], "text": "", "prompt": ""}
TOOL_CHOICE: Final = "Query: History:"
"""How Open WebUI asks which of its own tools to call."""
LIBRECHAT_TITLE: Final = "Provide a concise, 5-word-or-less title for the conversation"
LIBRECHAT_LABELS: Final = "Analyze this conversation and provide:"
"""How LibreChat asks for a title, and for a language with a title."""
FIRST_QUESTION: Final = re.compile(r"^(?:USER|User|Human): ?(.*)$", re.MULTILINE)
TITLE_CHARACTERS: Final = 60
UNTITLED: Final = "Research"


def answer_chore(request: CompletionRequest) -> Completion | None:
    """Answer what a chat window asks for itself, by rules and at once; None for a message of a person.

    Known are the first words and the marks of the requests of Open WebUI and LibreChat, which both programs send as the
    only message of a user. Raises `ProtocolError` for what only a language model can do.
    """
    users = [message.text for message in request.messages if message.role == "user"]
    text = users[0]
    if len(users) > 1:
        return None
    if text.startswith(TASK) and HISTORY in text:
        head, _, history = text.partition(HISTORY)
        keys = TASK_KEY.findall(head)
        key = keys[0] if keys else ""
        value = _title(history) if key == "title" else EMPTY_ANSWERS.get(key)
        return Completion(json.dumps({key: value} if key else {}, ensure_ascii=False))
    if text.startswith(EMOJI) or (text.startswith(TASK) and QUOTED_MESSAGE in text):
        return Completion("🔎")
    if text.startswith(TASK) and COMPACTION in text:
        return Completion("")
    if text.startswith(MERGING):
        raise ProtocolError("answers of several models are not merged here: choose another model of the chat for that")
    if text.startswith(TOOL_CHOICE):
        return Completion(json.dumps({"tool_calls": []}))
    if text.startswith(LIBRECHAT_TITLE):
        return Completion(_title(text))
    if text.startswith(LIBRECHAT_LABELS):
        tools = [tool.function.name for tool in request.tools or [] if tool.function.name]
        labels = json.dumps({"language": "", "title": _title(text)}, ensure_ascii=False)
        return Completion(labels, tool=tools[0] if tools else "")
    return None


def _title(history: str) -> str:
    match = FIRST_QUESTION.search(history)
    if match and match[1].strip():
        return shorten(printable(match[1]), TITLE_CHARACTERS)
    return UNTITLED
