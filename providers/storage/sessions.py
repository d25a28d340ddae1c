"""The record of runs: one JSON file per research id, replaced at one stroke.

The first line of a file holds what a list shows and is cut so that it can be read by itself; the whole is one JSON
document: `{"head": {…},` and `"state": {…}}` on the second line.
"""

import asyncio
import contextlib
import errno
import json
import os
import re
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from contracts.state import SCHEMA_VERSION
from providers.errors import ContentCorrupt, InvalidCall, NotConfigured, ProviderError, StorageFull
from providers.interfaces import StoredSession

T = TypeVar("T")

FORMAT_VERSION = 1
SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
UNREADABLE = "unreadable"
"""Status in a list of a file that cannot be used."""
NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class SessionUnreadable(ContentCorrupt):
    """A stored session that is damaged, or of a version that this one cannot read."""


class FileSessionStore:
    """Sessions in a folder.

    Every method raises `InvalidCall` for an id that is no plain name, `NotConfigured` if the folder cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def save(self, research_id: str, state_json: str, *, closed: bool) -> None:
        """Write a checkpoint, atomically. Raises `StorageFull`, ValueError if the state is no JSON object."""
        path = self._path(research_id)
        await self._in_thread(lambda: self._save(path, research_id, state_json, closed=closed))

    async def load(self, research_id: str) -> str | None:
        """The newest checkpoint as JSON of `ResearchState`, or null. Raises `SessionUnreadable`."""
        path = self._path(research_id)
        return await self._in_thread(lambda: self._load(path, research_id))

    async def list(self) -> list[StoredSession]:
        """All sessions, newest first; a damaged one is listed with the status `unreadable`."""
        return await self._in_thread(lambda: _all_sessions(self.folder))

    async def delete(self, research_id: str) -> None:
        """Remove a session; no error if it is gone."""
        path = self._path(research_id)
        await self._in_thread(lambda: self._delete(path))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Run to the end even if the caller is cancelled: a cancelled run's last save must not be torn off."""
        return await asyncio.shield(asyncio.to_thread(self._translated, work))

    def _translated(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except OSError as error:
            raise self._problem(error) from None

    def _problem(self, error: OSError) -> ProviderError:
        if error.errno in NO_SPACE:
            return StorageFull("no space is left for sessions: make room where RESEARCH_HOME is")
        return NotConfigured(f"the session folder {self.folder.name} cannot be used: {error.strerror}")

    def _path(self, research_id: str) -> Path:
        if not SAFE_ID.fullmatch(research_id):
            raise InvalidCall("a research id is a name of letters, digits, dots, underscores and hyphens")
        return self.folder / f"{research_id}.json"

    def _save(self, path: Path, research_id: str, state_json: str, *, closed: bool) -> None:
        head = {
            "schema_version": FORMAT_VERSION,
            "research_id": research_id,
            "saved_at": datetime.now(UTC).isoformat(timespec="microseconds"),
            "closed": closed,
            **_shown(json.loads(state_json)),
        }
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=self.folder, prefix=f".{research_id}.", suffix=".tmp")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(f'{{"head": {json.dumps(head)},\n"state": {state_json}}}\n')
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
            raise
        self._make_durable()

    def _make_durable(self) -> None:
        """A rename survives a power cut only once its folder is written."""
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _load(self, path: Path, research_id: str) -> str | None:
        try:
            text = path.read_text(encoding="utf-8")
            document = json.loads(text)
            state = document["state"]
            head = _head(document["head"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError):
            raise SessionUnreadable(f"the session file {path.name} is damaged") from None
        if head["research_id"] != research_id or not isinstance(state, dict):
            raise SessionUnreadable(f"the session file {path.name} is damaged")
        versions = (head["schema_version"], state.get("schema_version"))
        if versions != (FORMAT_VERSION, SCHEMA_VERSION):
            raise SessionUnreadable(
                f"the session file {path.name} is of version {versions}, which this one cannot read"
            )
        return json.dumps(state, ensure_ascii=False)

    def _delete(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        for leftover in self.folder.glob(f".{path.stem}.*.tmp"):
            leftover.unlink(missing_ok=True)


def _all_sessions(folder: Path) -> list[StoredSession]:
    """What a folder holds, newest first."""
    found = [session for path in folder.glob("[!.]*.json") if (session := _listed(path)) is not None]
    return sorted(found, key=lambda session: session.saved_at, reverse=True)


def _listed(path: Path) -> StoredSession | None:
    """One entry of the list from a file's first line; null if the file has just gone."""
    try:
        modified = datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="microseconds")
        with path.open(encoding="utf-8") as file:
            head = _head(json.loads(file.readline().rstrip().removesuffix(",") + "}")["head"])
        return StoredSession(head["research_id"], head["query"], head["status"], head["saved_at"], head["closed"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        return StoredSession(path.stem, "", UNREADABLE, modified, closed=True)


def _head(head: Any) -> dict[str, Any]:
    """The head with the types checked. Raises KeyError, TypeError."""
    for name, kind in (("research_id", str), ("query", str), ("status", str), ("saved_at", str), ("closed", bool)):
        if not isinstance(head[name], kind):
            raise TypeError(name)
    return {"schema_version": None, **head}


def _shown(state: Any) -> dict[str, str]:
    """What a list shows of a state. Raises ValueError."""
    if not isinstance(state, dict):
        raise ValueError("a state is a JSON object")  # noqa: TRY004  as for any other text that is no state
    resolved = state.get("resolved") or {}
    return {"query": str(resolved.get("query", "")), "status": str(state.get("status", ""))}
