"""What a run may need: calls, tokens, searches, reads and money, before anything is paid. Pure.

Sizes of calls are those of `contracts.call_sizes`, which the run's own ledger goes by, too.
"""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from contracts.base import Contract
from contracts.call_sizes import FINDINGS_PER_SUB_QUERY, CallSize, expected_call, reasoning_room
from contracts.plan import MOST_ROUNDS
from contracts.request import Clarify, SearchPolicy
from contracts.resolved import EffectiveLimits, ResolvedResearch
from contracts.strategies import CLOSING_ROLES, FEWEST_SUB_QUERIES, StrategyDeclaration, closing_calls, declaration
from contracts.vocabulary import EngineKind, ThinkMode
from providers.models.chat import TokenCounts
from providers.models.endpoints import split_name
from providers.models.prices import PriceTable

FEWEST_SOURCES: Final = 2
"""Sources of a sub-query that finds little."""
NOBODY: Final[Mapping[str, float | None]] = MappingProxyType({})


class Range(Contract):
    """Lowest and highest expected amount."""

    low: int | float
    high: int | float


class RoleEstimate(Contract):
    """What one role is expected to need, before the caps of the whole run."""

    role: str
    model: str
    calls: Range
    input_tokens: Range
    output_tokens: Range
    cost_usd: Range | None
    """None for a model without a known price."""

    def line(self) -> str:
        """One line for a person."""
        cost = "cost unknown" if self.cost_usd is None else f"{_money(self.cost_usd)} USD"
        tokens = f"{_between(self.input_tokens)} tokens in, {_between(self.output_tokens)} out"
        times = "1 call" if self.calls.high == 1 else f"{_between(self.calls)} calls"
        return f"{self.role}: {times} of {self.model}, {tokens}, {cost}"


class Estimate(Contract):
    """Expected amounts of a run; a cost of None is unknown, never 0."""

    calls: Range
    tokens: Range
    cost_usd: Range | None
    """Of models and searches together."""
    model_cost_usd: Range | None
    search_cost_usd: Range | None
    by_role: list[RoleEstimate] = []
    searches: Range
    reads: Range
    providers: list[str] = []
    """Who is asked for searches."""
    unpriced_models: list[str] = []
    unpriced_providers: list[str] = []
    cap_usd: float | None
    """The run stops at this cost, as far as prices are known."""
    cap_tokens: int | None = None

    @property
    def stops_at_cap(self) -> bool:
        """Whether the cap can hold: not where nothing that costs something has a known price."""
        dearest = self.search_cost_usd and self.search_cost_usd.high
        return not self.unpriced_models or bool(dearest) or any(role.cost_usd is not None for role in self.by_role)

    def line(self) -> str:
        """One line for a person."""
        parts = []
        if self.by_role:
            parts.append(f"about {_between(self.calls)} model calls, {_between(self.tokens)} tokens")
        if self.providers:
            asked = f"about {_between(self.searches)} searches at {', '.join(self.providers)}"
            parts.append(f"{asked}, {_between(self.reads)} reads")
        return f"{'; '.join([*parts, self._cost_words()])}; {self._cap_words()}"

    def _cost_words(self) -> str:
        unpriced = [*self.unpriced_models, *self.unpriced_providers]
        if self.cost_usd is not None:
            return f"{_money(self.cost_usd)} USD"
        known = self.model_cost_usd
        if known is not None and self.by_role:
            return f"{_money(known)} USD and what {', '.join(unpriced)} charges for searches"
        return f"cost unknown (no price for {', '.join(unpriced)})"

    def _cap_words(self) -> str:
        if self.cap_usd is None:
            return "no cap on cost"
        known = " where prices are known" if self.cost_usd is None else ""
        stops = f"the run stops at {self.cap_usd:.2f} USD{known}"
        if not self.unpriced_models:
            return stops
        names = ", ".join(self.unpriced_models)
        instead = (
            "set [models.prices.NAME] or limits.max_tokens" if self.cap_tokens is None else "limits.max_tokens does"
        )
        uncapped = f"no cap in dollars holds for {names}: {instead}"
        return f"{stops}; {uncapped}" if self.stops_at_cap else uncapped


