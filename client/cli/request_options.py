"""From options, a request file and `--set` to one valid `ResearchRequest`."""

import difflib
import json
import sys
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from client.cli.command_errors import CommandError, ExitCode
from client.cli.folders import corpus_of_cluster, find_corpus, name_for, start_of_file, unknown_corpus
from client.cli.options import RunOptions
from contracts.parse_request import InvalidRequest, error_lines, parse_request
from contracts.request import EngineChoice, ResearchRequest
from workers.settings.loading import Settings


@dataclass(frozen=True)
class AskedRun:
    """A valid request, and the folder to register before it can be used."""

    request: ResearchRequest
    folder: Path | None = None


def ask(options: RunOptions, settings: Settings, registered: dict[str, Path]) -> AskedRun:
    """The request of the options over the file. Raises `CommandError` for anything that cannot be used."""
    values: dict[str, Any] = {} if options.request_file is None else read_request_file(options.request_file)
    values = merge(values, _flags(options))
    values = merge(values, parse_assignments(options.assignments))
    if options.model is not None and values.get("engine") in (None, EngineChoice.AUTO.value):
        values["engine"] = EngineChoice.MODEL.value  # a model that is named is meant: no report without it
    folder = None
    if options.corpus is not None:
        if settings.uses_cluster:
            name = corpus_of_cluster(options.corpus)
        else:
            name, folder = find_corpus(options.corpus, registered)
        if options.corpus_name is not None:
            name = name_for(options.corpus_name, folder, registered)
        values["corpus"] = name
    request = build_request(values)
    named = request.corpus
    if folder is None and named is not None and not settings.uses_cluster and named not in registered:
        raise CommandError(unknown_corpus(named, registered))
    if named is None and request.web is False:
        message = "nothing to search: neither the web nor a folder (--corpus ./folder)"
        raise CommandError(message, ExitCode.NOTHING_TO_WORK_WITH)
    return AskedRun(request, folder)


def _flags(options: RunOptions) -> dict[str, Any]:
    asked = {"clarify": options.clarify, "approve": options.approve}
    given = {
        "query": options.question,
        "strategy": options.strategy,
        "mode": options.mode,
        "depth": options.depth,
        "engine": options.engine,
        "web": True if options.web else None,
        "exclude": options.exclude or None,
        "gates": {name: value for name, value in asked.items() if value is not None} or None,
        "models": None if options.model is None else dict.fromkeys(("simple", "analytical", "complex"), options.model),
    }
    return {name: value for name, value in given.items() if value is not None}


STANDARD_INPUT: Final = Path("-")
LARGEST_REQUEST = 4_000_000
"""Bytes; a request with the longest texts that are allowed is far smaller."""
NOT_SETTABLE = ("continue_from",)


def known_paths(model: type[BaseModel] = ResearchRequest, prefix: str = "") -> dict[str, Any]:
    """Every path that `--set` knows, with its type: `limits.max_iterations`, `output.language`, …"""
    paths: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        kind = _without_null(field.annotation)
        if prefix == "" and name in NOT_SETTABLE:
            continue
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            paths |= known_paths(kind, f"{prefix}{name}.")
        else:
            paths[prefix + name] = kind
    return paths


def parse_assignments(assignments: Sequence[str]) -> dict[str, Any]:
    """`--set` assignments as nested values. Raises `CommandError` naming the known paths."""
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
        values = merge(values, _nest(path.split("."), _parse_value(path, text.strip(), paths[path])))
    return values


def read_request_file(path: Path) -> dict[str, Any]:
    """A request as JSON. Raises `CommandError` when it cannot be read or is no JSON object."""
    whole, what = LARGEST_REQUEST + 1, f"the request file {path}"
    if path == STANDARD_INPUT:
        if sys.stdin.isatty():
            raise CommandError("--request - reads standard input, and that is a terminal: pipe a request into it")
        data, what = sys.stdin.buffer.read(whole), "the request on standard input"
    else:
        data = start_of_file(path, whole, "the request file")
    if len(data) > LARGEST_REQUEST:
        raise CommandError(f"{what} is larger than {LARGEST_REQUEST:,} bytes")
    try:
        value = json.loads(data)
    except RecursionError:
        raise CommandError(f"{what} is nested too deeply") from None
    except UnicodeDecodeError:
        raise CommandError(f"{what} cannot be read: not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise CommandError(
            f"{what} is no valid JSON: {error.msg} in line {error.lineno}, column {error.colno}"
        ) from None
    if not isinstance(value, dict):
        raise CommandError(f'{what} must hold one JSON object, like {{"query": "…"}}')
    return value


def build_request(values: Mapping[str, Any]) -> ResearchRequest:
    """The valid request. Raises `CommandError` with one `path: message` line per problem, without the values."""
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


def merge(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    """Both, the upper one winning key by key."""
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


def _nest(parts: Sequence[str], value: Any) -> dict[str, Any]:
    for part in reversed(parts):
        value = {part: value}
    return dict(value)


def _without_null(annotation: Any) -> Any:
    if get_origin(annotation) is Annotated:
        return _without_null(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        given = [kind for kind in get_args(annotation) if kind is not type(None)]
        return _without_null(given[0]) if len(given) == 1 else annotation
    return annotation
