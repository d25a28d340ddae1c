"""A reply of a model as a turn: what is kept of it, and what is no turn."""

from typing import Any

import pytest

from providers.errors import AnswerCut, AnswerRefused, InvalidOutput
from providers.interfaces import Message
from providers.models.chat import ChatReply, TokenCounts
from providers.models.message_envelope import read_reply
from providers.models.tool_calls import messages_for, turn_of

CALL = {"type": "tool_use", "id": "a", "name": "look_up", "input": {"word": "vacuum"}}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "s"}


def reply(*blocks: dict[str, Any], stop: str | None = "tool_use", flaws: frozenset[str] = frozenset()) -> ChatReply:
    return ChatReply("", None, stop, TokenCounts(), "m", flaws, blocks=list(blocks))


def test_calls_texts_and_thoughts_are_kept_in_order() -> None:
    """Blocks of kinds that the product does not know are left out; thoughts stay as they are."""
    hidden = {"type": "redacted_thinking", "data": "xyz"}
    draft, warnings = turn_of("p:m", reply(THOUGHT, hidden, {"type": "text", "text": "So."}, {"type": "server"}, CALL))
    assert draft.content == [THOUGHT, hidden, {"type": "text", "text": "So."}, CALL]
    assert (draft.stop, draft.author, warnings) == ("tool_use", "p:m", [])


def test_thoughts_aloud_are_no_part_of_what_is_said() -> None:
    """Some servers write them into the text: they are left out, with a word in the account."""
    draft, warnings = turn_of("p:m", reply({"type": "text", "text": "<think>Hm.</think>So."}, CALL))
    assert draft.content == [{"type": "text", "text": "So."}, CALL]
    assert warnings == ["the model's thoughts before its answer were left out"]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (reply(CALL, stop="max_tokens"), AnswerCut),
        (reply(CALL, stop="refusal"), AnswerRefused),
        (reply(THOUGHT), InvalidOutput),
        (reply({"type": "text", "text": " "}), InvalidOutput),
        (reply({"type": "text", "text": 7}), InvalidOutput),
        (reply(CALL, flaws=frozenset({"a key stands twice"})), InvalidOutput),
    ],
)
def test_what_is_no_turn_is_refused(given: ChatReply, error: type[Exception]) -> None:
    """A call whose end may be missing, an answer that was declined, one that says nothing or nothing certain."""
    with pytest.raises(error):
        turn_of("p:m", given)


def test_a_call_of_a_role_s_tool_is_no_foreign_one() -> None:
    """Only where no tools were offered is a call of one a flaw of the answer."""
    body = b'{"content": [{"type": "tool_use", "id": "a", "name": "look_up", "input": {}}], "usage": {}}'
    assert "the answer called a tool that was not offered" in read_reply(body, "m").warnings
    assert "the answer called a tool that was not offered" not in read_reply(body, "m", offers_tools=True).warnings


def test_thoughts_go_back_to_who_thought_them() -> None:
    """To nobody else, and nothing else is left out."""
    said = [Message("assistant", [THOUGHT, CALL], "p:m")]
    assert messages_for("p:m", said) == [{"role": "assistant", "content": [THOUGHT, CALL]}]
    assert messages_for("p:other", said) == [{"role": "assistant", "content": [CALL]}]
