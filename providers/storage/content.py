"""Content-addressed documents over obstore: a local folder by default, S3, Google or Azure by URL.

A document is named `ab/cdef…`, the digits of its SHA-256; an encrypted one `encrypted/KEY/ab/cdef…`, of the digits that
its keyring hides. The store writes aside and renames. Blocking calls run in threads: obstore's asynchronous ones return
from a foreign thread, which can abort an interpreter that is shutting down.
"""

import asyncio
import hashlib
import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import obstore
from cachetools import TTLCache
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import LocalStore, ObjectStore, from_url

from contracts.addresses import digest
from contracts.evidence import DocumentRef
from providers.encryption import KEY_ID, Keyring
from providers.errors import ContentCorrupt, ContentMissing, NotConfigured, StorageFull, StoreUnavailable

NO_SPACE: Final = re.compile(
    r"os error (?:27|28|122)\b|StorageFull|QuotaExceeded|EntityTooLarge|InsufficientStorage"  # EFBIG, ENOSPC, EDQUOT
)
"""Full disks and exceeded quotas in obstore's error messages."""
DATE_PRECISION: Final = timedelta(hours=1)  # of the date of a document's last put
REMEMBERED_CHARACTERS: Final = 8_000_000  # of texts in memory
REMEMBERED_SECONDS: Final = 300.0  # a text that another process has deleted may be read for that long
SCHEME: Final = "sha256:"
NAME: Final = re.compile(r"(?:encrypted/([a-z0-9-]+)/)?([0-9a-f]{2})/([0-9a-f]{62,94})")
"""Of documents; records may be in the same store."""
ENCRYPTED: Final = "encrypted/"
CHUNK_BYTES: Final = 1_048_576  # of a large file, each sealed by itself
PLAIN_DIGITS: Final = 62  # of a plain name, without those of its folder
LENGTH_BYTES: Final = 4  # before each sealed chunk
MOST_SEEN: Final = 50_000  # documents of which a process knows that they were there
MAX_PART_BYTES: Final = 5_242_880  # of a document that is put in one request: a larger one goes in parts


def open_store(address: str | os.PathLike[str]) -> ObjectStore:
    """Open the store of a URL (`file:`, `s3:`, `gs:`, `az:`, `memory:`) or a folder. Raises `NotConfigured`."""
    text = os.fspath(address)
    try:
        if text.startswith("memory:"):
            return from_url(text)
        if not is_on_this_host(text):
            return from_url(text, retry_config={"max_retries": 0})  # only Temporal retries
    except (BaseError, ValueError):
        raise NotConfigured("RESEARCH_CONTENT_URL cannot be opened: name a folder, or s3://, gs:// or az://") from None
    path = Path(text.removeprefix("file://")).absolute()
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise NotConfigured(
            f"the folder {path.name} cannot be used: {reason}; set RESEARCH_HOME to a folder that can be written"
        ) from None
    return LocalStore(path, mkdir=True)


def is_on_this_host(address: str) -> bool:
    """Return true for a folder (or the memory) of this host, which is invisible to other hosts."""
    return "://" not in address or address.startswith(("file://", "memory:"))


@contextmanager
def translated_errors() -> Iterator[None]:
    """Translate the store's errors into ours, because its messages may contain paths."""
    try:
        yield
    except FileNotFoundError as error:
        raise ContentMissing("a stored document is gone") from error
    except (AlreadyExistsError, PreconditionError) as error:
        raise StoreUnavailable("another worker wrote the record meanwhile") from error
    except (PermissionDeniedError, UnauthenticatedError, PermissionError) as error:
        raise NotConfigured("the store refuses access: check RESEARCH_HOME or RESEARCH_CONTENT_URL") from error
    except (BaseError, OSError) as error:
        if NO_SPACE.search(str(error)):
            raise StorageFull(
                "no room left for documents: make room in RESEARCH_HOME or RESEARCH_CONTENT_URL"
            ) from error
        raise StoreUnavailable("the content store does not answer") from error


def hash_of_file(path: Path) -> str:
    """Return the SHA-256 of a file of any size."""
    with path.open("rb") as file:
        return SCHEME + hashlib.file_digest(file, "sha256").hexdigest()


def name_of(reference: DocumentRef, key_id: str = "", hidden: str = "") -> str:
    """Return the path of a document in the store: a plain one, or the one whose digits a key hides."""
    digits = hidden or reference.hash.removeprefix(SCHEME)
    folder = f"{ENCRYPTED}{key_id}/" if key_id else ""
    return f"{folder}{digits[:2]}/{digits[2:]}"


