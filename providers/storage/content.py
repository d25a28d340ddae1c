"""Content-addressed documents over obstore: a local folder by default, S3, Google or Azure by URL.

A document lies at `ab/cdef…`, the digits of its SHA-256. Writing is atomic (the store writes aside and renames), and
what is there already is not written again. The blocking calls run in threads: obstore's own asynchronous ones hand
their results over from a foreign thread, which can abort an interpreter that is just ending.
"""

import asyncio
import hashlib
import os
import re
import tempfile
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import LocalStore, ObjectStore, from_url

from contracts.evidence import DocumentRef
from providers.errors import ContentCorrupt, ContentMissing, NotConfigured, StorageFull, StoreUnavailable

if TYPE_CHECKING:
    from obstore import ObjectMeta

NO_SPACE: Final = (
    "os error 28",
    "StorageFull",
    "os error 122",
    "QuotaExceeded",
    "EntityTooLarge",
    "InsufficientStorage",
)
"""How full disks and quotas show in what obstore says of an error."""
DATED_EVERY: Final = timedelta(hours=1)
SCHEME: Final = "sha256:"
NAME: Final = re.compile("[0-9a-f]{2}/[0-9a-f]{62}")
"""How documents are called; records and the documents of corpora may lie in the same store."""


def open_store(address: str | os.PathLike[str]) -> ObjectStore:
    """The store behind a URL (`file:`, `s3:`, `gs:`, `az:`, `memory:`) or a path; a missing folder is made.

    Raises `NotConfigured`, or OSError if the folder cannot be made.
    """
    text = os.fspath(address)
    if text.startswith("memory:"):
        return from_url(text)
    if not is_on_this_host(text):
        try:
            return from_url(text, retry_config={"max_retries": 0})  # the engine alone retries
        except (BaseError, ValueError):
            raise NotConfigured(
                "RESEARCH_CONTENT_URL cannot be opened: name a folder, or s3://, gs:// or az://"
            ) from None
    path = Path(text.removeprefix("file://")).absolute()
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    return LocalStore(path, mkdir=True)


def is_on_this_host(address: str) -> bool:
    """Whether an address is a folder (or the memory) of this host: other hosts do not see what lies there."""
    return "://" not in address or address.startswith(("file://", "memory:"))


def hash_of(data: bytes) -> str:
    """SHA-256 as `sha256:<hex>`."""
    return SCHEME + hashlib.sha256(data).hexdigest()


def name_of(reference: DocumentRef) -> str:
    """Where a document lies in the store."""
    digits = reference.hash.removeprefix(SCHEME)
    return f"{digits[:2]}/{digits[2:]}"


