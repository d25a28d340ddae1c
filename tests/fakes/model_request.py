"""A request to the Messages API as the fake understands it."""

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

from tests.fakes import checking_work, library_work, model_work, reflective_work, tool_work
from tests.fakes.conversation import has_tools, refuse, text_of

ROLE_LINE = re.compile(r"\s*role: (\w+)")
ANSWERS = {
    "clarifier": (model_work, "clarification"),
    "planner": (model_work, "plan"),
    "scout": (model_work, "plan"),
    "archivist": (model_work, "recall"),
    "refiner": (model_work, "refinement"),
    "supervisor": (model_work, "reflection"),
    "coordinator": (reflective_work, "classification"),
    "investigator": (reflective_work, "background"),
    "step_planner": (reflective_work, "steps"),
    "researcher": (reflective_work, "searches"),
    "reflector": (reflective_work, "reflection"),
    "checker": (checking_work, "careful"),
    "corrector": (checking_work, "correcting"),
    "reviewer": (checking_work, "reviewing"),
    "outliner": (tool_work, "outline"),
    "decomposer": (tool_work, "decomposition"),
    "manager": (library_work, "scope"),
    "librarian": (library_work, "searches"),
    "scanner": (library_work, "examination"),
    "tree_planner": (library_work, "tree"),
    "extractor": (library_work, "extraction"),
    "executor": (library_work, "self_check"),
    "reporter": (model_work, "update"),
    "arranger": (model_work, "arrangement"),
}
"""What sensible models answer in JSON, by role: a function by its name, so that a test can replace it."""
ROLES = (*ANSWERS, "summarizer", "analyzer", "synthesizer", "scribe", "responder", *tool_work.TOOL_WORK)


@dataclass(frozen=True)
class ModelRequest:
    """The parts that the scenarios look at."""

    body: dict[str, Any]
    request_hash: str
    role: str
    mode: str
    """`native`, `tool`, `text`, or `turn` where a role has tools of its own."""
    system: str
    prompt: str

    @property
    def model(self) -> str:
        return str(self.body.get("model"))

    def good_turn(self) -> list[dict[str, Any]]:
        """What a sensible model does with the tools that it is offered."""
        work = tool_work.TOOL_WORK.get(self.role)
        return work(self.body) if work else [{"type": "text", "text": "I do not know what is wanted."}]

    def good_answer(self, *, with_gap: bool = False) -> str:
        """What a sensible model answers: JSON, or Markdown for the report."""
        if self.role == "responder":
            return reflective_work.answer(self.prompt)
        if self.role in ("synthesizer", "scribe"):
            return model_work.report(self.prompt)
        if self.role == "summarizer":
            return model_work.summary(self.prompt)
        if self.role == "analyzer":
            return json.dumps(model_work.analysis(self.prompt, with_gap=with_gap))
        module, name = ANSWERS.get(self.role, (None, ""))
        return json.dumps(getattr(module, name)(self.prompt)) if module else "I do not know what is wanted."


def read_request(raw: bytes) -> ModelRequest:
    """Understand a request's body. Raises ValueError where the real API would refuse it."""
    body = json.loads(raw)
    if not isinstance(body, dict) or not body.get("model") or not body.get("messages") or not body.get("max_tokens"):
        raise ValueError("model, max_tokens and messages are required")
    refuse(body)
    system, prompt = _text(body.get("system")), "\n".join(_text(turn["content"]) for turn in body["messages"])
    output_format = (body.get("output_config") or {}).get("format")
    tools = body.get("tools") or []
    mode = "turn" if has_tools(body) else "native" if output_format else "tool" if tools else "text"
    return ModelRequest(body, hashlib.sha256(raw).hexdigest(), _role(system), mode, system, prompt)


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(map(text_of, content))
    return content or ""


def _role(system: str) -> str:
    stated = ROLE_LINE.match(system)
    return stated[1] if stated and stated[1] in ROLES else "unknown"
