"""A search service: its variables, its address, and what its error responses mean."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from providers.errors import InvalidCall, NotConfigured, ProviderError, RateLimited, Unavailable
from providers.retry_after import retry_after_seconds

WORTH_TRYING_AGAIN: Final = {408, 409, 425, 499}
PLAN_USED_UP: Final = {432, 433}
"""How Tavily says that the plan, or the limit of paying as one goes, is used up."""

QUOTA: Final = re.compile(
    r"quota|rate.?limit|daily.?limit|user.?rate|limit exceeded|resource_exhausted|too many requests"
)
KEY_REFUSED: Final = re.compile(r"api key (not valid|expired)|api_key_invalid|keyinvalid|subscription_token")
NO_CREDIT: Final = re.compile(r"credit balance|billing|payment required")
FORCED_TOOL: Final = re.compile(r"tool_choice")
LOOKED_AT: Final = 4_000


@dataclass(frozen=True)
class Service:
    """How a search service is named to people, and which variables speak of it."""

    label: str
    address_variable: str
    key_variable: str | None = None
    refused_hint: str = ""
    """What to look at when the service refuses a call that it should understand."""
    address: str = ""
    """Where it is, if the operator sets no other address."""
    key_header: str = "authorization"
    """The header that carries the key; in this one it is a bearer token."""


def error_for_status(
    service: Service, status: int, headers: Iterable[tuple[str, str]], detail: bytes = b""
) -> ProviderError:
    """The error that a response of this status stands for; `detail` is looked at and never passed on."""
    given = list(headers)
    said = detail[:LOOKED_AT].decode("utf-8", "replace").lower()
    if status == 429 or status in PLAN_USED_UP or (status == 403 and QUOTA.search(said)):
        wait = retry_after_seconds(given)
        return RateLimited(f"{service.label} asks to wait, or its quota is used up ({status})", retry_after=wait)
    if status in WORTH_TRYING_AGAIN or status >= 500 or status < 300:
        return Unavailable(f"{service.label} is not available ({status})", retry_after=retry_after_seconds(given))
    if status in {401, 403} or (status in {400, 422} and KEY_REFUSED.search(said)):
        return _refused_credentials(service, status)
    if status == 402 or (status == 400 and NO_CREDIT.search(said)):
        return NotConfigured(f"the account behind {service.key_variable or service.label} cannot pay for it ({status})")
    if 300 <= status < 400:
        return NotConfigured(f"{service.label} has moved ({status}): set {service.address_variable} to its new address")
    hint = f": {service.refused_hint}" if service.refused_hint else ""
    if status in {400, 422} and FORCED_TOOL.search(said):
        return InvalidCall(f"{service.label} forces no tool ({status})", kind="unsupported_parameter")
    if status in {404, 405}:
        hint = hint or f": see {service.address_variable}"
        return InvalidCall(f"{service.label} has nothing at this address ({status}){hint}", kind="unknown_address")
    return InvalidCall(f"{service.label} refuses the search ({status}){hint}")


def _refused_credentials(service: Service, status: int) -> NotConfigured:
    if service.key_variable is not None:
        return NotConfigured(f"{service.label} refuses the credentials ({status}): set {service.key_variable}")
    hint = service.refused_hint or f"see {service.address_variable}"
    return NotConfigured(f"{service.label} refuses this client ({status}): {hint}")


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
