"""Availability of search providers: set up, chosen for a run, and reachable."""

import asyncio
import os
import ssl
from collections.abc import Collection, Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from contracts.request import SourceType
from contracts.resolved import ProviderChoice
from contracts.sentences import Message
from providers.certificates import trusted_certificates
from providers.interfaces import SearchProvider
from providers.search.declarations import BY_MODEL, SearchDeclaration, declared_names, search_declaration

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
) -> list[ProviderChoice]:
    """List every provider of `order`: available or not, with the reason, and the host that gets its queries.

    `values` are variables by name, `model` those of a model whose endpoint searches the web, `servers` those of the
    operator's documents, which come first in the usual order. Raises KeyError for an unknown provider.
    """
    own = {choice.name: choice for choice in servers}
    names = (*own, *declared_names()) if order is None else order
    providers = [search_declaration(name) for name in names]
    web = [one for one in providers if SourceType.WEB in one.source_types and not one.fallback and one.name != BY_MODEL]
    others = [one.name for one in web if not one.private and one.problem(values) is None]
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
        address = (variables.get(provider.address_variable) or provider.address).replace("{language}.", "")
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
    key = provider.key_variable
    named = provider.required_variables or ((key,) if values.get(key) else ())
    if named:
        return f"{' and '.join(named)} set"
    if not key:
        return "needs no key"
    return f"needs no key; {key} raises limits"


def malformed(values: Mapping[str, str]) -> set[str]:
    """Return the providers that are set up with a malformed key or address."""
    providers = [search_declaration(name) for name in declared_names() if name != BY_MODEL]
    complete = [provider for provider in providers if all(map(values.get, provider.required_variables))]
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
) -> list[ProviderChoice]:
    """Return the providers of a run. Raises ValueError for an unknown name.

    With `names`, these alone, in their order, unavailable ones with their reason. One that has none of the types is
    still used for the first of them, and its responses warn.

    Otherwise every available one that has one of the types, and the `broken` ones as unavailable. Without a general web
    provider, the fallbacks count as web. If none is available, all that could be set up, with their reasons.
    """
    if names is not None:
        known = {choice.name: choice for choice in choices}
        unknown = [name for name in names if name not in known]
        if unknown:
            raise ValueError(f"no search provider is called {unknown[0]}; there are: {', '.join(known)}")
        return [_with_type(known[name], source_types, source_types[:1]) for name in dict.fromkeys(names)]
    web = [choice for choice in choices if choice.available and SourceType.WEB in choice.source_types]
    has_web_provider = any(searches_whole_web(choice.name) for choice in web)
    if SourceType.WEB in source_types and SourceType.ACADEMIC not in source_types and not has_web_provider:
        types = [SourceType.WEB]
        choices = [_with_type(one, types, types) if search_declaration(one.name).fallback else one for one in choices]
    fitting = [choice for choice in choices if set(choice.source_types) & set(source_types)]
    if not usable(fitting):
        return fitting
    return [choice for choice in fitting if choice.available or choice.name in broken]


def advice(choices: Sequence[ProviderChoice]) -> list[str]:
    """Return advice for better searches with a run's providers; empty if one of them searches the whole web."""
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
        return Message("provider_unreachable", host=host or "", port=str(port), reason=reason)
    writer.transport.abort()
    return None
