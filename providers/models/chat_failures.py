"""Failures of one exchange with a language model, the same for the SDKs of both protocols."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from providers.errors import NotConfigured, Unavailable
from providers.models.chat import RETRY_SECONDS, ChatRequest, SettingNames, error_for_status
from providers.service_calls import ensure_confidential, ensure_key


@asynccontextmanager
async def translated_failures(
    request: ChatRequest,
    silence: float,
    names: SettingNames,
    *,
    refused: type[Exception],
    unreached: type[Exception],
) -> AsyncIterator[None]:
    """Translate timeouts, broken connections and error responses of one request into errors of our tree.

    `refused` and `unreached` are the classes of an SDK for an error response and for a failed connection; `silence` is
    the read timeout in seconds.
    """
    try:
        # Timeouts of the transport measure silence; a body that trickles needs a limit on the whole.
        async with asyncio.timeout(request.timeout_seconds):
            yield
    except TimeoutError:
        raise Unavailable(f"the model endpoint gave no answer in {request.timeout_seconds:.0f} s") from None
    except httpx2.InvalidURL:
        raise no_address(names) from None
    except refused as error:
        response: Any = error
        headers = response.response.headers.multi_items()
        raise error_for_status(response.status_code, headers, str(response.body), request.model, names) from None
    except (unreached, httpx2.HTTPError) as error:
        if isinstance(error.__cause__ or error, httpx2.ReadTimeout) and silence < request.timeout_seconds:
            message = f"the model endpoint sent nothing for {silence:.0f} s: if it is slow, raise"
            raise Unavailable(f"{message} {names.silence}", retry_after=RETRY_SECONDS) from None
        reason = type(error.__cause__ or error).__name__
        raise Unavailable(f"no connection to the model endpoint ({reason})") from None


def check_endpoint(address: str, api_key: str | None, names: SettingNames, *, public: str) -> None:
    """Check address and key of an endpoint; the `public` one needs a key.

    Raises `NotConfigured`, which names the setting to change.
    """
    if not api_key and address.rstrip("/") == public:
        raise NotConfigured(f"the model endpoint needs a key: set {names.credential}")
    if not address.startswith(("https://", "http://")):
        raise NotConfigured(f"{names.address} must begin with https:// or http://")
    if api_key:
        ensure_key(api_key, names.credential)
        ensure_confidential(api_key, address, names.address, names.credential)


def no_address(names: SettingNames) -> NotConfigured:
    """Return the error for an address that is none."""
    return NotConfigured(f"{names.address} is no usable address: write it as https://HOST:PORT")
