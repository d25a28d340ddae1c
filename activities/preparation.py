"""Resolution: request + worker configuration → the frozen `ResolvedResearch`. Pure; refusals say what to do."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from activities.configuration import ResearchConfiguration, WebSearchConfiguration
from activities.strategy_needs import unmet_need
from contracts.parse_request import unavailable, unknown_to_strategy
from contracts.presets import (
    chosen_limits,
    depth_of,
    effective_checks,
    effective_gates,
    effective_limits,
    effective_verify,
    preset,
)
from contracts.request import (
    SAME_LANGUAGE,
    Constraints,
    Depth,
    EngineChoice,
    Mode,
    ResearchRequest,
    SearchOptions,
)
from contracts.resolved import (
    CorpusSnapshot,
    EffectiveChecks,
    EffectiveLimits,
    EffectiveSearch,
    Hook,
    ModelPrice,
    ProviderChoice,
    ResolvedResearch,
    where_text_goes,
)
from contracts.strategies import declaration
from contracts.vocabulary import EngineKind, StopReason, Tier
from providers.text import detect_language

MOST_READ: Final = 1_000
"""Characters of a question that are looked at for what it is about."""
CORPUS: Final = "corpus"
ANSWERS_NEED_A_MODEL: Final = (
    "mode: an answer without research needs a model, and none does the work: ask with mode quick, or configure a model"
)
KEPT: Final = "a resumed run keeps its own; leave it out, or start a new run"


class RunRefused(Exception):
    """The run cannot start. The message says what is missing and what to do."""

    def __init__(self, reason: StopReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def resolve(
    research_id: str,
    request: ResearchRequest,
    configuration: ResearchConfiguration,
    corpus: CorpusSnapshot | None,
    *,
    search_attributes: bool,
) -> ResolvedResearch:
    """Everything that the run needs to know. Raises `RunRefused`."""
    if lines := unavailable(request):
        raise RunRefused(StopReason.INVALID_INPUT, "\n".join(lines))
    engine = choose_engine(request, configuration)
    models = choose_models(request, configuration) if engine is EngineKind.MODEL else {}
    if request.mode is Mode.DIRECT and engine is EngineKind.EXTRACTIVE:
        raise RunRefused(StopReason.INVALID_INPUT, ANSWERS_NEED_A_MODEL)
    reasoning = reasoning_tiers(models, configuration)
    limits, choices = choose_limits(request, configuration, reasoning)
    asked = may_be_asked(models, configuration)
    host = hosts_of_models(asked, configuration)
    providers = choose_providers(request, corpus, configuration.web_search)
    web = any(choice.available and choice.name != CORPUS for choice in providers)
    refuse_unmet_need(request.strategy, engine, asked, configuration, web=web)
    return ResolvedResearch(
        research_id=research_id,
        query=request.query,
        language=detect_language(request.query),
        strategy=request.strategy,
        mode=request.mode,
        depth=depth_of(request.depth),
        choices=choices,
        engine=engine,
        models=models,
        model_host=host,
        model_prices=prices_of(asked, configuration),
        reasoning_tokens=reasoning_of(asked, configuration),
        reasoning_tiers=reasoning,
        providers=providers,
        search=effective_search(request, configuration.web_search),
        corpus=corpus,
        web=web,
        limits=limits,
        gates=effective_gates(request.gates, engine),
        hook=choose_hook(request, configuration),
        verify=(verify := effective_verify(request.verify, engine, depth_of(request.depth))),
        checks=effective_checks(request.checks, verify, engine),
        on_deadline=request.on_deadline,
        system_prompt=request.system_prompt,
        context=request.context,
        target_words=request.output.target_words,
        report_language=report_language(request),
        sections=request.output.sections or [],
        citation_style=request.output.citation_style,
        uncited=request.output.uncited,
        audience=request.constraints.audience if request.constraints else None,
        region=request.constraints.region if request.constraints else None,
        metadata=request.metadata,
        tenant=request.tenant,
        priority=request.priority,
        exclude=request.exclude,
        search_attributes=search_attributes,
        configuration_digest=configuration.digest,
        product_version=configuration.product_version,
        egress=where_text_goes(host, hosts_of(providers), pages=web),
        advice=advice_for(engine, providers, configuration) if web else [],
    )


def choose_limits(
    request: ResearchRequest, configuration: ResearchConfiguration, reasoning: Collection[str] = ()
) -> tuple[EffectiveLimits, dict[str, EffectiveLimits]]:
    """The limits to begin with, and those that the run may choose once it knows the question better.

    `reasoning` are tiers whose models reason by themselves.
    """
    strategy = declaration(request.strategy)
    by_tools = [role.tier.value for role in strategy.roles if role.tools]
    by_reasoning = bool(by_tools) and set(by_tools) <= set(reasoning)

    def of_depth(depth: Depth) -> EffectiveLimits:
        documented = preset(strategy.name, depth)
        own = configuration.presets.get((strategy.name, depth)) or documented
        changes = strategy.reasoning_limits if by_reasoning else {}
        # What an operator has set stays as it is.
        left = {name: limit for name, limit in changes.items() if getattr(own, name) == getattr(documented, name)}
        return own.model_copy(update=left)

    if request.mode in strategy.modes:
        return effective_limits(strategy.modes[request.mode], request.limits), {}
    choices: dict[str, EffectiveLimits] = {}
    if strategy.decides and request.depth is Depth.AUTO:
        choices |= {depth.value: of_depth(depth) for depth in strategy.presets}
    if strategy.decides and request.mode is Mode.AUTO:
        choices |= {mode.value: limits for mode, limits in strategy.modes.items()}
    limits = effective_limits(of_depth(depth_of(request.depth)), request.limits)
    return limits, chosen_limits(choices, request.limits)


def refuse_unmet_need(
    strategy: str,
    engine: EngineKind,
    asked: Mapping[str, Sequence[str]],
    configuration: ResearchConfiguration,
    *,
    web: bool,
) -> None:
    """Raises `RunRefused` for a strategy that lacks what it cannot do without."""
    if lacks := unmet_need(declaration(strategy), engine, asked, configuration, web=web):
        raise RunRefused(StopReason.INVALID_INPUT, lacks)


def report_language(request: ResearchRequest) -> str | None:
    """The language that the request names for its report; None for that of the question."""
    return None if request.output.language == SAME_LANGUAGE else request.output.language


def choose_engine(request: ResearchRequest, configuration: ResearchConfiguration) -> EngineKind:
    """`auto` means a model if one is configured; a request that names one wants one. Raises `RunRefused`."""
    configured = bool(configuration.models)
    if request.engine is EngineChoice.EXTRACTIVE:
        return EngineKind.EXTRACTIVE
    named = request.models.model_dump(exclude_none=True)
    if not configured and (named or request.engine is EngineChoice.MODEL):
        asked = f"the request names a model (models.{next(iter(named))}), but " if named else ""
        raise RunRefused(
            StopReason.NO_PROVIDERS,
            f"{asked}no model is configured: set RESEARCH_MODEL together with ANTHROPIC_API_KEY (or ANTHROPIC_BASE_URL "
            "for an endpoint of your own), or ask with --engine extractive",
        )
    return EngineKind.MODEL if configured else EngineKind.EXTRACTIVE


def choose_models(request: ResearchRequest, configuration: ResearchConfiguration) -> dict[str, str]:
    """Model by tier: the request's, else the configured one."""
    asked = request.models.model_dump(exclude_none=True)
    default = next(iter(configuration.models.values()))
    return {tier.value: asked.get(tier.value) or configuration.models.get(tier.value, default) for tier in Tier}


