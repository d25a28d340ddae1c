"""Resolution: request + worker configuration → the frozen `ResolvedResearch`. Pure; refusals say what to do."""

from activities.configuration import ResearchConfiguration
from contracts.parse_request import unavailable
from contracts.presets import depth_of, effective_gates, effective_limits, preset
from contracts.request import EngineChoice, Limits, ResearchRequest
from contracts.resolved import CorpusSnapshot, EffectiveLimits, Hook, ProviderChoice, ResolvedResearch
from contracts.vocabulary import EngineKind, StopReason, Tier
from providers.text import detect_language


class Refusal(Exception):
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
    """Everything that the run needs to know. Raises `Refusal`."""
    if lines := unavailable(request):
        raise Refusal(StopReason.INVALID_INPUT, "\n".join(lines))
    engine = choose_engine(request, configuration)
    models = choose_models(request, configuration) if engine is EngineKind.MODEL else {}
    key = (request.strategy, depth_of(request.depth))
    limits = effective_limits(configuration.presets.get(key) or preset(*key), request.limits)
    host = configuration.model_host if engine is EngineKind.MODEL else None
    return ResolvedResearch(
        research_id=research_id,
        query=request.query,
        language=detect_language(request.query),
        strategy=request.strategy,
        depth=key[1],
        engine=engine,
        models=models,
        model_host=host,
        providers=[choose_provider(corpus)],
        corpus=corpus,
        limits=limits,
        gates=effective_gates(request.gates, engine),
        hook=choose_hook(request, configuration),
        on_deadline=request.on_deadline,
        system_prompt=request.system_prompt,
        context=request.context,
        target_words=request.output.target_words,
        metadata=request.metadata,
        tenant=request.tenant,
        priority=request.priority,
        search_attributes=search_attributes,
        configuration_digest=configuration.digest,
        product_version=configuration.product_version,
        egress=f"passages go to {host}" if host else "nothing leaves this machine",
    )


def choose_engine(request: ResearchRequest, configuration: ResearchConfiguration) -> EngineKind:
    """`auto` means a model if one is configured (S0-101: what the request names comes first)."""
    configured = bool(configuration.models)
    if request.engine is EngineChoice.EXTRACTIVE:
        return EngineKind.EXTRACTIVE
    if request.engine is EngineChoice.MODEL and not configured:
        raise Refusal(
            StopReason.NO_PROVIDERS,
            "no model is configured: set RESEARCH_MODEL together with ANTHROPIC_API_KEY (or ANTHROPIC_BASE_URL for "
            "an endpoint of your own), or ask with --engine extractive",
        )
    return EngineKind.MODEL if configured else EngineKind.EXTRACTIVE


def choose_models(request: ResearchRequest, configuration: ResearchConfiguration) -> dict[str, str]:
    """Model by tier: the request's, else the configured one."""
    asked = request.models.model_dump(exclude_none=True)
    default = next(iter(configuration.models.values()))
    return {tier.value: asked.get(tier.value) or configuration.models.get(tier.value, default) for tier in Tier}


def choose_provider(corpus: CorpusSnapshot | None) -> ProviderChoice:
    """The corpus; the web is not built yet, so without a corpus there is nothing to search."""
    if corpus is None:
        raise Refusal(
            StopReason.NO_PROVIDERS,
            "there is nothing to search: name a folder with --corpus DIR (web search is not available yet)",
        )
    if corpus.files == 0:
        raise Refusal(
            StopReason.NO_PROVIDERS,
            f"corpus {corpus.name} holds no readable document ({corpus.skipped} skipped): see `research corpus status`",
        )
    return ProviderChoice(name="corpus", available=True, reason="named by the request")


def choose_hook(request: ResearchRequest, configuration: ResearchConfiguration) -> Hook | None:
    """A hook of the operator's configuration; a request can only name one."""
    name = request.gates.hook
    if name is None:
        return None
    hook = configuration.hooks.get(name)
    if hook is None:
        known = ", ".join(sorted(configuration.hooks)) or "none is configured"
        raise Refusal(StopReason.INVALID_INPUT, f"gates.hook: no hook of that name; known: {known}")
    return hook


def resolve_again(stored: ResolvedResearch, request: ResearchRequest) -> ResolvedResearch:
    """A resumed run keeps its resolution; new limits come over it. Raises `Refusal` for another question."""
    if request.query != stored.query:
        raise Refusal(StopReason.INVALID_INPUT, "query: this id belongs to another question; choose another id")
    return stored.model_copy(update={"limits": relimit(stored.limits, request.limits)})


def relimit(stored: EffectiveLimits, asked: Limits) -> EffectiveLimits:
    """Explicit limits over the stored ones."""
    return effective_limits(stored, asked)
