"""Keys and addresses of the web's search services: from the environment only, none of them shown."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from pydantic import SecretStr

from contracts.resolved import ProviderChoice
from providers.credentials import ensure_confidential, ensure_key
from providers.errors import NotConfigured
from providers.search.availability import NEEDS, ORDER, provider_choices
from providers.search.service import ensure_address
from workers.settings.models import BaseAddress
from workers.settings.sections import ConfigSection


class WebSearchSettings(ConfigSection):
    """What each service needs; without an address the service's own is used."""

    tavily_api_key: SecretStr | None = None
    tavily_base_url: BaseAddress | None = None
    google_api_key: SecretStr | None = None
    google_cse_id: str | None = None
    google_base_url: BaseAddress | None = None
    semantic_scholar_api_key: SecretStr | None = None
    semantic_scholar_base_url: BaseAddress | None = None
    brave_api_key: SecretStr | None = None
    brave_base_url: BaseAddress | None = None
    searxng_url: BaseAddress | None = None
    wikipedia_base_url: BaseAddress | None = None
    """One wiki; `{language}` stands for the language."""

    def variables_set(self) -> set[str]:
        """Names of the variables that have a value."""
        return {name.upper() for name in type(self).model_fields if getattr(self, name) is not None}

    def addresses(self) -> dict[str, str]:
        """Configured addresses by provider, in place of the services' own."""
        given = {name: getattr(self, f"{name}_base_url", None) for name in ORDER} | {"searxng": self.searxng_url}
        return {name: address for name, address in given.items() if address is not None}

    def broken(self) -> dict[str, str]:
        """Provider → why its configuration is invalid; the other providers are used."""
        reasons = ((name, self._explain_broken(name)) for name in NEEDS)
        return {name: why for name, why in reasons if why is not None}

    def choices(self, order: Sequence[str] = ORDER, *, model_offers_search: bool = False) -> list[ProviderChoice]:
        """The providers in order, each with whether it can be used, why, and the host of its queries."""
        return provider_choices(
            self.variables_set(),
            order,
            model_offers_search=model_offers_search,
            addresses=self.addresses(),
            broken=self.broken(),
        )

    def secrets(self) -> list[str]:
        """Keys, and passwords within addresses."""
        values = [getattr(self, name) for name in type(self).model_fields]
        keys = [value.get_secret_value() for value in values if isinstance(value, SecretStr)]
        passwords = [password_in(value) for value in values if isinstance(value, str) and "://" in value]
        return [*keys, *(password for password in passwords if password)]

    def _explain_broken(self, name: str) -> str | None:
        key, address = getattr(self, f"{name}_api_key", None), self.addresses().get(name)
        key_variable = f"{name.upper()}_API_KEY"
        variable = "SEARXNG_URL" if name == "searxng" else f"{name.upper()}_BASE_URL"
        try:
            if key is not None:
                ensure_key(key.get_secret_value(), key_variable)
            if address is not None:
                ensure_address(address, variable)
            if key is not None and address is not None:
                ensure_confidential(key.get_secret_value(), address, variable, key_variable)
        except NotConfigured as error:
            return str(error)
        return None


WEB_VARIABLES: Final = {name.upper(): ("web_search", name) for name in WebSearchSettings.model_fields}
"""Variable → the setting it sets."""


def password_in(address: str) -> str | None:
    """The password within an address; None also for a malformed one."""
    try:
        return urlsplit(address).password
    except ValueError:
        return None
