"""Build a valid `ResearchRequest` from options, a request file and `--set`."""

import difflib
import json
import sys
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from client.cli.context import CommandContext
from client.cli.corpus import find_corpus, read_start, unknown_corpus
from client.cli.errors import CommandError, ExitCode
from contracts.parse_request import InvalidRequest, error_lines, parse_request
from contracts.request import EngineChoice, ResearchRequest
from workers.settings.loading import Flags

LARGEST_REQUEST: Final = 4_000_000  # bytes; a request with the longest texts that are allowed is far smaller


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options of `run`, `start`, `ask` and `resume`; None means not given."""

    question: str | None = None
    strategy: str | None = None
    mode: str | None = None
    depth: str | None = None
    engine: str | None = None
    model: str | None = None
    model_url: str | None = None
    corpus: str | None = None
    web: bool = False
    exclude: list[str] = field(default_factory=list)
    request_file: Path | None = None
    assignments: list[str] = field(default_factory=list)
    research_id: str | None = None
    out: Path | None = None
    as_json: bool = False
    quiet: bool = False
    clarify: str | None = None
    approve: str | None = None
    no_wait: bool = False
    dry_run: bool = False
    config: Path | None = None

    def flags(self) -> Flags:
        """Give the options that change settings."""
        return Flags(model=self.model, model_url=self.model_url, config=self.config)

    def values(self) -> dict[str, Any]:
        """Give the options that are part of the request."""
        gates = {name: value for name, value in (("clarify", self.clarify), ("approve", self.approve)) if value}
        given = {
            "query": self.question,
            "strategy": self.strategy,
            "mode": self.mode,
            "depth": self.depth,
            "engine": self.engine,
            "web": self.web or None,
            "exclude": self.exclude or None,
            "gates": gates or None,
            "models": None if self.model is None else dict.fromkeys(("simple", "analytical", "complex"), self.model),
        }
        return {name: value for name, value in given.items() if value is not None}


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
    values = merge(values, options.values())
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
    if named is None and request.web is False:
        message = "there is nothing to search: leave web unset, or name a folder with --corpus ./folder"
        raise CommandError(message, ExitCode.NOTHING_TO_WORK_WITH)
    return RequestedRun(request, folder)


def read_request_file(path: Path) -> dict[str, Any]:
    """Read a request as JSON, from standard input for `-`. Raises `CommandError`."""
    size, name = LARGEST_REQUEST + 1, f"the request file {path}"
    if path == Path("-"):
        if sys.stdin.isatty():
            raise CommandError("--request - reads standard input, and that is a terminal: pipe a request into it")
        data, name = sys.stdin.buffer.read(size), "the request on standard input"
    else:
        data = read_start(path, size, "the request file")
    if len(data) > LARGEST_REQUEST:
        raise CommandError(f"{name} is larger than {LARGEST_REQUEST:,} bytes: name a file with one request")
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{name} is no valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise CommandError(f'{name} must be one JSON object, like {{"query": "…"}}')
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
    """Turn `--set` assignments into nested values. Raises `CommandError` naming the known paths."""
    paths = known_paths()
    values: dict[str, Any] = {}
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        path = path.strip()
        if not equals:
            raise CommandError(f"--set {assignment!r}: write it as PATH=VALUE, like limits.max_iterations=2")
        if path not in paths:
            close = difflib.get_close_matches(path, paths, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise CommandError(f"--set has no path {path!r}{hint}\nknown: {', '.join(paths)}")
        value: Any = _parse_value(path, text.strip(), paths[path])
        for part in reversed(path.split(".")):
            value = {part: value}
        values = merge(values, value)
    return values


def known_paths(model: type[BaseModel] = ResearchRequest, prefix: str = "") -> dict[str, Any]:
    """Give every path of a request with its type: `limits.max_iterations`, `output.language`, …"""
    paths: dict[str, Any] = {}
    for name, field_info in model.model_fields.items():
        kind = _without_none(field_info.annotation)
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            paths |= known_paths(kind, f"{prefix}{name}.")
        elif name != "continue_from":  # `research resume` sets it
            paths[prefix + name] = kind
    return paths


def merge(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    """Merge nested values key by key; the upper ones win."""
    result = dict(lower)
    for key, value in upper.items():
        below = result.get(key)
        both = isinstance(value, Mapping) and isinstance(below, Mapping)
        result[key] = merge(below, value) if both and isinstance(below, Mapping) else value
    return result


def _parse_value(path: str, text: str, kind: Any) -> Any:
    if text == "null":
        return None
    origin = get_origin(kind)
    if origin is list and not text.startswith("["):
        return [item.strip() for item in text.split(",") if item.strip()]
    if origin in (list, dict):
        try:
            return json.loads(text)
        except json.JSONDecodeError:
            raise CommandError(f"--set {path}: write the value as JSON") from None
    return text


def _without_none(annotation: Any) -> Any:
    if get_origin(annotation) is Annotated:
        return _without_none(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        given = [kind for kind in get_args(annotation) if kind is not type(None)]
        return _without_none(given[0]) if len(given) == 1 else annotation
    return annotation
