"""The record of runs: one JSON document per research id.

Its first line holds what a list shows, the second one which documents the run refers to; both are cut so that they can
be read by themselves. The whole is one JSON document: `{"head": {…},`, `"documents": […],` and `"state": {…}}`.
"""

import asyncio
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

from contracts.state import READABLE_VERSIONS
from contracts.texts import DOCUMENT_HASH
from providers.errors import ContentCorrupt, InvalidCall
from providers.interfaces import StoredSession
from providers.storage.stored_records import ENDING, FirstLines, Records

T = TypeVar("T")

FORMAT_VERSION = 1
SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
HASH = re.compile(DOCUMENT_HASH.pattern)
DOCUMENTS = b'"documents": '
SESSIONS = "sessions"
"""What these records are called in a home and in an object store."""
UNREADABLE = "unreadable"
"""Status in a list of a session that cannot be used."""


class SessionUnreadable(ContentCorrupt):
    """A stored session that is damaged, or of a version that this one cannot read."""


class RecordSessionStore:
    """Sessions as records.

    Every method raises `InvalidCall` for an id that is no plain name, and what its records raise.
    """

    def __init__(self, records: Records) -> None:
        self._records = records

    async def save(self, research_id: str, state_json: str, *, closed: bool) -> None:
        """Write a checkpoint, atomically. Raises `StorageFull`, ValueError if the state is no JSON object."""
        _check(research_id)
        document = _document(research_id, state_json, closed=closed)
        await _in_thread(lambda: self._records.write(research_id, document))

    async def load(self, research_id: str) -> str | None:
        """The newest checkpoint as JSON of `ResearchState`, or None. Raises `SessionUnreadable`."""
        _check(research_id)
        return await _in_thread(lambda: _state(research_id, self._records.read(research_id)))

    async def list(self) -> list[StoredSession]:
        """All sessions, newest first; a damaged one is listed with the status `unreadable`."""
        found = [_list_one(line) for line in await _in_thread(self._records.first_lines)]
        return sorted(found, key=lambda session: session.saved_at, reverse=True)

    async def documents(self) -> dict[str, frozenset[str] | None]:
        """By id, the hashes of all documents that each session refers to; None where a session cannot be read."""
        return await _in_thread(self._documents)

    async def delete(self, research_id: str) -> None:
        """Remove a session; no error if it is gone."""
        _check(research_id)
        await _in_thread(lambda: self._records.remove(research_id))

    def _documents(self) -> dict[str, frozenset[str] | None]:
        return {begin.name: _named(begin.lines) or self._referred(begin.name) for begin in self._records.first_lines(2)}

    def _referred(self, research_id: str) -> frozenset[str] | None:
        """The same from the whole record: it was written before there was such a line, or is damaged."""
        try:
            state = _state(research_id, self._records.read(research_id))
        except SessionUnreadable:
            return None
        return documents_of(json.loads(state or "{}"))


async def _in_thread(work: Callable[[], T]) -> T:
    """Run to the end even if the caller is cancelled: a cancelled run's last save must not be torn off."""
    return await asyncio.shield(asyncio.to_thread(work))


def _check(research_id: str) -> None:
    if not SAFE_ID.fullmatch(research_id):
        raise InvalidCall("a research id is a name of letters, digits, dots, underscores and hyphens")


def _document(research_id: str, state_json: str, *, closed: bool) -> bytes:
    state = json.loads(state_json)
    head = {
        "schema_version": FORMAT_VERSION,
        "research_id": research_id,
        "saved_at": datetime.now(UTC).isoformat(timespec="microseconds"),
        "closed": closed,
        **_show(state),
    }
    documents = json.dumps(sorted(documents_of(state)))
    return f'{{"head": {json.dumps(head)},\n"documents": {documents},\n"state": {state_json}}}\n'.encode()


def documents_of(state: dict[str, Any]) -> frozenset[str]:
    """The hashes of all documents of a run: those that its state refers to, the entries of its notebook, the originals.

    Originals are named by entries alone; the state knows their hashes.
    """
    originals = [source.get("content_hash") for source in state.get("sources", {}).values()]
    named = [each for each in [*state.get("notebook", []), *originals] if each and HASH.fullmatch(each)]
    return frozenset({*named, *_hashes(state)})


def _hashes(value: Any) -> set[str]:
    """The hashes of all documents that a state refers to, wherever in it."""
    if isinstance(value, list):
        return set().union(*map(_hashes, value))
    if not isinstance(value, dict):
        return set()
    digest = value.get("hash")
    if isinstance(digest, str) and HASH.fullmatch(digest):
        return {digest}
    return set().union(*map(_hashes, value.values()))


def _named(lines: bytes) -> frozenset[str] | None:
    """The documents that a record's second line names; None for a record that has no such line."""
    _, _, second = lines.partition(b"\n")
    if not second.startswith(DOCUMENTS):
        return None
    try:
        return frozenset(json.loads(second.removeprefix(DOCUMENTS).decode().rstrip().removesuffix(",")))
    except (ValueError, TypeError):
        return None


def _state(research_id: str, data: bytes | None) -> str | None:
    """The state of a stored document. Raises `SessionUnreadable`."""
    if data is None:
        return None
    name = research_id + ENDING
    try:
        document = json.loads(data.decode("utf-8"))
        state = document["state"]
        head = _head(document["head"])
    except (ValueError, KeyError, TypeError):
        raise SessionUnreadable(f"the session file {name} is damaged") from None
    if head["research_id"] != research_id or not isinstance(state, dict):
        raise SessionUnreadable(f"the session file {name} is damaged")
    versions = (head["schema_version"], state.get("schema_version"))
    if versions[0] != FORMAT_VERSION or versions[1] not in READABLE_VERSIONS:
        raise SessionUnreadable(f"the session file {name} is of version {versions}, which this one cannot read")
    return json.dumps(state, ensure_ascii=False)


def _list_one(first: FirstLines) -> StoredSession:
    """One entry of the list from a document's first line."""
    try:
        head = _head(json.loads(first.lines.decode("utf-8").rstrip().removesuffix(",") + "}")["head"])
        return StoredSession(
            head["research_id"],
            head["query"],
            head["status"],
            head["saved_at"],
            head["closed"],
            str(head.get("corpus_digest", "")),
        )
    except (ValueError, KeyError, TypeError):
        written_at = first.written_at.isoformat(timespec="microseconds")
        return StoredSession(first.name, "", UNREADABLE, written_at, closed=True)


def _head(head: Any) -> dict[str, Any]:
    """The head with the types checked. Raises KeyError, TypeError."""
    for name, kind in (("research_id", str), ("query", str), ("status", str), ("saved_at", str), ("closed", bool)):
        if not isinstance(head[name], kind):
            raise TypeError(name)
    return {"schema_version": None, **head}


def _show(state: Any) -> dict[str, str]:
    """What a list shows of a state. Raises ValueError."""
    if not isinstance(state, dict):
        raise ValueError("a state is a JSON object")  # noqa: TRY004  as for any other text that is no state
    resolved = state.get("resolved") or {}
    corpus = resolved.get("corpus") or {}
    return {
        "query": str(resolved.get("query", "")),
        "status": str(state.get("status", "")),
        "corpus_digest": str(corpus.get("digest", "")),
    }
