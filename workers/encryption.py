"""Encryption: the keys of a configuration, and the codec of what the Temporal server stores.

Payloads have the messages and frames of failures, too. They are encrypted in the process that sends them, and opened in
the one that receives them, outside of workflow code, so that recorded histories replay as before.
"""

import binascii
from base64 import b64decode
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

from pydantic import SecretStr
from temporalio.api.common.v1 import Payload
from temporalio.converter import PayloadCodec

from providers.encryption import KEY_BYTES, Keyring, is_sealed
from providers.errors import ContentCorrupt, NotConfigured
from workers.settings.sections import EncryptionSettings

ENCRYPTION_KEYS: Final = "RESEARCH_ENCRYPTION_KEYS"
KEY_ENTRY_POINTS: Final = "durable_research.encryption_keys"
MAX_KEY_BYTES: Final = 1_000  # of a file
MAKE_ONE: Final = "32 bytes in base64, as `openssl rand -base64 32` makes them"
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


# --- the keys of a configuration -------------------------------------------------------------------------------------
def read_key_texts(files: Mapping[str, Path], variable: SecretStr | None) -> dict[str, SecretStr]:
    """Return the keys of files and of the variable by id, in base64. Raises `NotConfigured`, which shows no key."""
    texts = {}
    for key_id, path in files.items():
        try:
            with path.open("rb") as file:
                texts[key_id] = SecretStr(file.read(MAX_KEY_BYTES).decode("ascii", "replace").strip())
        except OSError as error:
            raise NotConfigured(f"encryption.keys.{key_id}: {path} cannot be read: {error.strerror}") from None
    pairs = variable.get_secret_value().replace(",", " ").split() if variable else []
    for key_id, equals, text in (pair.partition("=") for pair in pairs):
        if not equals:
            raise NotConfigured(f"{ENCRYPTION_KEYS}: write it as ID=KEY, with commas between keys")
        texts[key_id] = SecretStr(text)
    return texts


def make_keyring(settings: EncryptionSettings, texts: Mapping[str, SecretStr]) -> Keyring:
    """Make the keyring of a configuration. Raises `NotConfigured`, which names the id and shows no key."""
    keys = {}
    for key_id, text in texts.items():
        try:
            keys[key_id] = b64decode(text.get_secret_value(), validate=True)
        except (binascii.Error, ValueError):
            raise NotConfigured(f"the encryption key {key_id} is no key: write {MAKE_ONE}") from None
        if len(keys[key_id]) != KEY_BYTES:
            raise NotConfigured(f"the encryption key {key_id} has {len(keys[key_id])} bytes: write {MAKE_ONE}")
    if settings.source is not None:
        keys |= _keys_of_package(settings.source)
    if settings.current is not None and settings.current not in keys:
        raise NotConfigured(
            f"encryption.current: there is no key {settings.current}: name its file in [encryption.keys], or add it to "
            f"{ENCRYPTION_KEYS}"
        )
    if settings.required and settings.current is None:
        raise NotConfigured("encryption.required: there is no current key: set encryption.current, too")
    try:
        return Keyring(keys, settings.current or "", required=settings.required)
    except ValueError as error:
        raise NotConfigured(f"encryption.keys: {error}") from None


def _keys_of_package(name: str) -> dict[str, bytes]:
    """Return the keys of an installed package by id. Raises `NotConfigured`."""
    problem = f"encryption.source: the keys of {name}"
    entry = next(iter(entry_points(group=KEY_ENTRY_POINTS, name=name)), None)
    if entry is None:
        raise NotConfigured(f"{problem}: no installed package has this entry point of {KEY_ENTRY_POINTS}")
    try:
        keys = dict(entry.load()())
    except Exception as error:  # noqa: BLE001  the code of another package; its message may hold a secret
        raise NotConfigured(f"{problem} cannot be read: {type(error).__name__}") from None
    if not all(isinstance(key_id, str) and isinstance(key, bytes) for key_id, key in keys.items()):
        raise NotConfigured(f"{problem} are no bytes by id")
    return keys
