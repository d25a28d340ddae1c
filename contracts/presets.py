"""Presets by strategy × depth: the meaning of `null` in a request (printed in `docs/configuration.md`)."""

from collections.abc import Iterable

from contracts.request import Approve, Checks, Clarify, Depth, Gates, Limits, Mode, Verify
from contracts.resolved import EffectiveLimits, ResolvedResearch
from contracts.strategies import declaration
from contracts.vocabulary import EngineKind, JudgeMode, ThinkMode

RESERVE_SHARE = 1 / 6
"""Share of a request's own deadline reserved for writing."""


def effective_depth(depth: Depth) -> Depth:
    """Return the depth, with `medium` for `auto`."""
    if depth is Depth.AUTO:
        return Depth.MEDIUM
    return depth


def preset(strategy: str, depth: Depth) -> EffectiveLimits:
    """Return the limits of a strategy at a depth. Raises KeyError for an undeclared strategy."""
    return declaration(strategy).presets[effective_depth(depth)]


def effective_limits(base: EffectiveLimits, asked: Limits) -> EffectiveLimits:
    """Return the preset overridden by explicit values; a low limit also lowers dependent limits not set explicitly."""
    explicit = {name: value for name, value in asked.model_dump().items() if value is not None}
    merged = base.model_dump() | explicit
    if base.max_steps:
        # Fewer steps than the preset's minimum lower the minimum.
        merged["min_steps"] = min(merged["min_steps"], merged["max_steps"])
    if asked.max_sources is not None:
        merged["max_new_sources"] = explicit.get("max_new_sources", min(base.max_new_sources, asked.max_sources))
        merged["max_sources_per_query"] = min(merged["max_sources_per_query"], asked.max_sources)
    if asked.deadline_seconds is not None:
        reserve = min(base.reserve_seconds, asked.deadline_seconds * RESERVE_SHARE)
        merged["reserve_seconds"] = explicit.get("reserve_seconds", reserve)
    return EffectiveLimits.model_validate(merged)


def with_choice(resolved: ResolvedResearch, choice: str) -> ResolvedResearch:
    """Return a resolved request with an open choice made: limits, depth or mode, and the depth's checks."""
    limits = resolved.choices.get(choice)
    if limits is None:
        return resolved
    depth = Depth(choice) if choice in set(Depth) else resolved.depth
    if choice in set(Mode) - {Mode.AUTO}:
        mode = Mode(choice)
    else:
        mode = resolved.mode
    asked = resolved.requested.get("verify")
    verify = effective_verify(Verify(asked) if asked else None, resolved.engine)
    checks = effective_checks(Checks.model_validate(resolved.requested.get("checks", {})), verify, resolved.engine)
    return resolved.with_fields(limits=limits, depth=depth, mode=mode, verify=verify, checks=checks, choices={})


def highest_limits(possible: Iterable[EffectiveLimits]) -> EffectiveLimits:
    """Return the highest of each limit; None (no limit) is the highest."""
    first, *others = possible
    values = {name: [getattr(limits, name) for limits in (first, *others)] for name in EffectiveLimits.model_fields}
    numbers = {name: bounds for name, bounds in values.items() if isinstance(bounds[0], int | float | None)}
    return first.model_copy(update={name: None if None in bounds else max(bounds) for name, bounds in numbers.items()})


def effective_gates(own: Gates, asked: Gates, engine: EngineKind) -> Gates:
    """Return the strategy's gates overridden by the request's, with an author of reflections."""
    think = ThinkMode.AUTO if engine is EngineKind.MODEL else ThinkMode.RULES
    return asked.with_fields(
        think=asked.think or own.think or think,
        clarify=asked.clarify or own.clarify or Clarify.OFF,
        approve=asked.approve or own.approve or Approve.NONE,
    )


def effective_verify(asked: Verify | None, engine: EngineKind) -> Verify:
    """Return the verification mode: as requested, else `full` with a model and `light` without one."""
    if asked is not None:
        return asked
    if engine is EngineKind.MODEL:
        return Verify.FULL
    return Verify.LIGHT


def effective_checks(asked: Checks, verify: Verify, engine: EngineKind) -> Checks:
    """Fill in the checks: corrections if verification is full; review by a model, or by free rules if it is full."""
    full = verify is Verify.FULL
    if engine is EngineKind.MODEL:
        review = JudgeMode.OFF if verify is Verify.OFF else JudgeMode.MODEL
    else:
        review = JudgeMode.RULES if full else JudgeMode.OFF
    correct = full if asked.correct is None else asked.correct
    return asked.with_fields(correct=correct, review=asked.review or review)
