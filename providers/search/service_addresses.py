"""What the address of a service can look like."""

from urllib.parse import urlsplit

from providers.errors import NotConfigured


def ensure_address(address: str, variable: str) -> None:
    """Raises `NotConfigured`, which names the variable and never the value, for what cannot be an address."""
    if not address.startswith(("https://", "http://")):
        raise NotConfigured(f"{variable} must begin with https:// or http://")
    try:
        parts = urlsplit(address)
        usable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise NotConfigured(f"{variable} is no usable address")


def without_user(address: str) -> str:
    """The same address without the user and the password that may stand in it, and in one spelling of its end."""
    scheme, _, rest = address.rstrip("/").partition("://")
    place, slash, path = rest.partition("/")
    return f"{scheme}://{place.rpartition('@')[2]}{slash}{path}"
