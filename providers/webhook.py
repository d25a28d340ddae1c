"""Notices to an address of the operator, signed as Standard Webhooks prescribes (standardwebhooks.com)."""

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Callable
from typing import Final

from providers.errors import InvalidCall, NotConfigured, SourceUnreadable
from providers.reading.egress.client import Egress

ID_HEADER: Final = "webhook-id"
TIMESTAMP_HEADER: Final = "webhook-timestamp"
SIGNATURE_HEADER: Final = "webhook-signature"
KEY_PREFIX: Final = "whsec_"
"""Of a key that is written in base64; any other text is a key itself."""
MIN_KEY_BYTES: Final = 16
POST_SECONDS: Final = 10.0
"""For one delivery: look-up, connection and status."""


class Webhook:
    """Posts JSON to one address."""

    def __init__(self, egress: Egress, url: str, key: bytes | None, clock: Callable[[], float] = time.time) -> None:
        """Without a `key`, nothing is signed."""
        self._egress = egress
        self._url = url
        self._key = key
        self._clock = clock

    async def send(self, notice_id: str, body: bytes) -> int:
        """Deliver a notice once, and return the status.

        Raises `InvalidCall` if it is refused, here or there, `Unavailable` and `RateLimited` if a retry may help.
        """
        timestamp = str(int(self._clock()))
        headers = {"Content-Type": "application/json", ID_HEADER: notice_id, TIMESTAMP_HEADER: timestamp}
        if self._key is not None:
            headers[SIGNATURE_HEADER] = sign(self._key, notice_id, timestamp, body)
        try:
            return await self._egress.post(self._url, body, headers, POST_SECONDS)
        except SourceUnreadable as error:
            raise InvalidCall(f"its address is refused: {error}", kind=error.kind) from None


def sign(key: bytes, notice_id: str, timestamp: str, body: bytes) -> str:
    """Return `v1,` and the HMAC-SHA256 of id, timestamp and body in base64."""
    signed = f"{notice_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode("ascii")


def read_key(text: str, variable: str) -> bytes:
    """Return the bytes of a key. Raises `NotConfigured`, which names the variable and never the value."""
    key = text.encode()
    if text.startswith(KEY_PREFIX):
        try:
            key = base64.b64decode(text.removeprefix(KEY_PREFIX), validate=True)
        except (binascii.Error, ValueError):
            raise NotConfigured(f"{variable}: what follows {KEY_PREFIX} must be base64") from None
    if len(key) < MIN_KEY_BYTES:
        raise NotConfigured(
            f"{variable}: must have {MIN_KEY_BYTES} bytes or more, as `openssl rand -hex 24` makes them"
        )
    return key
