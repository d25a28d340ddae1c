"""Records of content that models were not shown: files or objects named by the digits of the text's SHA-256."""

import asyncio
import fcntl
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from contracts.addresses import short_hash
from contracts.tokens import ArchiveRecord
from providers.errors import NotConfigured, ProviderError, StorageFull
from providers.storage.content import SCHEME, is_on_this_host
from providers.storage.stored_records import Records

FOLDER: Final = "archive"
"""Of the records in a home and in an object store."""
DIGITS: Final = re.compile("[0-9a-f]{64}")
DATED_EVERY: Final = timedelta(hours=1)
"""Precision of the time at which a run archived a text: a repeated call changes nothing."""
OF_OTHER_HOMES: Final = timedelta(days=7)
"""Time in which another home removes its expired records itself, and the texts with them."""

Change = Callable[[list[ArchiveRecord]], list[ArchiveRecord]]


class RecordArchive:
    """`ContentArchive` over a folder, or over the object store that hosts share; its writers exclude each other."""

    def __init__(self, content_url: str | None, home: Path, folder: Path | None = None) -> None:
        """Without a `folder` the records are in the home, or at `content_url` if hosts share that."""
        shared = content_url is not None and not is_on_this_host(content_url)
        self.store = "" if folder is None else short_hash(content_url or str(home.absolute()))
        self.folder = folder or (None if shared else home / FOLDER)
        self._lock = threading.Lock()
        self._place = (str(content_url), FOLDER) if self.folder is None else (self.folder, "")

    async def put(self, records: Sequence[ArchiveRecord]) -> None:
        """Write records, each whole or not at all, beside those of other runs."""
        own = [record.model_copy(update={"store": self.store}) for record in records]
        await asyncio.to_thread(self._change, {record.content_hash: partial(_with, record) for record in own})

    async def read(self) -> dict[str, ArchiveRecord | None]:
        """Return all records by hash; None for a damaged one."""
        return await asyncio.to_thread(self._read)

    async def pinned(self, now: datetime) -> frozenset[str]:
        """Return the hashes of the texts of this home that stay. The name of a damaged record is that of its text."""
        return frozenset(
            digest
            for digest, record in (await self.read()).items()
            if record is None or any(one.store == self.store and one.expires_at > now for one in record.entries())
        )

    async def forget(self, research_id: str) -> frozenset[str]:
        """Remove the records of a run of this home; return their hashes."""
        return await self._reduce(lambda record: _owner(record) != (self.store, research_id))

    async def expire(self, now: datetime) -> frozenset[str]:
        """Remove the records whose time is over; return their hashes."""
        late = now - OF_OTHER_HOMES
        return await self._reduce(lambda record: record.expires_at > (now if record.store == self.store else late))

    async def _reduce(self, stays: Callable[[ArchiveRecord], bool]) -> frozenset[str]:
        found = (await self.read()).items()
        fewer = [digest for digest, record in found if record and not all(map(stays, record.entries()))]
        await asyncio.to_thread(self._change, dict.fromkeys(fewer, lambda entries: list(filter(stays, entries))))
        return frozenset(fewer)

    def _read(self) -> dict[str, ArchiveRecord | None]:
        with _with_setting():
            exists = self.folder is None or self.folder.exists()
            found = Records(*self._place).first_lines() if exists else []
        return {SCHEME + each.name: _parsed(each.name, each.lines) for each in found if DIGITS.fullmatch(each.name)}

    def _change(self, changes: Mapping[str, Change]) -> None:
        if not changes:
            return
        with _with_setting():
            records = Records(*self._place)
            with self._lock if self.folder is None else (self.folder / ".lock").open("w") as lock:
                if not isinstance(lock, bool):
                    fcntl.flock(lock, fcntl.LOCK_EX)
                for digest, change in changes.items():
                    name = digest.removeprefix(SCHEME)
                    present = _parsed(name, records.read(name) or b"")
                    before = present.entries() if present else []
                    after = change(before)
                    if not after:
                        records.remove(name)
                    elif after != before:
                        whole = after[0].model_copy(update={"others": after[1:]})
                        records.write(name, f"{whole.model_dump_json()}\n".encode())


def _with(record: ArchiveRecord, before: list[ArchiveRecord]) -> list[ArchiveRecord]:
    """The records of all runs with this one in place of the earlier one of its run, and without expired ones."""
    others = [entry for entry in before if _owner(entry) != _owner(record)]
    if any(entry.archived_at > record.archived_at - DATED_EVERY for entry in before if entry not in others):
        return before
    return [record, *(entry for entry in others if entry.expires_at > record.archived_at)]


def _owner(record: ArchiveRecord) -> tuple[str, str | None]:
    return record.store, record.metadata.get("research_id")


def _parsed(name: str, data: bytes) -> ArchiveRecord | None:
    """The record of a file; None for one that is damaged, or of another text than its name says."""
    try:
        record = ArchiveRecord.model_validate_json(data)
    except ValidationError:
        return None
    return record if record.content_hash == record.content.hash == SCHEME + name else None


@contextmanager
def _with_setting() -> Iterator[None]:
    """Name the setting in the errors of a store or a file system. They contain no path: they are in reports."""
    try:
        yield
    except (ProviderError, OSError) as error:
        full = isinstance(error, StorageFull)
        kind, reason = (StorageFull, "has no room left") if full else (NotConfigured, "cannot be read and written")
        raise kind(f"the content archive {reason}: set tokens.research_archive_dir to another folder") from error
