"""Keys and addresses of the web's search services: from the environment only, none of them shown."""

from collections.abc import Sequence
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import SecretStr, StringConstraints

from contracts.resolved import ProviderChoice
from contracts.shapes import WEB_ADDRESS
from providers.search.availability import ORDER, provider_choices
from workers.settings_sections import Section

WebAddress = Annotated[str, StringConstraints(pattern=WEB_ADDRESS.pattern, max_length=2_000)]


class WebSearchSettings(Section):
    """What each service needs; an address stands for the service's own where it is null."""

    tavily_api_key: SecretStr | None = None
    tavily_base_url: WebAddress | None = None
    google_api_key: SecretStr | None = None
    google_cse_id: str | None = None
    google_base_url: WebAddress | None = None
    semantic_scholar_api_key: SecretStr | None = None
    semantic_scholar_base_url: WebAddress | None = None
    brave_api_key: SecretStr | None = None
    brave_base_url: WebAddress | None = None
    searxng_url: WebAddress | None = None
    wikipedia_base_url: WebAddress | None = None
    """One wiki, or `{language}` in the place of the language."""

    def variables_set(self) -> set[str]:
        """Names of the variables that have a value."""
        return {name.upper() for name in type(self).model_fields if getattr(self, name) is not None}

    def addresses(self) -> dict[str, str]:
        """Addresses by provider that stand for the services' own."""
        given = {name: getattr(self, f"{name}_base_url", None) for name in ORDER} | {"searxng": self.searxng_url}
        return {name: address for name, address in given.items() if address is not None}

    def choices(self, order: Sequence[str] = ORDER, *, model_offers_search: bool = False) -> list[ProviderChoice]:
        """The providers in order, each with whether it can be asked and why, and where its queries go (S0-102)."""
        return provider_choices(
            self.variables_set(), order, model_offers_search=model_offers_search, addresses=self.addresses()
        )

    def secrets(self) -> list[str]:
        """Keys, and passwords that stand in addresses."""
        values = [getattr(self, name) for name in type(self).model_fields]
        keys = [value.get_secret_value() for value in values if isinstance(value, SecretStr)]
        passwords = [password_in(value) for value in values if isinstance(value, str) and "://" in value]
        return [*keys, *(password for password in passwords if password)]


WEB_VARIABLES: Final = {name.upper(): ("web_search", name) for name in WebSearchSettings.model_fields}
"""Variable → the setting it sets."""


def password_in(address: str) -> str | None:
    """The password that stands in an address; null also for one that cannot be taken apart."""
    try:
        return urlsplit(address).password
    except ValueError:
        return None
