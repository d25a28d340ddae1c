"""Definitions of named corpora, and addresses of their documents."""

import os
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import unquote_to_bytes

from pydantic import Field

from contracts.base import StrictContract
from contracts.names import CORPUS_SCHEME
from providers.errors import SourceUnreadable

NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
UNSAFE: Final = re.compile(rb"[\x00-\x20%#?\\<>\"\x7f]")
"""Bytes of a path that are escaped in addresses."""


class CorpusDefinition(StrictContract):
    """A named folder of documents."""

    name: str = Field(pattern=NAME)
    path: Path
    include: tuple[str, ...] = ()
    """Patterns of relative paths or file names (`*` matches any characters); empty: all files."""
    exclude: tuple[str, ...] = ()
    authority: str = Field(default="high", pattern="^(high|medium|low|unknown)$")
    """Authority of its documents, declared by the operator."""
    title: str = ""
    language: str = ""
    """Language of its documents; empty: detected when they are first indexed."""

    def selects(self, path: str) -> bool:
        """Return true for a relative path that belongs to the corpus; names with a dot in front never do."""
        parts = PurePosixPath(path).parts
        if any(part.startswith(".") for part in parts):
            return False
        if self.include and not _matches(path, self.include):
            return False
        return not _matches(path, self.exclude)


def _matches(path: str, patterns: Iterable[str]) -> bool:
    name = PurePosixPath(path).name
    return any(fnmatchcase(path, pattern) or fnmatchcase(name, pattern) for pattern in patterns)


def path_address(path: str) -> str:
    """A relative path in the form of addresses and of the index: valid Unicode, with unsafe characters escaped."""
    escaped = UNSAFE.sub(lambda found: b"%%%02X" % found.group()[0], os.fsencode(path))
    try:
        return escaped.decode("utf-8")
    except UnicodeDecodeError:
        return re.sub(rb"[\x80-\xff]", lambda found: b"%%%02X" % found.group()[0], escaped).decode("ascii")


def address_path(address: str) -> str:
    """Inverse of `path_address`. Raises `SourceUnreadable` outside for a path that leaves its folder."""
    path = os.fsdecode(unquote_to_bytes(address))
    parts = path.split("/")
    if not path or "\0" in path or path.startswith("/") or any(part in {"", ".", ".."} for part in parts):
        raise SourceUnreadable("outside", "the address leads out of the corpus")
    return path


def document_url(corpus: str, address: str) -> str:
    """The URL of a document."""
    return f"{CORPUS_SCHEME}{corpus}/{address}"


def split_url(url: str) -> tuple[str, str]:
    """Corpus name and path address of a URL. Raises `SourceUnreadable` not_found if it is no address of a document."""
    name, slash, address = url.removeprefix(CORPUS_SCHEME).partition("/")
    if not url.startswith(CORPUS_SCHEME) or not name or not slash or not address:
        raise SourceUnreadable("not_found", "no address of a document in a corpus")
    return name, address
