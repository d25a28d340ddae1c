"""What chat windows send for themselves: the shape is that of their requests, the prose is ours."""

from typing import Any

QUESTION = "How is a boat moored in winter?"
HISTORY = f"<chat_history>\nUSER: {QUESTION}\nASSISTANT: With [1] two ropes.\n</chat_history>"


def open_webui(form: str, history: str = HISTORY) -> dict[str, Any]:
    """A request of Open WebUI that asks for an object of this form; one message of a user, and no stream."""
    content = (
        f"### Task:\nWrite what the form asks for.\n### Output:\nJSON format: {form}\n### Chat History:\n{history}"
    )
    return {
        "model": "deep-research/supervisor",
        "messages": [{"role": "user", "content": content}],
        "stream": False,
        "max_completion_tokens": 1000,
    }


OPEN_WEBUI: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "title": (open_webui('{ "title": "a short title" }'), {"title": QUESTION}),
    "tags": (open_webui('{ "tags": ["one", "two"] }'), {"tags": []}),
    "follow-ups": (open_webui('{ "follow_ups": ["First?", "Second?"] }'), {"follow_ups": []}),
    "queries": (open_webui('{ "queries": ["one"] }'), {"queries": []}),
    "completion": (
        open_webui('{ "text": "rest" }', f"{HISTORY}\n<type>General</type>\n<text>How is</text>"),
        {"text": ""},
    ),
    "image": (open_webui('{\n    "prompt": "a description"\n}'), {"prompt": ""}),
    "a form of a later version": (open_webui('{ "mood": "calm" }'), {}),
}
"""Requests of Open WebUI by what they ask for, with the object of the answer."""

TOOL_CHOICE: dict[str, Any] = {
    "model": "deep-research/supervisor",
    "messages": [
        {"role": "system", "content": 'Available Tools: [{"name": "clock"}]\nAnswer with {"tool_calls": []}.'},
        {"role": "user", "content": f'Query: History:\nUSER: """{QUESTION}"""\nQuery: {QUESTION}'},
    ],
    "stream": False,
}


def alone(content: str, *, stream: bool = False) -> dict[str, Any]:
    """A request of Open WebUI of one message, without a history in it."""
    return {
        "model": "deep-research/supervisor",
        "messages": [{"role": "user", "content": content}],
        "stream": stream,
        "max_completion_tokens": 1000,
    }


EMOJI = alone(f'### Task:\nName a face.\n\nMessage: """{QUESTION}"""')
"""Of earlier versions."""
NEW_EMOJI = alone(f"Your task is to reflect the speaker's mood, in our words.\n\nMessage: ```{QUESTION}```")
COMPACTION = alone(
    f"### Task:\nShorten what was said.\n\n### Previous Summary:\n\n### Messages Being Compacted:\nUSER: {QUESTION}\n"
    "### Recent Messages Kept In Context:\nASSISTANT: With two ropes."
)
MERGING = alone(
    "You have been provided with a set of responses from here and there to "
    f'"{QUESTION}"\n\nMake one of them.\n\nResponses from models: """With two ropes."""',
    stream=True,
)

LIBRECHAT_TITLE: dict[str, Any] = {
    "model": "deep-research/supervisor",
    "messages": [
        {
            "role": "user",
            "content": "Provide a concise, 5-word-or-less title for the conversation, in our words.\n\n"
            f"Conversation:\nUser: {QUESTION}\nAI: With [1] two ropes.",
        }
    ],
    "stream": True,
    "user": "66f0",
}
LIBRECHAT_LABELS: dict[str, Any] = {
    "model": "deep-research/supervisor",
    "messages": [
        {
            "role": "user",
            "content": f"Analyze this conversation and provide:\n1. and 2. as ever\n\nUser: {QUESTION}\nAI: With two ropes.",
        }
    ],
    "stream": False,
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "extract",
                "parameters": {"type": "object", "properties": {"title": {"type": "string"}}},
            },
        }
    ],
    "tool_choice": {"type": "function", "function": {"name": "extract"}},
}
