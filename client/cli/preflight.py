"""Before a run begins: resolve its request as a worker would, probe its services, and print egress and estimate."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from activities.preparation import RunRefused, resolve, resolve_again
from client.cli.context import CommandContext
from client.cli.errors import CommandError, ExitCode
from client.cli.options import RunOptions
from client.cli.output import print_hint, print_json, print_progress, print_result
from client.cli.request import RequestedRun
from client.view.words import duration, engine_words, printable, providers_words
from contracts.base import Contract
from contracts.call_sizes import FINDINGS_PER_SUB_QUERY, expected_call, reasoning_room
from contracts.plan import MOST_ROUNDS
from contracts.presets import effective_limits, highest_limits, preset, with_choice
from contracts.request import Clarify, Depth, EngineChoice, Mode, ResearchRequest, SearchPolicy
from contracts.resolved import CorpusSnapshot, EffectiveLimits, ResolvedResearch
from contracts.strategies import CLOSING_ROLES, FEWEST_SUB_QUERIES, closing_calls, declaration
from contracts.texts import plural
from contracts.vocabulary import EngineKind, StopReason, ThinkMode
from providers.models.chat import TokenCounts
from providers.models.endpoints import split_name
from providers.models.prices import PriceTable
from providers.search.availability import probe_address
from providers.search.declarations import declared_names, search_declaration
from workers.resolution_inputs import configuration_of
from workers.settings.loading import Settings
from workers.settings.models import PUBLIC_HOST, host_of

EFFECTIVE: Final = {"engine", "models", "providers", "search", "web", "limits", "gates", "egress", "advice"}
"""Fields of a resolution that depend on the configuration."""
PROBE_SECONDS: Final = 2.5
FEWEST_SOURCES: Final = 2
"""Sources of a sub-query that finds little."""


# --- the lines before a run ----------------------------------------------------------------------------------------


async def preflight(
    context: CommandContext,
    wanted: RequestedRun,
    options: RunOptions,
    stored: ResolvedResearch | None = None,
    *,
    probes: bool = True,
    resolves: bool = True,
) -> None:
    """Print where text goes and, before a paid call, the expected amounts.

    `stored` is the resolution of a run that is resumed. `probes` connects to its model endpoints first. A dry run
    prints the question, and with `--json` the effective request. Where workers of other processes (a cluster's, or
    without `resolves`) resolve the request, only its limits are printed. Raises `CommandError` for a request that
    cannot be met here.
    """
    request, settings = wanted.request, context.settings
    if not options.dry_run and (settings.uses_cluster or not resolves):
        if not options.quiet:
            limits = effective_limits(_highest_preset(request), request.limits)
            print_hint("the workers decide where text goes: see `research status`")
            print_progress(f"limits, unless the workers are configured otherwise: {limits_words(limits)}")
        return
    resolved = resolve_here(request, settings, stored, url_given=options.model_url is not None)
    if probes and not settings.uses_cluster:
        await require_endpoint(resolved, settings)
    estimate = estimated_choices(resolved, settings)
    if options.dry_run and options.as_json:
        effective = resolved.model_dump(mode="json", include=EFFECTIVE)
        asked = request.model_dump(mode="json", exclude_unset=True)
        expected = estimate and estimate.model_dump(mode="json")
        print_json({"request": asked, **effective, "estimate": expected})
    elif options.dry_run:
        corpus = f", corpus {request.corpus}" if request.corpus else ""
        print_result(f"{printable(resolved.query)} ({resolved.strategy}, depth {resolved.depth.value}{corpus})")
        for line in _lines(resolved, estimate, settings):
            print_result(printable(line))
        print_progress("nothing was started; --json prints the whole effective request")
    elif not options.quiet:
        for line in _lines(resolved, estimate, settings):
            print_progress(line)


def _lines(resolved: ResolvedResearch, estimate: "Estimate | None", settings: Settings) -> list[str]:
    """Give the lines before a run: egress, engine, search providers, limits, estimate, advice."""
    lines = [resolved.egress, f"engine: {engine_words(resolved)}"]
    if resolved.web or any(not choice.available for choice in resolved.providers):
        lines.append(f"searching {providers_words(resolved.providers)}")
    limits = highest_limits([resolved.limits, *resolved.choices.values()])
    words = limits_words(limits, paid=estimate is not None and any(estimate.cost_usd or ()))
    lines.append(f"limits: {'at most, as the question needs, ' if resolved.choices else ''}{words}")
    lines += [] if estimate is None else [estimate.words()]
    return [*lines, *resolved.advice, *settings.notices()]


def _highest_preset(request: ResearchRequest) -> EffectiveLimits:
    """Give the limits of the request's depth, or the highest that the run may choose."""
    strategy = declaration(request.strategy)
    is_open = strategy.decides and request.depth is Depth.AUTO and request.mode in (Mode.AUTO, Mode.DEEP)
    return highest_limits(strategy.presets.values()) if is_open else preset(request.strategy, request.depth)


