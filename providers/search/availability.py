"""What each search provider can do and needs, which ones are available, and which ones a run uses."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from contracts.request import SourceType
from contracts.resolved import ProviderChoice

WEB, ACADEMIC, NEWS = SourceType.WEB, SourceType.ACADEMIC, SourceType.NEWS
BY_MODEL: Final = "anthropic"
"""Searches through the model's endpoint: a way out for those who have set up nothing else."""
CONFIGURED_WEB: Final = ("tavily", "google", "brave", "searxng")
"""Providers of the web at large that need a setup by the operator."""
WITHOUT_SETUP: Final = ("semantic_scholar", "wikipedia")
"""What is left where nothing is set up: both are asked for web pages then."""
MODEL_LACKING: Final = (
    "needs a model endpoint that searches the web: set ANTHROPIC_API_KEY and RESEARCH_MODEL, without ANTHROPIC_BASE_URL"
)
ADVICE: Final = "for wider coverage set TAVILY_API_KEY, or SEARXNG_URL for a search engine of your own"


@dataclass(frozen=True)
class ProviderTraits:
    """What a provider can be asked for. Whatever it does not filter is filtered here, or told in a warning."""

    source_types: tuple[SourceType, ...]
    filters_domains_allow: bool = False
    """Whether any number of domains can be searched alone; without it, hits elsewhere are left out afterwards."""
    filters_domains_deny: bool = False
    filters_language: bool = False
    filters_dates: bool = False
    host: str | None = None
    """Where queries go unless another address is configured; None for a folder, and for an instance of one's own."""
    paid: bool = False
    """Whether a search may be charged; how much depends on the account's plan, so that the amount is not known."""


TRAITS: Final[dict[str, ProviderTraits]] = {
    "tavily": ProviderTraits(
        (WEB, NEWS),
        filters_domains_allow=True,
        filters_domains_deny=True,
        filters_dates=True,
        host="api.tavily.com",
        paid=True,
    ),
    "google": ProviderTraits(
        (WEB,),
        filters_domains_allow=True,
        filters_domains_deny=True,
        filters_language=True,
        filters_dates=True,
        host="customsearch.googleapis.com",
        paid=True,
    ),
    "semantic_scholar": ProviderTraits((ACADEMIC,), filters_dates=True, host="api.semanticscholar.org"),
    "brave": ProviderTraits(
        (WEB, NEWS), filters_language=True, filters_dates=True, host="api.search.brave.com", paid=True
    ),
    "searxng": ProviderTraits((WEB, NEWS, ACADEMIC), filters_language=True, filters_dates=True),
    "wikipedia": ProviderTraits(
        (WEB,), filters_domains_allow=True, filters_domains_deny=True, filters_language=True, host="wikipedia.org"
    ),
    "anthropic": ProviderTraits((WEB,), host="api.anthropic.com", paid=True),
    "corpus": ProviderTraits(()),
}
"""By provider. Articles of Wikipedia have one host: it is not asked if that is outside the domains. `anthropic`
takes a list of domains to keep to or one of domains to avoid, never both, and so promises neither.
"""


@dataclass(frozen=True)
class ProviderNeeds:
    """The variables of a provider."""

    required: tuple[str, ...] = ()
    helpful: str | None = None
    """A key that is not needed and raises limits."""


NEEDS: Final[dict[str, ProviderNeeds]] = {
    "tavily": ProviderNeeds(("TAVILY_API_KEY",)),
    "google": ProviderNeeds(("GOOGLE_API_KEY", "GOOGLE_CSE_ID")),
    "semantic_scholar": ProviderNeeds(helpful="SEMANTIC_SCHOLAR_API_KEY"),
    "brave": ProviderNeeds(("BRAVE_API_KEY",)),
    "searxng": ProviderNeeds(("SEARXNG_URL",)),
    "wikipedia": ProviderNeeds(),
}
"""Those that stand for themselves."""
ORDER: Final = (*NEEDS, BY_MODEL)
"""In which providers are asked: the three that cost the least for what they find come first."""


