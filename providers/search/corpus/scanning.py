"""The files of a folder, by looking only: nothing is opened here."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from providers.errors import SourceUnreadable
from providers.interfaces import NO_DOCUMENT, SkippedFile
from providers.reading.document_kinds import is_meant_as_document
from providers.reading.regular_files import check_state, unreadable
from providers.search.corpus.document_addresses import path_address
from providers.search.corpus.key_files import WHY, is_key_name, refuse_key_name

DEEPEST: Final = 64
SPHINX_INVENTORY: Final = "objects.inv"
SPHINX_SOURCES: Final = "_sources"


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that may be read."""

    path: str
    """Relative to the folder, as the file system has it."""
    address: str
    size: int
    mtime_ns: int


@dataclass
class Scan:
    """What a folder holds."""

    files: list[FoundFile] = field(default_factory=list)
    skipped: list[SkippedFile] = field(default_factory=list)


def scan_folder(root: Path, selects: Callable[[str], bool]) -> Scan:
    """All files of a folder in the order of their paths; what cannot be a document is skipped with its reason."""
    scan = Scan()
    _Walk(root.resolve(), selects, scan).folder("", 0)
    scan.files.sort(key=lambda file: file.address)
    scan.skipped.sort(key=lambda skipped: skipped.path)
    return scan


def skipped_file(address: str, error: SourceUnreadable) -> SkippedFile:
    """A file that is left out, and whether that is worth a word."""
    meant = is_meant_as_document(address, error.kind)
    return SkippedFile(address, error.kind if meant else NO_DOCUMENT, str(error))


class _Walk:
    def __init__(self, root: Path, selects: Callable[[str], bool], scan: Scan) -> None:
        self.root = root
        self.selects = selects
        self.scan = scan

    def folder(self, relative: str, depth: int) -> None:
        if depth > DEEPEST:
            self._skip(relative, SourceUnreadable("too_large", "folders are nested too deep"))
            return
        try:
            with os.scandir(self.root / relative) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            self._skip(relative or ".", unreadable(error))
            return
        made_by_sphinx = any(entry.name == SPHINX_INVENTORY for entry in entries)
        for entry in entries:
            path = f"{relative}/{entry.name}" if relative else entry.name
            if made_by_sphinx and entry.name == SPHINX_SOURCES:
                continue  # each page once more, as it was typed
            if not entry.name.startswith("."):
                self._entry(entry, path, depth)
            elif is_key_name(entry.name):  # what else is hidden need not be told
                self._skip(path, SourceUnreadable("secret", WHY))

    def _entry(self, entry: "os.DirEntry[str]", path: str, depth: int) -> None:
        try:
            if entry.is_dir(follow_symlinks=False):
                self.folder(path, depth + 1)
            elif self.selects(path):
                refuse_key_name(path)
                self._file(entry, path)
        except OSError as error:
            self._skip(path, unreadable(error))
        except SourceUnreadable as error:
            self._skip(path, error)

    def _file(self, entry: "os.DirEntry[str]", path: str) -> None:
        if entry.is_symlink():
            self._check_link(self.root / path)
        state = entry.stat()
        check_state(state)
        self.scan.files.append(FoundFile(path, path_address(path), state.st_size, state.st_mtime_ns))

    def _check_link(self, link: Path) -> None:
        try:
            target = link.resolve(strict=True)
        except RuntimeError as error:  # what pathlib raises for a loop before Python 3.13
            raise SourceUnreadable("symlink_loop", "a link that leads to itself") from error
        if not target.is_relative_to(self.root):
            raise SourceUnreadable("outside", "a link that leads out of the folder")
        refuse_key_name(target.relative_to(self.root).as_posix())
        if target.is_dir():
            loop = link.is_relative_to(target)
            kind = "symlink_loop" if loop else "not_a_file"
            raise SourceUnreadable(kind, "a link to a folder of this corpus, whose files stand in their own place")

    def _skip(self, path: str, error: SourceUnreadable) -> None:
        self.scan.skipped.append(skipped_file(path_address(path), error))
