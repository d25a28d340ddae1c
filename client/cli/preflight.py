"""Before a run begins: resolve its request as a worker would, probe its services, and print egress and estimate."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from activities.preparation import RunRefused, resolve, resolve_again
from client.cli.context import CommandContext
from client.cli.errors import CommandError, ExitCode
from client.cli.output import print_hint, print_json, print_progress, print_result
from client.cli.request import RunOptions, WantedRun
from client.view.words import duration, engine_words, printable, providers_words
from contracts.base import Contract
from contracts.call_sizes import FINDINGS_PER_SUB_QUERY, expected_call, reasoning_room
from contracts.plan import MOST_ROUNDS
from contracts.presets import effective_limits, preset
from contracts.request import Approve, Clarify, ResearchRequest, SearchPolicy
from contracts.resolved import CorpusSnapshot, EffectiveLimits, ProviderChoice, ResolvedResearch, where_text_goes
from contracts.strategies import CLOSING_ROLES, FEWEST_SUB_QUERIES, closing_calls, declaration
from contracts.texts import plural
from contracts.vocabulary import EngineKind, StopReason, ThinkMode
from providers.models.chat import TokenCounts
from providers.models.endpoints import DEFAULT_ENDPOINT, split_name
from providers.models.prices import PriceTable
from providers.search.availability import probe, probe_address
from providers.search.declarations import BY_MODEL, declared_names, search_declaration
from workers.resolution_inputs import configuration_of, search_choices
from workers.search_providers import open_search_providers, search_model
from workers.settings.loading import Settings
from workers.settings.models import PUBLIC_HOST, host_of
from workflows.rules.provider_choice import with_providers, without

EFFECTIVE: Final = {"engine", "models", "providers", "search", "web", "limits", "gates", "egress", "advice"}
"""Fields of a resolution that depend on the configuration."""
PROBE_SECONDS: Final = 2.5
FEWEST_SOURCES: Final = 2
"""Sources of a sub-query that finds little."""


# --- the lines before a run ----------------------------------------------------------------------------------------


async def preflight(
    context: CommandContext,
    wanted: WantedRun,
    options: RunOptions,
    stored: ResolvedResearch | None = None,
    *,
    probes: bool = True,
) -> str | None:
    """Print where text goes and, before a paid call, the expected amounts; give the line about egress.

    `stored` is the resolution of a run that is resumed. `probes` connects to its services first. A dry run prints the
    question, and with `--json` the effective request. Raises `CommandError` for a request that cannot be met here. A
    cluster's workers resolve requests: then the line is None.
    """
    request, settings = wanted.request, context.settings
    if settings.uses_cluster and not options.dry_run:
        if not options.quiet:
            limits = effective_limits(preset(request.strategy, request.depth), request.limits)
            print_hint("the cluster's workers decide where text goes: see `research status`")
            print_progress(f"limits, unless the workers are configured otherwise: {limits_words(limits)}")
        return None
    if stored is None:
        resolved = _resolve(request, settings)
    else:
        resolved = _resolve_again(stored, request, settings, url_given=options.model_url is not None)
    if probes and not settings.uses_cluster:
        resolved = await _probed(resolved, settings)
    estimate = estimated(resolved, settings)
    if options.dry_run and options.as_json:
        effective = resolved.model_dump(mode="json", include=EFFECTIVE)
        asked = request.model_dump(mode="json", exclude_unset=True)
        folder = str(wanted.folder) if wanted.folder else None
        expected = estimate and estimate.model_dump(mode="json")
        print_json({"request": asked, **effective, "corpus_folder": folder, "estimate": expected})
    elif options.dry_run:
        corpus = f", corpus {request.corpus}" if request.corpus else ""
        print_result(f"{printable(resolved.query)} ({resolved.strategy}, depth {resolved.depth.value}{corpus})")
        for line in _lines(resolved, estimate, settings):
            print_result(printable(line))
        print_progress("nothing was started; --json prints the whole effective request")
    elif not options.quiet:
        for line in _lines(resolved, estimate, settings):
            print_progress(line)
    return resolved.egress


def _lines(resolved: ResolvedResearch, estimate: "Estimate | None", settings: Settings) -> list[str]:
    """Give the lines before a run: egress, engine, search providers, limits, estimate, advice."""
    lines = [resolved.egress, f"engine: {engine_words(resolved)}"]
    if resolved.web or any(not choice.available for choice in resolved.providers):
        lines.append(f"searching {providers_words(resolved.providers)}")
    lines.append(f"limits: {limits_words(resolved.limits, paid=estimate is not None and estimate.priced)}")
    lines += [] if estimate is None else [estimate.words()]
    return [*lines, *resolved.advice, *settings.notices()]


def limits_words(limits: EffectiveLimits, *, paid: bool = True) -> str:
    """Word the limits of a run, with that of its cost if it is `paid`."""
    if limits.agent_seconds:
        rounds = f"{plural(limits.max_steps, 'step')}, {plural(limits.max_iterations - 1, 'cycle')} of agents"
    elif limits.max_steps:
        rounds = f"{plural(limits.max_steps, 'step')} in at most {plural(limits.max_iterations, 'plan')}"
    else:
        rounds = f"{plural(limits.max_iterations, 'iteration')} of {plural(limits.max_sub_queries, 'sub-query')}"
    unit = "hours" if limits.deadline_seconds >= 3_600 else "minutes"
    parts = [rounds, plural(limits.max_sources, "source"), f"{duration(limits.deadline_seconds)} {unit}"]
    if limits.max_model_calls is not None:
        parts.append(plural(limits.max_model_calls, "model call"))
    if limits.max_tokens is not None:
        parts.append(plural(limits.max_tokens, "token"))
    if limits.max_cost_usd is not None and paid:
        parts.append(f"{limits.max_cost_usd:.2f} USD")
    return ", ".join(parts)


# --- resolving and probing -----------------------------------------------------------------------------------------


def _resolve(request: ResearchRequest, settings: Settings) -> ResolvedResearch:
    corpus = None if request.corpus is None else CorpusSnapshot(name=request.corpus, files=1)  # counted by the index
    try:
        return resolve("not-started", request, configuration_of(settings), corpus, search_attributes=False)
    except RunRefused as refusal:
        nothing = refusal.reason is StopReason.NO_PROVIDERS
        raise CommandError(str(refusal), ExitCode.NOTHING_TO_WORK_WITH if nothing else ExitCode.USAGE) from None


def _resolve_again(
    stored: ResolvedResearch, request: ResearchRequest, settings: Settings, *, url_given: bool
) -> ResolvedResearch:
    """Resolve a resumed run; passages go to no other host than before, unless `--model-url` names it."""
    try:
        resolved = resolve_again(stored, request, configuration_of(settings))
    except RunRefused as refusal:
        raise CommandError(str(refusal)) from None
    if resolved.engine is not EngineKind.MODEL:
        return resolved
    before = (resolved.model_host or PUBLIC_HOST).split(", ")
    now = settings.model_host if settings.model_configured else None
    if now is None or not (url_given or set(now.split(", ")) & set(before)):
        models = list(dict.fromkeys(resolved.models.values()))
        url = "and set ANTHROPIC_API_KEY" if PUBLIC_HOST in before else "--model-url URL, or set ANTHROPIC_BASE_URL"
        raise CommandError(
            f"this run used the model {', '.join(models)} at {', '.join(before)}, and no such endpoint is configured: "
            f"add --model {models[0]} {url}"
        )
    searched = [choice.host for choice in resolved.providers if choice.available and choice.host is not None]
    egress = where_text_goes(now, searched, pages=resolved.web)
    return resolved.model_copy(update={"model_host": now, "egress": egress})


async def _probed(resolved: ResolvedResearch, settings: Settings) -> ResolvedResearch:
    """Mark the services of a resolution that cannot be reached now.

    Raises `CommandError` (exit code 7) where no model or no search provider is reachable.
    """
    silent, lost = await asyncio.gather(_silent_endpoints(resolved, settings), _lost_providers(resolved, settings))
    providers = without(resolved.providers, lost)
    if providers and not any(choice.available for choice in providers):
        raise CommandError(_no_provider(providers, settings), ExitCode.NOTHING_TO_WORK_WITH)
    advice = [*resolved.advice, *(f"{problem}: calls go to the next endpoint until it answers" for problem in silent)]
    known = with_providers(resolved, providers) if lost else resolved
    return known.model_copy(update={"advice": advice})


async def _silent_endpoints(resolved: ResolvedResearch, settings: Settings) -> list[str]:
    """Give the model endpoints that do not answer while another one does. Raises `CommandError` if none does."""
    if resolved.engine is not EngineKind.MODEL:
        return []
    named = [split_name(name, settings.models.endpoints)[0] for name in resolved.models.values()]
    endpoints = list(dict.fromkeys([*named, *settings.models.usable_endpoints(settings.model_keys())]))
    addresses = [settings.models.address_of(endpoint) or f"https://{PUBLIC_HOST}" for endpoint in endpoints]
    reasons = await asyncio.gather(*(probe_address(address, seconds=PROBE_SECONDS) for address in addresses))
    silent = [
        f"the model endpoint {host_of(address)} cannot be used now ({reason})"
        for address, reason in zip(addresses, reasons, strict=True)
        if reason is not None
    ]
    if len(silent) == len(endpoints):
        keys = {DEFAULT_ENDPOINT: "--model-url or ANTHROPIC_BASE_URL"}
        check = ", ".join(keys.get(name, f"models.endpoints.{name}") for name in endpoints)
        remedy = f"start it, check {check}, or use no model: --engine extractive"
        raise CommandError("\n".join([*silent, remedy]), ExitCode.NOTHING_TO_WORK_WITH)
    return silent


async def _lost_providers(resolved: ResolvedResearch, settings: Settings) -> dict[str, str]:
    """Give the web search providers of a run that cannot be reached now, with the reason.

    None is contacted before a person has approved the plan.
    """
    names = [choice.name for choice in resolved.providers if choice.available and choice.host is not None]
    if not names or resolved.gates.approve is not Approve.NONE:
        return {}
    model = search_model(settings)
    here = {choice.name: choice for choice in settings.web_search.choices(model_offers_search=model is not None)}
    usable = [name for name in names if here[name].available or (name == BY_MODEL and model is not None)]
    lost = {name: here[name].reason for name in names if name not in usable}
    async with open_search_providers(settings.web_search, usable, contact=settings.web.contact, model=model) as opened:
        reasons = await asyncio.gather(*(probe(opened[name], seconds=PROBE_SECONDS) for name in usable))
    return lost | {name: reason for name, reason in zip(usable, reasons, strict=True) if reason is not None}


def _no_provider(providers: Sequence[ProviderChoice], settings: Settings) -> str:
    """Word why each provider of the run is unavailable, and the others that could be set up."""
    names = {choice.name for choice in providers}
    others = [choice for choice in search_choices(settings) if not choice.available and choice.name not in names]
    return "\n".join(
        [
            "no search provider is reachable",
            *(f"{choice.name}: {choice.reason}" for choice in providers),
            *(f"or set up {choice.name}: {choice.reason}" for choice in others),
            "or search a folder: --corpus DIR",
        ]
    )


# --- the estimate --------------------------------------------------------------------------------------------------


class Range(Contract):
    """Lowest and highest expected amount."""

    low: float
    high: float

    def words(self, form: str = ",.0f") -> str:
        """Word the amounts: `1,200 to 5,000`."""
        low, high = f"{self.low:{form}}", f"{self.high:{form}}"
        return low if low == high else f"{low} to {high}"


class Estimate(Contract):
    """Expected amounts of a run; a cost of None is unknown, never 0."""

    calls: Range
    tokens: Range
    cost_usd: Range | None
    """Of models and searches together."""
    searches: Range
    reads: Range
    providers: list[str] = []
    unpriced: list[str] = []
    """Models and search providers without a known price."""
    cap_usd: float | None

    @property
    def priced(self) -> bool:
        """True where a cap in dollars can hold."""
        return self.cost_usd is not None and self.cost_usd.high > 0

    def words(self) -> str:
        """Word the estimate and the cap in one line."""
        parts = []
        if self.calls.high:
            parts.append(f"about {self.calls.words()} model calls, {self.tokens.words()} tokens")
        if self.providers:
            names = ", ".join(self.providers)
            parts.append(f"about {self.searches.words()} searches at {names}, {self.reads.words()} reads")
        if self.cost_usd is None:
            parts.append(f"cost unknown (no price for {', '.join(self.unpriced)}: set [models.prices.NAME])")
        else:
            parts.append(f"{self.cost_usd.words('.2f')} USD")
        known = " as far as prices are known" if self.unpriced else ""
        cap = "no cap on cost" if self.cap_usd is None else f"the run stops at {self.cap_usd:.2f} USD{known}"
        return "; ".join([*parts, cap])


@dataclass
class _Sums:
    """Sums over roles: fewest and most calls, tokens and dollars."""

    calls: tuple[float, float] = (0, 0)
    tokens: tuple[float, float] = (0, 0)
    usd: tuple[float, float] = (0, 0)

    def add(self, calls: tuple[int, int], tokens: tuple[int, int], usd: tuple[float, float]) -> None:
        self.calls = (self.calls[0] + calls[0], self.calls[1] + calls[1])
        self.tokens = (self.tokens[0] + calls[0] * tokens[0], self.tokens[1] + calls[1] * tokens[1])
        self.usd = (self.usd[0] + calls[0] * usd[0], self.usd[1] + calls[1] * usd[1])


def estimated(resolved: ResolvedResearch, settings: Settings) -> Estimate | None:
    """Estimate a run from one that stops early to one that uses its limits; None where nothing is paid.

    Sizes of calls are those of `contracts.call_sizes`, which the run's own ledger uses. Repairs are not counted.
    """
    if resolved.engine is not EngineKind.MODEL and not resolved.web:
        return None
    limits, sums, unpriced = resolved.limits, _Sums(), list[str]()
    prices = PriceTable(settings.models.prices)
    for role, calls in _calls_by_role(resolved).items():
        model = resolved.models.get(role.tier.value) if resolved.engine is EngineKind.MODEL else None
        if model is None or not calls[1]:
            continue
        findings = FINDINGS_PER_SUB_QUERY * limits.max_sub_queries * limits.max_iterations
        room = reasoning_room(resolved.reasoning_tokens)
        small = expected_call(role, sources=FEWEST_SOURCES, findings=FEWEST_SUB_QUERIES)
        large = expected_call(role, sources=limits.max_sources_per_query, findings=findings, reasoning_tokens=room)
        name = split_name(model, settings.models.endpoints)[1]
        usd = [
            prices.cost_usd(name, TokenCounts(input=size.input_tokens, output=size.output_tokens), written=model)
            for size in (small, large)
        ]
        if None in usd and model not in unpriced:
            unpriced.append(model)
        sums.add(calls, (small.tokens, large.tokens), (usd[0] or 0.0, usd[1] or 0.0))
    searches, search_usd = _searches(resolved, settings)
    unpriced += [name for name, price in search_usd.items() if price is None]
    known = [price for price in search_usd.values() if price is not None] or [0.0]
    # The providers share the searches: the dearest bounds from above, the cheapest from below.
    cost = (sums.usd[0] + searches[0] * min(known), sums.usd[1] + searches[1] * max(known))
    reads = min(limits.max_sources, limits.max_iterations * limits.max_new_sources)
    return Estimate(
        calls=_capped(sums.calls, limits.max_model_calls),
        tokens=_capped(sums.tokens, limits.max_tokens),
        cost_usd=None if unpriced else _capped((round(cost[0], 4), round(cost[1], 4)), limits.max_cost_usd),
        searches=Range(low=searches[0], high=searches[1]),
        reads=Range(low=min(FEWEST_SOURCES, reads), high=reads),
        providers=list(search_usd),
        unpriced=unpriced,
        cap_usd=limits.max_cost_usd,
    )


def _calls_by_role(resolved: ResolvedResearch) -> dict[Any, tuple[int, int]]:
    """Give fewest and most calls by role."""
    strategy = declaration(resolved.strategy)
    expected = dict(strategy.expected_calls(resolved.limits, resolved.gates.think is ThinkMode.MODEL))
    expected[strategy.clarifier.name] = (0, 0) if resolved.gates.clarify is Clarify.OFF else (1, MOST_ROUNDS)
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


def _capped(amount: tuple[float, float], cap: float | None) -> Range:
    high = amount[1] if cap is None else min(amount[1], cap)
    return Range(low=min(amount[0], high), high=high)
