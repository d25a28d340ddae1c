"""Keys and addresses of the search services: from the environment only, none of them shown."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from pydantic import SecretStr

from contracts.resolved import ProviderChoice
from providers.search.availability import malformed, provider_choices
from workers.settings.sections import ConfigSection


class WebSearchSettings(ConfigSection):
    """The variables of the declared search providers by name; without an address the service's own is used."""

    variables: dict[str, SecretStr] = {}

    def values(self) -> dict[str, str]:
        """The variables in clear, for the providers."""
        return {name: value.get_secret_value() for name, value in self.variables.items()}

    def broken(self) -> dict[str, str]:
        """Provider → why its configuration is invalid; the other providers are used."""
        return malformed(self.values())

    def choices(self, order: Sequence[str] | None = None, *, model_offers_search: bool = False) -> list[ProviderChoice]:
        """The providers in order, each with whether it can be used, why, and the host of its queries."""
        return provider_choices(self.values(), order, model_offers_search=model_offers_search)

    def secrets(self) -> list[str]:
        """Keys, and passwords within addresses."""
        passwords = [password_in(value) for value in self.values().values() if "://" in value]
        keys = [value for name, value in self.values().items() if name.endswith("_KEY")]
        return [*keys, *(password for password in passwords if password)]


def password_in(address: str) -> str | None:
    """The password within an address; None also for a malformed one."""
    try:
        return urlsplit(address).password
    except ValueError:
        return None
