"""How a model endpoint may behave: each scenario turns a request into a reply, sensible, broken or none at all."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.fakes import checking_work, hostile_pages, model_work
from tests.fakes.model_request import ModelRequest

JSON_TYPE = {"content-type": "application/json"}
RAW = '"@raw@"'
PROSE = "I would much rather talk about the weather, which has been lovely."
HTML = "<html><body><h1>502 Bad Gateway</h1></body></html>"
ENUMERATIONS = re.compile(r'("(?:confidence|severity|quality|kind|action)": )"\w+"')
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


def message(
    request: ModelRequest,
    content: list[dict[str, Any]],
    stop_reason: str | None = "end_turn",
    usage: dict[str, Any] | None = None,
    raw: str = "",
) -> Reply:
    """A message of status 200; `raw` is written verbatim where a block says `@raw@`."""
    counted = {"input_tokens": len(request.system + request.prompt) // 4, "output_tokens": len(str(content) + raw) // 4}
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
    usage = {name: count for name, count in body["usage"].items() if name != "output_tokens"}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": body | {"content": [], "stop_reason": None, "usage": usage}},
        {"type": "ping"},
    ]
    for index, block in enumerate(content):
        deltas: list[dict[str, Any]] = []
        if block.get("type") == "text" and isinstance(block.get("text"), str):
            words, block["text"] = block["text"], ""
            parts = (words[: len(words) // 2], words[len(words) // 2 :])
            deltas = [{"type": "text_delta", "text": part} for part in parts]
        elif block.get("type") == "tool_use" and "input" in block:
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
            block["input"] = {}
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    counted = {name: count for name, count in body["usage"].items() if name == "output_tokens"}
    events.append({"type": "message_delta", "delta": {"stop_reason": body["stop_reason"]}, "usage": counted})
    events.append({"type": "message_stop"})
    lines = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return Reply(200, {"content-type": "text/event-stream; charset=utf-8"}, lines.encode(), reply.delivery)


def text(request: ModelRequest, answer: str, stop_reason: str | None = "end_turn") -> Reply:
    """An answer as text."""
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
    """Sensible work."""
    if request.mode == "turn":
        content = request.good_turn()
        called = any(block["type"] == "tool_use" for block in content)
        return message(request, content, "tool_use" if called else "end_turn")
    return answered(request, request.good_answer())


def gaps(request: ModelRequest) -> Reply:
    """Sensible work in which every analysis of the first iteration finds something missing."""
    if request.mode == "turn":
        return good(request)
    first = re.search(r"Iteration: 1 of", request.prompt) is not None
    return answered(request, request.good_answer(with_gap=first))


def thorough(request: ModelRequest) -> Reply:
    """Work in long sentences; each iteration but the last finds something missing."""
    if request.mode == "turn":
        return good(request)
    if request.role == "planner":
        return answered(request, json.dumps(model_work.thorough_plan(request.prompt)))
    if request.role == "supervisor":
        return answered(request, json.dumps(model_work.thorough_reflection(request.prompt)))
    iteration = re.search(r"Iteration: (\d+) of (\d+)", request.prompt)
    return answered(request, request.good_answer(with_gap=iteration is not None and iteration[1] != iteration[2]))


def gullible(request: ModelRequest) -> Reply:
    """Work that does what the pages say, without the mark that it was told to keep."""
    return answered(request, hostile_pages.answer(request.role, request.prompt))


def betraying(request: ModelRequest) -> Reply:
    """Work that does what the pages say and gives the mark away."""
    mark = hostile_pages.mark_of(request.system) or "nothing"
    return answered(request, hostile_pages.answer(request.role, request.prompt, mark))


def fabricates(request: ModelRequest) -> Reply:
    """The writer adds to each statement somebody whom no source names."""
    if request.role in ("synthesizer", "scribe"):
        return answered(request, checking_work.fabricated_report(request.prompt))
    return good(request)


def embroiders(request: ModelRequest) -> Reply:
    """Sensible work, but for a report that says more than its passages."""
    if request.role in ("synthesizer", "scribe"):
        return answered(request, checking_work.embroidered_report(request.prompt))
    return good(request)


def rewords(request: ModelRequest) -> Reply:
    """Sensible work, but for a report in words that no rule recognizes."""
    if request.role in ("synthesizer", "scribe"):
        return answered(request, checking_work.reworded_report(request.prompt))
    return good(request)


def lying(request: ModelRequest) -> Reply:
    """A checker to whom everything is supported."""
    return answered(request, checking_work.lying(request.prompt))


def believing(request: ModelRequest) -> Reply:
    """A checker that finds everything supported but the control of its call."""
    return answered(request, json.dumps(checking_work.believing(request.prompt)))


def worsening(request: ModelRequest) -> Reply:
    """A corrector that makes up what nobody said."""
    return answered(request, json.dumps(checking_work.worsening(request.prompt)))


def hopeless(request: ModelRequest) -> Reply:
    """Useless prose, whatever is asked."""
    return text(request, PROSE)


def prose_json(request: ModelRequest) -> Reply:
    """The answer inside chatter."""
    return text(request, f"Sure {{happy to}}!\n```json\n{request.good_answer()}\n```\nAnything else? {{ }}")


def cut(request: ModelRequest) -> Reply:
    """Stopped at the cap in the middle."""
    answer = request.good_answer()
    return text(request, answer[: len(answer) // 2], "max_tokens")


def cut_json(request: ModelRequest) -> Reply:
    """Broken off in the middle, and said to be complete."""
    answer = request.good_answer()
    return text(request, answer[: len(answer) // 2])


def surrogates(request: ModelRequest) -> Reply:
    """A lone surrogate in the first text of the answer."""
    answer = request.good_answer()
    broken = answer.replace('": "', '": "\\ud800', 1) if answer.startswith("{") else "\ud800" + answer
    return answered(request, broken)


def duplicate_keys(request: ModelRequest) -> Reply:
    """The first key of the answer a second time, with another value."""
    answer = request.good_answer()
    key = answer[1 : answer.index(":")]
    return answered(request, f"{answer[:-1]}, {key}: null}}")


def huge_text(request: ModelRequest) -> Reply:
    """An answer of over a million characters."""
    return text(request, '{"action": "' + "x" * 1_100_000 + '"}')


def wrong_type(request: ModelRequest) -> Reply:
    """Numbers where lists and texts belong."""
    return answered(request, json.dumps(dict.fromkeys(json.loads(request.good_answer()), 7)))


def lacks_native(request: ModelRequest) -> Reply:
    """An endpoint that knows no output formats."""
    if request.mode == "native":
        return error(400, "output_config: Extra inputs are not permitted")
    return good(request)


def lacks_tools(request: ModelRequest) -> Reply:
    """An endpoint that knows neither output formats nor forced tools."""
    if request.mode in ("tool", "turn"):
        return error(400, "tool_choice is not supported by this model")
    return lacks_native(request)


def lacks_caching(request: ModelRequest) -> Reply:
    """An endpoint that knows no marks of what to keep."""
    if "cache_control" in json.dumps(request.body):
        return error(400, "system.0.cache_control: Extra inputs are not permitted")
    return good(request)


def short_answers(request: ModelRequest) -> Reply:
    """An endpoint that allows short answers only."""
    if request.body["max_tokens"] > 4_096:
        return error(400, "max_tokens: 24000 > 4096, which is the maximum allowed number of output tokens")
    return good(request)


def lacks_forcing(request: ModelRequest) -> Reply:
    """An endpoint that takes tools and forces none."""
    if request.body.get("tool_choice", {}).get("type") in ("tool", "any"):
        return error(400, "tool_choice: only auto is supported by this model")
    return lacks_native(request)


def thinks(request: ModelRequest) -> Reply:
    """An answer after reasoning that is counted and not seen."""
    usage = {"input_tokens": 100, "output_tokens": 5_000}
    thought = {"type": "thinking", "thinking": "Hm. {", "signature": "s"}
    return message(request, [thought, {"type": "text", "text": request.good_answer()}], usage=usage)


def unknown_tool(request: ModelRequest) -> Reply:
    """A call of a tool that was not offered."""
    block = {"type": "tool_use", "id": "toolu_1", "name": "send_mail", "input": {"to": "someone"}}
    return message(request, [block], "tool_use")


def _good_with_usage(usage: dict[str, Any]) -> Callable[[ModelRequest], Reply]:
    return lambda request: message(request, [{"type": "text", "text": request.good_answer()}], usage=usage)


def _always(reply: Reply) -> Callable[[ModelRequest], Reply]:
    return lambda _: reply


SCENARIOS: dict[str, Callable[[ModelRequest], Reply]] = {
    "good": good,
    "gaps": gaps,
    "thorough": thorough,
    "gullible": gullible,
    "betraying": betraying,
    "embroiders": embroiders,
    "fabricates": fabricates,
    "rewords": rewords,
    "lying": lying,
    "believing": believing,
    "worsening": worsening,
    "hopeless": hopeless,
    "refusal": lambda request: message(request, [], "refusal"),
    "cut": cut,
    "cut_json": cut_json,
    "empty": lambda request: message(request, []),
    "thinking_only": lambda request: message(request, [{"type": "thinking", "thinking": "Hm.", "signature": "s"}]),
    "prose_json": prose_json,
    "wrong_enum": lambda request: answered(request, ENUMERATIONS.sub(r'\1"splendid"', request.good_answer())),
    "wrong_type": wrong_type,
    "duplicate_keys": duplicate_keys,
    "deep": lambda request: answered(request, '{"a": ' + "[" * 3_000 + "]" * 3_000 + "}"),
    "surrogates": surrogates,
    "not_a_number": lambda request: answered(request, request.good_answer()[:-1] + ', "start": NaN}'),
    "long_number": lambda request: answered(request, request.good_answer()[:-1] + f', "start": {"9" * 5_000}}}'),
    "trailing_comma": lambda request: text(request, request.good_answer()[:-1] + ",}"),
    "unclosed": lambda request: text(request, request.good_answer()[:-1]),
    "too_closed": lambda request: text(request, request.good_answer() + "}}"),
    "huge_text": huge_text,
    "unknown_tool": unknown_tool,
    "no_stop_reason": lambda request: text(request, request.good_answer(), None),
    "no_usage": _good_with_usage({}),
    "negative_usage": _good_with_usage({"input_tokens": -5, "output_tokens": 7}),
    "cached_usage": _good_with_usage(
        {"input_tokens": 10, "output_tokens": 20, "cache_read_input_tokens": 300, "cache_creation_input_tokens": 40}
    ),
    "lacks_native": lacks_native,
    "lacks_tools": lacks_tools,
    "lacks_forcing": lacks_forcing,
    "lacks_caching": lacks_caching,
    "short_answers": short_answers,
    "thinks": thinks,
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

ONLY_OF_JSON = {
    *("cut_json", "prose_json", "wrong_enum", "wrong_type", "duplicate_keys", "deep", "not_a_number", "long_number"),
    *("trailing_comma", "unclosed", "too_closed"),
}
"""Faults that a report, which is plain text, cannot have: the synthesizer gives a good one."""


def reply_to(request: ModelRequest, scenario: str) -> Reply:
    """The reply of a scenario by its name; `status:CODE` and `status:CODE:RETRY-AFTER` are scenarios too."""
    if scenario.startswith("status:"):
        _, code, *wait = scenario.split(":", 2)
        return error(int(code), f"status {code} on purpose", {"retry-after": wait[0]} if wait else None)
    if scenario in ONLY_OF_JSON and request.role == "synthesizer":
        return good(request)
    return SCENARIOS[scenario](request)


def check(scenario: str) -> str:
    """The name itself. Raises ValueError for a name that is no scenario."""
    if scenario not in SCENARIOS and not re.fullmatch(r"status:\d{3}(:.+)?", scenario):
        raise ValueError(f"no scenario {scenario}; there are {', '.join(SCENARIOS)}, status:CODE[:RETRY-AFTER]")
    return scenario
