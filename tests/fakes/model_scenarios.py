"""How a model endpoint may behave: each scenario turns a request into a reply, sensible, broken or none at all."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.fakes import checking_work, hostile_pages
from tests.fakes.model_request import ModelRequest

JSON_TYPE = {"content-type": "application/json"}
RAW = '"@raw@"'
PROSE = "I would much rather talk about the weather, which has been lovely."
HTML = "<html><body><h1>502 Bad Gateway</h1></body></html>"
ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


@dataclass(frozen=True)
class Reply:
    """What goes over the wire; `delivery`: whole, reset, reset_after_headers, truncated, trickle or never."""

    status: int
    headers: dict[str, str]
    body: bytes
    delivery: str = "whole"

    @property
    def is_charged(self) -> bool:
        """Whether it goes into the books: an answer that arrives to its end, however slowly and whatever is in it.

        What breaks off takes its counts with it: nobody can account for what an endpoint may want for that.
        """
        return self.status == 200 and self.delivery in {"whole", "trickle"}


Scenario = Callable[[ModelRequest], Reply]


def message(
    request: ModelRequest,
    content: list[dict[str, Any]],
    stop_reason: str | None = "end_turn",
    usage: dict[str, Any] | None = None,
    raw: str = "",
) -> Reply:
    """A message of status 200; `raw` is written verbatim where a block says `@raw@`."""
    # The characters of a block are more than those of its text; no endpoint counts more than it may write.
    written = min(len(str(content) + raw) // 4, int(request.body.get("max_tokens") or 1_000_000))
    counted = {"input_tokens": len(request.system + request.prompt) // 4, "output_tokens": written}
    body = {
        "id": f"msg_{request.request_hash[:16]}",
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": counted if usage is None else usage,
    }
    return Reply(200, JSON_TYPE, json.dumps(body).replace(RAW, raw).encode())


def streamed(reply: Reply) -> Reply:
    """The same reply as an event stream, with a ping; one that is no well-written message stays as it is."""
    try:
        body = json.loads(reply.body)
        whole = json.dumps(body).encode() == reply.body and isinstance(body["usage"], dict)
        content = [dict(block) for block in body["content"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        return reply
    if not whole or reply.status != 200:
        return reply
    told = dict(body["usage"])
    counted = {"output_tokens": told.pop("output_tokens")} if "output_tokens" in told else {}
    start = body | {"content": [], "stop_reason": None, "usage": told}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}, {"type": "ping"}]
    for index, block in enumerate(content):
        deltas = _deltas(block)
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": body["stop_reason"]}, "usage": counted})
    events.append({"type": "message_stop"})
    lines = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return Reply(200, {"content-type": "text/event-stream; charset=utf-8"}, lines.encode(), reply.delivery)


def _deltas(block: dict[str, Any]) -> list[dict[str, Any]]:
    """The pieces of a block, which is empty afterwards."""
    if block.get("type") == "text" and isinstance(block.get("text"), str):
        words, block["text"] = block["text"], ""
        return [{"type": "text_delta", "text": part} for part in (words[: len(words) // 2], words[len(words) // 2 :])]
    if block.get("type") == "tool_use" and "input" in block:
        given, block["input"] = block["input"], {}
        return [{"type": "input_json_delta", "partial_json": json.dumps(given)}]
    return []


def text(request: ModelRequest, answer: str, stop_reason: str | None = "end_turn") -> Reply:
    return message(request, [{"type": "text", "text": answer}], stop_reason)


def answered(request: ModelRequest, answer: str, stop_reason: str | None = None) -> Reply:
    """An answer in the way that was asked for: the tool's input, verbatim, or text."""
    if request.mode != "tool":
        return text(request, answer, stop_reason or "end_turn")
    block = {"type": "tool_use", "id": "toolu_1", "name": request.body["tools"][0]["name"], "input": "@raw@"}
    return message(request, [block], stop_reason or "tool_use", raw=answer)


