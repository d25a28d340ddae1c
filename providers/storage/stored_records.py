"""Small named records, each replaced atomically: files of one host, or objects that all hosts share.

Lines are encrypted one by one, so that the first ones of a record can be read without the rest.

The blocking methods are for use in threads.
"""

import os
import threading
from base64 import b64decode, b64encode
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import obstore
from cachetools import TTLCache
from obstore.store import LocalStore, ObjectStore

from providers.encryption import Keyring
from providers.errors import ContentCorrupt, ContentMissing, KeyMissing
from providers.storage.content import is_on_this_host, open_store, translated_errors

if TYPE_CHECKING:
    from obstore import ObjectMeta

SUFFIX: Final = ".json"
FIRST_BYTES: Final = 16_384  # size of the first read for a record's first lines; longer ones cost a second read
CALLS_AT_ONCE: Final = 16
ABSENT: Final = "create"  # condition of a write: there is no such record
REMEMBERED_VERSIONS: Final = 1_000
REMEMBERED_SECONDS: Final = 60.0  # a change is written soon after the record was read, or reads it again
SEALED: Final = b"enc:"  # beginning of an encrypted line, followed by base64; no JSON begins like this


@dataclass(frozen=True, slots=True)
class FirstLines:
    """The beginning of a record."""

    name: str
    lines: bytes
    written_at: datetime


def open_records(content_url: str | None, home: Path, kind: str, keyring: Keyring | None = None) -> "Records":
    """Open records of a kind: objects below `content_url` if hosts share it, else files below the home."""
    address = home if content_url is None or is_on_this_host(content_url) else content_url
    return Records(address, kind, keyring)


def has_sole_sessions(content_url: str | None) -> bool:
    """Return true if no other home's sessions name documents of this store; several homes may share a folder."""
    return content_url is None or not is_on_this_host(content_url)


class Records:
    """Records of one kind; the caller checks their names.

    In a shared store, a write fails if another worker wrote the record after it was read here, or while it is written.
    All methods raise `StorageFull`, `StoreUnavailable`, and `NotConfigured` if the store refuses access; those that
    read also `KeyMissing`.
    """

    def __init__(self, address: str | os.PathLike[str], kind: str, keyring: Keyring | None = None) -> None:
        """Open the store at a URL or path; `kind` is the folder in it, empty for its root. Raises `NotConfigured`."""
        self._store: ObjectStore = open_store(address)
        self._kind = kind
        self._keyring = keyring or Keyring()
        self._versions: TTLCache[str, Any] = TTLCache(REMEMBERED_VERSIONS, REMEMBERED_SECONDS)
        """The condition of a write by name, for a record that was read, and not written since."""
        self._lock = threading.Lock()

    def names(self) -> list[str]:
        """Return the names of all records, sorted."""
        return [name for name, _ in self._list()]

    def read(self, name: str) -> bytes | None:
        """Return the whole record, or None. Raises `ContentCorrupt` for an encrypted one that was changed."""
        data = self._read(name)
        if data is None:
            return None
        lines = data.split(b"\n")
        return b"\n".join(self._open(name, number, line) for number, line in enumerate(lines))

    def first_lines(self, count: int = 1) -> list[FirstLines]:
        """Return the first lines of all records, by one small read for each, several at a time."""
        with ThreadPoolExecutor(CALLS_AT_ONCE) as threads:
            results = threads.map(partial(self._first_lines, count=count), self._list())
            return [lines for lines in results if lines is not None]

    def write(self, name: str, data: bytes) -> None:
        """Replace the record, or leave the earlier one intact."""
        lines = data.split(b"\n")
        stored = b"\n".join(self._seal(name, number, line) for number, line in enumerate(lines))
        with translated_errors():
            obstore.put(self._store, self._key(name), stored, mode=self._condition(name), use_multipart=False)

    def remove(self, name: str) -> None:
        """Remove the record; no error if it is gone."""
        with self._lock:
            self._versions.pop(name, None)
        with suppress(ContentMissing), translated_errors():
            obstore.delete(self._store, self._key(name))

    def _condition(self, name: str) -> Any:
        """Return the condition of a write: the record is as it was read, else as it is now, or still absent."""
        if isinstance(self._store, LocalStore):
            return "overwrite"  # files have no conditional writes; the workers of one host have one dev server
        with self._lock:
            read = self._versions.pop(name, None)
        if read is not None:
            return read
        try:
            return _version(obstore.head(self._store, self._key(name)))
        except FileNotFoundError:
            return ABSENT

    def _list(self) -> list[tuple[str, "ObjectMeta"]]:
        with translated_errors():
            objects = [meta for chunk in obstore.list(self._store, prefix=self._kind or None) for meta in chunk]
        pairs = [(meta["path"].removeprefix(f"{self._kind}/"), meta) for meta in objects]
        ours = [(name.removesuffix(SUFFIX), meta) for name, meta in pairs if name.endswith(SUFFIX) and "/" not in name]
        return sorted(ours, key=lambda pair: pair[0])

    def _first_lines(self, record: tuple[str, "ObjectMeta"], count: int) -> FirstLines | None:
        name, meta = record
        end = min(FIRST_BYTES, meta["size"])
        with suppress(ContentMissing), translated_errors():
            start = b""
            if end:
                start = bytes(obstore.get_range(self._store, self._key(name), start=0, end=end))
            if start.count(b"\n") < count and len(start) == FIRST_BYTES:
                start = self._read(name) or b""
            lines: list[bytes] = []
            with suppress(ContentCorrupt, KeyMissing):  # in a list, such a record counts as an empty one
                lines = [self._open(name, number, line) for number, line in enumerate(start.split(b"\n")[:count])]
            return FirstLines(name, b"".join(line + b"\n" for line in lines), meta["last_modified"])
        return None

    def _read(self, name: str) -> bytes | None:
        data: bytes | None = None
        version: Any = ABSENT
        with suppress(ContentMissing), translated_errors():
            found = obstore.get(self._store, self._key(name))
            version = _version(found.meta)
            data = bytes(found.bytes())
        with self._lock:
            self._versions[name] = version
        return data

    def _seal(self, name: str, number: int, line: bytes) -> bytes:
        if not self._keyring.current or not line:
            return line
        return SEALED + b64encode(self._keyring.seal(line, self._place(name, number)))

    def _open(self, name: str, number: int, line: bytes) -> bytes:
        if not line:
            return line
        data = line
        if line.startswith(SEALED):
            try:
                data = b64decode(line.removeprefix(SEALED), validate=True)
            except ValueError:
                raise ContentCorrupt("an encrypted record is damaged") from None
        return self._keyring.open(data, self._place(name, number))

    def _place(self, name: str, number: int) -> str:
        return f"{self._key(name)}/{number}"

    def _key(self, name: str) -> str:
        return f"{self._kind}/{name}{SUFFIX}".removeprefix("/")


def _version(meta: "ObjectMeta") -> dict[str, str]:
    """Return what a conditional write of an object names."""
    return {key: value for key in ("e_tag", "version") if (value := meta[key]) is not None}
