"""Documents of deleted runs that are still there: each run that left some has a note of their hashes."""

from collections.abc import Iterable
from typing import Final

from pydantic import TypeAdapter

from contracts.evidence import DocumentRef
from providers.errors import ContentCorrupt
from providers.storage.stored_records import Records

LEFT_BEHIND: Final = "left-behind"
NOTE: Final = TypeAdapter(list[DocumentRef])


def note_documents(notes: Records, research_id: str, documents: Iterable[DocumentRef]) -> None:
    """Write down what a run leaves behind, beside what an earlier run of its id did. Raises `ContentCorrupt`."""
    known = {each.hash: each for each in (*(_read(notes, research_id) or ()), *documents)}
    if known:
        notes.write(research_id, NOTE.dump_json(list(known.values())))


def read_noted_documents(notes: Records) -> dict[str, list[DocumentRef]]:
    """What each deleted run has left behind. Raises `ContentCorrupt` for a damaged note."""
    return {name: found for name in notes.names() if (found := _read(notes, name)) is not None}


def forget_documents(notes: Records, research_ids: Iterable[str]) -> None:
    """Remove the notes of these runs, whose documents are gone or used by others."""
    for research_id in research_ids:
        notes.remove(research_id)


def _read(notes: Records, research_id: str) -> list[DocumentRef] | None:
    data = notes.read(research_id)
    try:
        return None if data is None else NOTE.validate_json(data)
    except ValueError:
        raise ContentCorrupt(f"{LEFT_BEHIND}/{research_id}.json is damaged: remove it, then try again") from None
