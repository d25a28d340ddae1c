"""Paid answers on the disk of a worker: room that is reserved for them, and those that the store did not take."""

import asyncio
import errno
import hashlib
import json
import os
import re
import secrets
import stat
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from providers.encryption import Keyring
from providers.errors import ContentCorrupt, StorageFull
from providers.shared.shared_value import key_bytes

RESERVED_BYTES: Final = 16_000_000  # for the answers of 200 calls at once, the most that a worker makes
STEP_BYTES: Final = 16_384  # given up for an answer besides its size: blocks of the file and of its folder
FULL_ERRORS: Final = {errno.ENOSPC, errno.EDQUOT}
SPOOLED_SECONDS: Final = 86_400.0  # retention of an answer here: that of the mark by which late ones are refused
SPOOLED_NAME: Final = re.compile(r"[0-9a-f]{32}-[0-9a-f]{32}")  # names of files in the spool
MAX_HEAD_BYTES: Final = 8_192  # of the first line of a file: the id of a run and the key of a call
MAX_SPOOLED_BYTES: Final = 64_000_000  # of a file: the largest reply of a model, 8 MB, with each letter escaped
NO_WAITING: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # neither for a link nor for a pipe


class ReservedRoom:
    """Room on the disk of the spool: a file that is given up when an answer finds none.

    An answer is paid for before it is written. The workers of a machine share the file, which costs a call nothing:
    it is filled again only after it was given up.
    """

    def __init__(self, path: Path, size: int = RESERVED_BYTES) -> None:
        self._path = path
        self._size = size

    async def ensure(self) -> None:
        """Reserve the room unless it is reserved. Raises `StorageFull`: the call has to wait."""
        if self._reserved() < self._size:
            await asyncio.to_thread(self._fill)

    def give_up(self, size: int) -> bool:
        """Free about `size` bytes for an answer; the rest stays for others. Return false if there is no room left."""
        reserved = self._reserved()
        with suppress(OSError):
            os.truncate(self._path, max(0, reserved - size))
        return reserved > 0

    def _reserved(self) -> int:
        try:
            return self._path.stat().st_size
        except OSError:
            return 0  # not there yet

    def _fill(self) -> None:
        """Allocate the blocks of the file, or leave it as it was. Raises `StorageFull`."""
        reserved = self._reserved()
        descriptor = -1
        try:
            descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(descriptor, 0, self._size)
            else:  # macOS
                os.pwrite(descriptor, bytes(self._size - reserved), reserved)
        except OSError:
            with suppress(OSError):
                os.truncate(self._path, reserved)
            message = "no space is left to write the answers of paid calls: make room where RESEARCH_HOME is"
            raise StorageFull(message) from None
        finally:
            if descriptor >= 0:
                os.close(descriptor)


@dataclass(frozen=True)
class SpooledAnswer:
    """A paid answer that is in a file of this machine, because the store did not take it."""

    path: Path
    research_id: str
    answer_key: str
    answer: str