def may_be_asked(models: Mapping[str, str], configuration: ResearchConfiguration) -> dict[str, list[str]]:
    """By tier the model that is asked first, then those that may take over from it."""
    return {
        tier: list(dict.fromkeys([first, *configuration.candidates.get(tier, ())])) for tier, first in models.items()
    }


def hosts_of_models(asked: Mapping[str, Sequence[str]], configuration: ResearchConfiguration) -> str | None:
    """Where passages may go, the host of the report's writer first, with commas between; None without a model."""
    hosts = [configuration.model_host(name) for names in reversed(list(asked.values())) for name in names]
    return ", ".join(dict.fromkeys(host for host in hosts if host is not None)) or None


def reasoning_of(asked: Mapping[str, Sequence[str]], configuration: ResearchConfiguration) -> int | None:
    """The most that any of the models may generate unseen; None where unknown."""
    rooms = [configuration.reasoning_tokens(name) for names in asked.values() for name in names]
    return max((room for room in rooms if room is not None), default=None)


def reasoning_tiers(models: Mapping[str, str], configuration: ResearchConfiguration) -> list[str]:
    """The tiers whose first model reasons by itself."""
    return [tier for tier, name in models.items() if configuration.reasons(name)]


def prices_of(asked: Mapping[str, Sequence[str]], configuration: ResearchConfiguration) -> dict[str, ModelPrice]:
    """Price by tier: the dearest that is known, since the reserve must be enough for each of them."""
    prices: dict[str, ModelPrice] = {}
    for tier, names in asked.items():
        known = [price for price in map(configuration.model_price, names) if price is not None]
        if known:
            prices[tier] = ModelPrice(
                input=max(price.input for price in known), output=max(price.output for price in known)
            )
    return prices


