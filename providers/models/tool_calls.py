"""Roles with tools at a model: the tools as they are offered, and a reply as the turn that it is."""

from collections.abc import Sequence
from typing import Any, Final

from contracts.tool_turns import THOUGHTS, TurnDraft
from contracts.tools import ToolSpec
from providers.errors import InvalidOutput
from providers.interfaces import Message
from providers.models.chat import ChatReply
from providers.models.structured_output import check_end, refuse_flaws, without_thoughts

KEPT: Final = ("tool_use", *THOUGHTS)


def tool_definition(tool: ToolSpec[Any]) -> dict[str, Any]:
    """A tool as the Messages API takes it."""
    return {"name": tool.name, "description": tool.description, "input_schema": tool.schema()}


def messages_for(author: str, messages: Sequence[Message]) -> list[dict[str, Any]]:
    """What was said, for one model: thoughts go back to who thought them, as they came, and to nobody else."""
    return [
        {
            "role": message.role,
            "content": [
                block for block in message.content if message.author == author or block.get("type") not in THOUGHTS
            ],
        }
        for message in messages
    ]


def turn_of(author: str, reply: ChatReply) -> tuple[TurnDraft, list[str]]:
    """The turn that a reply holds, with one short warning for each liberty that was taken.

    Raises `AnswerRefused`, `AnswerCut` (a call whose end is missing must not be carried out), or `InvalidOutput`.
    """
    check_end(reply)
    refuse_flaws(reply.flaws)
    content: list[dict[str, Any]] = []
    warnings: list[str] = []
    for block in reply.blocks:
        if block.get("type") == "text" and isinstance(block.get("text"), str):
            said, left_out = without_thoughts(block["text"])
            warnings += left_out
            content += [{"type": "text", "text": said}] if said else []
        elif block.get("type") in KEPT:
            content.append(block)
    if all(block["type"] in THOUGHTS for block in content):
        raise InvalidOutput("$: the answer is empty: call one of the tools")
    return TurnDraft(content=content, stop=reply.stop_reason or "", author=author), list(dict.fromkeys(warnings))
