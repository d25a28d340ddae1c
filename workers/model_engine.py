"""From the configuration to the engine that speaks to models."""

from functools import partial

from contracts.vocabulary import Tier
from providers.errors import NotConfigured
from providers.interfaces import IsolatedCalls, Limiter, SharedStore
from providers.models.capabilities import capabilities_of
from providers.models.chat import Chat
from providers.models.language_model import LanguageModelEngine
from providers.models.model_directory import DEFAULT_ENDPOINT, MissingChat, ModelDirectory, ModelEndpoint
from providers.models.model_errors import ADDRESS_VARIABLE, EndpointPlaces
from providers.models.prices import load_prices
from providers.shared.circuit_breaker import CircuitBreaker
from providers.shared.service_limits import ServiceLimits
from workers.settings.loading import Settings
from workers.settings.models import PUBLIC_HOST, EndpointSettings, host_of, key_variable


def language_model(
    settings: Settings,
    limiter: Limiter | None = None,
    store: SharedStore | None = None,
    isolated: IsolatedCalls | None = None,
) -> LanguageModelEngine:
    """The engine over all endpoints of the configuration; with a store, workers share what they know of failures."""
    names = dict.fromkeys((DEFAULT_ENDPOINT, *settings.models.endpoints))
    endpoints = {name: _endpoint(settings, name) for name in names}
    tiers = {tier: settings.models.names_for(tier) for tier in Tier}
    prices = load_prices().with_models(settings.models.prices)
    directory = ModelDirectory(endpoints, tiers)
    circuits = CircuitBreaker(store) if store else None
    return LanguageModelEngine(directory, prices, limiter=limiter, circuits=circuits, isolated=isolated)


def model_limits(settings: Settings) -> dict[str, ServiceLimits]:
    """The configured limits by service, under the names that the engine asks for permits with."""
    return {
        f"model/{name}": ServiceLimits(endpoint.requests_per_minute, 60.0, endpoint.tokens_per_minute)
        for name, endpoint in settings.models.endpoints.items()
        if endpoint.requests_per_minute is not None or endpoint.tokens_per_minute is not None
    }


def _endpoint(settings: Settings, name: str) -> ModelEndpoint:
    own = settings.models.endpoints.get(name, EndpointSettings()).overrides()
    address = settings.models.address_of(name)
    chat = _chat(settings, name, address)
    host = host_of(address) if address else PUBLIC_HOST
    base_url = address or f"https://{PUBLIC_HOST}"
    return ModelEndpoint(name, host, chat, partial(capabilities_of, base_url, own=own))


def _chat(settings: Settings, name: str, address: str | None) -> Chat:
    # The SDK takes as long to import as everything else together, and nobody needs it without a model.
    from providers.models.anthropic_chat import DEFAULT_BASE_URL, AnthropicChat  # noqa: PLC0415

    key = settings.model_keys().get(name)
    setting = ADDRESS_VARIABLE if name == DEFAULT_ENDPOINT else f"models.endpoints.{name}.base_url"
    places = EndpointPlaces(key_variable(name), setting)
    try:
        return AnthropicChat(
            api_key=key.get_secret_value() if key else None, base_url=address or DEFAULT_BASE_URL, places=places
        )
    except NotConfigured as error:
        # Another endpoint may be there; a call that needs this one is told.
        return MissingChat(str(error))
