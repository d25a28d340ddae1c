"""Ways that a key may be sent: over TLS, or within this machine."""

import httpx2
import pytest

from providers.errors import NotConfigured
from providers.search.declarations import BUILT_IN
from providers.search.web_api import web_client
from providers.service_calls import is_confidential
from tests.fakes.search_answers import APP

KEY = "planted-key"
CLEAR = "http://192.0.2.1:8080"
DECLARED = {declaration.name: declaration for declaration in BUILT_IN if declaration.key_variable}
OTHERS = {"GOOGLE_CSE_ID": "x", "RESEARCH_MODEL": "m", "VERTEX_AI_SEARCH_APP": APP}


def opened(client: httpx2.AsyncClient, name: str, address: str) -> None:
    declaration = DECLARED[name]
    values = {variable: OTHERS.get(variable, "x") for variable in declaration.other_variables}
    declaration.open(client, values | {declaration.key_variable: KEY, declaration.address_variable: address})


CONFIDENTIAL = ("https://models.example/v1", "http://127.0.0.1:8080", "http://[::1]:8080", "http://LOCALHOST.")
READABLE = (
    *("http://models.example", "http://192.168.1.2:8080", "http://127.0.0.1@models.example", "//models.example"),
    *("http://127.0.0.1.models.example", "http://localhost.models.example", "http://0.0.0.0:8080", "http://[::1"),
)


@pytest.mark.parametrize("address", [*CONFIDENTIAL, *READABLE])
def test_only_tls_and_this_machine_are_confidential(address: str) -> None:
    """By the host itself, whatever else stands in the address."""
    assert is_confidential(address) is (address in CONFIDENTIAL)


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


async def test_the_token_of_a_service_account_is_not_sent_in_clear_either() -> None:
    """An address on another machine without TLS is refused before any file is read."""
    values = {
        "VERTEX_AI_SEARCH_APP": APP,
        "VERTEX_AI_SEARCH_BASE_URL": CLEAR,
        "GOOGLE_APPLICATION_CREDENTIALS": "/x.json",
    }
    problem = DECLARED["vertex_ai_search"].problem(values)
    assert problem is not None
    assert "unset GOOGLE_APPLICATION_CREDENTIALS" in problem
