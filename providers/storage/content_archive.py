"""Records of content that models were not shown: files or objects named by the SHA-256 digits of the text."""

import asyncio
import fcntl
import re
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from contracts.addresses import short_hash
from contracts.tokens import ArchiveRecord
from providers.errors import NotConfigured, ProviderError, StorageFull
from providers.storage.content import SCHEME, is_on_this_host
from providers.storage.stored_records import Records

FOLDER: Final = "archive"  # of the records in a home and in an object store
DIGITS: Final = re.compile("[0-9a-f]{64}")
DATED_EVERY: Final = timedelta(hours=1)  # precision of the time at which a run archived a text
OF_OTHER_HOMES: Final = timedelta(days=7)
"""Time allowed for another home to remove its expired records itself, and the texts with them."""

Change = Callable[[str, ArchiveRecord | None], ArchiveRecord | None]  # from hash and record to the new record


class RecordArchive:
    """`ContentArchive` over a folder, or over an object store shared by hosts; its writers exclude each other."""

    def __init__(self, content_url: str | None, home: Path, folder: Path | None = None) -> None:
        """Use `folder` for the records, else the home, or `content_url` if hosts share it."""
        shared = content_url is not None and not is_on_this_host(content_url)
        self._own = "" if folder is None else f"{short_hash(content_url or str(home.absolute()))}/"
        self.folder = folder or (None if shared else home / FOLDER)
        self._lock = threading.Lock()
        self._place = (str(content_url), FOLDER) if self.folder is None else (self.folder, "")

    async def put(self, records: Sequence[ArchiveRecord]) -> None:
        """Write records, each completely or not at all, merged with those of other runs."""
        given = {}
        for record in records:
            runs = {self._own + run: until for run, until in record.runs.items()}
            given[record.content_hash] = record.model_copy(update={"runs": runs})
        await asyncio.to_thread(self._change, given, lambda digest, before: _joined(given[digest], before))

    async def read(self) -> dict[str, ArchiveRecord | None]:
        """Return all records by hash; None for a damaged one."""
        return await asyncio.to_thread(self._read)

    async def pinned(self, now: datetime) -> frozenset[str]:
        """Return the hashes of this home's texts that must stay, including those of damaged records."""
        found = (await self.read()).items()
        return frozenset(digest for digest, record in found if record is None or self.is_own(record, now))

    def is_own(self, record: ArchiveRecord, now: datetime | None = None) -> bool:
        """Return whether runs of this home archived the text, one of them at least until later than `now`."""
        return any(run.startswith(self._own) and (now is None or until > now) for run, until in record.runs.items())

    async def forget(self, research_id: str) -> frozenset[str]:
        """Remove a run of this home from the records; return the hashes of the changed records."""
        return await self._reduce(lambda run, _: run != self._own + research_id)

    async def expire(self, now: datetime) -> frozenset[str]:
        """Remove expired runs from the records; return the hashes of the changed records."""
        late = now - OF_OTHER_HOMES
        return await self._reduce(lambda run, until: until > (now if run.startswith(self._own) else late))

    async def _reduce(self, stays: Callable[[str, datetime], bool]) -> frozenset[str]:
        def reduced(record: ArchiveRecord | None) -> ArchiveRecord | None:
            runs = {run: until for run, until in record.runs.items() if stays(run, until)} if record else {}
            return record.model_copy(update={"runs": runs}) if record and runs else None

        fewer = [digest for digest, record in (await self.read()).items() if record and reduced(record) != record]
        await asyncio.to_thread(self._change, fewer, lambda _, before: reduced(before))
        return frozenset(fewer)

    def _read(self) -> dict[str, ArchiveRecord | None]:
        with _with_setting():
            exists = self.folder is None or self.folder.exists()
            found = Records(*self._place).first_lines() if exists else []
        return {SCHEME + each.name: _parsed(each.name, each.lines) for each in found if DIGITS.fullmatch(each.name)}

    def _change(self, digests: Collection[str], change: Change) -> None:
        if not digests:
            return
        with _with_setting():
            records = Records(*self._place)
            with self._lock if self.folder is None else (self.folder / ".lock").open("w") as lock:
                if not isinstance(lock, bool):
                    fcntl.flock(lock, fcntl.LOCK_EX)
                for digest in digests:
                    name = digest.removeprefix(SCHEME)
                    before = _parsed(name, records.read(name) or b"")
                    after = change(digest, before)
                    if after is None:
                        records.remove(name)
                    elif after != before:
                        records.write(name, f"{after.model_dump_json()}\n".encode())


def _joined(record: ArchiveRecord, before: ArchiveRecord | None) -> ArchiveRecord:
    """Return the record with the runs of an earlier one, or the earlier one if these runs wrote it recently."""
    known = before.runs if before else {}
    if all(run in known and until - known[run] < DATED_EVERY for run, until in record.runs.items()):
        return before or record
    return record.model_copy(update={"runs": known | record.runs})


def _parsed(name: str, data: bytes) -> ArchiveRecord | None:
    """Return the record in a file; None if it is damaged, or not that of the text in its name."""
    try:
        record = ArchiveRecord.model_validate_json(data)
    except ValidationError:
        return None
    return record if record.content_hash == record.content.hash == SCHEME + name else None


@contextmanager
def _with_setting() -> Iterator[None]:
    """Name the setting in errors of a store or a file system, without any path: they appear in reports."""
    try:
        yield
    except (ProviderError, OSError) as error:
        full = isinstance(error, StorageFull)
        kind, reason = (StorageFull, "has no room left") if full else (NotConfigured, "cannot be read and written")
        raise kind(f"the content archive {reason}: set tokens.research_archive_dir to another folder") from error