class AnswerSpool:
    """Paid answers that the store did not take: one file each in a folder that the workers of a machine share.

    A store refuses an answer while its own disk is full, and takes none while it is away. The file is written within
    milliseconds, in room that was reserved, so that neither a killed worker nor a unit that is done again pays for the
    answer again.
    """

    def __init__(self, folder: Path, room: ReservedRoom, keyring: Keyring | None = None) -> None:
        """`room` is on the disk of the folder; `keyring` encrypts the answers."""
        self._folder = folder
        self._room = room
        self._keyring = keyring or Keyring()

    async def reserve(self) -> None:
        """Reserve room for answers on the disk. Raises `StorageFull`: the call has to wait."""
        await self._room.ensure()

    async def put(self, research_id: str, answer_key: str, answer: str) -> None:
        """Write an answer to the disk. Raises `StorageFull` if it fails."""
        head = json.dumps({"research_id": research_id, "answer_key": answer_key})
        sealed = self._keyring.seal(answer.encode("utf-8", "surrogatepass"), answer_key)
        data = f"{head}\n".encode("utf-8", "surrogatepass") + sealed
        await asyncio.to_thread(self._write, self._path(research_id, answer_key), data)

    async def get(self, research_id: str, answer_key: str) -> str | None:
        """Return the answer to a call; None if it is not here."""
        path = self._path(research_id, answer_key)
        # Most calls find no folder: a look costs less than a thread.
        spooled = None
        if path.exists():
            spooled = await asyncio.to_thread(_read_spooled, path, self._keyring)
        if spooled is None:
            return None
        return spooled.answer

    async def answers(self) -> AsyncIterator[SpooledAnswer]:
        """Yield the answers, the oldest first, one at a time in memory, and remove those that are too old."""
        for path in await asyncio.to_thread(self._young_paths):
            spooled = await asyncio.to_thread(_read_spooled, path, self._keyring)
            if spooled is not None:
                yield spooled

    async def forget(self, research_id: str) -> int:
        """Remove the answers of a run; return their number."""
        return await asyncio.to_thread(self._forget, research_id)

    def waiting(self) -> int:
        """Return how many answers are here."""
        return len(self._paths())

    def _path(self, research_id: str, answer_key: str) -> Path:
        return self._folder / _spooled_name(research_id, answer_key)

    def _paths(self) -> list[Path]:
        """Return the files here, without links, folders and pipes."""
        try:
            with os.scandir(self._folder) as entries:
                names = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
        except OSError:
            return []  # no answer was ever refused
        return [self._folder / name for name in names if SPOOLED_NAME.fullmatch(name)]

    def _write(self, path: Path, data: bytes) -> None:
        while True:
            try:
                return _write_durably(path, data)
            except OSError as error:
                if error.errno not in FULL_ERRORS or not self._room.give_up(len(data) + STEP_BYTES):
                    message = f"a paid answer cannot be written to {self._folder.name} in RESEARCH_HOME"
                    raise StorageFull(f"{message}: {error.strerror}") from None

    def _young_paths(self) -> list[Path]:
        """Return the files, the oldest first, and remove those that are too old."""
        found = list[tuple[float, Path]]()
        for path in self._paths():
            with suppress(OSError):  # another worker delivered it
                written = path.stat().st_mtime
                if time.time() - written > SPOOLED_SECONDS:
                    path.unlink()
                else:
                    found.append((written, path))
        return [path for _, path in sorted(found)]

    def _forget(self, research_id: str) -> int:
        paths = [path for path in self._paths() if path.name.startswith(f"{_short_hash(research_id)}-")]
        for path in paths:
            path.unlink(missing_ok=True)
        return len(paths)


def _spooled_name(research_id: str, answer_key: str) -> str:
    return f"{_short_hash(research_id)}-{_short_hash(answer_key)}"


def _short_hash(text: str) -> str:
    return hashlib.sha256(key_bytes(text)).hexdigest()[:32]


def _write_durably(path: Path, data: bytes) -> None:
    """Write a file wholly and to the disk, or not at all. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _read_spooled(path: Path, keyring: Keyring) -> SpooledAnswer | None:
    """Read a file of the spool; None if it is gone or is none of ours, of which at most its first line is read.

    Raises `KeyMissing`.
    """
    try:
        with open(path, "rb", opener=lambda name, _: os.open(name, NO_WAITING)) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_SPOOLED_BYTES:
                return None
            fields = json.loads(file.readline(MAX_HEAD_BYTES).decode("utf-8", "surrogatepass"))
            research_id = str(fields["research_id"])
            answer_key = str(fields["answer_key"])
            if path.name != _spooled_name(research_id, answer_key):
                return None
            answer = keyring.open(file.read(status.st_size), answer_key).decode("utf-8", "surrogatepass")
        return SpooledAnswer(path, research_id, answer_key, answer)
    except (OSError, ValueError, TypeError, KeyError, RecursionError, ContentCorrupt):
        return None