class ObstoreContentStore:
    """`ContentStore` over any object store; a document's date is that of its last put, within `DATE_PRECISION`.

    Texts are remembered for a while: a run needs a page for its analyses, checks and reports. Every
    method raises `StoreUnavailable`, and `NotConfigured` if the store refuses access.
    """

    def __init__(self, address: str | os.PathLike[str], keyring: Keyring | None = None) -> None:
        """Open the store at a URL or in a folder; `keyring` encrypts what it gets. Raises `NotConfigured`."""
        self._store = open_store(address)
        self._keyring = keyring or Keyring()
        self._texts: TTLCache[str, str] = TTLCache(REMEMBERED_CHARACTERS, REMEMBERED_SECONDS, getsizeof=len)
        self._reading: dict[str, asyncio.Task[str]] = {}
        """Texts that are being read, by hash: what several ask for at once is read once."""
        self._seen: set[str] = set()
        """Hashes of documents that were there: one of them is looked at before it is sent again."""

    async def put(self, data: bytes, media_type: str) -> DocumentRef:
        """Store bytes (idempotent, atomic). Raises `StorageFull`."""
        return await asyncio.to_thread(self._put, data, media_type, len(data))

    async def put_text(self, text: str, media_type: str = "text/plain") -> DocumentRef:
        """Store a text as UTF-8; `size` is in characters. Raises `StorageFull`."""
        reference = await asyncio.to_thread(self._put, text.encode("utf-8"), media_type, len(text))
        self._remember(reference, text)
        return reference

    async def get(self, reference: DocumentRef) -> bytes:
        """Return the bytes, checked against the hash. Raises `ContentMissing`, `ContentCorrupt`."""
        return await asyncio.to_thread(self._get, reference)

    async def get_text(self, reference: DocumentRef) -> str:
        """Return the text, checked against the hash. Raises `ContentMissing`, `ContentCorrupt`."""
        known: str | None = self._texts.get(reference.hash)
        if known is not None:
            return known
        reading = self._reading.get(reference.hash)
        if reading is None:
            reading = self._reading[reference.hash] = asyncio.create_task(self._read_text(reference))
            reading.add_done_callback(lambda task: self._end_reading(reference, task))
        return await asyncio.shield(reading)

    async def _read_text(self, reference: DocumentRef) -> str:
        data = await self.get(reference)
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ContentCorrupt("a stored document is no text") from error
        self._remember(reference, text)
        return text

    def _end_reading(self, reference: DocumentRef, task: asyncio.Task[str]) -> None:
        del self._reading[reference.hash]
        if not task.cancelled():
            task.exception()  # every reader may have gone

    def _remember(self, reference: DocumentRef, text: str) -> None:
        if len(text) <= REMEMBERED_CHARACTERS:
            self._texts[reference.hash] = text

    def put_file(self, path: Path, media_type: str) -> DocumentRef:
        """Store a file of any size in constant memory. Blocks. Raises `StorageFull`."""
        reference = DocumentRef(hash=hash_of_file(path), media_type=media_type, size=path.stat().st_size)
        name = self._names(reference)[0]
        with translated_errors():
            if not name.startswith(ENCRYPTED):
                obstore.put(self._store, name, path)
                return reference
            sealed = path.with_suffix(".sealed")
            try:
                self._seal_file(path, sealed, name)
                obstore.put(self._store, name, sealed)
            finally:
                sealed.unlink(missing_ok=True)
        return reference

    def get_file(self, reference: DocumentRef, path: Path) -> None:
        """Write a document to a file, completely or not at all. Blocks. Raises `StorageFull`, and as `get` does."""
        temporary = path.with_suffix(".part")
        with translated_errors():
            name = self._stored_name(reference)
            with temporary.open("wb") as file:
                for chunk in obstore.get(self._store, name).stream():
                    file.write(chunk)
            if name.startswith(ENCRYPTED):
                sealed = temporary.replace(path.with_suffix(".sealed"))
                try:
                    self._open_file(sealed, temporary, name)
                finally:
                    sealed.unlink(missing_ok=True)
        if hash_of_file(temporary) != reference.hash:
            raise ContentCorrupt("a stored document does not match its hash")
        temporary.replace(path)

    async def delete(self, reference: DocumentRef, *, unless_put_since: datetime | None = None) -> bool:
        """Remove a document; true if it is gone, even if it already was."""
        self._texts.pop(reference.hash, None)
        deleted = [await asyncio.to_thread(self._delete, name, unless_put_since) for name in self._names(reference)]
        return all(deleted)

    async def delete_others(self, used: Collection[str], *, unless_put_since: datetime) -> int:
        """Remove every document whose hash is not in `used`; return their number."""
        self._texts.clear()
        return await asyncio.to_thread(self._delete_others, used, unless_put_since)

    def _names(self, reference: DocumentRef) -> list[str]:
        """Return the paths that a document may have; the first is that of a new one."""
        names = self._keyring.names(reference.hash.removeprefix(SCHEME))
        return [name_of(reference, key_id, digits) for key_id, digits in names]

    def _stored_name(self, reference: DocumentRef) -> str:
        """Return the path that a document has. Raises FileNotFoundError, `KeyMissing`."""
        for name in self._names(reference):
            with suppress(FileNotFoundError):
                obstore.head(self._store, name)
                return name
        self._check_keys()
        raise FileNotFoundError

    def _check_keys(self) -> None:
        """Raise `KeyMissing` if documents here have a key that this process lacks: a missing one may be among them."""
        for folder in obstore.list_with_delimiter(self._store, prefix=ENCRYPTED)["common_prefixes"]:
            key_id = folder.rstrip("/").removeprefix(ENCRYPTED)
            if re.fullmatch(KEY_ID, key_id):
                self._keyring.check(key_id)

    def _put(self, data: bytes, media_type: str, size: int) -> DocumentRef:
        reference = DocumentRef(hash=digest(data), media_type=media_type, size=size)
        name = self._names(reference)[0]
        with translated_errors():
            if reference.hash in self._seen or not self._create(name, data):
                self._renew(name, data)
        self._see(reference)
        return reference

    def _see(self, reference: DocumentRef) -> None:
        if len(self._seen) >= MOST_SEEN:
            self._seen.clear()
        self._seen.add(reference.hash)

    def _create(self, name: str, data: bytes) -> bool:
        """Store a new document of an object store in one request; return false if it may be there, or is large."""
        if isinstance(self._store, LocalStore) or len(data) > MAX_PART_BYTES:
            return False
        try:
            obstore.put(self._store, name, self._keyring.seal(data, name), mode="create", use_multipart=False)
        except AlreadyExistsError:
            return False
        return True

    def _renew(self, name: str, data: bytes) -> None:
        """Store a document unless it is there, and renew its date if it is."""
        try:
            stored = obstore.head(self._store, name)
        except FileNotFoundError:
            stored = None
        if stored is None or stored["size"] != len(data) + self._keyring.overhead:
            obstore.put(self._store, name, self._keyring.seal(data, name))
        elif datetime.now(UTC) - stored["last_modified"] > DATE_PRECISION:
            if isinstance(self._store, LocalStore) and self._store.prefix is not None:
                os.utime(Path(self._store.prefix) / name)  # without rewriting it, because the disk may be full
            else:
                obstore.put(self._store, name, self._keyring.seal(data, name))

    def _get(self, reference: DocumentRef) -> bytes:
        first, *others = self._names(reference)
        with translated_errors():
            try:
                name = first
                data = bytes(obstore.get(self._store, name).bytes())
            except FileNotFoundError:
                if not others:
                    self._check_keys()
                    raise
                name = self._stored_name(reference)
                data = bytes(obstore.get(self._store, name).bytes())
        if name.startswith(ENCRYPTED):
            data = self._keyring.open(data, name)
        if digest(data) != reference.hash:
            raise ContentCorrupt("a stored document does not match its hash")
        self._see(reference)
        return data

    def _seal_file(self, plain: Path, sealed: Path, name: str) -> None:
        with plain.open("rb") as source, sealed.open("wb") as target:
            for number, chunk in enumerate(iter(lambda: source.read(CHUNK_BYTES), b"")):
                data = self._keyring.seal(chunk, f"{name}/{number}")
                target.write(len(data).to_bytes(LENGTH_BYTES) + data)

    def _open_file(self, sealed: Path, plain: Path, name: str) -> None:
        """Decrypt a file; one that was cut at the end of a chunk does not match its hash."""
        with sealed.open("rb") as source, plain.open("wb") as target:
            for number, length in enumerate(iter(lambda: source.read(LENGTH_BYTES), b"")):
                data = source.read(min(int.from_bytes(length), 2 * CHUNK_BYTES))
                target.write(self._keyring.open(data, f"{name}/{number}"))

    def _delete(self, name: str, unless_put_since: datetime | None) -> bool:
        with suppress(ContentMissing), translated_errors():
            put_at = obstore.head(self._store, name)["last_modified"]
            if unless_put_since is not None and put_at >= unless_put_since - DATE_PRECISION:
                return False
            obstore.delete(self._store, name)
        return True

    def _delete_others(self, used: Collection[str], unless_put_since: datetime) -> int:
        with translated_errors():
            names = [meta["path"] for chunk in obstore.list(self._store) for meta in chunk]
        others = [name for name in names if (digits := self._digits(name)) and SCHEME + digits not in used]
        return sum(self._delete(name, unless_put_since) for name in others)

    def _digits(self, name: str) -> str | None:
        """Return the SHA-256 of the document of a path; None for other paths, and those of an unknown key."""
        match = NAME.fullmatch(name)
        if match is None:
            return None
        key_id, folder, rest = match.groups()
        if key_id is not None:
            return self._keyring.digits_of(key_id, folder + rest)
        return folder + rest if len(rest) == PLAIN_DIGITS else None
