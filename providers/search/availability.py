"""Availability of search providers: set up, chosen for a run, and reachable."""

import asyncio
import os
import ssl
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

from contracts.names import SERVER_PREFIX
from contracts.request import SourceType
from contracts.resolved import ProviderChoice
from contracts.sentences import Message
from providers.certificates import trusted_certificates
from providers.interfaces import SearchProvider
from providers.search.declarations import BY_MODEL, SearchDeclaration, declared_names, search_declaration
from providers.service_calls import is_this_machine

PROBE_SECONDS: Final = 3.0
MODEL_MISSING: Final = Message(
    "provider_model_missing", key="ANTHROPIC_API_KEY", model="RESEARCH_MODEL", address="ANTHROPIC_BASE_URL"
)
ADVICE: Final = "for wider coverage set TAVILY_API_KEY, or SEARXNG_URL for a search engine of your own"


def provider_choices(
    values: Mapping[str, str],
    order: Sequence[str] | None = None,
    *,
    model: Mapping[str, str] | None = None,
    servers: Sequence[ProviderChoice] = (),
    today: date | None = None,
) -> list[ProviderChoice]:
    """List every provider of `order`: available or not, with the reason, and the host that gets its queries.

    `values` are variables by name, `model` those of a model whose endpoint searches the web, `servers` those of the
    operator's documents, which come first in the usual order. Raises KeyError for an unknown provider.
    """
    day = today or datetime.now(UTC).date()
    own = {choice.name: choice for choice in servers}
    names = (*own, *declared_names()) if order is None else order
    providers = [search_declaration(name) for name in names]
    web = [one for one in providers if SourceType.WEB in one.source_types and not one.fallback and one.name != BY_MODEL]
    usual = [one for one in web if not one.private and not one.has_ended(day)]
    others = [one.name for one in usual if one.problem(values) is None]
    choices = []
    for provider in providers:
        if provider.private:
            choices.append(own[provider.name])
            continue
        variables = values
        problem = provider.problem(values)
        available = problem is None
        reason = problem or _credentials(provider, values)
        if provider.name == BY_MODEL:
            variables = model or {}
            available = model is not None and not others
            reason = MODEL_MISSING
            if model is not None:
                reason = "the model's endpoint searches the web"
                if others:
                    reason = Message("provider_not_needed", name=others[0])
        address = provider.address_in(variables).replace("{language}.", "")
        choice = ProviderChoice(
            name=provider.name,
            available=available,
            reason=reason,
            host=urlsplit(address).netloc.rpartition("@")[2] or None,
            source_types=list(provider.source_types),
        )
        choices.append(choice)
    return choices


def _credentials(provider: SearchDeclaration, values: Mapping[str, str]) -> str:
    keys = [name for name in (provider.key_variable, provider.key_alternative) if values.get(name)]
    key = provider.key_variable
    named = list(dict.fromkeys((*keys[:1], *provider.required_variables))) if provider.required_variables else keys
    if named:
        return f"{' and '.join(named)} set"
    if not key:
        return "needs no key"
    return f"needs no key; {key} raises limits"


def malformed(values: Mapping[str, str]) -> set[str]:
    """Return the providers that are set up with a malformed key or address."""
    providers = [search_declaration(name) for name in declared_names() if name != BY_MODEL]
    complete = [provider for provider in providers if not provider.missing(values)]
    return {provider.name for provider in complete if provider.problem(values)}


def usable(choices: Sequence[ProviderChoice]) -> list[str]:
    """Return the names of the available providers, in order."""
    return [choice.name for choice in choices if choice.available]


