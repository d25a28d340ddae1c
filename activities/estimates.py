"""The estimate of a run before it begins: calls, tokens, searches and their cost. Pure."""

from collections.abc import Mapping, Sequence

from activities.configuration import ResearchConfiguration
from contracts.call_sizes import FINDINGS_PER_SUB_QUERY, expected_call, least_call, reasoning_room
from contracts.presets import with_choice
from contracts.request import SearchPolicy
from contracts.resolved import Estimate, Range, ResolvedResearch
from contracts.roles import AGAIN_CHARACTERS, ANALYZER
from contracts.strategies import FEWEST_SUB_QUERIES, calls_by_role
from contracts.vocabulary import EngineKind


def estimated(resolved: ResolvedResearch, configuration: ResearchConfiguration) -> Estimate | None:
    """Estimate a run from the least to the most that it may choose for itself; None for one without any paid call."""
    possible = [resolved, *(with_choice(resolved, choice) for choice in resolved.choices)]
    estimates = [one for one in (_estimated(each, configuration) for each in possible) if one is not None]
    if not estimates:
        return None
    costs = [one.cost_usd for one in estimates if one.cost_usd is not None]
    return estimates[0].model_copy(
        update={
            "calls": _span([one.calls for one in estimates]),
            "tokens": _span([one.tokens for one in estimates]),
            "searches": _span([one.searches for one in estimates]),
            "cost_usd": _span(costs) if len(costs) == len(estimates) else None,
            "unpriced": list(dict.fromkeys(name for one in estimates for name in one.unpriced)),
        }
    )


def _span(ranges: Sequence[Range]) -> Range:
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def _estimated(resolved: ResolvedResearch, configuration: ResearchConfiguration) -> Estimate | None:
    """Estimate a run from one that stops early to one that uses its limits; None for a run without any paid call.

    Sizes of calls are those of `contracts.call_sizes`, which the run's own ledger uses. Repairs are not counted.
    """
    if resolved.engine is not EngineKind.MODEL and not resolved.web:
        return None
    limits = resolved.limits
    searches, search_usd = _searches(resolved, configuration)
    unpriced = [name for name, price in search_usd.items() if price is None]
    known = [price for price in search_usd.values() if price is not None] or [0.0]
    findings = FINDINGS_PER_SUB_QUERY * limits.max_sub_queries * limits.max_iterations
    by_role = calls_by_role(resolved) if resolved.engine is EngineKind.MODEL else {}
    # A source is considered at length once; other analyses that show it consider less.
    longest, shown = resolved.source_characters, limits.max_sources_per_query * by_role.get(ANALYZER, (0, 0))[1]
    at_length = min(1.0, limits.max_sources / shown) if shown else 1.0
    usual = round(at_length * longest + (1 - at_length) * min(longest, AGAIN_CHARACTERS))
    most = {"sources": limits.max_sources_per_query, "findings": findings, "source_characters": usual}
    most["reasoning_tokens"] = reasoning_room(resolved.reasoning_tokens)
    calls, tokens = [0.0, 0.0], [0.0, 0.0]
    # The providers share the searches: the dearest bounds from above, the cheapest from below.
    usd = [searches[0] * min(known), searches[1] * max(known)]
    for role, counts in by_role.items():
        model = resolved.models[role.tier.value]
        sizes = (least_call(role, longest), expected_call(role, **most))
        for bound, (count, size) in enumerate(zip(counts, sizes, strict=True)):
            price = configuration.call_usd(model, size.input_tokens, size.output_tokens)
            calls[bound] += count
            tokens[bound] += count * size.tokens
            usd[bound] += count * (price or 0.0)
            if price is None and count and model not in unpriced:
                unpriced.append(model)
    return Estimate(
        calls=_capped(calls, limits.max_model_calls),
        tokens=_capped(tokens, limits.max_tokens),
        searches=searches,
        cost_usd=None if unpriced else _capped([round(amount, 4) for amount in usd], limits.max_cost_usd),
        unpriced=unpriced,
        cap_usd=limits.max_cost_usd,
    )


def _searches(
    resolved: ResolvedResearch, configuration: ResearchConfiguration
) -> tuple[tuple[int, int], Mapping[str, float | None]]:
    """Return fewest and most searches, and US dollars per search by provider; None where the price is unknown."""
    available = [choice for choice in resolved.providers if choice.available]
    usd = {choice.name: configuration.search_usd(choice.name) if choice.host else 0.0 for choice in available}
    limits = resolved.limits
    at_once = len(usd) if resolved.search.policy is SearchPolicy.FAN_OUT else min(1, len(usd))
    fewest = min(FEWEST_SUB_QUERIES, limits.max_sub_queries) * at_once
    return (fewest, limits.max_iterations * limits.max_sub_queries * len(usd)), usd


def _capped(amount: Sequence[float], cap: float | None) -> Range:
    high = amount[1] if cap is None else min(amount[1], cap)
    return min(amount[0], high), high