def provider_choices(
    variables_set: Collection[str],
    order: Sequence[str] = ORDER,
    *,
    model_offers_search: bool = False,
    addresses: Mapping[str, str] | None = None,
    broken: Mapping[str, str] | None = None,
) -> list[ProviderChoice]:
    """Every provider of `order` with whether it can be asked and why, and where its queries go.

    `model_offers_search` says whether the configured model's endpoint searches the web; `addresses` are URLs by
    provider that stand for the services' own; `broken` are reasons why what is set for a provider cannot be used.
    Raises KeyError for an unknown provider.
    """
    known = {name: _choice(name, needs, variables_set) for name, needs in NEEDS.items()}
    for name, reason in (broken or {}).items():
        known[name] = ProviderChoice(name=name, available=False, reason=reason)
    others = [name for name in CONFIGURED_WEB if name in order and known[name].available]
    known[BY_MODEL] = _model_choice(others, model_offers_search=model_offers_search)
    at = addresses or {}
    return [
        known[name].model_copy(
            update={
                "host": _host(at[name]) if at.get(name) else TRAITS[name].host,
                "source_types": list(TRAITS[name].source_types),
            }
        )
        for name in order
    ]


def usable(choices: Sequence[ProviderChoice]) -> list[str]:
    """Names of those that can be asked, in order."""
    return [choice.name for choice in choices if choice.available]


def choose(
    choices: Sequence[ProviderChoice],
    wanted: Sequence[str] | None,
    source_types: Sequence[SourceType],
    *,
    broken: Collection[str] = (),
) -> list[ProviderChoice]:
    """Which of them a run uses.

    Named ones: these alone, in the order in which they are named, those that cannot be asked with their reason; one
    that has none of the wanted types is asked for the first of them nevertheless, and says what it lacks.

    Else every available one that has a wanted type of source; where only those without any setup are left for web
    pages, the papers of Semantic Scholar count as such. With them stand the `broken` ones, unavailable: the
    operator has set them up. If none is left, all that could be set up for it, with their reasons. Raises ValueError
    for an unknown name.
    """
    if wanted is not None:
        return _pick_named({choice.name: choice for choice in choices}, wanted, source_types)
    stand_in = SourceType.WEB in source_types and SourceType.ACADEMIC not in source_types
    widened = _widen(choices) if stand_in else list(choices)
    fitting = [choice for choice in widened if set(choice.source_types) & set(source_types)]
    if not usable(fitting):
        return fitting
    return [choice for choice in fitting if choice.available or choice.name in broken]


def advice(choices: Sequence[ProviderChoice]) -> list[str]:
    """What to set for better searches, given what a run uses; nothing where it searches the web at large."""
    available = [choice for choice in choices if choice.available and SourceType.WEB in choice.source_types]
    names = {choice.name for choice in available}
    return [ADVICE] if names and names <= set(WITHOUT_SETUP) else []


def _pick_named(
    known: Mapping[str, ProviderChoice], wanted: Sequence[str], source_types: Sequence[SourceType]
) -> list[ProviderChoice]:
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise ValueError(f"no search provider is called {unknown[0]}; there are: {', '.join(known)}")
    chosen = [known[name] for name in dict.fromkeys(wanted)]
    return [
        choice
        if set(choice.source_types) & set(source_types)
        else choice.model_copy(update={"source_types": [*choice.source_types, *source_types[:1]]})
        for choice in chosen
    ]


def _widen(choices: Sequence[ProviderChoice]) -> list[ProviderChoice]:
    """The same, papers standing in for web pages where no provider searches the web at large."""
    if set(usable(choices)) & {*CONFIGURED_WEB, BY_MODEL}:
        return list(choices)
    return [
        choice.model_copy(update={"source_types": [*choice.source_types, SourceType.WEB]})
        if choice.name in WITHOUT_SETUP and SourceType.WEB not in choice.source_types
        else choice
        for choice in choices
    ]


def _choice(name: str, needs: ProviderNeeds, variables_set: Collection[str]) -> ProviderChoice:
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


def _model_choice(others: Sequence[str], *, model_offers_search: bool) -> ProviderChoice:
    if not model_offers_search:
        return ProviderChoice(name=BY_MODEL, available=False, reason=MODEL_LACKING)
    if others:
        return ProviderChoice(name=BY_MODEL, available=False, reason=f"not needed: {others[0]} searches the web")
    return ProviderChoice(name=BY_MODEL, available=True, reason="the model's endpoint searches the web")


def _host(address: str) -> str:
    """`host` or `host:port`, without a user; a host that begins with the language counts without it."""
    return address.partition("://")[2].partition("/")[0].rpartition("@")[2].removeprefix("{language}.")
