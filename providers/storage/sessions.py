"""Records of runs: one JSON document per research id, in three lines.

A list needs only the first line, and the second one has the documents to which the run refers, so that both can be read
without the rest: `{"head": {…},`, `"documents": […],` and `"state": {…}}`.
"""

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, TypeVar

from contracts.texts import DOCUMENT_HASH, RESEARCH_ID
from providers.errors import ContentCorrupt, InvalidCall
from providers.interfaces import StoredSession
from providers.schemas import HEAD, SESSION, StoredSchema
from providers.storage.stored_records import SUFFIX, FirstLines, Records

T = TypeVar("T")

HASH = re.compile(DOCUMENT_HASH.pattern)
SAFE_ID = re.compile(RESEARCH_ID.pattern)
SESSIONS = "sessions"  # folder of these records in a home and in an object store
UNREADABLE = "unreadable"  # status, in a list, of a session that cannot be used


class RecordSessionStore:
    """Sessions as records. Methods raise `InvalidCall` for an id that is not a plain name, and as `Records` does."""

    def __init__(self, records: Records, schema: StoredSchema[dict[str, Any]] = SESSION) -> None:
        self._records = records
        self._schema = schema

    async def save(self, research_id: str, state_json: str, *, closed: bool) -> None:
        """Write a checkpoint, atomically. Raises `StorageFull`, ValueError if the state is not a JSON object."""
        _check(research_id)
        document = _document(research_id, state_json, closed=closed)
        await _in_thread(lambda: self._records.write(research_id, document))

    async def load(self, research_id: str, *, as_written: bool = False) -> str | None:
        """Return the newest checkpoint as JSON of `ResearchState`, or None.

        That of the version before comes in the form of today, unless it is asked for `as_written`, as it may be by a
        run that keeps to another version of the workflow code. Raises `ContentCorrupt`, `NewerSchema`.
        """
        _check(research_id)
        data = await _in_thread(lambda: self._records.read(research_id))
        if data is None:
            return None
        return _state(research_id, data, None if as_written else self._schema)

    async def list(self) -> list[StoredSession]:
        """Return all sessions, newest first; a damaged one has the status `unreadable`."""
        sessions = [_listed_session(lines) for lines in await _in_thread(self._records.first_lines)]
        return sorted(sessions, key=lambda session: session.saved_at, reverse=True)

    async def documents(self) -> dict[str, frozenset[str] | None]:
        """Return the document hashes of each session by id; None for a session that cannot be read."""
        records = await _in_thread(lambda: self._records.first_lines(2))
        return {record.name: _second_line(record.lines) for record in records}

    async def delete(self, research_id: str) -> None:
        """Remove a session; no error if it is gone."""
        _check(research_id)
        await _in_thread(lambda: self._records.remove(research_id))


async def _in_thread(work: Callable[[], T]) -> T:
    """Run to the end even if the caller is cancelled: the last save of a cancelled run must be complete."""
    return await asyncio.shield(asyncio.to_thread(work))


def _check(research_id: str) -> None:
    if not SAFE_ID.fullmatch(research_id):
        raise InvalidCall("a research id is a name of letters, digits, dots, underscores and hyphens")


def _document(research_id: str, state_json: str, *, closed: bool) -> bytes:
    state = json.loads(state_json)
    if not isinstance(state, dict):
        raise ValueError("a state is a JSON object")  # noqa: TRY004  as for any other text that is no state
    resolved = state.get("resolved") or {}
    follow_up = resolved.get("follow_up") or {}
    above = [*follow_up.get("thread", []), *filter(None, [follow_up.get("research_id")])]
    head = StoredSession(
        research_id=research_id,
        query=str(resolved.get("query", "")),
        status=str(state.get("status", "")),
        saved_at=datetime.now(UTC).isoformat(timespec="microseconds"),
        closed=closed,
        defects=len(state.get("defects", [])),
        thread=above,
        tenant=str(resolved.get("tenant", StoredSession.model_fields["tenant"].default)),
    )
    documents = json.dumps(sorted(documents_of(state)))
    return f'{{"head": {json.dumps(head.model_dump())},\n"documents": {documents},\n"state": {state_json}}}\n'.encode()


def documents_of(state: dict[str, Any]) -> frozenset[str]:
    """Return the hashes of a run's documents: its state and notebook, originals, and newest texts of a live report."""
    originals = [source.get("content_hash") for source in state.get("sources", {}).values()]
    hashes = [*state.get("notebook", []), *state.get("revisions", []), *originals, *_references(state)]
    return frozenset(value for value in hashes if value and HASH.fullmatch(value))


def _references(value: Any) -> Iterator[str]:
    """Yield the hashes of all document references in a part of a state."""
    if isinstance(value, dict):
        yield from [digest] if isinstance(digest := value.get("hash"), str) else []
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            if isinstance(item, (dict, list)):
                yield from _references(item)


def _second_line(lines: bytes) -> frozenset[str] | None:
    """Return the documents named by a session; None if it is damaged."""
    _, _, second = lines.partition(b"\n")
    try:
        return frozenset(json.loads(b"{" + second.rstrip().removesuffix(b",") + b"}")["documents"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _state(research_id: str, data: bytes, schema: StoredSchema[dict[str, Any]] | None) -> str:
    """Return the state of a stored document in the form of a schema; None: as it is. Raises as `StoredSchema`."""
    name = research_id + SUFFIX
    try:
        document = json.loads(data.decode("utf-8"))
        head = document["head"]
        head_version = head["schema_version"]
        if head_version == HEAD.number:
            StoredSession.model_validate(head)
        state = document["state"]
        version = state["schema_version"]
        is_own = head["research_id"] == research_id
    except (ValueError, KeyError, TypeError, RecursionError):
        is_own = False
    if not is_own:
        raise ContentCorrupt(f"the session file {name} is damaged")
    if schema is not None:
        HEAD.current(head, head_version, name)
        state = schema.current(state, version, name)
    return json.dumps(state, ensure_ascii=False)


def _listed_session(first: FirstLines) -> StoredSession:
    try:
        document = json.loads(first.lines.rstrip().removesuffix(b",") + b"}")
        return StoredSession.model_validate(document["head"])
    except (ValueError, KeyError, TypeError, RecursionError):
        written_at = first.written_at.isoformat(timespec="microseconds")
        return StoredSession(research_id=first.name, query="", status=UNREADABLE, saved_at=written_at, closed=True)
