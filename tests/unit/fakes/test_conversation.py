"""The fake endpoint holds conversations to the rules of the real one: what a product could do wrong, it refuses."""

from typing import Any

import pytest

from providers.errors import InvalidCall
from providers.models.anthropic_chat import AnthropicChat
from providers.models.chat import ChatRequest
from tests.fakes.conversation import refuse, signed
from tests.fakes.messages_api import MessagesApi

TOOLS = [{"name": "look_up", "description": "Looks a word up.", "input_schema": {"type": "object"}}]


def used(*ids: str) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": each, "name": "look_up", "input": {"word": "a"}} for each in ids],
    }


def answered(*ids: str, text: str = "") -> dict[str, Any]:
    blocks = [{"type": "tool_result", "tool_use_id": each, "content": "It is a word."} for each in ids]
    return {"role": "user", "content": [*blocks, *([{"type": "text", "text": text}] if text else [])]}


def body(*messages: dict[str, Any], tools: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "Begin."}, *messages], "tools": TOOLS if tools is None else tools}


def test_what_keeps_the_rules_is_taken() -> None:
    """Answers to all calls in any order, words behind them, and another round."""
    refuse(body())
    refuse(body(used("a", "b"), answered("b", "a", text="Go on."), used("c"), answered("c")))


@pytest.mark.parametrize(
    ("conversation", "why"),
    [
        (body(used("a", "b"), answered("a")), "without `tool_result`"),
        (body(used("a"), answered("a", "b")), "answer no `tool_use`"),
        (body(used("a"), answered("a", "a")), "answer no `tool_use`"),
        (body(used("a"), answered("a"), used("b"), answered("a")), "without `tool_result`"),
        (body(used("a"), answered("a"), used("a"), answered("a")), "must be unique"),
        (body(used("a", "a"), answered("a")), "must be unique"),
        (body(used("a")), "roles must alternate"),
        (body(answered()), "roles must alternate"),
        (body({"role": "assistant", "content": []}, answered(text="Go on.")), "must not be empty"),
        (body({"role": "assistant", "content": " "}, answered(text="Go on.")), "non-whitespace"),
        (body(used("a"), answered("a"), tools=[]), "tools: must be defined"),
        (
            body(used("a"), {"role": "user", "content": [{"type": "text", "text": "x"}, *answered("a")["content"]]}),
            "must come first",
        ),
        (
            body(
                {"role": "assistant", "content": [signed("Hm.") | {"thinking": "Hm!"}, *used("a")["content"]]},
                answered("a"),
            ),
            "invalid `signature`",
        ),
    ],
)
def test_what_breaks_a_rule_is_refused(conversation: dict[str, Any], why: str) -> None:
    """Each in its own words."""
    with pytest.raises(ValueError, match=why):
        refuse(conversation)


@pytest.mark.parametrize("change", ["left out", "another one", "said twice"])
async def test_thoughts_come_back_as_they_were(change: str) -> None:
    """The endpoint remembers what it thought before a call, and refuses the call with other thoughts."""
    opening = ChatRequest("m", "role: asker", "Look up vacuum first.", 100, 5.0, tools=TOOLS, must_call=True)
    async with MessagesApi() as api:
        chat = AnthropicChat(api_key=None, base_url=api.base_url)
        thought, call = (await chat.complete(opening)).blocks
        others = {
            "left out": [call],
            "another one": [signed("Hm."), call],
            "said twice": [call, thought, thought],
        }
        answers = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call["id"], "content": "Yes."}]}

        async def go_on(blocks: list[dict[str, Any]]) -> None:
            said = [{"role": "assistant", "content": blocks}, answers]
            await chat.complete(ChatRequest("m", "role: asker", opening.prompt, 100, 5.0, messages=said, tools=TOOLS))

        await go_on([thought, call])
        with pytest.raises(InvalidCall):
            await go_on(others[change])
        await chat.close()
    assert api.refused == ["messages.1: `thinking` blocks cannot be modified"]
