"""Build a valid `ResearchRequest` from options, a request file and `--set`."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from client.cli.context import CommandContext
from client.cli.corpus import find_corpus, read_start, unknown_corpus
from client.cli.errors import CommandError
from client.cli.options import RunOptions
from contracts.parse_request import InvalidRequest, error_lines, parse_request
from contracts.request import EngineChoice, ResearchRequest

LARGEST_REQUEST: Final = 4_000_000  # bytes; a request with the longest texts that are allowed is far smaller
LISTS: Final = (
    "exclude",
    "protected_sources",
    "output.sections",
    *(f"search.{name}" for name in ("providers", "source_types", "domains_allow", "domains_deny")),
)
"""Paths of a request whose value may be written with commas."""


@dataclass(frozen=True)
class RequestedRun:
    """A valid request, and the folder that is registered as its corpus first."""

    request: ResearchRequest
    folder: Path | None = None


async def read_request(context: CommandContext, options: RunOptions) -> RequestedRun:
    """Build the request: `--set` over options over the file. Raises `CommandError`."""
    settings, folder = context.settings, None
    if options.model is not None and not settings.uses_cluster and not settings.model_configured:
        raise CommandError(
            f"--model {options.model} cannot be used: set ANTHROPIC_API_KEY, or name its endpoint with --model-url URL "
            "(or ANTHROPIC_BASE_URL)"
        )
    values: dict[str, Any] = {} if options.request_file is None else read_request_file(options.request_file)
    values = merge(values, options.values() | _piped_question(options))
    values = merge(values, parse_assignments(options.assignments))
    if options.model is not None and values.get("engine") in (None, EngineChoice.AUTO.value):
        values["engine"] = EngineChoice.MODEL.value  # a model that is named is meant: no report without it
    registered = await context.stores.corpus_folders()
    if options.corpus is not None:
        values["corpus"], folder = find_corpus(options.corpus, registered, cluster=settings.uses_cluster)
    request = build_request(values)
    named = request.corpus
    if folder is None and named is not None and not settings.uses_cluster and named not in registered:
        raise CommandError(unknown_corpus(named, registered))
    return RequestedRun(request, folder)


def _piped_question(options: RunOptions) -> dict[str, str]:
    """Give the question on standard input: for `-`, and for a pipe where nothing else has the question."""
    named = options.question is not None or options.request_file is not None
    if options.question == "-" or not (named or options.assignments or sys.stdin.isatty()):
        return {"query": sys.stdin.read(LARGEST_REQUEST).strip()}
    return {}


def read_request_file(path: Path) -> dict[str, Any]:
    """Read a request as JSON, from standard input for `-`. Raises `CommandError`."""
    if path == Path("-"):
        data, name = sys.stdin.buffer.read(LARGEST_REQUEST), "the request on standard input"
    else:
        data, name = read_start(path, LARGEST_REQUEST, "the request file"), f"the request file {path}"
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise CommandError(f'{name} must be one JSON object of at most {LARGEST_REQUEST:,} bytes: {{"query": "…"}}')
    return value


def build_request(values: Mapping[str, Any]) -> ResearchRequest:
    """Validate a request. Raises `CommandError` with a `path: message` line per problem, without the values."""
    if not str(values.get("query") or "").strip():
        raise CommandError('the question is empty: research run "How does …?"')
    try:
        request = ResearchRequest.model_validate(dict(values))
        return parse_request(request.model_dump_json(exclude_unset=True))
    except ValidationError as error:
        lines = error_lines(error)
    except InvalidRequest as error:
        lines = error.lines
    raise CommandError("invalid request:\n" + "\n".join(lines))


def parse_assignments(assignments: Sequence[str]) -> dict[str, Any]:
    """Turn `--set` assignments into nested values; the request model judges paths and values. Raises `CommandError`."""
    values: dict[str, Any] = {}
    for assignment in assignments:
        path, equals, text = (part.strip() for part in assignment.partition("="))
        if not equals:
            raise CommandError(f"--set {assignment!r}: write it as PATH=VALUE, like limits.max_iterations=2")
        value: Any = _parse_value(path, text)
        for part in reversed(path.split(".")):
            value = {part: value}
        values = merge(values, value)
    return values


def merge(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    """Merge nested values key by key; the upper ones win."""
    result = dict(lower)
    for key, value in upper.items():
        below = result.get(key)
        both = isinstance(value, Mapping) and isinstance(below, Mapping)
        result[key] = merge(below, value) if both and isinstance(below, Mapping) else value
    return result


def _parse_value(path: str, text: str) -> Any:
    if text == "null":
        return None
    if text.startswith(("[", "{")):
        try:
            return json.loads(text)
        except json.JSONDecodeError:
            raise CommandError(f"--set {path}: write the value as JSON") from None
    return [item.strip() for item in text.split(",") if item.strip()] if path in LISTS else text