def error(status: int, said: str, headers: dict[str, str] | None = None) -> Reply:
    """An error as the Messages API writes it."""
    body = {"type": "error", "error": {"type": ERROR_TYPES.get(status, "api_error"), "message": said}}
    return Reply(status, {**JSON_TYPE, **(headers or {})}, json.dumps(body).encode())


def good(request: ModelRequest) -> Reply:
    if request.mode == "turn":
        content = request.good_turn()
        called = any(block["type"] == "tool_use" for block in content)
        return message(request, content, "tool_use" if called else "end_turn")
    return answered(request, request.good_answer())


def gaps(request: ModelRequest) -> Reply:
    """Sensible work in which every analysis of the first iteration finds something missing."""
    if request.mode == "turn":
        return good(request)
    return answered(request, request.good_answer(with_gap="Iteration: 1 of" in request.prompt))


def steered(request: ModelRequest, mark: str = "") -> Reply:
    return answered(request, hostile_pages.answer(request.role, request.prompt, mark))


def reporting(report: Callable[[str], str], update: Callable[[str], str]) -> Scenario:
    """Sensible work, but for the report and its updates."""

    def reply(request: ModelRequest) -> Reply:
        if request.role == "reporter":
            return answered(request, update(request.prompt))
        return answered(request, report(request.prompt)) if request.role in ("synthesizer", "scribe") else good(request)

    return reply


def _lacking(*refused: str) -> Scenario:
    """Sensible work of an endpoint that refuses some parameters."""

    def reply(request: ModelRequest) -> Reply:
        for name in refused:
            is_sent, problem = PARAMETERS[name]
            if is_sent(request):
                return error(400, problem)
        return good(request)

    return reply


def _faulty(write: Callable[[ModelRequest, str], Reply], fault: Callable[[str], str]) -> Scenario:
    """A sensible answer with a fault; a report, which is plain text, cannot have one and is good."""

    def reply(request: ModelRequest) -> Reply:
        return good(request) if request.role == "synthesizer" else write(request, fault(request.good_answer()))

    return reply


