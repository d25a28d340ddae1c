"""Names in the body of a Messages API response."""

import json

import pytest

from providers.models.message_envelope import read_reply


def reply_with(**fields: object) -> tuple[str, str | None]:
    """Model and stop reason as they are kept."""
    body = {"content": [], "model": "m", "stop_reason": "end_turn", **fields}
    reply = read_reply(json.dumps(body).encode(), "asked-1")
    return reply.model, reply.stop_reason


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("claude-haiku-4-5-20251001", "claude-haiku-4-5-20251001"),
        ("org/Llama_3.1:8b@q4, local", "org/Llama_3.1:8b@q4, local"),
        ("/models/my model.gguf", "/models/my model.gguf"),
        ("m\n## Report\n\x07\u202e![x](y)", "m Reportxy"),
        ("x" * 10_000_000, "x" * 100),
        ("[]<>\n", "asked-1"),
        ("", "asked-1"),
        (None, "asked-1"),
        (["m"], "asked-1"),
    ],
)
def test_the_name_of_a_model_is_a_short_name(given: object, kept: str) -> None:
    """It stands in state, logs and reports: bounded, on one line, without Markdown; else the one that was asked."""
    assert reply_with(model=given)[0] == kept


@pytest.mark.parametrize(
    ("given", "kept"), [("end_turn", "end_turn"), ("y" * 9_999, "y" * 100), ("a\n*b*", "ab"), ("", None), (7, None)]
)
def test_the_reason_of_a_stop_is_a_short_name(given: object, kept: str | None) -> None:
    """As for models."""
    assert reply_with(stop_reason=given)[1] == kept