def effective_search(request: ResearchRequest, configured: WebSearchConfiguration) -> EffectiveSearch:
    """What the request says of searching, else what is configured."""
    asked, constraints = request.search or SearchOptions(), request.constraints or Constraints()
    return EffectiveSearch(
        policy=asked.policy or configured.policy,
        max_results_per_query=asked.max_results_per_query or configured.max_results_per_query,
        source_types=list(asked.source_types or configured.source_types),
        domains_allow=list(configured.domains_allow if asked.domains_allow is None else asked.domains_allow),
        domains_deny=list(configured.domains_deny if asked.domains_deny is None else asked.domains_deny),
        language=constraints.language,
        timeframe=constraints.timeframe,
    )


def wants_web(request: ResearchRequest) -> bool:
    """The web is searched when it is asked for, when providers of it are named, or when there is no corpus."""
    if request.web is not None:
        return request.web
    named = request.search.providers if request.search else None
    return request.corpus is None or any(name != CORPUS for name in named or ())


def choose_providers(
    request: ResearchRequest, corpus: CorpusSnapshot | None, configured: WebSearchConfiguration
) -> list[ProviderChoice]:
    """The corpus first, then the web's providers in order, each with its reason. Raises `RunRefused` if none is."""
    chosen = [] if corpus is None else [_corpus_choice(corpus)]
    named = request.search.providers if request.search else None
    web = None if named is None else [name for name in named if name != CORPUS]
    if request.web is False and web:
        raise RunRefused(StopReason.INVALID_INPUT, f"search.providers: {web[0]} searches the web, and web is false")
    if wants_web(request) and web != []:
        types = effective_search(request, configured).source_types
        try:
            chosen += configured.choose(web, types)
        except ValueError as error:
            raise RunRefused(StopReason.INVALID_INPUT, f"search.providers: {error}") from None
    if not any(choice.available for choice in chosen):
        raise RunRefused(StopReason.NO_PROVIDERS, nothing_to_search(chosen))
    return chosen


def nothing_to_search(choices: Sequence[ProviderChoice]) -> str:
    """The refusal when no provider is available: what each one lacks."""
    reasons = "".join(f"\n{choice.name}: {choice.reason}" for choice in choices)
    return f"there is nothing to search: name a folder with --corpus DIR, or set up a search provider{reasons}"


def hosts_of(choices: Sequence[ProviderChoice]) -> list[str]:
    """Where queries go."""
    return [choice.host for choice in choices if choice.available and choice.host is not None]


def advice_for(
    engine: EngineKind, choices: Sequence[ProviderChoice], configuration: ResearchConfiguration
) -> list[str]:
    """What would make a run over the web better, naming what to set."""
    asked = [choice for choice in choices if choice.name != CORPUS]
    advice = list(configuration.web_search.advice(asked))
    if engine is EngineKind.EXTRACTIVE and not configuration.models:
        advice.append("for a written report instead of extracts set RESEARCH_MODEL together with ANTHROPIC_API_KEY")
    return advice


def _corpus_choice(corpus: CorpusSnapshot) -> ProviderChoice:
    if corpus.files == 0:
        raise RunRefused(
            StopReason.NO_PROVIDERS,
            f"corpus {corpus.name} holds no readable document ({corpus.skipped} skipped): see `research corpus status`",
        )
    return ProviderChoice(name=CORPUS, available=True, reason="named by the request")


def choose_hook(request: ResearchRequest, configuration: ResearchConfiguration) -> Hook | None:
    """A hook of the operator's configuration; a request can only name one."""
    name = request.gates.hook
    if name is None:
        return None
    hook = configuration.hooks.get(name)
    if hook is None:
        known = ", ".join(sorted(configuration.hooks)) or "none is configured"
        raise RunRefused(StopReason.INVALID_INPUT, f"gates.hook: no hook of that name; known: {known}")
    return hook


def resolve_again(
    stored: ResolvedResearch, request: ResearchRequest, configuration: ResearchConfiguration
) -> ResolvedResearch:
    """The resolution of a resumed run: what the request names comes over the stored one, which keeps all else.

    Raises `RunRefused` for another question, and by name for what a run cannot change on its way.
    """
    if request.query != stored.query:
        raise RunRefused(StopReason.INVALID_INPUT, "query: this id belongs to another question; choose another id")
    lines = [*unavailable(request), *_unchangeable(stored, request), *unknown_to_strategy(request, stored.strategy)]
    if lines:
        raise RunRefused(StopReason.INVALID_INPUT, "\n".join(lines))
    depth = stored.depth if request.depth is Depth.AUTO else request.depth
    key = (stored.strategy, depth)
    base = stored.limits if depth is stored.depth else configuration.presets.get(key) or preset(*key)
    again = stored.model_copy(
        update={
            "depth": depth,
            "limits": effective_limits(base, request.limits),
            "target_words": request.output.target_words or stored.target_words,
            "report_language": report_language(request) or stored.report_language,
            "sections": request.output.sections or stored.sections,
            "citation_style": request.output.citation_style
            if "citation_style" in request.output.model_fields_set
            else stored.citation_style,
            "uncited": request.output.uncited if "uncited" in request.output.model_fields_set else stored.uncited,
            "audience": (request.constraints and request.constraints.audience) or stored.audience,
            "region": (request.constraints and request.constraints.region) or stored.region,
            "verify": request.verify or stored.verify,
            "checks": _checks_again(stored, request),
            "on_deadline": request.on_deadline if "on_deadline" in request.model_fields_set else stored.on_deadline,
            "priority": request.priority if "priority" in request.model_fields_set else stored.priority,
            "metadata": stored.metadata if request.metadata is None else request.metadata,
            "exclude": request.exclude or stored.exclude,
        }
    )
    again = _search_again(_engine_again(again, request, configuration), request, configuration)
    return again.model_copy(
        update={"egress": where_text_goes(again.model_host, hosts_of(again.providers), pages=again.web)}
    )


