"""Which providers can be asked, in which order, and what the others lack (S0-102, S0-171)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from contracts.resolved import ProviderChoice


@dataclass(frozen=True)
class Needs:
    """The variables of a provider."""

    required: tuple[str, ...] = ()
    helpful: str | None = None
    """A key that is not needed and raises limits."""


NEEDS: Final[dict[str, Needs]] = {
    "tavily": Needs(("TAVILY_API_KEY",)),
    "google": Needs(("GOOGLE_API_KEY", "GOOGLE_CSE_ID")),
    "semantic_scholar": Needs(helpful="SEMANTIC_SCHOLAR_API_KEY"),
    "brave": Needs(("BRAVE_API_KEY",)),
    "searxng": Needs(("SEARXNG_URL",)),
    "wikipedia": Needs(),
}
"""The web's providers in the order in which they are asked: S0-102's three first."""


def provider_choices(variables_set: Collection[str], order: Sequence[str] = tuple(NEEDS)) -> list[ProviderChoice]:
    """Every provider of `order` with whether it can be asked and why. Raises KeyError for an unknown one."""
    return [_choice(name, NEEDS[name], variables_set) for name in order]


def usable(choices: Sequence[ProviderChoice]) -> list[str]:
    """Names of those that can be asked, in order."""
    return [choice.name for choice in choices if choice.available]


def _choice(name: str, needs: Needs, variables_set: Collection[str]) -> ProviderChoice:
    missing = [variable for variable in needs.required if variable not in variables_set]
    if missing:
        return ProviderChoice(name=name, available=False, reason=f"set {' and '.join(missing)}")
    if needs.required:
        return ProviderChoice(name=name, available=True, reason=f"{' and '.join(needs.required)} set")
    if needs.helpful is None:
        return ProviderChoice(name=name, available=True, reason="needs no key")
    reason = (
        f"{needs.helpful} set" if needs.helpful in variables_set else f"needs no key; {needs.helpful} raises limits"
    )
    return ProviderChoice(name=name, available=True, reason=reason)