def limits_words(limits: EffectiveLimits, *, paid: bool = True) -> str:
    """Word the limits of a run, with that of its cost if it is `paid`."""
    steps, queries = plural(limits.max_steps, "step"), plural(limits.max_sub_queries, "sub-query")
    iterations = plural(limits.max_iterations, "iteration")
    work = f"{steps} in {iterations}" if limits.max_steps else f"{iterations} of {queries}"
    amounts = (limits.max_model_calls, "model call"), (limits.max_tokens, "token")
    parts = [plural(amount, noun) for amount, noun in amounts if amount is not None]
    cost = [f"{limits.max_cost_usd:.2f} USD"] if limits.max_cost_usd is not None and paid else []
    time = f"{duration(limits.deadline_seconds)} {'hours' if limits.deadline_seconds >= 3_600 else 'minutes'}"
    return ", ".join([work, plural(limits.max_sources, "source"), time, *parts, *cost])


# --- resolving ---------------------------------------------------------------------------------------------------


def resolve_here(
    request: ResearchRequest, settings: Settings, stored: ResolvedResearch | None = None, *, url_given: bool = False
) -> ResolvedResearch:
    """Resolve a request, or that of a resumed run again. Raises `CommandError`.

    Passages of a resumed run go to no other host than before, unless `--model-url` names it.
    """
    try:
        if stored is None:
            corpus = request.corpus and CorpusSnapshot(name=request.corpus, files=1)  # counted by the index
            return resolve("not-started", request, configuration_of(settings), corpus or None, search_attributes=False)
        if stored.engine is EngineKind.MODEL and request.engine is not EngineChoice.EXTRACTIVE and not url_given:
            _require_known_host(stored, settings)
        return resolve_again(stored, request, configuration_of(settings))
    except RunRefused as refusal:
        nothing = refusal.reason is StopReason.NO_PROVIDERS
        raise CommandError(str(refusal), ExitCode.NOTHING_TO_WORK_WITH if nothing else ExitCode.USAGE) from None


def _require_known_host(stored: ResolvedResearch, settings: Settings) -> None:
    before = (stored.model_host or PUBLIC_HOST).split(", ")
    now = (settings.model_host or "").split(", ") if settings.model_configured else []
    if set(now).isdisjoint(before):
        model = next(iter(stored.models.values()))
        url = "and set ANTHROPIC_API_KEY" if PUBLIC_HOST in before else "--model-url URL, or set ANTHROPIC_BASE_URL"
        raise CommandError(
            f"this run used the model {model} at {', '.join(before)}, and no such endpoint is configured: "
            f"add --model {model} {url}"
        )


async def require_endpoint(resolved: ResolvedResearch, settings: Settings) -> None:
    """Raise `CommandError` (exit code 7) where no endpoint of the run's models answers.

    The workers check search providers themselves, when a person has approved the plan.
    """
    if resolved.engine is not EngineKind.MODEL:
        return
    named = [split_name(name, settings.models.endpoints)[0] for name in resolved.models.values()]
    endpoints = dict.fromkeys([*named, *settings.models.usable_endpoints(settings.model_keys())])
    addresses = [settings.models.address_of(endpoint) or f"https://{PUBLIC_HOST}" for endpoint in endpoints]
    problems = await asyncio.gather(*(probe_address(address, seconds=PROBE_SECONDS) for address in addresses))
    if all(problems):
        found = ", ".join(f"{host_of(place)} ({why})" for place, why in zip(addresses, problems, strict=True))
        message = f"the model endpoint cannot be used now: {found}; start it, check --model-url or ANTHROPIC_BASE_URL, "
        raise CommandError(f"{message}or use no model: --engine extractive", ExitCode.NOTHING_TO_WORK_WITH)


# --- the estimate --------------------------------------------------------------------------------------------------


Range = tuple[float, float]
"""Lowest and highest expected amount."""


class Estimate(Contract):
    """Expected amounts of a run; a cost of None is unknown, never 0."""

    calls: Range
    tokens: Range
    searches: Range
    cost_usd: Range | None
    """Of models and searches together."""
    unpriced: list[str] = []
    """Models and search providers without a known price."""
    cap_usd: float | None

    def words(self) -> str:
        """Word the estimate and the cap in one line."""
        calls = f"{between(self.calls)} model calls, {between(self.tokens)} tokens, " if self.calls[1] else ""
        cost = (
            f"cost unknown (no price for {', '.join(self.unpriced)}: set [models.prices.NAME])"
            if self.cost_usd is None
            else f"{between(self.cost_usd, '.2f')} USD"
        )
        known = " as far as prices are known" if self.unpriced else ""
        cap = "no cap on cost" if self.cap_usd is None else f"the run stops at {self.cap_usd:.2f} USD{known}"
        return f"about {calls}{between(self.searches)} searches; {cost}; {cap}"