class ObstoreContentStore:
    """`ContentStore` over any object store."""

    def __init__(self, address: str | os.PathLike[str], *, dates_puts: bool = False) -> None:
        """With `dates_puts` a document's date tells when it was last put, give or take `DATED_EVERY`."""
        self._store = open_store(address)
        self._dates_puts = dates_puts

    async def put(self, data: bytes, media_type: str) -> DocumentRef:
        """Store bytes (idempotent, atomic). Raises `StorageFull`, `StoreUnavailable`."""
        return await asyncio.to_thread(self._put, data, media_type, len(data))

    async def put_text(self, text: str, media_type: str = "text/plain") -> DocumentRef:
        """Store a text as UTF-8; `size` is in characters. Raises `StorageFull`, `StoreUnavailable`."""
        return await asyncio.to_thread(self._put, text.encode("utf-8"), media_type, len(text))

    async def get(self, reference: DocumentRef) -> bytes:
        """The bytes, checked against the hash. Raises `ContentMissing`, `ContentCorrupt`, `StoreUnavailable`."""
        return await asyncio.to_thread(self._get, reference)

    async def get_text(self, reference: DocumentRef) -> str:
        """The text, checked against the hash. Raises `ContentMissing`, `ContentCorrupt`, `StoreUnavailable`."""
        data = await self.get(reference)
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ContentCorrupt("a stored document is no text") from error

    def put_file(self, path: Path, media_type: str) -> DocumentRef:
        """Store a file without holding it in memory. Blocks. Raises `StorageFull`, `StoreUnavailable`."""
        with path.open("rb") as file:
            digits = hashlib.file_digest(file, "sha256").hexdigest()
        reference = DocumentRef(hash=SCHEME + digits, media_type=media_type, size=path.stat().st_size)
        try:
            held = self._held(name_of(reference))
            if held is None or held["size"] != reference.size:
                obstore.put(self._store, name_of(reference), path)
        except (BaseError, OSError) as error:
            raise translated_error(error) from error
        return reference

    def get_file(self, reference: DocumentRef, path: Path) -> None:
        """Write a document to a file, whole or not at all, without holding it in memory. Blocks.

        Raises `ContentMissing`, `ContentCorrupt`, `StorageFull`, `StoreUnavailable`.
        """
        digest = hashlib.sha256()
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                for chunk in obstore.get(self._store, name_of(reference)).stream():
                    digest.update(chunk)
                    file.write(chunk)
            if SCHEME + digest.hexdigest() != reference.hash:
                raise ContentCorrupt("a stored document is not what its hash says")
            Path(temporary).replace(path)
        except FileNotFoundError as error:
            raise ContentMissing("a stored document is gone") from error
        except (BaseError, OSError) as error:
            raise translated_error(error) from error
        finally:
            Path(temporary).unlink(missing_ok=True)

    async def delete(self, reference: DocumentRef, *, unless_put_since: datetime | None = None) -> bool:
        """Remove a document; whether it is gone, which it already may have been. Raises `StoreUnavailable`."""
        return await asyncio.to_thread(self._delete, reference, unless_put_since)

    async def delete_others(self, used: Collection[str], *, unless_put_since: datetime) -> int:
        """Remove every document whose hash is not among these; how many there were. Raises `StoreUnavailable`."""
        return await asyncio.to_thread(self._delete_others, used, unless_put_since)

    def _put(self, data: bytes, media_type: str, size: int) -> DocumentRef:
        reference = DocumentRef(hash=hash_of(data), media_type=media_type, size=size)
        name = name_of(reference)
        try:
            held = self._held(name)
            if held is not None and held["size"] == len(data):
                if self._dates_puts and datetime.now(UTC) - held["last_modified"] > DATED_EVERY:
                    self._date(name, data)
                return reference
            obstore.put(self._store, name, data)
        except AlreadyExistsError:
            return reference
        except (BaseError, OSError) as error:
            raise translated_error(error) from error
        return reference

    def _held(self, name: str) -> "ObjectMeta | None":
        try:
            return obstore.head(self._store, name)
        except FileNotFoundError:
            return None

    def _date(self, name: str, data: bytes) -> None:
        """Give a document today's date; a full disk is no reason not to use what is there."""
        if isinstance(self._store, LocalStore) and self._store.prefix is not None:
            os.utime(Path(self._store.prefix) / name)
        else:
            obstore.put(self._store, name, data)

    def _get(self, reference: DocumentRef) -> bytes:
        try:
            data = bytes(obstore.get(self._store, name_of(reference)).bytes())
        except FileNotFoundError as error:
            raise ContentMissing("a stored document is gone") from error
        except (BaseError, OSError) as error:
            raise translated_error(error) from error
        if hash_of(data) != reference.hash:
            raise ContentCorrupt("a stored document is not what its hash says")
        return data

    def _delete(self, reference: DocumentRef, unless_put_since: datetime | None) -> bool:
        name = name_of(reference)
        try:
            if unless_put_since is not None:
                held = self._held(name)
                if held is not None and held["last_modified"] >= unless_put_since - DATED_EVERY:
                    return False
            obstore.delete(self._store, name)
        except FileNotFoundError:
            return True
        except (BaseError, OSError) as error:
            raise translated_error(error) from error
        return True

    def _delete_others(self, used: Collection[str], unless_put_since: datetime) -> int:
        try:
            names = [meta["path"] for chunk in obstore.list(self._store) for meta in chunk]
        except (BaseError, OSError) as error:
            raise translated_error(error) from error
        hashes = [SCHEME + name.replace("/", "") for name in names if NAME.fullmatch(name)]
        others = [DocumentRef(hash=each) for each in hashes if each not in used]
        return sum(self._delete(each, unless_put_since) for each in others)


def translated_error(error: Exception) -> StorageFull | StoreUnavailable:
    """Storage errors as ours; the store's own message may hold paths and is not passed on."""
    if any(sign in str(error) for sign in NO_SPACE):
        return StorageFull("no room left where documents are kept")
    return StoreUnavailable("the content store does not answer")
