"""A message out of its event stream: `message_start`, blocks with deltas, `message_stop`, as in the Messages API."""

import json
from collections.abc import Iterator
from typing import Any, Final

from providers.errors import Unavailable

DELTA_FIELDS: Final = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
"""Type of a delta → its field, whose pieces make up the field of that name of the block."""


class StreamError(Exception):
    """The endpoint reported an error within the stream: `kind` is its type, such as `overloaded_error`."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


def message_of(stream: bytes) -> bytes:
    """Return the message as the endpoint would have sent it without a stream, as JSON.

    Raises `StreamError` for an error event, and `Unavailable` for a stream that cannot be read or lacks its end: then
    no answer was given.
    """
    message: dict[str, Any] = {}
    blocks: dict[int, dict[str, Any]] = {}
    pieces: dict[tuple[int, str], list[str]] = {}
    try:
        for event in _events(stream):
            match event["type"]:
                case "message_start":
                    message = dict(event["message"])
                case "content_block_start":
                    blocks[event["index"]] = dict(event["content_block"])
                case "content_block_delta":
                    if name := DELTA_FIELDS.get(event["delta"]["type"]):
                        pieces.setdefault((event["index"], name), []).append(event["delta"][name])
                case "message_delta":
                    usage = {name: count for name, count in (event.get("usage") or {}).items() if count is not None}
                    message |= event["delta"] | {"usage": (message.get("usage") or {}) | usage}
                case "error":
                    raise StreamError(str(event["error"]["type"]))
                case "message_stop":
                    for (place, name), texts in pieces.items():
                        blocks[place][name] = blocks[place].get(name, "") + "".join(texts)
                    content = [_closed(blocks[place]) for place in sorted(blocks)]
                    return json.dumps(message | {"content": content}).encode()
                case _:
                    pass  # pings, ends of blocks, and what later versions of the API add
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Unavailable("the model endpoint answered with status 200 but with an unreadable event stream") from None
    raise Unavailable("the model endpoint's answer ended in the middle")


def _events(stream: bytes) -> Iterator[dict[str, Any]]:
    for line in stream.decode("utf-8", "replace").split("\n"):
        if line.startswith("data:"):
            yield json.loads(line.removeprefix("data:"))


def _closed(block: dict[str, Any]) -> dict[str, Any]:
    """The block with the input of its tool: text that is no JSON stays a text, which the schema refuses."""
    partial = block.pop("partial_json", "")
    if not partial:
        return block
    try:
        return block | {"input": json.loads(partial)}
    except (ValueError, RecursionError):
        return block | {"input": partial}
