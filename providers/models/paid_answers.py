"""Paid answers as the call store keeps them: the key of a request, and answers, usable or not, as JSON."""

import hashlib
import json
from typing import Any, Final

from contracts.outcome import Usage
from contracts.tool_turns import ToolTurnInput, offered_tools
from contracts.vocabulary import EngineKind
from providers.errors import AnswerCut, AnswerRefused, AnswerUnusable, ContentCorrupt, InvalidOutput
from providers.interfaces import EngineAnswer, EngineTask
from providers.models.structured_output import Role, schema_text
from providers.models.tool_calls import tool_definition

FORMAT: Final = 1
ANSWER: Final = "answer"
UNUSABLE: Final[dict[str, type[AnswerUnusable]]] = {
    "invalid_output": InvalidOutput,
    "answer_cut": AnswerCut,
    "answer_refused": AnswerRefused,
}


def request_fingerprint(task: EngineTask) -> str:
    """SHA-256, in hexadecimal, over everything that decides the answer: equal requests need paying only once."""
    parts: dict[str, Any] = {
        "role": task.role.name,
        "system": task.system,
        "prompt": task.prompt,
        "repair": task.input.repair,
        "model": task.input.model,
        "schema": schema_text(task.role.draft),
        "plain_text": task.role.plain_text,
        "output_tokens": task.role.output_tokens,
    }
    if isinstance(task.input, ToolTurnInput):
        parts["messages"] = [[message.role, message.content] for message in task.messages]
        parts["tools"] = [tool_definition(tool) for tool in offered_tools(task.role, task.input)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def answer_to_json(answer: EngineAnswer | AnswerUnusable) -> str:
    """An answer for the call store. An unusable one is kept too: it was paid, and asking again would pay again."""
    if isinstance(answer, EngineAnswer):
        kept: dict[str, Any] = {
            "kind": ANSWER,
            "draft": answer.draft.model_dump(mode="json"),
            "engine": answer.engine.value,
            "warnings": answer.warnings,
            "share": answer.share,
        }
    else:
        kind = next(name for name, error in UNUSABLE.items() if isinstance(answer, error))
        kept = {"kind": kind, "problem": str(answer)}
    kept |= {"format": FORMAT, "model": answer.model, "usage": answer.usage.model_dump(mode="json")}
    return json.dumps(kept, sort_keys=True)


def answer_from_json(text: str, role: Role) -> EngineAnswer:
    """What `answer_to_json` kept.

    Raises the kept `AnswerUnusable` with its usage, or `ContentCorrupt` for a text that is no kept answer of the role.
    """
    try:
        kept = json.loads(text)
        usage, kind = Usage.model_validate(kept["usage"]), kept["kind"]
        if kind == ANSWER:
            return EngineAnswer(
                draft=role.draft.model_validate(kept["draft"]),
                engine=EngineKind(kept["engine"]),
                model=kept["model"],
                usage=usage,
                warnings=list(kept["warnings"]),
                share=float(kept.get("share", 1.0)),
            )
        error = UNUSABLE[kind](str(kept["problem"]), usage=usage, model=kept["model"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ContentCorrupt("a kept answer cannot be read") from None
    raise error
