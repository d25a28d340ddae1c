"""The budget: reserved before each model call, settled after it. Pure functions of limits and use."""

from contracts.resolved import EffectiveLimits
from contracts.usage import Usage
from contracts.vocabulary import StopReason

RESERVED_CALLS = 1
"""Calls kept for the synthesis."""


def exhausted(limits: EffectiveLimits, used: Usage, in_flight: int, *, for_report: bool) -> StopReason | None:
    """Which limit forbids one more model call, if any.

    `in_flight` calls are already reserved. A call that is not for the report must leave the reserve untouched.
    """
    kept = 0 if for_report else RESERVED_CALLS
    if limits.max_model_calls is not None and used.model_calls + in_flight + 1 + kept > limits.max_model_calls:
        return StopReason.BUDGET_CALLS
    if limits.max_tokens is not None and used.input_tokens + used.output_tokens >= limits.max_tokens:
        return StopReason.BUDGET_TOKENS
    if limits.max_cost_usd is not None and used.cost_usd is not None and used.cost_usd >= limits.max_cost_usd:
        return StopReason.BUDGET_COST if used.model_calls else None
    return None
