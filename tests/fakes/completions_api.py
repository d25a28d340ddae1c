"""A loopback server that speaks POST /v1/chat/completions, with the scenarios of the Messages API and quirks of servers."""

import asyncio
import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from tests.fakes.conversation import signed
from tests.fakes.loopback import HttpRequest, response
from tests.fakes.messages_api import MessagesApi
from tests.fakes.model_scenarios import Reply

FINISH_REASONS = {"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length", "refusal": "content_filter"}
REFUSED_PARAMETERS = {
    "refuses_stream_options": ("stream_options", "stream_options: extra inputs are not permitted"),
    "refuses_max_tokens": (
        "max_tokens",
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    ),
    "refuses_max_completion_tokens": ("max_completion_tokens", "Unrecognized request argument: max_completion_tokens"),
    "refuses_format": ("response_format", "This response_format type is unavailable now"),
    "refuses_tools": ("tools", "tools param requires --jinja flag"),
}
QUIRKS = {
    *REFUSED_PARAMETERS,
    "refuses_choice",  # a tool_choice that forces a call
    "choice_is_auto",  # such a choice is accepted, and the model writes text
    "no_system",  # no message of the role system
    "one_system",  # more than one of them is refused
    "no_empty_tools",
    "no_finish_reason",
    "finish_is_stop",  # even after calls of tools
    "thoughts_in_reasoning",  # in place of reasoning_content
    "thoughts_in_text",  # up to </think>, without the opening tag
    "usage_only_when_asked",
    "whole",  # it does not stream
    "calls_at_index_0",  # several calls of tools at one index, each whole
    "arguments_as_object",
    "content_in_parts",
    "no_done",  # the stream ends without [DONE]
}


