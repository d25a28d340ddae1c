"""`[models]` of `research.toml`: models by tier, their endpoints, and their prices."""

from collections.abc import Mapping
from ipaddress import IPv6Address
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, field_validator

from contracts.base import Given
from contracts.resolved import ModelPrice
from contracts.texts import BASE_ADDRESS, ENDPOINT
from contracts.vocabulary import Tier
from providers.models.endpoints import DEFAULT_ENDPOINT, EndpointCapabilities, capabilities_of, split_name
from providers.service_calls import is_confidential

ModelName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
ModelNames = ModelName | Annotated[list[ModelName], Field(min_length=1, max_length=8)]


def _usable_address(address: str) -> str:
    """Return the address if a client can connect to it. Raises ValueError."""
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
        port = parts.port
        if ":" in host:
            IPv6Address(host)
        # The codec rejects names that no resolver can handle: empty ones, and ones with empty or overlong parts.
        usable = port != 0 and bool(host.encode("idna"))
    except ValueError:
        usable = False
    if not usable:
        raise ValueError(f"must be {BASE_ADDRESS.expected}")
    return address


BaseAddress = Annotated[
    str, StringConstraints(pattern=BASE_ADDRESS.pattern, max_length=2_000), AfterValidator(_usable_address)
]
EndpointName = Annotated[str, StringConstraints(pattern=ENDPOINT.pattern)]

PUBLIC_HOST: Final = "api.anthropic.com"
OPENAI_ADDRESS: Final = "https://api.openai.com/v1"
PUBLIC_HOSTS: Final = (PUBLIC_HOST, "api.openai.com")
"""Hosts whose models have known windows, and whose calls need a key."""


def key_variable(endpoint: str) -> str:
    """Return the name of the variable with an endpoint's key."""
    if endpoint == DEFAULT_ENDPOINT:
        return "ANTHROPIC_API_KEY"
    return f"RESEARCH_ENDPOINT_{endpoint.upper().replace('-', '_')}_KEY"


class EndpointSettings(EndpointCapabilities):
    """`[models.endpoints.NAME]`: address, rate limits, and capabilities unknown to the product."""

    base_url: BaseAddress | None = None
    requests_per_minute: int | None = Field(default=None, ge=1, le=1_000_000)
    tokens_per_minute: int | None = Field(default=None, ge=1, le=1_000_000_000)


class ModelsSettings(Given):
    """`[models]`: names by tier in order of preference, endpoints, and prices by model name.

    A name is `NAME`, at the endpoint `default`, or `ENDPOINT:NAME`. A model's own name may have colons: only a known
    endpoint before the first one counts.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    default: ModelNames | None = None
    simple: ModelNames | None = None
    analytical: ModelNames | None = None
    complex: ModelNames | None = None
    base_url: BaseAddress | None = None
    """The address of the endpoint `default`; None: the public API."""
    endpoints: dict[EndpointName, EndpointSettings] = {}
    prices: dict[str, ModelPrice] = {}
    """US dollars per million tokens by model name; overrides the built-in table."""

    @field_validator("endpoints")
    @classmethod
    def _require_addresses(cls, value: dict[str, EndpointSettings]) -> dict[str, EndpointSettings]:
        for name, endpoint in value.items():
            if name == DEFAULT_ENDPOINT and endpoint.base_url is not None:
                raise ValueError(f"{name}.base_url: its address is models.base_url")
            if name != DEFAULT_ENDPOINT and endpoint.base_url is None:
                raise ValueError(f"{name}.base_url: missing")
        return value

    def names_for(self, tier: Tier) -> list[str]:
        """Return the models of a tier: its own, else the default, else the next more demanding tier's, else any."""
        by_tier = {Tier.SIMPLE: self.simple, Tier.ANALYTICAL: self.analytical, Tier.COMPLEX: self.complex}
        order = list(Tier)
        stronger = order[order.index(tier) + 1 :]
        weaker = order[: order.index(tier)][::-1]
        candidates = [by_tier[tier], self.default, *(by_tier[other] for other in [*stronger, *weaker])]
        names = next(filter(None, candidates), [])
        if isinstance(names, str):
            return [names]
        return list(names)

    def by_tier(self) -> dict[str, str]:
        """Return the preferred model by tier; empty if no model is named."""
        return {tier.value: names[0] for tier in Tier if (names := self.names_for(tier))}

    def address_path(self, endpoint: str) -> tuple[str, ...]:
        """Return the path of an endpoint's address in the settings."""
        own = () if endpoint == DEFAULT_ENDPOINT else ("endpoints", endpoint)
        return ("models", *own, "base_url")

    def address_of(self, endpoint: str) -> str | None:
        """Return the base URL of an endpoint; None for the public API."""
        if endpoint == DEFAULT_ENDPOINT:
            return self.base_url
        return self.endpoints[endpoint].base_url

    def base_url_of(self, endpoint: str) -> str:
        """Return the base URL of an endpoint, including the public API's."""
        return self.address_of(endpoint) or f"https://{PUBLIC_HOST}"

    def capabilities_at(self, endpoint: str, model: str) -> EndpointCapabilities:
        """Return the capabilities of a model at an endpoint; the endpoint's settings take precedence."""
        return capabilities_of(self.base_url_of(endpoint), model, own=self.endpoints.get(endpoint))

    def knows_windows(self, endpoint: str) -> bool:
        """Return whether the windows of the models there need not be asked for: set, or in the product's table."""
        own = self.endpoints.get(endpoint)
        is_set = own is not None and "window" in own.model_fields_set
        return is_set or host_of(self.base_url_of(endpoint)) in PUBLIC_HOSTS

    def capabilities_of(self, name: str) -> EndpointCapabilities:
        """Return the capabilities of a model, named as in the configuration."""
        return self.capabilities_at(*split_name(name, self.endpoints))

    def used_endpoints(self) -> list[str]:
        """Return the endpoints of configured models, in order of preference; empty if no model is named."""
        names = (name for tier in reversed(Tier) for name in self.names_for(tier))
        return list(dict.fromkeys(split_name(name, self.endpoints)[0] for name in names))

    def usable_endpoints(self, keys: Mapping[str, Any]) -> list[str]:
        """Return the used endpoints that can be called; only the public APIs must have one of the `keys`."""
        return [name for name in self.used_endpoints() if self._is_usable(name, keys)]

    def host_for(self, name: str, keys: Mapping[str, Any]) -> str | None:
        """Return the host of the named model, configured or not; None if its endpoint lacks a key."""
        endpoint = split_name(name, self.endpoints)[0]
        if not self._is_usable(endpoint, keys):
            return None
        return host_of(self.base_url_of(endpoint))

    def sent_unencrypted(self, keys: Mapping[str, Any]) -> list[str]:
        """Return the used endpoints whose key would cross a network unencrypted."""
        return [name for name in self.used_endpoints() if self._is_unencrypted(name, keys)]

    def _is_usable(self, endpoint: str, keys: Mapping[str, Any]) -> bool:
        if self._is_unencrypted(endpoint, keys):
            return False
        address = self.address_of(endpoint)
        needs_key = address is None or host_of(address) in PUBLIC_HOSTS
        return bool(keys.get(endpoint)) or not needs_key

    def _is_unencrypted(self, endpoint: str, keys: Mapping[str, Any]) -> bool:
        address = self.address_of(endpoint)
        return bool(keys.get(endpoint)) and address is not None and not is_confidential(address)


def host_of(base_url: str) -> str:
    """Return `host` or `host:port` of an address, without user information."""
    return urlsplit(base_url).netloc.rpartition("@")[2]
