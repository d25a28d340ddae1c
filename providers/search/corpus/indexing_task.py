"""Reading one file for the index: runs in a child process and hands back what the writer only has to insert."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from providers.reading.documents import extract
from providers.reading.regular_files import read_regular_file
from providers.search.corpus.indexed_passages import index_text, passages_of, sections_of, word_keys
from providers.search.corpus.key_files import refuse_key
from providers.search.corpus.packing import PassageStems, pack, pack_lines, pack_text
from providers.text import detect_language, words

LANGUAGE_TASK: Final = "providers.search.corpus.indexing_task:spoken_in"
LOOKED_AT: Final = 20_000
"""Characters of a file that tell its language."""
TASK: Final = "providers.search.corpus.indexing_task:read_for_index"


@dataclass(frozen=True, slots=True)
class PassageToIndex:
    """A passage and its stems."""

    section: int
    start: int
    end: int
    stems: PassageStems


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """Everything the index keeps of a file."""

    raw_hash: str
    text_hash: str
    packed_text: list[bytes]
    """In pieces."""
    characters: int
    media_type: str
    title: str
    language: str | None
    authors: list[str]
    publisher: str | None
    published_at: str | None
    pages: list[int]
    sections: list[tuple[int, int, str]]
    passages: list[PassageToIndex]
    packed_stems: list[tuple[int, bytes]]
    """Those of the passages, each pack after the number of its first passage."""
    stems: set[str]
    """Those of the whole text and title: what document counts are made of."""
    other_stems: bytes
    """Those of them that stand in no passage, packed."""


def sha256(data: bytes) -> str:
    """SHA-256 as `sha256:<hex>`."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def spoken_in(root: str, path: str, name: str) -> str:
    """The language of a file below a root, as far as its words tell. Raises `SourceUnreadable`."""
    raw = read_regular_file(Path(root) / path, Path(root))
    refuse_key(raw)
    return detect_language(extract(raw, name).text[:LOOKED_AT])


def read_for_index(root: str, path: str, name: str, language: str) -> IndexedFile:
    """Read, extract and cut a file below a root. Raises `SourceUnreadable`."""
    raw = read_regular_file(Path(root) / path, Path(root))
    refuse_key(raw)
    document = extract(raw, name)
    refuse_key(document.text)  # packed, or in another encoding
    sections = sections_of(document)
    heading_stems: dict[str, str] = {}
    title_stems = index_text(document.title, language)
    passages = []
    for passage in passages_of(document, sections):
        if passage.heading not in heading_stems:
            heading_stems[passage.heading] = index_text(passage.heading, language)
        quote = document.text[passage.start : passage.end]
        stems = PassageStems(index_text(quote, language), heading_stems[passage.heading], title_stems)
        passages.append(PassageToIndex(passage.section, passage.start, passage.end, stems))
    all_stems = {key for word in set(words(f"{document.text}\n{document.title}")) for key in word_keys(word, language)}
    in_passages = set[str]().union(*(passage.stems.distinct() for passage in passages))
    return IndexedFile(
        raw_hash=sha256(raw),
        text_hash=sha256(document.text.encode("utf-8")),
        packed_text=pack_text(document.text),
        characters=len(document.text),
        media_type=document.media_type,
        title=document.title,
        language=document.language,
        authors=document.authors,
        publisher=document.publisher,
        published_at=document.published_at,
        pages=document.pages,
        sections=[(section.start, section.end, section.heading) for section in sections],
        passages=passages,
        packed_stems=list(pack([passage.stems for passage in passages])),
        stems=all_stems | in_passages,
        other_stems=pack_lines(sorted(all_stems - in_passages)),
    )
