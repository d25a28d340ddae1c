"""Availability of search providers: set up, chosen for a run, and reachable."""

import asyncio
import os
import socket
import ssl
from collections.abc import Collection, Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from contracts.request import SourceType
from contracts.resolved import ProviderChoice
from providers.certificates import trusted_certificates
from providers.interfaces import SearchProvider
from providers.search.declarations import BY_MODEL, SearchDeclaration, declared_names, search_declaration

PROBE_SECONDS: Final = 3.0
ADVICE: Final = "for wider coverage set TAVILY_API_KEY, or SEARXNG_URL for a search engine of your own"


def provider_choices(
    values: Mapping[str, str], order: Sequence[str] | None = None, *, model_offers_search: bool = False
) -> list[ProviderChoice]:
    """Every provider of `order`: available or not, with the reason, and the host that its queries go to.

    `values` are variables by name; `model_offers_search` is whether the configured model's endpoint searches the web.
    Raises KeyError for an unknown provider.
    """
    names = declared_names() if order is None else order
    choices = [_choice(search_declaration(name), values) for name in names]
    others = [choice.name for choice in choices if choice.available and _searches_the_web(choice.name)]
    if model_offers_search and others:
        by_model = {"available": False, "reason": f"not needed: {others[0]} searches the web"}
    elif model_offers_search:
        by_model = {"available": True, "reason": "the model's endpoint searches the web"}
    else:
        needed = "set ANTHROPIC_API_KEY and RESEARCH_MODEL, without ANTHROPIC_BASE_URL"
        by_model = {"available": False, "reason": f"needs a model endpoint that searches the web: {needed}"}
    return [choice.model_copy(update=by_model) if choice.name == BY_MODEL else choice for choice in choices]


def malformed(values: Mapping[str, str]) -> dict[str, str]:
    """Provider → fault of a key or an address that is set for it; the other providers are used."""
    faults = dict[str, str]()
    for provider in map(search_declaration, declared_names()):
        complete = all(map(values.get, provider.required_variables)) and any(map(values.get, provider.variables))
        if provider.name != BY_MODEL and complete and (problem := provider.problem(values)):
            faults[provider.name] = problem
    return faults


def usable(choices: Sequence[ProviderChoice]) -> list[str]:
    """Names of the available providers, in order."""
    return [choice.name for choice in choices if choice.available]


def choose(
    choices: Sequence[ProviderChoice],
    names: Sequence[str] | None,
    source_types: Sequence[SourceType],
    *,
    broken: Collection[str] = (),
) -> list[ProviderChoice]:
    """The providers of a run.

    Named ones: these alone, in the order in which they are named, unavailable ones with their reason. One that has none
    of the types is used for the first of them nevertheless, and its responses warn.

    Else every available one that has one of the types, and the `broken` ones, unavailable. Without a provider of the
    web at large, the fallbacks count as web. If none is available, all that could be set up, with their reasons. Raises
    ValueError for an unknown name.
    """
    if names is not None:
        known = {choice.name: choice for choice in choices}
        unknown = [name for name in names if name not in known]
        if unknown:
            raise ValueError(f"no search provider is called {unknown[0]}; there are: {', '.join(known)}")
        return [_with_type(known[name], source_types, source_types[:1]) for name in dict.fromkeys(names)]
    if SourceType.WEB in source_types and SourceType.ACADEMIC not in source_types and not _web_at_large(choices):
        web = [SourceType.WEB]
        choices = [_with_type(one, web, web if search_declaration(one.name).fallback else []) for one in choices]
    fitting = [choice for choice in choices if set(choice.source_types) & set(source_types)]
    if not usable(fitting):
        return fitting
    return [choice for choice in fitting if choice.available or choice.name in broken]


def advice(choices: Sequence[ProviderChoice]) -> list[str]:
    """Advise on better searches, given the providers of a run; empty if one of them searches the web at large."""
    web = [choice.name for choice in choices if choice.available and SourceType.WEB in choice.source_types]
    return [ADVICE] if web and all(search_declaration(name).fallback for name in web) else []


def _choice(provider: SearchDeclaration, values: Mapping[str, str]) -> ProviderChoice:
    problem, required, key = provider.problem(values), provider.required_variables, provider.key_variable
    if required:
        reason = f"{' and '.join(required)} set"
    elif key:
        reason = f"{key} set" if values.get(key) else f"needs no key; {key} raises limits"
    else:
        reason = "needs no key"
    address = (values.get(provider.address_variable) or provider.address).replace("{language}.", "")
    return ProviderChoice(
        name=provider.name,
        available=problem is None,
        reason=problem or reason,
        host=address.partition("://")[2].partition("/")[0].rpartition("@")[2] or None,
        source_types=list(provider.source_types),
    )


def _searches_the_web(name: str) -> bool:
    provider = search_declaration(name)
    return SourceType.WEB in provider.source_types and not provider.fallback and name != BY_MODEL


def _web_at_large(choices: Sequence[ProviderChoice]) -> bool:
    return any(choice.available and (choice.name == BY_MODEL or _searches_the_web(choice.name)) for choice in choices)


def _with_type(choice: ProviderChoice, types: Sequence[SourceType], added: Sequence[SourceType]) -> ProviderChoice:
    """The choice, with further types where it has none of these."""
    if set(choice.source_types) & set(types):
        return choice
    return choice.model_copy(update={"source_types": [*choice.source_types, *added]})


async def probe(provider: SearchProvider, *, seconds: float = PROBE_SECONDS) -> str | None:
    """The reason why the provider cannot be reached, or None; one without an address (a folder) always can."""
    address: str | None = getattr(provider, "address", None)
    return None if address is None else await probe_address(address.replace("{language}", "en"), seconds=seconds)


async def probe_address(address: str, *, seconds: float = PROBE_SECONDS) -> str | None:
    """Connect, with TLS where the address has it, and hang up: no query is sent, and no search charged.

    The reason if that fails within `seconds`.
    """
    parts = urlsplit(address)
    try:
        host, port = parts.hostname, parts.port or {"https": 443, "http": 80}[parts.scheme]
    except ValueError:
        return "its address is no usable one"
    tls = trusted_certificates() if parts.scheme == "https" else None
    try:
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(host, port, ssl=tls)
    except TimeoutError:
        return f"{host} gave no answer in {seconds:g} s: check the network"
    except ssl.SSLCertVerificationError:
        return f"{host} shows a certificate that is not trusted"
    except ssl.SSLError:
        return f"{host} does not speak TLS at port {port}"
    except socket.gaierror:
        return f"{host} is not reachable at port {port} (its name is not known): check the network"
    except OSError as error:
        why = os.strerror(error.errno).lower() if error.errno else "no connection"
        return f"{host} is not reachable at port {port} ({why}): check the network"
    writer.transport.abort()
    return None