def between(amounts: Range, form: str = ",.0f") -> str:
    """Word a range: `1,200 to 5,000`."""
    low, high = (f"{amount:{form}}" for amount in amounts)
    return low if low == high else f"{low} to {high}"


def estimated_choices(resolved: ResolvedResearch, settings: Settings) -> Estimate | None:
    """Estimate a run from the least to the most that it may choose for itself."""
    possible = [resolved, *(with_choice(resolved, choice) for choice in resolved.choices)]
    estimates = [one for one in (estimated(each, settings) for each in possible) if one is not None]
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


def estimated(resolved: ResolvedResearch, settings: Settings) -> Estimate | None:
    """Estimate a run from one that stops early to one that uses its limits; None for a run without any paid call.

    Sizes of calls are those of `contracts.call_sizes`, which the run's own ledger uses. Repairs are not counted.
    """
    if resolved.engine is not EngineKind.MODEL and not resolved.web:
        return None
    limits, prices = resolved.limits, PriceTable(settings.models.prices)
    searches, search_usd = _searches(resolved, settings)
    unpriced = [name for name, price in search_usd.items() if price is None]
    known = [price for price in search_usd.values() if price is not None] or [0.0]
    findings = FINDINGS_PER_SUB_QUERY * limits.max_sub_queries * limits.max_iterations
    most = {"findings": findings, "reasoning_tokens": reasoning_room(resolved.reasoning_tokens)}
    sizes: tuple[dict[str, int], ...] = (
        {"sources": FEWEST_SOURCES, "findings": FEWEST_SUB_QUERIES},
        {"sources": limits.max_sources_per_query, **most},
    )
    calls, tokens = [0.0, 0.0], [0.0, 0.0]
    # The providers share the searches: the dearest bounds from above, the cheapest from below.
    usd = [searches[0] * min(known), searches[1] * max(known)]
    for role, counts in _calls_by_role(resolved).items() if resolved.engine is EngineKind.MODEL else ():
        model = resolved.models[role.tier.value]
        name = split_name(model, settings.models.endpoints)[1]
        for bound, count in enumerate(counts):
            size = expected_call(role, **sizes[bound])
            price = prices.cost_usd(name, TokenCounts(size.input_tokens, size.output_tokens), written=model)
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


def _calls_by_role(resolved: ResolvedResearch) -> dict[Any, tuple[int, int]]:
    """Give fewest and most calls by role."""
    strategy = declaration(resolved.strategy)
    expected = dict(strategy.expected_calls(resolved.limits, resolved.gates.think is ThinkMode.MODEL))
    fewest, most = (0, 0) if resolved.gates.clarify is Clarify.OFF else (1, MOST_ROUNDS)
    fewer, more = expected.get(strategy.clarifier.name, (0, 0))
    expected[strategy.clarifier.name] = fewest + fewer, most + more
    closing = closing_calls(resolved)
    calls = {}
    for role in dict.fromkeys([strategy.clarifier, *strategy.roles, *CLOSING_ROLES]):
        (fewest, most), (fewer, more) = expected.get(role.name, (0, 0)), closing.get(role.name, (0, 0))
        calls[role] = (fewest + fewer, most + more)
    return calls


def _searches(resolved: ResolvedResearch, settings: Settings) -> tuple[tuple[int, int], Mapping[str, float | None]]:
    """Give fewest and most searches, and US dollars per search by provider; None where the price is unknown."""
    stated = {name: price / 1_000 for name, price in settings.search.usd_per_1000.items()}
    free = (name for name in declared_names() if not search_declaration(name).paid)
    known = dict.fromkeys(free, 0.0) | stated
    available = [choice for choice in resolved.providers if choice.available]
    usd = {choice.name: known.get(choice.name) if choice.host else 0.0 for choice in available}
    limits = resolved.limits
    at_once = len(usd) if resolved.search.policy is SearchPolicy.FAN_OUT else min(1, len(usd))
    fewest = min(FEWEST_SUB_QUERIES, limits.max_sub_queries) * at_once
    return (fewest, limits.max_iterations * limits.max_sub_queries * len(usd)), usd


def _capped(amount: Sequence[float], cap: float | None) -> Range:
    high = amount[1] if cap is None else min(amount[1], cap)
    return min(amount[0], high), high
