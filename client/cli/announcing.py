"""What a request gets on this machine: which engine, which models, which limits; and where text goes. Pure."""

from ipaddress import ip_address
from urllib.parse import urlsplit

from contracts.presets import effective_limits
from contracts.request import EngineChoice, ResearchRequest
from contracts.resolved import EffectiveLimits
from contracts.vocabulary import EngineKind, ThinkMode
from workers.settings import Settings

NOTHING_LEAVES = "nothing leaves this machine"


def engine_of(request: ResearchRequest, settings: Settings) -> EngineKind:
    """Which engine a request gets here: `auto` is the model if one is configured."""
    if request.engine is EngineChoice.AUTO:
        return EngineKind.MODEL if settings.model_configured else EngineKind.EXTRACTIVE
    return EngineKind(request.engine.value)


def egress(engine: EngineKind, settings: Settings) -> str:
    """Where passages and searches go."""
    host = settings.model_host
    if engine is EngineKind.EXTRACTIVE or host is None:
        return NOTHING_LEAVES
    return f"passages go to {host}" + (" (this machine)" if _is_here(host) else "")


def limits_of(request: ResearchRequest, settings: Settings) -> EffectiveLimits:
    """The limits in effect, as far as this machine's configuration decides them."""
    return effective_limits(settings.preset(request.strategy, request.depth), request.limits)


def models_of(request: ResearchRequest, settings: Settings) -> dict[str, str]:
    """Model name by tier: what the request names, over what is configured."""
    asked = {tier: name for tier, name in request.models.model_dump().items() if name is not None}
    return settings.models.by_tier() | asked


def thinks(request: ResearchRequest) -> bool:
    """Whether the supervisor's think-pauses ask a model, given that a model does the roles."""
    return request.gates.think in (None, ThinkMode.MODEL)


def _is_here(host: str) -> bool:
    name = urlsplit(f"//{host}").hostname or ""
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"
