"""Parsing of requests: a valid request, or one line per problem."""

import json
from difflib import get_close_matches
from functools import cache
from itertools import islice
from typing import Final

from pydantic import ValidationError

from contracts.protected_sources import resolve_protected_sources
from contracts.request import Mode, ResearchRequest, published_between
from contracts.strategies import list_selectable
from contracts.texts import join_alternatives, problem_message

MAX_REQUEST_BYTES = 1_000_000
MAX_LINES = 20
MAX_METADATA_BYTES = 2_048

ANY_DAY = "2000-01-01"
"""Used as today: timeframes relative to today have no last day, so their order cannot be wrong."""


class InvalidRequest(ValueError):
    """An unusable request. `lines` are `path: message`, without any of the values sent."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("\n".join(lines[:MAX_LINES]))
        self.lines = lines[:MAX_LINES]


def parse_request(data: bytes | str) -> ResearchRequest:
    """Validate the JSON of a request. Raises `InvalidRequest`; never echoes the input."""
    if len(data) > MAX_REQUEST_BYTES:
        raise InvalidRequest([f"request: larger than {MAX_REQUEST_BYTES} bytes"])
    try:
        request = ResearchRequest.model_validate_json(data, strict=True)
    except ValidationError as error:
        raise InvalidRequest(error_lines(error)) from None
    if lines := _check_across_fields(request):
        raise InvalidRequest(lines)
    return request


def error_lines(error: ValidationError) -> list[str]:
    """Return `path: message` for the first problems, without values. Unknown keys are named, cut to 64 characters.

    A failure with a line for each of 200,000 unknown keys is larger than the server accepts.
    """
    lines = []
    for problem in islice(error.errors(include_input=False, include_url=False), MAX_LINES):
        parts = [str(part)[:64] for part in problem["loc"]]
        path = ".".join(parts) or "request"
        near = []
        if problem["type"] == "extra_forbidden" and error.title == ResearchRequest.__name__:
            near = get_close_matches(parts[-1], _request_keys(), 1)
        hint = f": is {near[0]} meant?" if near else ""
        lines.append(f"{path}: {problem_message(problem)}{hint}")
    return lines


@cache
def _request_keys() -> frozenset[str]:
    """Return the keys of a request, at any depth."""
    schema = ResearchRequest.model_json_schema()
    return frozenset(key for table in (schema, *schema["$defs"].values()) for key in table.get("properties", ()))


def _check_across_fields(request: ResearchRequest) -> list[str]:
    """Check the rules that span several fields or count bytes."""
    is_resumed = request.continue_from is not None and "strategy" not in request.model_fields_set
    if lines := [] if is_resumed else strategy_problems(request, request.strategy):
        return lines
    # A resumed run takes corpus and domains from its session.
    if request.continue_from is None and (lines := resolve_protected_sources(request, request.search)[1]):
        return lines
    if request.refresh and request.continue_from is None:
        return ["refresh: only a finished run can be refreshed: name it in continue_from"]
    metadata = json.dumps(request.metadata or {}, ensure_ascii=False).encode("utf-8", "surrogatepass")
    if len(metadata) > MAX_METADATA_BYTES:
        return [f"metadata: larger than {MAX_METADATA_BYTES} bytes"]
    first, last = published_between(request.constraints.timeframe, ANY_DAY)
    if first and last and first > last:
        return ["constraints.timeframe: ends before it begins"]
    return []


SPECIAL_LIMITS: Final = {
    "steps": ("min_steps", "max_steps", "max_searches_per_step", "max_reads_per_step"),
    "agents": ("agent_seconds", "agent_wait_seconds"),
    "live report": ("max_update_characters",),
    "trees": ("max_nodes", "max_leaves", "max_corrections", "max_levels"),
}
"""Limits that only some strategies have; their presets are 0 in the others."""
ORDERED_LIMITS: Final = (("agent_seconds", "agent_wait_seconds"), ("min_steps", "max_steps"))


def strategy_problems(request: ResearchRequest, name: str) -> list[str]:
    """Return one line for an unusable strategy, or one for each setting that the strategy lacks."""
    strategies = {strategy.name: strategy for strategy in list_selectable()}
    if name not in strategies:
        return [f"strategy: unknown (no installed package declares it); choose {join_alternatives(list(strategies))}"]
    lines = []
    limits = request.limits.model_dump(exclude_none=True)
    if request.mode not in (Mode.AUTO, Mode.DEEP, *strategies[name].modes):
        names = [strategy.name for strategy in strategies.values() if request.mode in strategy.modes]
        hint = f"; {' and '.join(names)} knows it" if names else ""
        lines.append(f"mode: the strategy {name} has no mode {request.mode.value}{hint}")
    for noun, special in SPECIAL_LIMITS.items():
        if not any(getattr(preset, special[-1]) for preset in strategies[name].presets.values()):
            lines += [f"limits.{limit}: the strategy {name} has no {noun}" for limit in special if limit in limits]
    for smaller, larger in ORDERED_LIMITS:
        if smaller in limits and larger in limits and limits[smaller] > limits[larger]:
            lines.append(f"limits.{smaller}: more than limits.{larger}")
    return lines