class CompletionsApi(MessagesApi):
    """The endpoint; `quirks` are names of `QUIRKS`, `models` what GET /v1/models lists, `ollama` its own addresses."""

    def __init__(
        self,
        scenario: str = "good",
        *,
        quirks: Collection[str] = (),
        models: list[dict[str, Any]] | None = None,
        ollama: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        assert QUIRKS.issuperset(quirks)
        super().__init__(scenario, **options)
        self.quirks = frozenset(quirks)
        self.models = models
        self.ollama = ollama or {}
        self.sent: list[dict[str, Any]] = []
        """The bodies of all requests, refused ones included."""

    async def serve(self, asked: HttpRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection may carry another."""
        if (asked.method, asked.target) != ("POST", "/v1/chat/completions"):
            known = self.ollama.get(asked.target)
            if asked.target == "/v1/models" and self.models is not None:
                known = {"object": "list", "data": self.models}
            writer.write(_json(404, {"error": {"message": "File Not Found"}}) if known is None else _json(200, known))
            await writer.drain()
            return True
        body = json.loads(asked.body)
        if not body:
            writer.write(_json(400, {"error": {"message": "messages: field required"}}))
            await writer.drain()
            return True
        self.sent.append(body)
        if problem := self._problem(body):
            self.headers.append(asked.headers)
            writer.write(_json(400, {"error": {"message": problem, "type": "invalid_request_error"}}))
            await writer.drain()
            return True
        messages = json.dumps(_as_messages(body)).encode()
        return await super().serve(replace(asked, target="/v1/messages", body=messages), reader, writer)

    def _problem(self, body: Mapping[str, Any]) -> str:
        for quirk, (name, said) in REFUSED_PARAMETERS.items():
            if quirk in self.quirks and name in body:
                return said
        roles = [message["role"] for message in body["messages"]]
        if "no_system" in self.quirks and "system" in roles:
            return "System role not supported"
        if "one_system" in self.quirks and roles.count("system") > 1:
            return "System message must be at the beginning"
        if "no_empty_tools" in self.quirks and body.get("tools") == []:
            return "[] is too short - 'tools'"
        if "refuses_choice" in self.quirks and body.get("tool_choice", "auto") != "auto":
            return "tool_choice: only auto is supported when thinking is enabled"
        return ""

    def answer_for(self, request: Any, reply: Reply) -> Reply:
        """The reply as this protocol has it."""
        if reply.status != 200:
            said = json.loads(reply.body)["error"]["message"] if reply.body.startswith(b"{") else ""
            body = {"error": {"message": said, "type": "error", "code": None}}
            return replace(reply, body=json.dumps(body).encode() if said else reply.body)
        try:
            message = json.loads(reply.body)
            body = self._completion(message)
        except (ValueError, KeyError, TypeError, RecursionError):
            return reply
        sent = self.sent[-1]
        padding = reply.body[len(reply.body.rstrip()) :]
        if "whole" in self.quirks:
            return replace(reply, body=json.dumps(body).encode() + padding)
        usage = body.pop("usage")
        chunks = [dict(body, choices=[{"index": 0, "delta": {"role": "assistant", "content": ""}}])]
        choice = body["choices"][0]
        chunks += [dict(body, choices=[{"index": 0, "delta": delta}]) for delta in self._deltas(choice["message"])]
        if "no_finish_reason" not in self.quirks:
            last = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
            chunks.append(dict(body, choices=[last]))
        asked = (sent.get("stream_options") or {}).get("include_usage")
        if asked or "usage_only_when_asked" not in self.quirks:
            chunks.append(dict(body, choices=[], usage=usage))
        lines = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
        lines += "" if "no_done" in self.quirks else "data: [DONE]\n\n"
        return replace(
            reply, headers={"content-type": "text/event-stream"}, body=b": ping" + padding + f"\n\n{lines}".encode()
        )

    def _completion(self, message: Mapping[str, Any]) -> dict[str, Any]:
        blocks = message["content"]
        text = "".join(block["text"] for block in blocks if block["type"] == "text")
        thoughts = "".join(block["thinking"] for block in blocks if block["type"] == "thinking")
        made: dict[str, Any] = {"role": "assistant", "content": text}
        if "thoughts_in_text" in self.quirks and text:
            made["content"] = f"The user wants this. I think so.</think>\n\n{text}"
        if thoughts:
            made["reasoning" if "thoughts_in_reasoning" in self.quirks else "reasoning_content"] = thoughts
        calls = [block for block in blocks if block["type"] == "tool_use"]
        if calls and "choice_is_auto" in self.quirks and calls[0]["name"] == "give_answer":
            made["content"], calls = json.dumps(calls[0]["input"]), []
        if calls:
            made["tool_calls"] = [self._call(number, call) for number, call in enumerate(calls)]
        reason = FINISH_REASONS.get(message["stop_reason"], message["stop_reason"])
        if "finish_is_stop" in self.quirks and reason == "tool_calls":
            reason = "stop"
        if "content_in_parts" in self.quirks:
            made["content"] = [{"type": "text", "text": made["content"]}]
        usage = message["usage"]
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": message["model"],
            "choices": [{"index": 0, "message": made, "finish_reason": reason}],
            "usage": {
                "prompt_tokens": usage.get("input_tokens"),
                "completion_tokens": usage.get("output_tokens"),
            },
        }

    def _call(self, number: int, call: Mapping[str, Any]) -> dict[str, Any]:
        arguments = call["input"] if "arguments_as_object" in self.quirks else json.dumps(call["input"])
        index = 0 if "calls_at_index_0" in self.quirks else number
        function = {"name": call["name"], "arguments": arguments}
        return {"index": index, "id": call["id"], "type": "function", "function": function}

    def _deltas(self, message: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The pieces in which a message is streamed."""
        deltas: list[dict[str, Any]] = [
            {name: message[name]} for name in ("reasoning", "reasoning_content") if name in message
        ]
        content = message["content"]
        if isinstance(content, str):
            half = len(content) // 2
            deltas += [{"content": content[:half]}, {"content": content[half:]}]
        else:
            deltas.append({"content": content})
        for call in message.get("tool_calls", []):
            arguments = call["function"]["arguments"]
            if not isinstance(arguments, str) or "calls_at_index_0" in self.quirks:
                deltas.append({"tool_calls": [call]})
                continue
            half = len(arguments) // 2
            first = call | {"function": {"name": call["function"]["name"], "arguments": arguments[:half]}}
            rest = {"index": call["index"], "function": {"arguments": arguments[half:]}}
            deltas += [{"tool_calls": [first]}, {"tool_calls": [rest]}]
        return deltas


def _json(status: int, value: Any) -> bytes:
    return response(status, json.dumps(value).encode(), {"content-type": "application/json"})


def _as_messages(body: Mapping[str, Any]) -> dict[str, Any]:
    """A request of chat completions in the form of the Messages API."""
    system = "\n".join(message["content"] for message in body["messages"] if message["role"] == "system")
    messages: list[dict[str, Any]] = []
    for message in body["messages"]:
        if message["role"] == "system":
            continue
        role = "user" if message["role"] == "tool" else message["role"]
        blocks = _blocks(message)
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        else:
            messages.append({"role": role, "content": blocks})
    if not system:  # where the role is refused, the first message begins with it
        system = messages[0]["content"][0]["text"]
    made: dict[str, Any] = {"model": body["model"], "messages": messages, "system": system}
    made["max_tokens"] = body.get("max_tokens") or body.get("max_completion_tokens") or 1_000
    if tools := body.get("tools"):
        functions = [tool["function"] for tool in tools]
        made["tools"] = [
            {"name": each["name"], "description": each["description"], "input_schema": each["parameters"]}
            for each in functions
        ]
        choice = body.get("tool_choice", "auto")
        if isinstance(choice, dict):
            made["tool_choice"] = {"type": "tool", "name": choice["function"]["name"]}
        else:
            made["tool_choice"] = {"type": "any" if choice == "required" else "auto"}
    if answer_format := body.get("response_format"):
        made["output_config"] = {"format": {"type": "json_schema", "schema": answer_format["json_schema"]["schema"]}}
    return made


def _blocks(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    if message["role"] == "tool":
        return [{"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}]
    thoughts = message.get("reasoning_content") or message.get("reasoning")
    blocks = [signed(thoughts)] if thoughts else []
    if message["content"]:
        blocks.append({"type": "text", "text": message["content"]})
    for call in message.get("tool_calls", []):
        arguments = json.loads(call["function"]["arguments"])
        blocks.append({"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": arguments})
    return blocks
