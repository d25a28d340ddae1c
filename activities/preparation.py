"""Resolution: request + worker configuration → frozen `ResolvedResearch`. Pure; refusals name the remedy."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.ceilings import BoundRequest, bind
from activities.likely_use import LIMITS_ADVICE, likely_run, likely_source, limits_too_low, run_without_gaps
from contracts import failures, presets
from contracts.ceilings import DEPTHS, NUMBERS, Ceiling, Ceilings
from contracts.outcome import Usage
from contracts.parse_request import SPECIAL_LIMITS, strategy_problems
from contracts.protected_sources import resolve_protected_sources
from contracts.request import (
    Approve,
    Checks,
    Depth,
    Gates,
    Mode,
    ResearchRequest,
    SearchPolicy,
    SharedSettings,
    SourceType,
)
from contracts.resolved import (
    CorpusSnapshot,
    EffectiveLimits,
    EffectiveSearch,
    Estimate,
    Hook,
    ModelPrice,
    ProviderChoice,
    ResolvedResearch,
    reads_pages,
    where_text_goes,
)
from contracts.strategies import StrategyDeclaration, declaration, list_selectable
from contracts.tenants import DEFAULT_TENANT, TenantRules
from contracts.tokens import TokenSettings
from contracts.vocabulary import EngineKind, StopReason, Tier
from providers.text import detect_language

CORPUS: Final = "corpus"
UNCHANGEABLE: Final = frozenset({"strategy", "mode", "corpus", "system_prompt", "context", "follow_up_of"})
"""Request fields that a resumed run cannot change, because its findings depend on them."""
NOT_IN_SCHEMA: Final = frozenset(
    "query context metadata protected_sources exclude follow_up_of continue_from refresh tenant".split()
)
"""Request fields specific to one question or client, so not part of the settings schema."""
NOT_STORED: Final = frozenset({"query", "tenant", "continue_from", "refresh"})
"""Request fields that are not settings of the run."""
Candidates = dict[str, list[str]]  # by tier: the model called first, then its fallbacks
Choose = Callable[[Sequence[str] | None, Sequence[SourceType]], list[ProviderChoice]]
"""Maps provider names (None: any) and source types to candidates. Raises ValueError for an unknown name."""
NO_PROOF: Final = (
    "tenant: the start proves none, and the operator wants a proof ([tenants] unproven): set RESEARCH_TENANT_KEYS to "
    "the name and the key of your tenant"
)
DEFAULT_SEARCH = EffectiveSearch(source_types=[SourceType.WEB, SourceType.ACADEMIC])


@dataclass(frozen=True)
class ResearchConfiguration:
    """The part of the worker configuration that shapes runs; no secrets but the keys in `tenants`."""

    models: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Model names by tier, each the fallback of the one before; empty if none is configured."""
    model_host: Callable[[str], str | None] = lambda _: None
    """Maps a model name to its endpoint, `host` or `host:port`; None if it cannot be called."""
    reasoning_tokens: Callable[[str], int | None] = lambda _: None
    """Maps a model name to its maximum of hidden reasoning tokens per call; None if unknown."""
    reasons: Callable[[str], bool] = lambda _: False
    """Maps a model name to true if the model reasons on its own before it answers."""
    takes_tools: Callable[[str], bool] = lambda _: True
    """Maps a model name to true if it can call tools at its endpoint."""
    model_price: Callable[[str], ModelPrice | None] = lambda _: None
    """Maps a model name to its price; None if unknown."""
    call_usd: Callable[[str, Usage], float | None] = lambda *_: None
    """Maps a model name and token usage to the US dollars of a call; None if the price is unknown."""
    search_usd: Callable[[str], float | None] = lambda _: None
    """Maps a provider name to the US dollars of one search; None if the price is unknown."""
    choose_providers: Choose = lambda *_: []
    search_advice: Callable[[Sequence[ProviderChoice]], list[str]] = lambda _: []
    """Returns lines about settings that would improve searches."""
    search: EffectiveSearch = DEFAULT_SEARCH  # search options for requests that name none
    hooks: Mapping[str, Hook] = field(default_factory=dict)
    presets: Mapping[tuple[str, Depth], EffectiveLimits] = field(default_factory=dict)
    """The operator's presets, by strategy and depth; the documented ones apply otherwise."""
    ceilings: Ceilings = field(default_factory=Ceilings)
    """What requests may ask for at most."""
    tenants: TenantRules = field(default_factory=TenantRules)
    """How the tenant of a run is found."""
    search_attributes: Callable[[], Awaitable[bool]] | None = None
    """Returns true if the namespace has our search attributes."""
    browser_host: str | None = None
    """Host of the service that opens pages which need a browser."""
    semantic: Callable[[str], bool] = lambda _: False
    """Maps a question to true if rules rank its passages by closeness of meaning, too."""
    tokens: TokenSettings = field(default_factory=TokenSettings)
    digest: str = ""
    product_version: str = ""
    notices: list[str] | None = None  # the texts in notices of a run; None: there are none
    collection: str = ""  # where sessions are stored: a folder, or a store's URL without credentials


