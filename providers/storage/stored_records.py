"""Small records under names, each replaced at one stroke: files of one host, or objects that all hosts share.

The blocking methods are for threads. All raise `StorageFull`, and `NotConfigured` for a folder that cannot be used or
`StoreUnavailable` for an object store that does not answer.
"""

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import ObjectStore

from providers.errors import NotConfigured, StorageFull, StoreUnavailable
from providers.storage.content import is_on_this_host, open_store, translated_error

if TYPE_CHECKING:
    from obstore import ObjectMeta

ENDING: Final = ".json"
FIRST_BYTES: Final = 16_384
"""How much of a record is read for its first lines; longer ones cost a second read."""
CALLS_AT_ONCE: Final = 16
NO_SPACE: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@dataclass(frozen=True, slots=True)
class FirstLines:
    """How a record begins."""

    name: str
    lines: bytes
    written_at: datetime


class Records(Protocol):
    """Records of one kind; a name is a plain one, checked by the caller."""

    def names(self) -> list[str]:
        """Names of all records, sorted."""
        ...

    def read(self, name: str) -> bytes | None:
        """The whole record, or None."""
        ...

    def first_lines(self, count: int = 1) -> list[FirstLines]:
        """How every record begins, without reading the records."""
        ...

    def write(self, name: str, data: bytes) -> None:
        """Replace the record, or leave the earlier one whole."""
        ...

    def remove(self, name: str) -> None:
        """Remove the record with what an interrupted write left; no error if it is gone."""
        ...


def open_records(content_url: str | None, home: Path, kind: str) -> Records:
    """Records of a kind: objects below `content_url` if that is shared by hosts, else files below the home."""
    if content_url is None or is_on_this_host(content_url):
        return FolderRecords(home / kind)
    return ObjectRecords(open_store(content_url), kind)


def has_sole_sessions(content_url: str | None) -> bool:
    """Whether no other home's sessions name documents of this store: a folder that is named may serve several homes."""
    return content_url is None or not is_on_this_host(content_url)


class FolderRecords:
    """One file for each record, for its owner alone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def names(self) -> list[str]:
        """Names of all records, sorted."""
        with self._translate():
            return sorted(path.name.removesuffix(ENDING) for path in self.folder.glob(f"[!.]*{ENDING}"))

    def read(self, name: str) -> bytes | None:
        """The whole record, or None."""
        with self._translate():
            try:
                return self._path(name).read_bytes()
            except FileNotFoundError:
                return None

    def first_lines(self, count: int = 1) -> list[FirstLines]:
        """How every record begins, without reading the records."""
        return [lines for name in self.names() if (lines := self._first_lines(name, count)) is not None]

    def write(self, name: str, data: bytes) -> None:
        """Write aside, make it durable, and rename."""
        with self._translate():
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, temporary = tempfile.mkstemp(dir=self.folder, prefix=f".{name}.", suffix=".tmp")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                Path(temporary).replace(self._path(name))
            except BaseException:
                with contextlib.suppress(OSError):
                    Path(temporary).unlink()
                raise
            self._make_durable()

    def remove(self, name: str) -> None:
        """Remove the record with what an interrupted write left; no error if it is gone."""
        with self._translate():
            self._path(name).unlink(missing_ok=True)
            for leftover in self.folder.glob(f".{name}.*.tmp"):
                leftover.unlink(missing_ok=True)

    def _first_lines(self, name: str, count: int) -> FirstLines | None:
        path = self._path(name)
        written_at = datetime.fromtimestamp(0, UTC)
        try:
            written_at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
            with path.open("rb") as file:
                return FirstLines(name, b"".join(islice(file, count)), written_at)
        except FileNotFoundError:
            return None
        except OSError:
            return FirstLines(name, b"", written_at)  # it is listed as unreadable; reading it says why

    def _make_durable(self) -> None:
        """A rename survives a power cut only once its folder is written."""
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}{ENDING}"

    @contextmanager
    def _translate(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno in NO_SPACE:
                raise StorageFull(
                    f"no space is left for {self.folder.name}: make room where RESEARCH_HOME is"
                ) from None
            raise NotConfigured(f"the folder {self.folder.name} cannot be used: {error.strerror}") from None


class ObjectRecords:
    """One object for each record, below a prefix of a store that all hosts share.

    A write carries the version that the record had when the write began: a worker that lost touch and writes late
    replaces no newer record of another worker.
    """

    def __init__(self, store: ObjectStore, prefix: str) -> None:
        self._store = store
        self._prefix = prefix

    def names(self) -> list[str]:
        """Names of all records, sorted."""
        return [name for name, _ in self._find()]

    def read(self, name: str) -> bytes | None:
        """The whole record, or None."""
        with _translate_errors():
            try:
                return bytes(obstore.get(self._store, self._key(name)).bytes())
            except FileNotFoundError:
                return None

    def first_lines(self, count: int = 1) -> list[FirstLines]:
        """How every record begins: one small read for each, several at a time."""
        with ThreadPoolExecutor(CALLS_AT_ONCE) as threads:
            read = partial(self._first_lines, count=count)
            return [lines for lines in threads.map(read, self._find()) if lines is not None]

    def write(self, name: str, data: bytes) -> None:
        """Replace the record unless another worker did meanwhile: then it raises `StoreUnavailable`."""
        with _translate_errors():
            try:
                obstore.put(self._store, self._key(name), data, mode=self._condition_write(name), use_multipart=False)
            except (AlreadyExistsError, PreconditionError):
                raise StoreUnavailable(f"another worker wrote {self._key(name)} meanwhile") from None

    def remove(self, name: str) -> None:
        """Remove the record; no error if it is gone."""
        with _translate_errors(), contextlib.suppress(FileNotFoundError):
            obstore.delete(self._store, self._key(name))

    def _condition_write(self, name: str) -> Any:
        """The condition of a write: the record is the one that is there now, or there is still none."""
        try:
            found = obstore.head(self._store, self._key(name))
        except FileNotFoundError:
            return "create"
        return {key: value for key in ("e_tag", "version") if (value := found[key]) is not None}

    def _find(self) -> list[tuple[str, "ObjectMeta"]]:
        with _translate_errors():
            metas = [meta for chunk in obstore.list(self._store, prefix=self._prefix) for meta in chunk]
        named = [(meta["path"].removeprefix(f"{self._prefix}/"), meta) for meta in metas]
        ours = [(name.removesuffix(ENDING), meta) for name, meta in named if name.endswith(ENDING) and "/" not in name]
        return sorted(ours, key=lambda pair: pair[0])

    def _first_lines(self, found: tuple[str, "ObjectMeta"], count: int) -> FirstLines | None:
        name, meta = found
        end = min(FIRST_BYTES, meta["size"])
        with _translate_errors():
            try:
                start = bytes(obstore.get_range(self._store, self._key(name), start=0, end=end)) if end else b""
                if start.count(b"\n") < count and len(start) == FIRST_BYTES:
                    start = bytes(obstore.get(self._store, self._key(name)).bytes())
            except FileNotFoundError:
                return None
        return FirstLines(name, b"".join(start.splitlines(keepends=True)[:count]), meta["last_modified"])

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}{ENDING}"


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except (BaseError, OSError) as error:
        raise translated_error(error) from None