def cut(request: ModelRequest) -> Reply:
    """Stopped at the cap in the middle."""
    answer = request.good_answer()
    return text(request, answer[: len(answer) // 2], "max_tokens")


def unknown_tool(request: ModelRequest) -> Reply:
    """A call of a tool that was not offered."""
    block = {"type": "tool_use", "id": "toolu_1", "name": "send_mail", "input": {"to": "someone"}}
    return message(request, [block], "tool_use")


def _good_with_usage(usage: dict[str, Any]) -> Scenario:
    return lambda request: message(request, [{"type": "text", "text": request.good_answer()}], usage=usage)


def _always(reply: Reply) -> Scenario:
    return lambda _: reply


PARAMETERS: dict[str, tuple[Callable[[ModelRequest], bool], str]] = {
    "native": (lambda request: request.mode == "native", "output_config: Extra inputs are not permitted"),
    "tools": (lambda request: request.mode in ("tool", "turn"), "tool_choice is not supported by this model"),
    "forcing": (
        lambda request: request.body.get("tool_choice", {}).get("type") in ("tool", "any"),
        "tool_choice: only auto is supported by this model",
    ),
    "length": (
        lambda request: request.body["max_tokens"] > 4_096,
        "max_tokens: 24000 > 4096, which is the maximum allowed number of output tokens",
    ),
}
"""Whether a request has a parameter, and what an endpoint says that does not know it."""
SCENARIOS: dict[str, Scenario] = {
    "good": good,
    "gaps": gaps,
    "gullible": steered,
    "betraying": lambda request: steered(request, hostile_pages.mark_of(request.system) or "nothing"),
    "embroiders": reporting(checking_work.embroidered_report, checking_work.embroidered_update),
    "rewords": reporting(checking_work.reworded_report, checking_work.embroidered_update),
    "remembers and invents": reporting(checking_work.mixed_report, checking_work.embroidered_update),
    "remembers": reporting(checking_work.unquoted_report, checking_work.embroidered_update),
    "fabricates": reporting(checking_work.fabricated_report, checking_work.fabricated_update),
    "lying": lambda request: answered(request, checking_work.lying(request.prompt)),
    "believing": lambda request: answered(request, json.dumps(checking_work.believing(request.prompt))),
    "worsening": lambda request: answered(request, json.dumps(checking_work.worsening(request.prompt))),
    "hopeless": lambda request: text(request, PROSE),
    "refusal": lambda request: message(request, [], "refusal"),
    "cut": cut,
    "empty": lambda request: message(request, []),
    "thinking_only": lambda request: message(request, [{"type": "thinking", "thinking": "Hm.", "signature": "s"}]),
    "cut_json": _faulty(text, lambda answer: answer[: len(answer) // 2]),
    "wrong_type": _faulty(answered, lambda answer: json.dumps(dict.fromkeys(json.loads(answer), 7))),
    "duplicate_keys": _faulty(answered, lambda answer: f"{answer[:-1]}, {answer[1 : answer.index(':')]}: null}}"),
    "deep": _faulty(answered, lambda _: '{"a": ' + "[" * 3_000 + "]" * 3_000 + "}"),
    "huge_text": lambda request: text(request, '{"action": "' + "x" * 1_100_000 + '"}'),
    "unknown_tool": unknown_tool,
    "no_usage": _good_with_usage({}),
    "negative_usage": _good_with_usage({"input_tokens": -5, "output_tokens": 7}),
    "cached_usage": _good_with_usage(
        {"input_tokens": 10, "output_tokens": 20, "cache_read_input_tokens": 300, "cache_creation_input_tokens": 40}
    ),
    "lacks_native": _lacking("native"),
    "lacks_tools": _lacking("native", "tools"),
    "lacks_forcing": _lacking("native", "forcing"),
    "short_answers": _lacking("length"),
    "echo_400": lambda request: error(400, f"cannot do this: {request.prompt[:300]}"),
    "too_long": _always(error(400, "prompt is too long: 250000 tokens > 200000 maximum")),
    "unknown_model": lambda request: error(404, f"model: {request.model}"),
    "no_credit": _always(error(400, "Your credit balance is too low to access the API.")),
    "html_200": _always(Reply(200, {"content-type": "text/html"}, HTML.encode())),
    "html_502": _always(Reply(502, {"content-type": "text/html"}, HTML.encode())),
    "error_200": _always(Reply(200, JSON_TYPE, error(529, "Overloaded").body)),
    "garbage_200": _always(Reply(200, JSON_TYPE, b"\xff\xfe{not json")),
    "empty_200": _always(Reply(200, JSON_TYPE, b"")),
    "huge_body": lambda request: Reply(200, JSON_TYPE, good(request).body + b" " * 9_000_000),
    "moved": _always(Reply(307, {"location": "http://127.0.0.1:9/v1/messages"}, b"")),
    "reset": _always(Reply(0, {}, b"", "reset")),
    "reset_after_headers": _always(Reply(200, JSON_TYPE, b"", "reset_after_headers")),
    "truncated": lambda request: Reply(200, JSON_TYPE, good(request).body, "truncated"),
    "trickle": lambda request: Reply(200, JSON_TYPE, good(request).body, "trickle"),
    "slow": _always(Reply(200, JSON_TYPE, b"", "never")),
}


def reply_to(request: ModelRequest, scenario: str) -> Reply:
    """The reply of a scenario by its name; `status:CODE` and `status:CODE:RETRY-AFTER` are scenarios too."""
    if scenario.startswith("status:"):
        _, code, *wait = scenario.split(":", 2)
        return error(int(code), f"status {code} on purpose", {"retry-after": wait[0]} if wait else None)
    return SCENARIOS[scenario](request)


def check(scenario: str) -> str:
    """The name itself. Raises ValueError for a name that is no scenario."""
    if scenario not in SCENARIOS and not re.fullmatch(r"status:\d{3}(:.+)?", scenario):
        raise ValueError(f"no scenario {scenario}; there are {', '.join(SCENARIOS)}, status:CODE[:RETRY-AFTER]")
    return scenario