def choose(
    choices: Sequence[ProviderChoice],
    names: Sequence[str] | None,
    source_types: Sequence[SourceType],
    *,
    broken: Collection[str] = (),
    ended: Mapping[str, str] = MappingProxyType({}),
    is_ordered: bool = False,
) -> list[ProviderChoice]:
    """Return the providers of a run. Raises ValueError for an unknown name.

    With `names`, these alone, in their order, unavailable ones with their reason. One that has none of the types is
    still used for the first of them, and its responses warn.

    Otherwise every available one that has one of the types, and the `broken` and the `ended` ones as unavailable, the
    latter with the reason that their mapping has. Those for `papers_alone` are among them only if nothing but papers is
    requested, or if the operator named and ordered all providers to use (`is_ordered`). Without a general web
    provider, the fallbacks count as web. If none is available, all that could be set up, with their reasons.
    """
    if names is not None:
        known = {choice.name: choice for choice in choices}
        unknown = [name for name in names if name not in known]
        if unknown:
            raise ValueError(f"no search provider is called {unknown[0]}; there are: {', '.join(known)}")
        return [_with_type(known[name], source_types, source_types[:1]) for name in dict.fromkeys(names)]
    choices = [
        choice.with_fields(available=False, reason=ended[choice.name])
        if choice.available and choice.name in ended
        else choice
        for choice in choices
    ]
    web = [choice for choice in choices if choice.available and SourceType.WEB in choice.source_types]
    has_web_provider = any(searches_whole_web(choice.name) for choice in web)
    if SourceType.WEB in source_types and SourceType.ACADEMIC not in source_types and not has_web_provider:
        types = [SourceType.WEB]
        choices = [_with_type(one, types, types) if search_declaration(one.name).fallback else one for one in choices]
    fitting = [choice for choice in choices if set(choice.source_types) & set(source_types)]
    if not is_ordered and set(source_types) != {SourceType.ACADEMIC}:
        fitting = [choice for choice in fitting if not search_declaration(choice.name).papers_alone]
    if not usable(fitting):
        return fitting
    return [choice for choice in fitting if choice.available or choice.name in broken or choice.name in ended]


def ended_services(values: Mapping[str, str], today: date | None = None) -> dict[str, str]:
    """Return the providers that are set up and whose services have ended, each with a sentence."""
    day = today or datetime.now(UTC).date()
    declared = [search_declaration(name) for name in declared_names()]
    ended = [one for one in declared if one.has_ended(day) and one.problem(values) is None]
    return {one.name: Message("provider_ended", day=str(one.ends_on), successor=one.successor) for one in ended}


def ending(name: str, today: date | None = None) -> str | None:
    """Return a line that says when the service of a provider ends, or has ended; None if no end is announced."""
    if name.startswith(SERVER_PREFIX):
        return None
    declaration = search_declaration(name)
    if declaration.ends_on is None:
        return None
    verb = "has ended on" if declaration.has_ended(today or datetime.now(UTC).date()) else "ends on"
    return f"{name}: its service {verb} {declaration.ends_on}; its successor is {declaration.successor}"


def advice(choices: Sequence[ProviderChoice]) -> list[str]:
    """Return advice for better searches with a run's providers: services that end, and how to search the whole web."""
    lines = [line for name in usable(choices) if (line := ending(name))]
    return lines + _wider(choices)


def _wider(choices: Sequence[ProviderChoice]) -> list[str]:
    """Return advice for providers that do not search the whole web; empty if one of them does."""
    web = [choice.name for choice in choices if choice.available and SourceType.WEB in choice.source_types]
    is_fallback = any(search_declaration(name).fallback for name in web)
    if is_fallback and not any(map(searches_whole_web, web)):
        return [ADVICE]
    return []


def searches_whole_web(name: str) -> bool:
    """Return whether a provider searches the whole web, not only one site or documents of the operator."""
    declaration = search_declaration(name)
    return not declaration.fallback and not declaration.private


def _with_type(choice: ProviderChoice, types: Sequence[SourceType], added: Sequence[SourceType]) -> ProviderChoice:
    """Return the choice, with more types if it has none of these."""
    if set(choice.source_types) & set(types):
        return choice
    return choice.with_fields(source_types=[*choice.source_types, *added])


async def probe(provider: SearchProvider) -> str | None:
    """Return the reason why a provider cannot be reached, or None; a folder, without an address, always can be."""
    address: str | None = getattr(provider, "address", None)
    if address is None:
        return None
    return await probe_address(address.replace("{language}", "en"))


async def probe_address(address: str, *, seconds: float = PROBE_SECONDS) -> str | None:
    """Connect and close without sending a query. Return the reason if that fails within `seconds`."""
    parts = urlsplit(address)
    try:
        host = parts.hostname
        port = parts.port or {"https": 443, "http": 80}[parts.scheme]
    except ValueError:
        return Message("provider_invalid_address")
    tls = trusted_certificates() if parts.scheme == "https" else None
    try:
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(host, port, ssl=tls)
    except TimeoutError:
        return Message("provider_silent", host=host or "", seconds=f"{seconds:g}")
    except ssl.SSLError:
        return Message("provider_untrusted", host=host or "", port=str(port))
    except OSError as error:
        reason = "unknown host"
        if error.errno and error.errno > 0:
            reason = os.strerror(error.errno).lower()
        # This machine is there: its own network needs no check.
        sentence = "provider_not_started" if is_this_machine(host or "") else "provider_unreachable"
        return Message(sentence, host=host or "", port=str(port), reason=reason)
    writer.transport.abort()
    return None
