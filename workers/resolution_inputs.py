"""Derives the inputs of request resolution from the settings, without secrets; the command line uses it too."""

import hashlib
import importlib.metadata
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import activities
import contracts
import providers
from activities.preparation import ResearchConfiguration
from contracts.outcome import Usage
from contracts.request import Depth, SourceType
from contracts.resolved import EffectiveLimits, EffectiveSearch, Hook, ModelPrice, ProviderChoice
from contracts.strategies import list_declared
from contracts.vocabulary import Tier
from providers.errors import NotConfigured
from providers.extractive.semantic import knows_writing
from providers.models.chat import ToolUse
from providers.models.endpoints import PriceTable, split_name
from providers.search.availability import advice, choose, ended_services, malformed, provider_choices
from providers.search.declarations import search_declaration
from providers.service_calls import ensure_key
from providers.storage.content import is_on_this_host
from providers.storage.sessions import SESSIONS
from workers.settings.loading import Settings
from workers.settings.models import PUBLIC_HOST, host_of
from workers.settings.places import APPLICATION

RULES: Final = (".py", ".toml", ".j2", ".css")
"""Suffixes of the files that decide how a report is judged and rendered: code, sentences, template, and style."""


def configuration_of(
    settings: Settings, search_attributes: Callable[[], Awaitable[bool]] | None = None
) -> ResearchConfiguration:
    """Return the configuration for resolving requests; `search_attributes` queries the namespace."""
    models = settings.models
    table = PriceTable(settings.models.prices)
    choices = search_choices(settings, settings.search.providers)

    def choose_providers(names: Sequence[str] | None, source_types: Sequence[SourceType]) -> list[ProviderChoice]:
        broken = malformed(settings.search_values()) | {
            one.name for one in settings.document_servers() if one.problem()
        }
        # An operator's own order is obeyed: a service that has ended is then tried, and fails with its own words.
        is_ordered = settings.search.providers is not None
        ended = {} if is_ordered else ended_services(settings.search_values())
        return choose(choices, names, source_types, broken=broken, ended=ended, is_ordered=is_ordered)

    def call_usd(model: str, usage: Usage) -> float | None:
        return table.cost_usd(split_name(model, models.endpoints)[1], usage, full_name=model)

    def highest_price(model: str) -> ModelPrice | None:
        # A reservation must never be too small; but no prompt is longer than the window, beyond which some ask twice.
        window = models.capabilities_of(model).window
        return table.highest(split_name(model, models.endpoints)[1], full_name=model, window=window)

    def search_usd(provider: str) -> float | None:
        price = settings.search.usd_per_1000.get(provider)
        if price is not None:
            return price / 1_000
        if search_declaration(provider).paid:
            return None
        return 0.0

    return ResearchConfiguration(
        models={tier.value: models.names_for(tier) for tier in Tier} if settings.model_configured else {},
        model_host=partial(models.host_for, keys=settings.model_keys()),
        reasoning_tokens=lambda model: models.capabilities_of(model).reasoning_tokens,
        reasons=lambda model: models.capabilities_of(model).reasons,
        takes_tools=lambda model: models.capabilities_of(model).tools is not ToolUse.NONE,
        model_price=highest_price,
        call_usd=call_usd,
        search_usd=search_usd,
        choose_providers=choose_providers,
        search_advice=advice,
        search=EffectiveSearch(**settings.search.model_dump(include=set(EffectiveSearch.model_fields))),
        hooks={name: Hook(name=name, **hook.model_dump()) for name, hook in settings.hooks.items()},
        presets=_own_presets(settings),
        ceilings=settings.limits,
        tenants=settings.tenant_rules(),
        search_attributes=search_attributes,
        collection=_collection(settings),
        browser_host=host_of(settings.web.firecrawl.url) if settings.web.firecrawl else None,
        semantic=knows_writing if settings.ranks_by_meaning else lambda _: False,
        tokens=settings.tokens.with_fields(research_archive_dir=None),  # differs between workers
        digest=settings.digest(),
        notices=None if settings.notify.url is None else [*settings.notify.include],
        product_version=product_version(),
    )


def _own_presets(settings: Settings) -> dict[tuple[str, Depth], EffectiveLimits]:
    """Return the presets that the configuration changes, by strategy and depth."""
    depths = (Depth.LIGHT, Depth.MEDIUM, Depth.EXTENDED)
    pairs = [(strategy.name, depth) for strategy in list_declared() for depth in depths if depth in strategy.presets]
    all_differ = settings.runs.max_cost_usd is not None
    return {
        (strategy, depth): settings.preset(strategy, depth)
        for strategy, depth in pairs
        if all_differ or _overrides(settings, strategy, depth)
    }


def _overrides(settings: Settings, strategy: str, depth: Depth) -> bool:
    own = settings.strategy.get(strategy, {})
    return depth in own or (depth is Depth.MEDIUM and Depth.AUTO in own)


def search_choices(settings: Settings, order: Sequence[str] | None = None) -> list[ProviderChoice]:
    """Return the search providers in the usual or the given order, each with its availability and the reason."""
    servers = [server.choice() for server in settings.document_servers()]
    return provider_choices(settings.search_values(), order, model=search_model(settings), servers=servers)


def search_model(settings: Settings) -> dict[str, str] | None:
    """Return the variables of the first model whose endpoint searches the web and whose key is well-formed."""
    models = settings.models
    keys = settings.model_keys()
    endpoints = models.usable_endpoints(keys)
    for written in dict.fromkeys(name for tier in Tier for name in models.names_for(tier)):
        endpoint, model = split_name(written, models.endpoints)
        key = ""
        if endpoint in keys:
            key = keys[endpoint].get_secret_value()
        public = host_of(models.base_url_of(endpoint)) == PUBLIC_HOST
        if endpoint not in endpoints or (public and not key) or not models.capabilities_of(written).searches_web:
            continue
        address = models.address_of(endpoint) or ""
        with suppress(NotConfigured):
            if key:
                ensure_key(key, "its variable")
            variables = {"RESEARCH_MODEL": model, "ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": key}
            return {name: value for name, value in variables.items() if value}
    return None


def _collection(settings: Settings) -> str:
    """Return where sessions are stored, without credentials in the URL of a store."""
    url = settings.content_url
    if url is None or is_on_this_host(url):
        return str(settings.home / SESSIONS)
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], f"{parts.path.rstrip('/')}/{SESSIONS}", "", ""))


def product_version() -> str:
    """Return the installed version of this product."""
    return importlib.metadata.version(APPLICATION)


def rules_of(path: Path) -> bytes:
    """Return the content of a file as it is in a clone and in a wheel, where imports of ours have a name in front."""
    return path.read_bytes().replace(b"durable_research.", b"").replace(b"from durable_research import ", b"import ")


def digest_of(packages: Sequence[ModuleType], extra: str = "") -> str:
    """Return twelve hexadecimal digits for the code and data of packages, equal in a clone and in a wheel."""
    code = hashlib.sha256()
    for package in packages:
        for folder in package.__path__:
            for path in sorted(Path(folder).rglob("*")):
                if path.suffix in RULES:
                    code.update(path.relative_to(folder).as_posix().encode() + b"\0" + rules_of(path) + b"\0")
    code.update(extra.encode())
    return code.hexdigest()[:12]


@cache
def code_version() -> str:
    """Return the version of this product with a digest of the code that judges and renders reports.

    A local version of PEP 440, as `0.1.0+code.3f9a21c0b7d4`. Two checkouts of one release may have other rules, and a
    report is audited by those that wrote it.
    """
    return f"{product_version()}+code.{digest_of((activities, contracts, providers))}"