def estimate(
    strategy: StrategyDeclaration,
    limits: EffectiveLimits,
    models: Mapping[str, str],
    prices: PriceTable,
    *,
    thinks: bool,
    searching: Mapping[str, float | None] = NOBODY,
    policy: SearchPolicy = SearchPolicy.FAN_OUT,
    reasoning_tokens: int = 0,
    endpoints: Collection[str] = (),
    clarifies: bool = False,
    closing: Mapping[str, tuple[int, int]] = MappingProxyType({}),
) -> Estimate:
    """From a run that stops after one iteration with few questions to one that uses all that its limits allow.

    `models` are names by tier, none for a run without a model. `searching` says what each provider that is asked
    charges for a search in US dollars, None where it is unknown. `reasoning_tokens` is what a model may generate unseen
    in one call, and `endpoints` are the names that may stand before a model's. `closing` are calls that come after the
    strategy, by role. Repeated phases and repairs are not
    counted.
    """
    asked = {strategy.clarifier.name: (1, MOST_ROUNDS) if clarifies else (0, 0)}
    expected = {**strategy.expected_calls(limits, thinks), **asked}
    findings = FINDINGS_PER_SUB_QUERY * limits.max_sub_queries * limits.max_iterations
    by_role = []
    for role in dict.fromkeys([strategy.clarifier, *strategy.roles, *CLOSING_ROLES]):
        after = closing.get(role.name, (0, 0))
        fewest, most = (own + more for own, more in zip(expected.get(role.name, (0, 0)), after, strict=True))
        model = models.get(role.tier.value)
        if model is None or not most:
            continue
        small = expected_call(role, sources=FEWEST_SOURCES, findings=FEWEST_SUB_QUERIES)
        large = expected_call(
            role, sources=limits.max_sources_per_query, findings=findings, reasoning_tokens=reasoning_tokens
        )
        cheapest, dearest = (_call_usd(prices, endpoints, model, size) for size in (small, large))
        unpriced = cheapest is None or dearest is None
        by_role.append(
            RoleEstimate(
                role=role.name,
                model=model,
                calls=Range(low=fewest, high=most),
                input_tokens=Range(low=fewest * small.input_tokens, high=most * large.input_tokens),
                output_tokens=Range(low=fewest * small.output_tokens, high=most * large.output_tokens),
                cost_usd=None if unpriced else _round(fewest * (cheapest or 0.0), most * (dearest or 0.0)),
            )
        )
    calls = _cap(_sum(role.calls for role in by_role), limits.max_model_calls)
    tokens = _sum(amount for role in by_role for amount in (role.input_tokens, role.output_tokens))
    searches = _searches(limits, len(searching), policy)
    model_cost = _total(role.cost_usd for role in by_role)
    search_cost = _search_cost(searches, searching)
    cost = _total([model_cost, search_cost])
    return Estimate(
        calls=calls,
        tokens=_cap(tokens, limits.max_tokens),
        cost_usd=cost and _cap(cost, limits.max_cost_usd),
        model_cost_usd=model_cost and _cap(model_cost, limits.max_cost_usd),
        search_cost_usd=search_cost,
        by_role=by_role,
        searches=searches,
        reads=_reads(limits),
        providers=list(searching),
        unpriced_models=sorted({role.model for role in by_role if role.cost_usd is None}),
        unpriced_providers=[name for name, price in searching.items() if price is None],
        cap_usd=limits.max_cost_usd,
        cap_tokens=limits.max_tokens,
    )


def estimate_of(
    resolved: ResolvedResearch,
    prices: PriceTable,
    search_prices: Mapping[str, float] = MappingProxyType({}),
    endpoints: Collection[str] = (),
) -> Estimate:
    """What a resolved run may need; `search_prices` are US dollars per search by provider, where they are known.

    `endpoints` are the names that may stand before a model's.
    """
    asked = [choice for choice in resolved.providers if choice.available]
    return estimate(
        declaration(resolved.strategy),
        resolved.limits,
        resolved.models if resolved.engine is EngineKind.MODEL else {},
        prices,
        thinks=resolved.gates.think is ThinkMode.MODEL,
        # A provider without a host is local and free.
        searching={choice.name: search_prices.get(choice.name) if choice.host else 0.0 for choice in asked},
        policy=resolved.search.policy,
        reasoning_tokens=reasoning_room(resolved.reasoning_tokens),
        endpoints=endpoints,
        clarifies=resolved.gates.clarify is not Clarify.OFF,
        closing=closing_calls(resolved),
    )


def _searches(limits: EffectiveLimits, providers: int, policy: SearchPolicy) -> Range:
    """Every question is asked of all providers at once, or of one after another until one has an answer."""
    at_once = providers if policy is SearchPolicy.FAN_OUT else min(1, providers)
    fewest = min(FEWEST_SUB_QUERIES, limits.max_sub_queries) * at_once
    return Range(low=fewest, high=limits.max_iterations * limits.max_sub_queries * providers)


def _reads(limits: EffectiveLimits) -> Range:
    most = min(limits.max_sources, limits.max_iterations * limits.max_new_sources)
    return Range(low=min(FEWEST_SOURCES, most), high=most)


def _search_cost(searches: Range, searching: Mapping[str, float | None]) -> Range | None:
    """The providers share the searches; the dearest bounds from above, the cheapest from below."""
    if any(price is None for price in searching.values()):
        return None
    known = [price for price in searching.values() if price is not None] or [0.0]
    return _round(searches.low * min(known), searches.high * max(known))


def _call_usd(prices: PriceTable, endpoints: Collection[str], written: str, size: CallSize) -> float | None:
    """As the account of the run goes by it: an entry for the written name, else one for the model's own."""
    tokens = TokenCounts(input=size.input_tokens, output=size.output_tokens)
    return prices.cost_usd(split_name(written, endpoints)[1], tokens, written=written)


def _sum(ranges: Iterable[Range]) -> Range:
    known = list(ranges)
    return Range(low=sum(each.low for each in known), high=sum(each.high for each in known))


def _total(costs: Iterable[Range | None]) -> Range | None:
    known = list(costs)
    together = _sum(cost for cost in known if cost is not None)
    return None if None in known else _round(together.low, together.high)


def _cap(amount: Range, cap: float | None) -> Range:
    high = amount.high if cap is None else min(amount.high, cap)
    return Range(low=min(amount.low, high), high=high)


def _round(low: float, high: float) -> Range:
    return Range(low=round(float(low), 4), high=round(float(high), 4))


def _between(amount: Range) -> str:
    return _span(f"{amount.low:,.0f}", f"{amount.high:,.0f}")


def _money(amount: Range) -> str:
    return _span(f"{amount.low:.2f}", f"{amount.high:.2f}")


def _span(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"
