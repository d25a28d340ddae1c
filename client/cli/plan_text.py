"""A plan as text that a person edits, and back: a brief, then one line for each sub-query."""

import json
from typing import Any, Final

from pydantic import ValidationError

from client.cli.command_errors import CommandError
from client.view.rendering import printable
from contracts.parse_request import error_lines
from contracts.plan import PlanAnswer, PlanRevision

HEAD: Final = """\
# The plan of {id}, version {version}. Lines that begin with # are left out.
# The text before the first "-" is the brief; each line that begins with "-" is a sub-query or a step, in their order.
# Save and close to send it; leave it as it is to change nothing.
"""


def as_text(plan: PlanAnswer, research_id: str) -> str:
    """What an editor shows."""
    lines = [HEAD.format(id=research_id, version=plan.version), printable(plan.brief), ""]
    lines += [f"- {printable(query.text)}" for query in plan.sub_queries]
    return "\n".join(lines) + "\n"


def read_plan(text: str) -> dict[str, Any]:
    """The revision that a text or a JSON object says. Raises `CommandError` with what is wrong."""
    given = _from_json(text) if text.lstrip().startswith("{") else _from_lines(text)
    try:
        PlanRevision.model_validate(given)
    except ValidationError as error:
        raise CommandError("the plan cannot be used:\n" + "\n".join(error_lines(error))) from None
    return given


def _from_json(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise CommandError('the plan is no valid JSON: expected {"brief": "…", "sub_queries": ["…"]}') from None
    # A plan as `research plan --json` shows it may be sent back: what is not edited is left out.
    kept = {name: value[name] for name in value if name not in ("version", "approved_version", "waiting", "nodes")}
    shown = kept.get("sub_queries")
    return kept | ({"sub_queries": [_as_written(part) for part in shown]} if isinstance(shown, list) else {})


def _as_written(part: Any) -> Any:
    """A part of a plan as it is shown, with what of it a person may write."""
    if isinstance(part, dict) and {"id", "text"} <= set(part):
        return {"query": part["text"], "rationale": part.get("rationale", "")}
    return part


def _from_lines(text: str) -> dict[str, Any]:
    kept = [line.strip() for line in text.splitlines() if not line.lstrip().startswith("#")]
    queries = [line.lstrip("-").strip() for line in kept if line.startswith("-")]
    brief = " ".join(line for line in kept if line and not line.startswith("-"))
    if not any(queries):
        raise CommandError('the plan has no sub-query: write each on a line of its own, with "- " in front')
    return {"sub_queries": [query for query in queries if query], **({"brief": brief} if brief else {})}
