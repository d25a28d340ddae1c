"""Ways that a key may be sent: over TLS, or within this machine."""

import httpx2
import pytest

from providers.errors import NotConfigured
from providers.search.declarations import BUILT_IN
from providers.search.web_api import web_client
from providers.service_calls import is_confidential

KEY = "planted-key"
CLEAR = "http://192.0.2.1:8080"
DECLARED = {declaration.name: declaration for declaration in BUILT_IN if declaration.key_variable}
OTHERS = {"GOOGLE_CSE_ID": "x", "RESEARCH_MODEL": "m"}


def opened(client: httpx2.AsyncClient, name: str, address: str, key: str = KEY) -> None:
    declaration = DECLARED[name]
    values = {variable: OTHERS.get(variable, "x") for variable in declaration.other_variables}
    declaration.open(client, values | {declaration.key_variable: key, declaration.address_variable: address})


@pytest.mark.parametrize(
    ("address", "confidential"),
    [
        ("https://models.example/v1", True),
        ("http://127.0.0.1:8080", True),
        ("http://[::1]:8080", True),
        ("http://LOCALHOST.", True),
        ("http://models.example", False),
        ("http://192.168.1.2:8080", False),
        ("http://127.0.0.1@models.example", False),
        ("http://127.0.0.1.models.example", False),
        ("http://localhost.models.example", False),
        ("http://0.0.0.0:8080", False),
        ("http://[::1", False),
        ("//models.example", False),
    ],
)
def test_only_tls_and_this_machine_are_confidential(address: str, confidential: bool) -> None:
    """By the host itself, whatever else stands in the address."""
    assert is_confidential(address) is confidential


@pytest.mark.parametrize("name", DECLARED)
async def test_no_service_is_made_that_would_send_a_key_in_clear(name: str) -> None:
    """Address and key are named, the key's value is not; over TLS and on this machine it may be sent."""
    async with web_client("test") as client:
        with pytest.raises(NotConfigured) as raised:
            opened(client, name, CLEAR)
        for address in ("https://elsewhere.example", "http://127.0.0.1:9"):
            opened(client, name, address)
    declaration = DECLARED[name]
    assert f"{declaration.address_variable}: begins with http:// and leads to another machine" in str(raised.value)
    assert f"unset {declaration.key_variable}" in str(raised.value)
    assert KEY not in str(raised.value)
