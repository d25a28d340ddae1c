"""Conversations with tools as the real endpoint holds them to its rules: what is refused, and what is remembered."""

import hashlib
from collections.abc import Mapping
from typing import Any

THOUGHTS = ("thinking", "redacted_thinking")
ANSWER_TOOL = "give_answer"


def has_tools(body: Mapping[str, Any]) -> bool:
    """Whether a request offers tools of a role, and not only the one that takes an answer."""
    return any(tool["name"] != ANSWER_TOOL for tool in body.get("tools") or [])


def signed(thought: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": thought, "signature": _signature(thought)}


def text_of(block: Mapping[str, Any]) -> str:
    said = (block.get("text"), block.get("content"), block.get("thinking"), block.get("name"), block.get("input"))
    return " ".join(str(part) for part in said if part)


def blocks_of(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The content of a message in blocks."""
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def refuse(body: Mapping[str, Any]) -> None:
    """Raises ValueError where the real endpoint would refuse the conversation."""
    messages = body["messages"]
    if [message["role"] for message in messages] != ["user", "assistant"] * (len(messages) // 2) + ["user"]:
        raise ValueError("messages: roles must alternate, and begin and end with user")
    names = {tool["name"] for tool in body.get("tools") or []}
    if not names and any(block["type"] == "tool_use" for message in messages for block in blocks_of(message)):
        raise ValueError("tools: must be defined where messages hold tool_use blocks")
    asked: list[str] = []
    used: set[str] = set()
    for number, message in enumerate(messages):
        blocks = blocks_of(message)
        _refuse_blocks(number, blocks)
        if message["role"] == "user":
            _refuse_answers(number, asked, blocks)
        else:
            asked = [block["id"] for block in blocks if block["type"] == "tool_use"]
            if used & set(asked) or len(set(asked)) < len(asked):
                raise ValueError(f"messages.{number}: `tool_use` ids must be unique")
            used |= set(asked)


def _refuse_blocks(number: int, blocks: list[dict[str, Any]]) -> None:
    if not blocks:
        raise ValueError(f"messages.{number}: content must not be empty")
    for place, block in enumerate(blocks):
        where = f"messages.{number}.content.{place}"
        if block["type"] == "text" and not block["text"].strip():
            raise ValueError(f"{where}: text content blocks must contain non-whitespace text")
        if block["type"] == "thinking" and block["signature"] != _signature(block["thinking"]):
            raise ValueError(f"{where}: invalid `signature` in `thinking` block")
        if block["type"] == "tool_use" and not isinstance(block["input"], dict):
            raise ValueError(f"{where}: input must be an object")


def _refuse_answers(number: int, asked: list[str], blocks: list[dict[str, Any]]) -> None:
    given = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    if missing := set(asked) - set(given):
        raise ValueError(f"messages.{number}: `tool_use` ids without `tool_result` blocks: {sorted(missing)}")
    if set(given) - set(asked) or len(set(given)) < len(given):
        raise ValueError(f"messages.{number}: `tool_result` blocks that answer no `tool_use` block before")
    if [block["type"] for block in blocks[: len(given)]] != ["tool_result"] * len(given):
        raise ValueError(f"messages.{number}: `tool_result` blocks must come first")


def _signature(thought: str) -> str:
    return hashlib.sha256(f"a secret/{thought}".encode()).hexdigest()[:24]


class Remembered:
    """What an endpoint said: thoughts must come back with the calls that followed them, unchanged and in order."""

    def __init__(self) -> None:
        self._thoughts: dict[str, list[dict[str, Any]]] = {}

    def keep(self, model: str, content: list[dict[str, Any]]) -> None:
        """Remember the thoughts of a turn by what they led to."""
        thoughts = [block for block in content if block["type"] in THOUGHTS]
        if thoughts:
            self._thoughts[_rest(model, content)] = thoughts

    def refuse(self, body: Mapping[str, Any]) -> None:
        """Raises ValueError for a turn that comes back with other thoughts than it had."""
        for number, message in enumerate(body["messages"]):
            blocks = blocks_of(message)
            had = self._thoughts.get(_rest(body["model"], blocks)) if message["role"] == "assistant" else None
            if had is not None and [block for block in blocks if block["type"] in THOUGHTS] != had:
                raise ValueError(f"messages.{number}: `thinking` blocks cannot be modified")


def _rest(model: str, content: list[dict[str, Any]]) -> str:
    kept = [(block["type"], text_of(block)) for block in content if block["type"] in ("text", "tool_use")]
    ids = [block["id"] for block in content if block["type"] == "tool_use"]
    return str((model, kept, ids))