def _checks_again(stored: ResolvedResearch, request: ResearchRequest) -> EffectiveChecks:
    """The stored ones with what the request names; a run that is checked in full only now gets what belongs to that."""
    verify = request.verify or stored.verify
    anew = effective_checks(request.checks, verify, stored.engine)
    if verify is not stored.verify:
        return anew
    named = request.checks.model_dump(exclude_none=True)
    return stored.checks.model_copy(update={name: getattr(anew, name) for name in named})


def _unchangeable(stored: ResolvedResearch, request: ResearchRequest) -> list[str]:
    """A line for each thing that is named otherwise than the run has it, and that its findings depend on."""
    given = request.model_fields_set
    corpus = stored.corpus.name if stored.corpus else None
    changed = {
        "strategy": "strategy" in given and request.strategy != stored.strategy,
        "mode": request.mode not in (Mode.AUTO, stored.mode),
        "corpus": request.corpus is not None and request.corpus != corpus,
        "system_prompt": request.system_prompt is not None and request.system_prompt != stored.system_prompt,
        "context": "context" in given and request.context != stored.context,
        "follow_up_of": request.follow_up_of not in (None, stored.follow_up and stored.follow_up.research_id),
    }
    return [f"{path}: {KEPT}" for path, is_changed in changed.items() if is_changed]


def _engine_again(
    stored: ResolvedResearch, request: ResearchRequest, configuration: ResearchConfiguration
) -> ResolvedResearch:
    """With the engine, the models and the gates that a request names; without a word the run keeps its own."""
    named = request.models.model_dump(exclude_none=True)
    engine, models = stored.engine, stored.models
    if request.engine is not EngineChoice.AUTO or named:
        engine = choose_engine(request, configuration)
        before = stored.models if engine is EngineKind.MODEL else {}
        models = {**choose_models(request, configuration), **before, **named} if engine is EngineKind.MODEL else {}
    asked = request.gates.model_dump(exclude_none=True, include={"policy", "think", "clarify", "approve", "hook"})
    gates = stored.gates.model_copy(update=asked)
    if engine is not stored.engine and request.gates.think is None:
        gates = gates.model_copy(update={"think": effective_gates(request.gates, engine).think})
    changes: dict[str, object] = {
        "gates": gates,
        "hook": stored.hook if request.gates.hook is None else choose_hook(request, configuration),
    }
    if models != stored.models:
        candidates = may_be_asked(models, configuration)
        refuse_unmet_need(stored.strategy, engine, candidates, configuration, web=stored.web)
        changes |= {
            "engine": engine,
            "models": models,
            "model_host": hosts_of_models(candidates, configuration),
            "model_prices": prices_of(candidates, configuration),
            "reasoning_tokens": reasoning_of(candidates, configuration),
        }
    return stored.model_copy(update=changes)


def _search_again(
    stored: ResolvedResearch, request: ResearchRequest, configuration: ResearchConfiguration
) -> ResolvedResearch:
    """With the ways to search that a request names; the providers are chosen anew where it names any."""
    asked = (request.search or SearchOptions()).model_dump(exclude_none=True, exclude={"providers"})
    asked |= (request.constraints or Constraints()).model_dump(exclude_none=True, include={"language", "timeframe"})
    search = stored.search.model_copy(update=asked)
    providers, named = stored.providers, request.search.providers if request.search else None
    web = stored.web if request.web is None else request.web
    if named is not None or web is not stored.web or search.source_types != stored.search.source_types:
        options = SearchOptions(providers=named, source_types=search.source_types)
        choosing = request.model_copy(update={"web": web if named is None else request.web, "search": options})
        providers = choose_providers(choosing, stored.corpus, configuration.web_search)
        web = any(choice.available and choice.name != CORPUS for choice in providers)
    return stored.model_copy(update={"search": search, "providers": providers, "web": web})
