"""Encryption of what the Temporal server stores: payloads, which have the messages and frames of failures, too.

It happens in the process that sends or receives, outside of workflow code, so that recorded histories replay as before.
"""

from collections.abc import Sequence
from typing import Final

from temporalio.api.common.v1 import Payload
from temporalio.converter import PayloadCodec

from providers.encryption import Keyring, is_sealed
from providers.errors import ContentCorrupt

ENCODING: Final = b"binary/encrypted"
KEY_METADATA: Final = "encryption-key-id"
"""For people and other tools; what counts is the authenticated id within the data."""
PLACE: Final = "payload"


class KeyringCodec(PayloadCodec):
    """Encrypts payloads with a keyring; without a current key it only decrypts.

    A payload whose key is missing raises `KeyMissing`: its workflow task or activity fails, and is tried again.
    """

    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Encrypt payloads."""
        if not self._keyring.current:
            return list(payloads)
        metadata = {"encoding": ENCODING, KEY_METADATA: self._keyring.current.encode()}
        return [
            Payload(metadata=metadata, data=self._keyring.seal(payload.SerializeToString(), PLACE))
            for payload in payloads
        ]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Decrypt payloads; plain ones are returned as they are, unless encryption is required."""
        return [self._decode(payload) for payload in payloads]

    def _decode(self, payload: Payload) -> Payload:
        if payload.metadata.get("encoding") == ENCODING:
            if not is_sealed(payload.data):
                raise ContentCorrupt("a payload was encrypted by another program, or was changed")
            return Payload.FromString(self._keyring.open(payload.data, PLACE))
        if self._keyring.required:
            raise ContentCorrupt("a payload is not encrypted, and encryption.required refuses it")
        return payload