class RunRefused(ApplicationError):
    """The run cannot start, through no fault of the worker; the message names reason and remedy."""

    def __init__(self, message: str, reason: StopReason = StopReason.INVALID_INPUT) -> None:
        details = {"stop_reason": reason.value}
        category = ApplicationErrorCategory.BENIGN
        super().__init__(message, details, type=failures.REFUSED, non_retryable=True, category=category)
        self.reason = reason

    def __str__(self) -> str:  # the base class prefixes the type
        return self.message


def resolve(
    research_id: str,
    request: ResearchRequest,
    configuration: ResearchConfiguration,
    corpus: CorpusSnapshot | None,
    *,
    search_attributes: bool,
) -> ResolvedResearch:
    """Resolve a request. Raises `RunRefused`."""
    if lines := strategy_problems(request, request.strategy):
        raise RunRefused("\n".join(lines))
    requested = _named_settings(request)
    bound = _bind(request, configuration)
    request = bound.request
    chosen = _choose_models(bound, configuration)
    engine = chosen.engine
    limits, choices = _limits(request, configuration, chosen.reasoning)
    strategy = declaration(request.strategy)
    search = _search_options(bound, configuration)
    providers = _providers(request, corpus, configuration, search.source_types)
    web = any(choice.available and choice.name != CORPUS for choice in providers)
    gates = presets.effective_gates(strategy.gates, request.gates, engine)
    if lacks := _unmet_need(strategy, engine, chosen.candidates, configuration):
        raise RunRefused(f"strategy: {request.strategy} {lacks}")
    protected = _protected_sources(request, search)
    pages = reads_pages(providers, protected, follows=request.follow_up_of is not None)
    search_hosts = [choice.host for choice in providers if choice.available and choice.host]
    verify = presets.effective_verify(request.verify, engine)
    resolved = ResolvedResearch(
        **{name: getattr(request, name) for name in SharedSettings.model_fields},
        research_id=research_id,
        requested=requested,
        language=detect_language(request.query),
        depth=presets.effective_depth(request.depth),
        choices=bound.choices(choices),
        ceiling=bound.words(with_tenant=configuration.tenants.needs_proof),
        engine=engine,
        models=chosen.models,
        model_host=chosen.host,
        model_prices=_prices(chosen.candidates, configuration),
        reasoning_tokens=_reasoning_tokens(chosen.candidates, configuration),
        reasoning_tiers=chosen.reasoning,
        providers=providers,
        search=search,
        corpus=corpus,
        protected_sources=protected,
        web=web,
        limits=bound.limits(limits),
        cuts=bound.cuts,
        gates=gates,
        approval_waived=strategy.gates.requires_approval and not gates.requires_approval,
        hook=_hook(request, configuration),
        verify=verify,
        checks=presets.effective_checks(request.checks, verify, engine),
        search_attributes=search_attributes,
        semantic=configuration.semantic(request.query),
        tokens=configuration.tokens,
        configuration_digest=configuration.digest,
        product_version=configuration.product_version,
        notices=configuration.notices,
        browser_host=configuration.browser_host,
        egress=where_text_goes(chosen.host, search_hosts, pages=pages, browser_host=configuration.browser_host),
        advice=_advice(engine, providers, configuration) if web else [],
    )
    return with_estimate(resolved, configuration)


def _bind(request: ResearchRequest, configuration: ResearchConfiguration) -> BoundRequest:
    """Return a request within the operator's ceilings. Raises `RunRefused`."""
    bound = bind(request, configuration.ceilings)
    if bound.problems:
        raise RunRefused("\n".join(bound.problems))
    return bound


