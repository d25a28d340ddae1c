"""Documents of deleted runs that are still there: each run that left some has a note of their hashes."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from client.cli.failures import CommandError
from client.cli.report_files import write_atomically
from contracts.documents import DocumentRef

NOTE: Final = TypeAdapter(list[DocumentRef])
ENDING: Final = ".json"


def note(home: Path, research_id: str, documents: Iterable[DocumentRef]) -> None:
    """Write down what a run leaves behind, beside what an earlier run of its id did. Raises `CommandError`, OSError."""
    path = _folder(home) / f"{research_id}{ENDING}"
    known = {each.hash: each for each in (*(_read(path) if path.exists() else ()), *documents)}
    if known:
        write_atomically(path, NOTE.dump_json(list(known.values())))


def noted(home: Path) -> dict[str, list[DocumentRef]]:
    """What each deleted run has left behind. Raises `CommandError` for a damaged note."""
    folder = _folder(home)
    paths = sorted(folder.glob(f"[!.]*{ENDING}")) if folder.is_dir() else []
    return {path.name.removesuffix(ENDING): _read(path) for path in paths}


def forget(home: Path, research_ids: Iterable[str]) -> None:
    """Remove the notes of these runs, whose documents are gone or used by others."""
    for research_id in research_ids:
        (_folder(home) / f"{research_id}{ENDING}").unlink(missing_ok=True)


def _folder(home: Path) -> Path:
    return home / "left-behind"


def _read(path: Path) -> list[DocumentRef]:
    try:
        return NOTE.validate_json(path.read_bytes())
    except ValueError:
        raise CommandError(f"{path} is damaged: remove it, then try again") from None
