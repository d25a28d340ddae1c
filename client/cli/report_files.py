"""Where a report is written, and how: whole files only, never half ones."""

import os
import re
import tempfile
from collections.abc import Mapping
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path
from typing import Final

from contracts.addresses import normalize
from workers.private_files import PRIVATE, files_of_person

SLUG_CHARACTERS: Final = 48
REPORT_FOLDERS: Final = "report-folders"
FORMATS: Final = {"html": "report.html", "md": "report.md", "json": "report.json"}


def slug(question: str) -> str:
    """The question as the end of a folder name: ASCII letters, digits and hyphens, cut at a word."""
    plain = normalize("NFKD", question).encode("ascii", "ignore").decode().lower()
    whole = "-".join(re.findall(r"[a-z0-9]+", plain))
    if len(whole) <= SLUG_CHARACTERS:
        return whole or "report"
    return whole[: SLUG_CHARACTERS + 1].rpartition("-")[0] or whole[:SLUG_CHARACTERS]


def default_folder(question: str, research_id: str, today: datetime, base: Path) -> Path:
    """`reports/DATE-SLUG`; with the id's end behind it when another run's report is there already."""
    folder = base / "reports" / f"{today:%Y-%m-%d}-{slug(question)}"
    if not folder.exists() or owner_of(folder) in (None, research_id):
        return folder
    return folder.with_name(f"{folder.name}-{research_id.rpartition('-')[2]}")


def owner_of(folder: Path) -> str | None:
    """The id of the run whose report lies in a folder; None when there is none."""
    try:
        text = (folder / FORMATS["json"]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    found = re.search(r'"research_id":\s*"([^"]+)"', text)
    return found.group(1) if found else None


def write_atomically(path: Path, data: bytes, *, umask: int = PRIVATE) -> None:
    """Write a whole file or nothing; a missing folder is made. Raises OSError."""
    with files_of_person() if umask != PRIVATE else nullcontext():
        path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o666 & ~umask)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_all(folder: Path, documents: Mapping[str, bytes], *, umask: int = PRIVATE) -> dict[str, Path]:
    """Write each form (`md`, `html`, `json`) of a report into a folder; the paths by form. Raises OSError."""
    paths = {form: folder / FORMATS[form] for form in documents}
    for form, data in documents.items():
        write_atomically(paths[form], data, umask=umask)
    return paths


def remember_folder(home: Path, research_id: str, folder: Path) -> None:
    """Keep where the report of a run is to go, for the command that sees the run end. Raises OSError."""
    write_atomically(_note(home, research_id), str(folder.absolute()).encode())


def remembered_folder(home: Path, research_id: str) -> Path | None:
    """Where the report of a run is to go, if that was said when it was started."""
    try:
        return Path(_note(home, research_id).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return None


def _note(home: Path, research_id: str) -> Path:
    return home / REPORT_FOLDERS / research_id
