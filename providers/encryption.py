"""Keys of an operator, by which texts are encrypted wherever they are stored: AES-256-GCM, with several keys by id.

From each key others are derived (HKDF-SHA256): one for the names of documents, and for data another one for each
process, by a random salt. A ciphertext begins with the id of its key and this salt, so that it can be read for as long
as the key is there. A derived key seals at most `MAX_MESSAGES`, the bound for random nonces of 96 bits (NIST SP
800-38D, 8.3).
"""

import os
import re
import threading
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESSIV
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from providers.errors import ContentCorrupt, KeyMissing

KEY_BYTES: Final = 32
KEY_ID: Final = "[a-z0-9][a-z0-9-]{0,31}"
MARK: Final = b"\xffenc1"  # beginning of what is encrypted: no text in UTF-8 has such a byte
SALT_BYTES: Final = 16
NONCE_BYTES: Final = 12
TAG_BYTES: Final = 16
MAX_MESSAGES: Final = 2**32
LOG_SECONDS: Final = 60.0
KNOWN_SALTS: Final = 1_000  # derived keys in memory
HIDDEN: Final = re.compile("[0-9a-f]{96}")


class Keyring:
    """Seals with the current key, and opens with any of its keys; without a current key it leaves texts as they are."""

    def __init__(self, keys: Mapping[str, bytes] | None = None, current: str = "", *, required: bool = False) -> None:
        """`keys` have 32 bytes each, by id. With `required`, what is not encrypted is refused. Raises ValueError."""
        self._keys = dict(keys or {})
        self.current = current
        self.required = required
        for key_id, key in self._keys.items():
            if not re.fullmatch(KEY_ID, key_id) or len(key) != KEY_BYTES:
                raise ValueError(f"a key has {KEY_BYTES} bytes, and its id small letters, digits and hyphens")
        if current and current not in self._keys:
            raise ValueError(f"there is no key {current}")
        self._data_cipher = lru_cache(KNOWN_SALTS)(self._derive_data_cipher)
        self._name_cipher = lru_cache(self._derive_name_cipher)
        self._salt = b""
        self._left = 0
        self._lock = threading.Lock()
        self._logged: dict[str, float] = {}

    @property
    def ids(self) -> list[str]:
        """The ids of all keys, the current one first."""
        return sorted(self._keys, key=lambda key_id: (key_id != self.current, key_id))

    @property
    def overhead(self) -> int:
        """Bytes by which sealing lengthens a text."""
        if not self.current:
            return 0
        return len(MARK) + 1 + len(self.current) + SALT_BYTES + NONCE_BYTES + TAG_BYTES

    def seal(self, data: bytes, place: str) -> bytes:
        """Encrypt data for one place, in which alone it can be opened."""
        if not self.current:
            return data
        salt = self._take_salt()
        head = MARK + bytes([len(self.current)]) + self.current.encode() + salt
        nonce = os.urandom(NONCE_BYTES)
        cipher = self._data_cipher(self.current, salt)
        return head + nonce + cipher.encrypt(nonce, data, head + place.encode("utf-8", "surrogatepass"))

    def _take_salt(self) -> bytes:
        """Return the salt for one more message; threads share it."""
        with self._lock:
            if self._left == 0:
                self._salt = os.urandom(SALT_BYTES)
                self._left = MAX_MESSAGES
            self._left -= 1
            return self._salt

    def open(self, data: bytes, place: str) -> bytes:
        """Decrypt data of a place; what was never encrypted is returned as it is.

        Raises `KeyMissing`, and `ContentCorrupt` if it was changed, moved here from another place, or is not encrypted
        although it is `required`.
        """
        if not is_sealed(data):
            if self.required:
                raise ContentCorrupt("a stored text is not encrypted, and encryption.required refuses it")
            return data
        end_of_id = len(MARK) + 1 + data[len(MARK)]
        end_of_head = end_of_id + SALT_BYTES
        key_id = data[len(MARK) + 1 : end_of_id].decode("ascii", "replace")
        if not re.fullmatch(KEY_ID, key_id):
            raise ContentCorrupt("an encrypted text was changed")
        self.check(key_id)
        head = data[:end_of_head]
        nonce = data[end_of_head : end_of_head + NONCE_BYTES]
        try:
            cipher = self._data_cipher(key_id, head[end_of_id:])
            body = data[end_of_head + NONCE_BYTES :]
            return cipher.decrypt(nonce, body, head + place.encode("utf-8", "surrogatepass"))
        except (InvalidTag, ValueError):  # ValueError: cut short
            raise ContentCorrupt(
                f"an encrypted text was changed, or the key {key_id} is not the one that it was encrypted with"
            ) from None

    def check(self, key_id: str) -> None:
        """Raise `KeyMissing` if there is no key of this id."""
        if key_id not in self._keys:
            self._log_missing(key_id)
            raise KeyMissing(key_id)

    def _log_missing(self, key_id: str) -> None:
        """Log the id of a missing key, once a minute: whatever was encrypted with it is tried again and again."""
        now = time.monotonic()
        if key_id in self._logged and now - self._logged[key_id] < LOG_SECONDS:
            return
        self._logged[key_id] = now
        import structlog  # noqa: PLC0415  every command reads the settings, and few miss a key

        structlog.get_logger().error("encryption.key_missing", key=key_id)

    def names(self, digits: str) -> list[tuple[str, str]]:
        """Return the names that a document may have, with the id of the key of each; the first is that of a new one.

        The name of an encrypted document is the encrypted SHA-256 of its text (AES-SIV), so that nobody without the key
        can tell from it if a text is stored. A plain name has the id "".
        """
        hidden = [(key_id, self._name_cipher(key_id).encrypt(bytes.fromhex(digits), None).hex()) for key_id in self.ids]
        if self.required:
            return hidden
        return [*hidden, ("", digits)] if self.current else [("", digits), *hidden]

    def digits_of(self, key_id: str, name: str) -> str | None:
        """Return the digits of the SHA-256 that a name hides; None for an unknown key, and for what is no such name."""
        if key_id not in self._keys or not HIDDEN.fullmatch(name):
            return None
        try:
            return self._name_cipher(key_id).decrypt(bytes.fromhex(name), None).hex()
        except InvalidTag:
            return None

    def _derive_data_cipher(self, key_id: str, salt: bytes) -> AESGCM:
        return AESGCM(HKDF(SHA256(), KEY_BYTES, salt, b"durable-research data").derive(self._keys[key_id]))

    def _derive_name_cipher(self, key_id: str) -> AESSIV:
        return AESSIV(HKDF(SHA256(), 2 * KEY_BYTES, None, b"durable-research names").derive(self._keys[key_id]))


def is_sealed(data: bytes) -> bool:
    """Return true for what `Keyring.seal` encrypted."""
    return data.startswith(MARK) and len(data) > len(MARK)