def _protected_sources(request: ResearchRequest, search: EffectiveSearch) -> list[str]:
    """Return the sources that a request names, as addresses. Raises `RunRefused`."""
    protected, problems = resolve_protected_sources(request, search)
    if problems:
        raise RunRefused("\n".join(problems))
    return protected


# --- a resumed run ----------------------------------------------------------------------------------------------------
def resolve_again(
    stored: ResolvedResearch,
    request: ResearchRequest,
    configuration: ResearchConfiguration,
    corpus: CorpusSnapshot | None = None,
) -> ResolvedResearch:
    """Resolve a resumed run: settings named in the new request replace the earlier ones.

    Engine, models and depth are unchanged unless named; `corpus` is a newer snapshot, if any. Raises `RunRefused` for
    another question, and names each setting that a run cannot change.
    """
    if request.query != stored.query:
        raise RunRefused("query: this id belongs to another question: choose another id")
    if lines := [*_refused_changes(stored, request), *strategy_problems(request, stored.strategy)]:
        raise RunRefused("\n".join(lines))
    requested = merge(stored.requested, _named_settings(request))
    fixed = {
        "query": stored.query,
        "strategy": stored.strategy,
        "mode": stored.mode,
        "depth": stored.depth,
        "system_prompt": stored.system_prompt,
        "tenant": stored.tenant,
        "context": [turn.model_dump() for turn in stored.context],
        "corpus": stored.corpus.name if stored.corpus else None,
        "engine": "auto" if request.models.model_fields_set else stored.engine.value,
        "models": stored.models,
    }
    merged = merge(merge(stored.requested, fixed), _named_settings(request))
    full = ResearchRequest.model_validate(merged)
    attributes = stored.search_attributes
    resolved = resolve(stored.research_id, full, configuration, corpus or stored.corpus, search_attributes=attributes)
    resolved = resolved.with_fields(
        follow_up=stored.follow_up,
        canary=stored.canary,
        semantic=stored.semantic,
        tokens=stored.tokens,
        requested=requested,
    )
    if resolved.depth is stored.depth:
        bound = bind(full, configuration.ceilings)
        limits = bound.limits(presets.effective_limits(stored.limits, request.limits))
        cuts = list(dict.fromkeys([*resolved.cuts, *bound.cuts]))
        resolved = resolved.with_fields(limits=limits, choices=bound.choices(stored.choices), cuts=cuts)
    return with_estimate(resolved, configuration)


def _named_settings(request: ResearchRequest) -> dict[str, Any]:
    """Return the settings that a request names, as JSON, except those that a resumed run cannot change."""
    named = request.model_dump(mode="json", exclude_unset=True, exclude_none=True, exclude={*NOT_STORED, *UNCHANGEABLE})
    return {name: value for name, value in named.items() if value != "auto"}


