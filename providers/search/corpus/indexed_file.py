"""Reading one file for the index, in a child process: the writer only inserts the result."""

import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from contracts.addresses import digest
from contracts.base import Contract
from providers.reading.canonical_text import DocumentFacts, Extraction
from providers.search.corpus.folders import read_regular_file, refuse_key
from providers.text import detect_language, word_keys, words

TASK: Final = "providers.search.corpus.indexed_file:read_for_index"
LANGUAGE_SAMPLE: Final = 20_000  # characters of a file whose language is detected
CHUNK_CHARACTERS: Final = 700
"""Neighbouring blocks of a section up to this length are ranked together; shorter and longer ones found less."""
PATH_SEPARATOR: Final = " › "


class IndexedDocument(Contract):
    """A document of the index without its text; start, end and heading path of its sections, which cover the text."""

    raw_hash: str
    text_hash: str
    key_language: str
    facts: DocumentFacts
    sections: list[tuple[int, int, str]]


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """Everything that the index stores of a file."""

    document: IndexedDocument
    packed_text: bytes
    chunks: list[tuple[int, int, int, str]]
    """Number of the section, start, end, and keys: what is ranked."""


def read_for_index(root: str, path: str, language: str) -> IndexedFile:
    """Read, extract and cut a file below a root; without a language, in its own. Raises `SourceUnreadable`."""
    from providers.reading.documents import extract  # noqa: PLC0415  its libraries are loaded in children alone

    raw = read_regular_file(Path(root) / path, Path(root))
    refuse_key(raw)
    document = extract(raw, PurePosixPath(path).name)
    refuse_key(document.text)  # in another encoding
    language = language or detect_language(document.text[:LANGUAGE_SAMPLE])
    sections = sections_of(document)
    chunks = []
    for number, start, stop in chunks_of(document, sections):
        text = f"{document.text[start:stop]}\n{sections[number][2]}\n{document.title}"
        keys = " ".join(key for word in words(text) for key in word_keys(word, language))
        chunks.append((number, start, stop, keys))
    encoded = document.text.encode("utf-8")
    indexed = IndexedDocument(
        raw_hash=digest(raw),
        text_hash=digest(encoded),
        key_language=language,
        facts=DocumentFacts(**document.facts()),
        sections=sections,
    )
    return IndexedFile(indexed, zlib.compress(encoded, 6), chunks)


def sections_of(document: Extraction) -> list[tuple[int, int, str]]:
    """Start, end and heading path of the sections of a document."""
    sections: list[tuple[int, int, str]] = []
    path: list[tuple[int, str]] = []
    start = 0
    for block in document.blocks:
        if block.level:
            begin = block.start - block.level - 1  # its signs and a space
            if begin > start:
                sections.append((start, begin, PATH_SEPARATOR.join(title for _, title in path)))
            path = [entry for entry in path if entry[0] < block.level]
            path.append((block.level, document.text[block.start : block.end]))
            start = begin
    return [*sections, (start, len(document.text), PATH_SEPARATOR.join(title for _, title in path))]


def chunks_of(document: Extraction, sections: list[tuple[int, int, str]]) -> list[tuple[int, int, int]]:
    """Section number, start and end of groups of neighbouring blocks; a long block is one by itself."""
    chunks: list[tuple[int, int, int]] = []
    number = 0
    for block in document.blocks:
        while block.start >= sections[number][1]:
            number += 1
        if block.level:
            continue
        if chunks and chunks[-1][0] == number and block.end - chunks[-1][1] <= CHUNK_CHARACTERS:
            chunks[-1] = (number, chunks[-1][1], block.end)
        else:
            chunks.append((number, block.start, block.end))
    return chunks
