"""A shared store whose values are encrypted; its keys, which have no text of a run, are not."""

import structlog

from providers.encryption import Keyring
from providers.errors import ContentCorrupt
from providers.interfaces import SharedStore, StoredValue

log = structlog.get_logger()


class EncryptedSharedStore:
    """A shared store over another one. A value that was changed, or is plain where that is refused, counts as absent.

    Equal values have different ciphertexts, so a swap compares the decrypted value, and then swaps what was read.
    """

    def __init__(self, inner: SharedStore, keyring: Keyring) -> None:
        self._inner = inner
        self._keyring = keyring

    async def get(self, key: str) -> StoredValue:
        """Return the value; None if there is none, it has expired, or it is refused. Raises `KeyMissing`."""
        stored = await self._inner.get(key)
        value = self._open(key, stored.value)
        return StoredValue(value, stored.now, refused=value is None and stored.value is not None)

    async def swap(
        self,
        key: str,
        old: bytes | None,
        new: bytes | None,
        ttl_seconds: float | None = None,
        *,
        over_limit: bool = False,
    ) -> bool:
        """Replace `old` by `new` if it is the current value; None means absent. Return whether it was replaced.

        Raises `KeyMissing`.
        """
        sealed = None if new is None else self._keyring.seal(new, key)
        may_be_stored_so = old is None or not self._keyring.current
        if may_be_stored_so and await self._inner.swap(key, old, sealed, ttl_seconds, over_limit=over_limit):
            return True
        stored = (await self._inner.get(key)).value
        if stored is None or self._open(key, stored) != old:
            return False
        return await self._inner.swap(key, stored, sealed, ttl_seconds, over_limit=over_limit)

    async def remove(self, prefix: str) -> int:
        """Remove every key that starts with the prefix; return their number."""
        return await self._inner.remove(prefix)

    async def close(self) -> None:
        """Close the other store."""
        await self._inner.close()

    def _open(self, key: str, stored: bytes | None) -> bytes | None:
        try:
            return None if stored is None else self._keyring.open(stored, key)
        except ContentCorrupt as error:
            log.warning("shared.refused", reason=str(error))
            return None