def merge(base: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Merge nested dictionaries; values of `overrides` win, and `metadata` is replaced as a whole."""
    merged = {**base, **overrides}
    both = (name for name in overrides if isinstance(overrides[name], dict) and isinstance(base.get(name), dict))
    return merged | {name: merge(base[name], overrides[name]) for name in both if name != "metadata"}


def _refused_changes(stored: ResolvedResearch, request: ResearchRequest) -> list[str]:
    """Return a line for each unchangeable field whose requested value differs from the run's."""
    known: dict[str, object] = {name: getattr(stored, name, None) for name in UNCHANGEABLE}
    known["corpus"] = stored.corpus.name if stored.corpus else None
    known["follow_up_of"] = stored.follow_up.research_id if stored.follow_up else None
    named = request.model_fields_set & UNCHANGEABLE
    changed = (name for name in sorted(named) if getattr(request, name) not in (None, Mode.AUTO, known[name]))
    return [f"{name}: a resumed run cannot change it; omit it, or start a new run" for name in changed]


# --- limits and models ------------------------------------------------------------------------------------------------
def _limits(
    request: ResearchRequest, configuration: ResearchConfiguration, reasoning: Collection[str]
) -> tuple[EffectiveLimits, dict[str, EffectiveLimits]]:
    """Return the initial limits and those that the run may choose; `reasoning` lists tiers with reasoning models."""
    strategy = declaration(request.strategy)
    by_tier = strategy.reasoning_limits.items()
    changes = {name: limit for tier, limits in by_tier if tier in reasoning for name, limit in limits.items()}

    def of_depth(depth: Depth) -> EffectiveLimits:
        documented = presets.preset(strategy.name, depth)
        base = configuration.presets.get((strategy.name, depth)) or documented
        # Values set by the operator are not overridden.
        applied = {name: limit for name, limit in changes.items() if getattr(base, name) == getattr(documented, name)}
        return base.model_copy(update=applied)

    def of_request(base: EffectiveLimits) -> EffectiveLimits:
        effective = presets.effective_limits(base, request.limits)
        minimum = len(request.protected_sources)
        return effective.with_fields(
            max_sources=max(effective.max_sources, minimum), max_new_sources=max(effective.max_new_sources, minimum)
        )

    if request.mode in strategy.modes:
        return of_request(strategy.modes[request.mode]), {}
    choices: dict[str, EffectiveLimits] = {}
    if strategy.decides and request.depth is Depth.AUTO:
        choices |= {depth.value: of_depth(depth) for depth in strategy.presets}
    if strategy.decides and request.mode is Mode.AUTO:
        choices |= {mode.value: limits for mode, limits in strategy.modes.items()}
    limits = of_request(of_depth(presets.effective_depth(request.depth)))
    return limits, {name: of_request(chosen) for name, chosen in choices.items()}


def _engine(request: ResearchRequest, configuration: ResearchConfiguration) -> EngineKind:
    """Choose the engine: `auto` means a model if one is configured or named. Raises `RunRefused`."""
    named = request.models.model_dump(exclude_none=True)
    if request.engine != "extractive" and configuration.models:
        return EngineKind.MODEL
    if request.engine == "model" or (named and request.engine == "auto"):
        which = ""
        if named:
            which = f"the request names a model (models.{next(iter(named))}), but "
        raise RunRefused(
            f"{which}no model is configured: set RESEARCH_MODEL together with ANTHROPIC_API_KEY (or ANTHROPIC_BASE_URL "
            "for an endpoint of your own), or use --engine extractive",
            StopReason.NO_PROVIDERS,
        )
    if request.mode is Mode.DIRECT:
        raise RunRefused("mode: direct needs a model, and this run has none: use mode quick, or configure a model")
    return EngineKind.EXTRACTIVE


@dataclass(frozen=True)
class ChosenModels:
    """The engine of a run, and the models that it may call; none without a model."""

    engine: EngineKind
    candidates: Candidates
    reasoning: list[str]
    """Tiers whose first model reasons on its own."""
    host: str | None

    @property
    def models(self) -> dict[str, str]:
        """Return the model called first, by tier."""
        return {tier: names[0] for tier, names in self.candidates.items()}


def _choose_models(bound: BoundRequest, configuration: ResearchConfiguration) -> ChosenModels:
    """Choose engine and models. Raises `RunRefused`."""
    engine = _engine(bound.request, configuration)
    candidates: Candidates = {}
    if engine is EngineKind.MODEL:
        candidates = _candidates(bound, configuration)
        _check_summarizers(configuration)
    reasoning = [tier for tier, names in candidates.items() if configuration.reasons(names[0])]
    return ChosenModels(engine, candidates, reasoning, _model_hosts(candidates, configuration))


def _search_options(bound: BoundRequest, configuration: ResearchConfiguration) -> EffectiveSearch:
    """Return the configured options of searches with those of the request, and the hosts that a ceiling denies."""
    changes = bound.request.search.model_dump(exclude_none=True, exclude={"providers"})
    search = configuration.search.model_copy(update=changes)
    return search.with_fields(domains_deny=[*search.domains_deny, *bound.ceiling.domains_deny])


def _candidates(bound: BoundRequest, configuration: ResearchConfiguration) -> Candidates:
    """Return models by tier: the requested one, then the configured ones. Raises `RunRefused` if none is allowed."""
    named = bound.request.models.model_dump(exclude_none=True)
    allowed = bound.ceiling.models
    default = next(iter(configuration.models.values()))[:1]
    others = [name for names in configuration.models.values() for name in names]
    candidates = {}
    for tier in Tier:
        names = configuration.models.get(tier.value, default)
        if tier.value in named:
            names = [named[tier.value], *names]
        if allowed is not None:
            # A tier without an allowed model has those of the others.
            names = [name for name in names if name in allowed] or [name for name in others if name in allowed]
        if not names:
            remedy = f"name one of {', '.join(allowed or ())}"
            raise RunRefused(f"models.{tier}: no allowed model (the operator's {bound.places['models']}): {remedy}")
        candidates[tier.value] = list(dict.fromkeys(names))
    return candidates


def _prices(candidates: Candidates, configuration: ResearchConfiguration) -> dict[str, ModelPrice]:
    """Return the price by tier: the highest known one, since the reserve must cover any of the models."""
    prices = {}
    for tier, names in candidates.items():
        if known := [price for price in map(configuration.model_price, names) if price is not None]:
            highest = {name: max(getattr(price, name) for price in known) for name in ("input", "output")}
            prices[tier] = ModelPrice(**highest)
    return prices


def _model_hosts(candidates: Candidates, configuration: ResearchConfiguration) -> str | None:
    """Return the hosts that get the run's texts, that of the report's writer first; None without a model."""
    hosts = [configuration.model_host(name) for names in reversed(candidates.values()) for name in names]
    return ", ".join(dict.fromkeys(filter(None, hosts))) or None


def _reasoning_tokens(candidates: Candidates, configuration: ResearchConfiguration) -> int | None:
    """Return the most that any of the models may use for reasoning in a call; None if none of them does."""
    amounts = [configuration.reasoning_tokens(name) for names in candidates.values() for name in names]
    return max((amount for amount in amounts if amount is not None), default=None)


def _advice(engine: EngineKind, providers: Sequence[ProviderChoice], configuration: ResearchConfiguration) -> list[str]:
    """Return how a run that searches the web would find or write more."""
    advice = list(configuration.search_advice([choice for choice in providers if choice.name != CORPUS]))
    if engine is EngineKind.EXTRACTIVE and not configuration.models:
        advice.append("for a written report instead of passages set RESEARCH_MODEL and ANTHROPIC_API_KEY")
    return advice


def _check_summarizers(configuration: ResearchConfiguration) -> None:
    """Raise `RunRefused` for a summarizer that is not a configured model."""
    tokens = configuration.tokens
    known = {name for names in configuration.models.values() for name in names}
    others = [("summarization_providers", name) for name in tokens.summarization_providers]
    for key, name in [("summarization_provider", tokens.summarization_provider), *others]:
        if name and name not in known:
            remedy = f"name one of {', '.join(sorted(known))}, or add it to [models]"
            raise RunRefused(f"tokens.{key}: no model called {name} is configured: {remedy}")


def _hook(request: ResearchRequest, configuration: ResearchConfiguration) -> Hook | None:
    """Return the configured hook that the request names, if any. Raises `RunRefused`."""
    name = request.gates.hook
    if name is not None and name not in configuration.hooks:
        known = ", ".join(sorted(configuration.hooks)) or "none is configured"
        raise RunRefused(f"gates.hook: no hook of that name; known: {known}")
    if not name:
        return None
    return configuration.hooks[name]


def _unmet_need(
    strategy: StrategyDeclaration, engine: EngineKind, candidates: Candidates, configuration: ResearchConfiguration
) -> str:
    """Return the unmet need of a strategy whose roles call tools, with its remedy; empty if there is none."""
    calling = [role for role in strategy.roles if role.tools]
    unscripted = [role.name for role in calling if not role.has_fallback]
    if engine is EngineKind.EXTRACTIVE:
        remedy = "configure a model (RESEARCH_MODEL together with ANTHROPIC_API_KEY), or choose another strategy"
        if not unscripted:
            return ""
        return f"needs a model for the role {unscripted[0]}: {remedy}"
    for role in calling:
        names = candidates.get(role.tier.value, ())
        if names and not any(map(configuration.takes_tools, names)):
            remedy = f"choose a model that can call tools (models.{role.tier})"
            if not unscripted:
                remedy += ", or engine extractive"
            return f"calls tools, which {', '.join(names)} cannot call: {remedy}"
    return ""


# --- searching --------------------------------------------------------------------------------------------------------
def _providers(
    request: ResearchRequest,
    corpus: CorpusSnapshot | None,
    configuration: ResearchConfiguration,
    source_types: Sequence[SourceType],
) -> list[ProviderChoice]:
    """List the corpus, then the web providers in order, each with a reason. Raises `RunRefused` if none is usable."""
    if corpus and not corpus.files:
        message = f"corpus {corpus.name} has no readable document ({corpus.skipped} skipped)"
        raise RunRefused(f"{message}: see `research corpus status`", StopReason.NO_PROVIDERS)
    chosen = []
    if corpus:
        chosen = [ProviderChoice(name=CORPUS, available=True, reason="named by the request")]
    named = request.search.providers
    web = None
    if named is not None:
        web = [name for name in named if name != CORPUS]
    if request.web is False and web:
        raise RunRefused(f"search.providers: {web[0]} searches the web, but web is false: change one of the two")
    # The web is searched if requested, if web providers are named, or if there is no corpus.
    if request.web is None:
        needed = request.corpus is None or bool(web)
    else:
        needed = request.web
    if needed and web != []:
        try:
            chosen += configuration.choose_providers(web, source_types)
        except ValueError as error:
            raise RunRefused(f"search.providers: {error}") from None
    if not any(choice.available for choice in chosen):
        lacks = "".join(f"\n{choice.name}: {choice.reason}" for choice in chosen)
        message = f"there is nothing to search: name a folder with --corpus DIR, or set up a search provider{lacks}"
        raise RunRefused(message, StopReason.NO_PROVIDERS)
    return chosen


# --- the estimate -----------------------------------------------------------------------------------------------------
def with_estimate(resolved: ResolvedResearch, configuration: ResearchConfiguration) -> ResolvedResearch:
    """Return a resolution with its estimate, and with advice where its limits are below it."""
    estimate = estimate_run(resolved, configuration)
    others = [line for line in resolved.advice if not line.startswith(LIMITS_ADVICE)]
    advice = []
    if estimate is not None:
        advice = limits_too_low(resolved, estimate)
    return resolved.with_fields(estimate=estimate, advice=[*others, *advice])


def estimate_run(resolved: ResolvedResearch, configuration: ResearchConfiguration) -> Estimate | None:
    """Return what a run likely uses (`activities.likely_use`), and its limits; None if it makes no paid call."""
    if resolved.engine is not EngineKind.MODEL and not resolved.web:
        return None
    limits = resolved.limits
    # What a model chooses later must not exceed what was shown.
    caps = presets.highest_limits([limits, *resolved.choices.values()])
    likely = likely_run(resolved)
    least = run_without_gaps(resolved)
    (usd, unpriced), (least_usd, _) = (run.usd(resolved.models, configuration.call_usd) for run in (likely, least))
    prices = _search_prices(resolved, configuration)
    if resolved.search.policy is SearchPolicy.FAN_OUT:
        at_once = len(prices)
    else:
        at_once = min(1, len(prices))
    known = [price for price in prices.values() if price is not None] or [0.0]
    search_usd = at_once * sum(known) / len(known)
    unpriced += [name for name, price in prices.items() if price is None]
    return Estimate(
        likely_calls=round(likely.calls),
        likely_tokens=round(likely.tokens),
        likely_searches=round(at_once * likely.searches),
        likely_usd=None if unpriced else round(usd + search_usd * likely.searches, 4),
        likely_minutes=round(min(likely.seconds, limits.deadline_seconds) / 60, 1),
        least_calls=round(least.calls),
        least_usd=round(least_usd + search_usd * least.searches, 4),
        source=likely_source(resolved),
        unpriced=unpriced,
        cap_usd=caps.max_cost_usd,
        cap_calls=caps.max_model_calls,
        cap_tokens=caps.max_tokens,
        cap_minutes=round(caps.deadline_seconds / 60, 1),
    )


def _search_prices(resolved: ResolvedResearch, configuration: ResearchConfiguration) -> Mapping[str, float | None]:
    """Return US dollars per search by provider; None: unknown price."""
    available = [choice for choice in resolved.providers if choice.available]
    return {choice.name: configuration.search_usd(choice.name) if choice.host else 0.0 for choice in available}


# --- metadata for front ends ------------------------------------------------------------------------------------------
def described_strategy() -> StrategyDeclaration:
    """Return the strategy whose plans need approval, else the default strategy of requests."""
    waiting = (strategy for strategy in list_selectable() if strategy.gates.approve is Approve.PLAN)
    return next(waiting, declaration(ResearchRequest.model_fields["strategy"].default))


def settings_schema(
    strategy: StrategyDeclaration, configuration: ResearchConfiguration, tenant: str = DEFAULT_TENANT
) -> dict[str, Any]:
    """Return the schema of a strategy's settings; each default is the value that applies if a request names none.

    It is that of a tenant: nothing in it is beyond its ceiling, so that a form which sends all defaults is not refused.
    """
    schema = ResearchRequest.model_json_schema()
    bound = bind(ResearchRequest(query="?", strategy=strategy.name, tenant=tenant), configuration.ceilings)
    known = _inline(schema, schema["$defs"], _defaults(strategy, configuration, bound))["properties"]
    _show_ceiling(known, bound.ceiling)
    for names in SPECIAL_LIMITS.values():
        if not any(getattr(limits, names[-1]) for limits in strategy.presets.values()):
            for name in names:
                del known["limits"]["properties"][name]
    known["strategy"] = {"const": strategy.name, "default": strategy.name}
    known["mode"]["enum"] = [Mode.AUTO.value, Mode.DEEP.value, *(mode.value for mode in strategy.modes)]
    return {"type": "object", "properties": {name: part for name, part in known.items() if name not in NOT_IN_SCHEMA}}


def _show_ceiling(known: dict[str, Any], ceiling: Ceiling) -> None:
    """Name the values of a ceiling as the largest ones of a schema."""
    for name in NUMBERS:
        highest = getattr(ceiling, name)
        if highest is not None:
            known["limits"]["properties"][name]["maximum"] = highest
    if ceiling.depth is not None:
        allowed = DEPTHS[: DEPTHS.index(presets.effective_depth(ceiling.depth)) + 1]
        known["depth"]["enum"] = [Depth.AUTO.value, *(depth.value for depth in allowed)]


def _defaults(
    strategy: StrategyDeclaration, configuration: ResearchConfiguration, bound: BoundRequest
) -> dict[str, Any]:
    """Return the effective defaults: presets, gates, checks, the operator's search and models, within the ceiling."""
    depth = presets.effective_depth(bound.request.depth)
    own = configuration.presets.get((strategy.name, depth)) or presets.preset(strategy.name, depth)
    limits = bound.limits(own, noted=False)
    has_model = bool(configuration.models) and bound.request.engine != "extractive"
    engine = EngineKind.MODEL if has_model else EngineKind.EXTRACTIVE
    verify = presets.effective_verify(None, engine)
    parts = {
        "limits": limits,
        "gates": presets.effective_gates(strategy.gates, Gates(), engine),
        "search": configuration.search,
        "checks": presets.effective_checks(Checks(), verify, engine),
    }
    allowed = bound.ceiling.models
    usable = {
        tier: [name for name in names if allowed is None or name in allowed]
        for tier, names in configuration.models.items()
    }
    models = {tier: names[0] for tier, names in usable.items() if names}
    defaults = {name: part.model_dump(mode="json") for name, part in parts.items()}
    return defaults | {"depth": depth.value, "models": models, "verify": verify.value}


def _inline(part: Mapping[str, Any], definitions: Mapping[str, Any], value: Any = None) -> dict[str, Any]:
    """Return a schema with references resolved and `value` as default, without titles and `null` alternatives."""
    kinds = [option for option in part.get("anyOf", ()) if option != {"type": "null"}]
    if "$ref" in part:
        inner = definitions[part["$ref"].rpartition("/")[2]]
    elif len(kinds) == 1:
        inner = kinds[0]
    else:
        inner = None
    if inner is not None:
        own = {key: entry for key, entry in part.items() if key not in ("$ref", "anyOf")}
        return _inline({**inner, **own}, definitions, value)
    schema = {key: entry for key, entry in part.items() if key not in ("$defs", "title", "default")}
    if "items" in part:
        schema["items"] = _inline(part["items"], definitions)
    if "properties" in part:
        values = value or {}
        nested = part["properties"].items()
        return schema | {"properties": {name: _inline(entry, definitions, values.get(name)) for name, entry in nested}}
    default = part.get("default") if value is None else value
    if default is None:
        return schema
    return schema | {"default": default}
