"""Keys and addresses of the search services: from the environment only, none of them shown."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from pydantic import SecretStr

from contracts.resolved import ProviderChoice
from providers.search.availability import malformed, provider_choices
from workers.settings.models import BaseAddress
from workers.settings.sections import ConfigSection


class WebSearchSettings(ConfigSection):
    """The variables of the declared search providers by name; without an address the service's own is used."""

    addresses: dict[str, BaseAddress] = {}
    variables: dict[str, SecretStr] = {}
    """Keys, and what else a provider needs."""

    def values(self) -> dict[str, str]:
        """All of them in clear, for the providers."""
        return {**self.addresses, **{name: value.get_secret_value() for name, value in self.variables.items()}}

    def broken(self) -> dict[str, str]:
        """Provider → why its configuration is invalid; the other providers are used."""
        return malformed(self.values())

    def choices(self, order: Sequence[str] | None = None, *, model_offers_search: bool = False) -> list[ProviderChoice]:
        """The providers in order, each with whether it can be used, why, and the host of its queries."""
        return provider_choices(self.values(), order, model_offers_search=model_offers_search)

    def secrets(self) -> list[str]:
        """Keys, and passwords within addresses."""
        passwords = [password for address in self.addresses.values() if (password := password_in(address))]
        return [*(value.get_secret_value() for value in self.variables.values()), *passwords]


def password_in(address: str) -> str | None:
    """The password within an address; None also for a malformed one."""
    try:
        return urlsplit(address).password
    except ValueError:
        return None
