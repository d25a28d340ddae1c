"""What is said before a run: where text goes, what it may cost. Pure."""

from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from contracts.presets import effective_limits
from contracts.request import EngineChoice, ResearchRequest
from contracts.resolved import EffectiveLimits
from contracts.vocabulary import EngineKind
from workers.settings import Settings

NOTHING_LEAVES = "nothing leaves this machine"
TOKENS_PER_CALL = (2_000, 12_000)
"""Input and output together, of a short and of a long call."""
REFLECTIONS_PER_ITERATION = 4


@dataclass(frozen=True)
class Estimate:
    """Lowest and highest expected amounts of a run with a model."""

    calls: tuple[int, int]
    tokens: tuple[int, int]

    def line(self, cap_usd: float | None) -> str:
        """One line for a person."""
        cap = "no cap on cost" if cap_usd is None else f"at most {cap_usd:.2f} USD where prices are known"
        return (
            f"about {self.calls[0]} to {self.calls[1]} model calls, "
            f"{self.tokens[0]:,} to {self.tokens[1]:,} tokens; {cap}"
        )


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


def estimate(limits: EffectiveLimits) -> Estimate:
    """Calls and tokens of a run that stops after one iteration, and of one that uses all of them."""
    one = 1 + limits.max_sub_queries + 1 + REFLECTIONS_PER_ITERATION
    all_of_them = one + (limits.max_iterations - 1) * (limits.max_sub_queries + 2 + REFLECTIONS_PER_ITERATION)
    least = min(one, 1 + 2 + 1)
    most = all_of_them if limits.max_model_calls is None else min(all_of_them, limits.max_model_calls)
    return Estimate((min(least, most), most), (least * TOKENS_PER_CALL[0], most * TOKENS_PER_CALL[1]))


def _is_here(host: str) -> bool:
    name = urlsplit(f"//{host}").hostname or ""
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"
