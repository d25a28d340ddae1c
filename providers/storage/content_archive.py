"""Records of content that models were not shown: files or objects named by the SHA-256 digits of the text.

An encrypted record is named by its key and the digits that the key hides: `KEY.abcdef…`.
"""

import asyncio
import fcntl
import re
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from contracts.addresses import short_hash
from contracts.tokens import ArchiveRecord
from providers.encryption import Keyring
from providers.errors import ContentCorrupt, KeyMissing, NotConfigured, ProviderError, StorageFull
from providers.storage.content import SCHEME, is_on_this_host
from providers.storage.stored_records import Records

FOLDER: Final = "archive"  # of the records in a home and in an object store
DIGITS: Final = re.compile("[0-9a-f]{64}")
DATE_PRECISION: Final = timedelta(hours=1)  # of the time at which a run archived a text
OTHER_HOMES_GRACE: Final = timedelta(days=7)
"""Time allowed for another home to remove its expired records itself, and the texts with them."""

Change = Callable[[str, ArchiveRecord | None], ArchiveRecord | None]  # from hash and record to the new record


class RecordArchive:
    """`ContentArchive` over a folder, or over an object store shared by hosts; its writers exclude each other."""

    def __init__(
        self, content_url: str | None, home: Path, folder: Path | None = None, keyring: Keyring | None = None
    ) -> None:
        """Use `folder` for the records, else the home, or `content_url` if hosts share it."""
        self._keyring = keyring or Keyring()
        shared = content_url is not None and not is_on_this_host(content_url)
        if folder is None:
            self._own = ""
        else:
            self._own = f"{short_hash(content_url or str(home.absolute()))}/"
        self.folder = folder or (None if shared else home / FOLDER)
        self._lock = threading.Lock()
        self._location = (str(content_url), FOLDER) if self.folder is None else (self.folder, "")

    async def put(self, records: Sequence[ArchiveRecord]) -> None:
        """Write records, each completely or not at all, merged with those of other runs."""
        new = {}
        for record in records:
            runs = {self._own + run: until for run, until in record.runs.items()}
            new[record.content_hash] = record.with_fields(runs=runs)
        await asyncio.to_thread(self._change, new, lambda digest, existing: _merged(new[digest], existing))

    async def read(self) -> dict[str, ArchiveRecord | None]:
        """Return all records by hash; None for a damaged one."""
        return await asyncio.to_thread(self._read)

    async def pinned(self, now: datetime) -> frozenset[str]:
        """Return the hashes of this home's texts that must stay, including those of damaged records."""
        records = (await self.read()).items()
        return frozenset(digest for digest, record in records if record is None or self.is_own(record, now))

    def is_own(self, record: ArchiveRecord, now: datetime | None = None) -> bool:
        """Return whether runs of this home archived the text, one of them at least until later than `now`."""
        return any(run.startswith(self._own) and (now is None or until > now) for run, until in record.runs.items())

    async def forget(self, research_id: str) -> frozenset[str]:
        """Remove a run of this home from the records; return the hashes of the changed records."""
        return await self._reduce(lambda run, _: run != self._own + research_id)

    async def expire(self, now: datetime) -> frozenset[str]:
        """Remove expired runs from the records; return the hashes of the changed records."""
        late = now - OTHER_HOMES_GRACE
        return await self._reduce(lambda run, until: until > (now if run.startswith(self._own) else late))

    async def _reduce(self, is_retained: Callable[[str, datetime], bool]) -> frozenset[str]:
        def reduced(record: ArchiveRecord | None) -> ArchiveRecord | None:
            runs = {}
            if record:
                runs = {run: until for run, until in record.runs.items() if is_retained(run, until)}
            if record and runs:
                return record.with_fields(runs=runs)
            return None

        changed = [digest for digest, record in (await self.read()).items() if record and reduced(record) != record]
        await asyncio.to_thread(self._change, changed, lambda _, existing: reduced(existing))
        return frozenset(changed)

    def _read(self) -> dict[str, ArchiveRecord | None]:
        with _with_setting():
            exists = self.folder is None or self.folder.exists()
            records = self._open().first_lines() if exists else []
        named = [(digits, item.lines) for item in records if (digits := self._digits(item.name))]
        return {SCHEME + digits: _parsed(digits, lines) for digits, lines in named}

    def _open(self) -> Records:
        address, kind = self._location
        return Records(address, kind, self._keyring)

    def _names(self, digits: str) -> list[str]:
        """Return the names that the record of a text may have; the first is that of a new one."""
        return [f"{key_id}.{name}".removeprefix(".") for key_id, name in self._keyring.names(digits)]

    def _digits(self, name: str) -> str | None:
        """Return the SHA-256 digits of the text of a record; None for other files, and those of an unknown key."""
        key_id, _, hidden = name.rpartition(".")
        if key_id:
            return self._keyring.digits_of(key_id, hidden)
        return name if DIGITS.fullmatch(name) else None

    def _change(self, digests: Collection[str], change: Change) -> None:
        if not digests:
            return
        with _with_setting():
            records = self._open()
            with self._lock if self.folder is None else (self.folder / ".lock").open("w") as lock:
                if not isinstance(lock, bool):
                    fcntl.flock(lock, fcntl.LOCK_EX)
                for digest in digests:
                    digits = digest.removeprefix(SCHEME)
                    new_name, *_ = names = self._names(digits)
                    name, data = _read_record(records, names)
                    existing = _parsed(digits, data)
                    changed = change(digest, existing)
                    if changed is not None and changed != existing:
                        records.write(new_name, f"{changed.model_dump_json()}\n".encode())
                    if changed is None or (changed != existing and name != new_name):
                        records.remove(name)


def _read_record(records: Records, names: Sequence[str]) -> tuple[str, bytes]:
    """Return the name and the text of the record that has one of these names; empty for none and for a damaged one."""
    for name in names:
        data: bytes | None = b""
        with suppress(ContentCorrupt):
            data = records.read(name)
        if data is not None:
            return name, data
    return names[0], b""


def _merged(record: ArchiveRecord, existing: ArchiveRecord | None) -> ArchiveRecord:
    """Return the record with the runs of an earlier one, or the earlier one if these runs wrote it recently."""
    existing_runs = existing.runs if existing else {}
    if all(run in existing_runs and until - existing_runs[run] < DATE_PRECISION for run, until in record.runs.items()):
        return existing or record
    return record.with_fields(runs=existing_runs | record.runs)


def _parsed(name: str, data: bytes) -> ArchiveRecord | None:
    """Return the record in a file; None if it is damaged, or not that of the text in its name."""
    try:
        record = ArchiveRecord.model_validate_json(data)
    except ValidationError:
        return None
    if record.content_hash == record.content.hash == SCHEME + name:
        return record
    return None


@contextmanager
def _with_setting() -> Iterator[None]:
    """Name the setting in errors of a store or a file system, without any path: they appear in reports."""
    try:
        yield
    except KeyMissing:
        raise
    except (ProviderError, OSError) as error:
        remedy = "set tokens.research_archive_dir to another folder"
        if isinstance(error, StorageFull):
            raise StorageFull(f"the content archive has no room left: {remedy}") from error
        raise NotConfigured(f"the content archive cannot be read and written: {remedy}") from error
