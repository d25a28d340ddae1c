"""Addresses of documents in a corpus: `corpus:NAME/relative/path`."""

import os
import re
from typing import Final
from urllib.parse import unquote_to_bytes

from contracts.names import CORPUS_SCHEME
from providers.errors import SourceUnreadable

UNSAFE: Final = re.compile(rb"[\x00-\x20%#?\\<>\"\x7f]")


def path_address(path: str) -> str:
    """A relative path as it stands in addresses and in the index: valid Unicode, with unsafe characters escaped."""
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
