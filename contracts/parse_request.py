"""Reading of a request: a valid one, or one line for each problem."""

import json
from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from contracts.request import Mode, ResearchRequest, published_between
from contracts.strategies import PLANNED, declaration, list_declared, list_selectable
from contracts.texts import either, expectation

MAX_REQUEST_BYTES = 1_000_000
MAX_LINES = 20
MAX_METADATA_BYTES = 2_048

ANY_DAY = "2000-01-01"
"""Timeframes that reach back from today have no last day, so today is of no matter to their order."""


class InvalidRequest(ValueError):
    """The request cannot be used. `lines` are `path: message`; no value that was sent is repeated."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("\n".join(lines[:MAX_LINES]))
        self.lines = lines[:MAX_LINES]


def parse_request(data: bytes | str) -> ResearchRequest:
    """Validate the JSON of a request. Raises `InvalidRequest`; never echoes what was sent."""
    if len(data) > MAX_REQUEST_BYTES:
        raise InvalidRequest([f"request: larger than {MAX_REQUEST_BYTES} bytes"])
    text = data if isinstance(data, str) else _decode(data)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidRequest(["request: not valid JSON"]) from None
    if not isinstance(value, dict):
        raise InvalidRequest([f'request: expected an object such as {{"query": "…"}}, got {_kind(value)}'])
    try:
        request = ResearchRequest.model_validate_json(text, strict=True)
    except ValidationError as error:
        raise InvalidRequest(error_lines(error)) from None
    if lines := [*unavailable(request), *_beyond_models(request)]:
        raise InvalidRequest(lines)
    return request


def error_lines(error: ValidationError) -> list[str]:
    """`path: message` of each problem, without the values. An unknown key is named, cut to 64 characters."""
    problems = error.errors(include_input=False, include_url=False)
    return [f"{_path(problem['loc'])}: {_message(problem)}" for problem in problems]


def unavailable(request: ResearchRequest) -> list[str]:
    """Lines for a strategy that is known by name but not built yet."""
    selectable = [each.name for each in list_selectable()]
    return [f"strategy: not available yet; choose {either(selectable)}"] if request.strategy in PLANNED else []


def _beyond_models(request: ResearchRequest) -> list[str]:
    """Rules that span more than one field or count bytes."""
    known = [strategy.name for strategy in list_selectable()]
    if request.strategy not in (*known, *PLANNED):
        return [f"strategy: unknown; choose {either(known)}"]
    goes_on = request.continue_from is not None and "strategy" not in request.model_fields_set
    if lines := [] if goes_on else unknown_to_strategy(request, request.strategy):
        return lines
    metadata = json.dumps(request.metadata or {}, ensure_ascii=False).encode("utf-8", "surrogatepass")
    if len(metadata) > MAX_METADATA_BYTES:
        return [f"metadata: larger than {MAX_METADATA_BYTES} bytes"]
    first, last = published_between(request.constraints.timeframe, ANY_DAY)
    if first and last and first > last:
        return ["constraints.timeframe: ends before it begins"]
    return []


STEP_LIMITS: Final = ("min_steps", "max_steps", "max_searches_per_step", "max_reads_per_step")
AGENT_LIMITS: Final = ("agent_seconds", "agent_wait_seconds")


def unknown_to_strategy(request: ResearchRequest, name: str) -> list[str]:
    """Return a line for each setting that this strategy lacks, though another one may have it.

    A resumed run has the strategy of its session.
    """
    if name in PLANNED:
        return []  # `unavailable` has a line for it
    if name not in [strategy.name for strategy in list_declared()]:
        return ["strategy: no installed package declares it; install the one that the run was begun with"]
    strategy = declaration(name)
    lines = []
    if request.mode not in (Mode.AUTO, Mode.DEEP, *strategy.modes):
        others = [other.name for other in list_selectable() if request.mode in other.modes]
        who = f"; {' and '.join(others)} knows it" if others else ""
        lines.append(f"mode: the strategy {strategy.name} has no mode {request.mode.value}{who}")
    if not any(limits.max_steps for limits in strategy.presets.values()):
        named = [name for name in STEP_LIMITS if getattr(request.limits, name) is not None]
        lines += [f"limits.{name}: the strategy {strategy.name} has no steps" for name in named]
    if not any(limits.agent_seconds for limits in strategy.presets.values()):
        named = [name for name in AGENT_LIMITS if getattr(request.limits, name) is not None]
        lines += [f"limits.{name}: the strategy {strategy.name} has no agents" for name in named]
    work, wait = request.limits.agent_seconds, request.limits.agent_wait_seconds
    if work is not None and wait is not None and work > wait:
        lines.append("limits.agent_seconds: more than limits.agent_wait_seconds")
    fewest, most = request.limits.min_steps, request.limits.max_steps
    if fewest is not None and most is not None and fewest > most:
        lines.append("limits.min_steps: more than limits.max_steps")
    return lines


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidRequest(["request: not UTF-8 text"]) from None


def _path(location: tuple[int | str, ...]) -> str:
    return ".".join(str(part)[:64] for part in location) or "request"


def _message(problem: Mapping[str, Any]) -> str:
    least = problem.get("ctx", {}).get("min_length")
    message = str(problem["msg"]).removeprefix("Value error, ")[:200]
    known: dict[str, str] = {
        "too_short": f"expected at least {least}, and there is none" if least == 1 else message,
        "extra_forbidden": "unknown key",
        "missing": "required",
        "string_too_short": "must not be empty",
        "json_invalid": "not valid JSON",
    }
    return expectation(problem) or known.get(problem["type"], message)


def _kind(value: Any) -> str:
    names = {list: "a list", str: "a text", int: "a number", float: "a number", bool: "true or false"}
    return "null" if value is None else names.get(type(value), "something else")
