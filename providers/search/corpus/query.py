"""One query to one index: from matching chunks to sections to documents, always the same for the same index."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from contracts.evidence import SearchHit, SectionHint
from contracts.messages import SearchRequest, SearchResponse
from contracts.texts import shorten
from providers.search.corpus.folders import document_url
from providers.search.corpus.index import Chunk, IndexReader, open_index
from providers.text import (
    JOINT,
    fold,
    is_unspaced,
    key_weights,
    language_data,
    question_stems,
    sentence_spans,
    stem,
    subject_keys,
    word_keys,
    words,
)

PROVIDER: Final = "corpus"
MAX_RESULTS: Final = 200
CHUNK_SHARES: Final = (1.0, 0.8, 0.6, 0.4)
"""Weights of the best chunks' scores in that of their section: a long section must not win by repetition.

Lighter ones of later chunks find more pages, but a brief then has fewer answers among its first passages."""
SECTION_FLOOR: Final = 0.25  # share of the best section's score below which another section of a document is no hint
MAX_SECTIONS: Final = 8
COVERAGE_FLOOR: Final = 0.2  # share of the weight of the question's words that a document's best chunks must cover
SNIPPET_CHARACTERS: Final = 200
MAX_SNIPPET_SOURCE: Final = 2_000  # of a matching passage, in which its sentence is looked for
NAME_WEIGHT: Final = 5.0
"""Of a query's words that name a document, added for their inverse document frequency; 3 found fewer pages."""
SCATTERED_SHARE: Final = 0.5  # of that weight where other words stand between the words of a title
SECTION_NUMBER: Final = re.compile(r"(?:[^\W\d_]++\s++)?(?:[A-Z]++|\d++)(?:\.\d++)*+\.\s++(?=\S)")
"""The number at the beginning of a title: "9.17. ", "F.31. ", "Chapter 5. "."""
PAGE_SECTION: Final = re.compile(r"\s*+\([0-9][A-Za-z]{0,3}\)\s*+$")  # the section of a manual, as in "git-prune(1)"
MAX_NAME_PARTS: Final = 12  # of a query in a row, of which the name of a document may consist


@dataclass(frozen=True)
class RankedSection:
    """A section of a document with its matching chunks, best first."""

    path: str
    number: int
    score: float
    chunks: tuple[Chunk, ...]


def search_index(path: Path, corpus: str, request: SearchRequest) -> SearchResponse:
    """Answer a query from an index, one hit per document. Raises `CorpusUnknown`, `IndexDamaged`, `Unavailable`."""
    with open_index(path) as index:
        language = index.value("language")
        stems = question_stems(request.text, language)
        counts = {key: index.document_count(key) for key in stems}
        total = index.documents()
        weights = key_weights(counts, total)
        named = NamedDocuments(request.text, weights, language)
        ranked = rank(index.best_chunks(searched_keys(request.text, stems, language)), named.score)
        links = index.link_pages()
        ranked.sort(key=lambda sections: sections[0].path in links)
        best = enumerate(ranked[: min(request.max_results, MAX_RESULTS)], start=1)
        hits = [_hit(index, corpus, sections, weights, number) for number, sections in best]
        absent = [key for key, count in counts.items() if not count and not is_unspaced(key)]
        nearest = {key: _nearest(index, key, language) for key in absent}
        # A word that stands inside another one, as in `Deposit1200` or a compound, is not in none of the documents.
        counts |= dict.fromkeys(filter(index.contains, absent), 1)
        return SearchResponse(
            provider=PROVIDER,
            hits=[hit for hit in hits if hit is not None],
            documents_searched=total,
            term_documents=counts,
            spellings={key: word for key, word in nearest.items() if word and not counts[key]},
        )


def searched_keys(text: str, stems: Iterable[str], language: str) -> list[str]:
    """Return the keys of a query: the stems, and the parts of compounds."""
    question_keys = set(stems)
    word_groups = (word_keys(word, language) for word in words(text))
    return list(dict.fromkeys([*stems, *(key for keys in word_groups if keys[0] in question_keys for key in keys)]))


class NamedDocuments:
    """The documents that a query names, by their titles and file names."""

    def __init__(self, text: str, weights: Mapping[str, float], language: str) -> None:
        """Divide a query into parts of words; each has an equal share of the weight of its word."""
        self._language = language
        self._stop = language_data(language).stop
        parts: list[_Part] = []
        for word in words(text):
            found = _parts(word, language)
            weight = sum(weights.get(key, 0.0) for key in subject_keys(word, language)) / len(found)
            parts += [part._replace(weight=weight) for part in found]
        self._weights: dict[str, float] = {}
        for part in parts:
            self._weights[part.key] = max(part.weight, self._weights.get(part.key, 0.0))
        self._runs: dict[str, float] = {}
        for start in range(len(parts)):
            for stop in range(start + 1, min(start + MAX_NAME_PARTS, len(parts)) + 1):
                run = parts[start:stop]
                weight = sum({part.key: self._weights[part.key] for part in run}.values())
                for form in _joined(run):
                    self._runs[form] = max(weight, self._runs.get(form, 0.0))

    def score(self, path: str, title: str) -> float:
        """Return the weight of the query's words that are the whole title or the whole file name of a document."""
        title = SECTION_NUMBER.sub("", PAGE_SECTION.sub("", title), count=1)
        names = [_named_parts(name, self._language) for name in (title, PurePosixPath(path).stem)]
        in_a_row = max(self._runs.get(form, 0.0) for name in names for form in _joined(name))
        keys = {part.key for part in names[0] if part.word not in self._stop}
        if keys <= self._weights.keys():
            scattered = SCATTERED_SHARE * sum(self._weights[key] for key in keys)
        else:
            scattered = 0.0
        return NAME_WEIGHT * max(in_a_row, scattered)


class _Part(NamedTuple):
    """A part of a word, or a pair of letters of writing without spaces."""

    key: str
    word: str
    weight: float = 0.0


def _parts(word: str, language: str) -> list[_Part]:
    if is_unspaced(word):
        return [_Part(key, key) for key in word_keys(word, language)]
    return [_Part(stem(part, language), fold(part)) for part in JOINT.split(word)]


def _named_parts(name: str, language: str) -> list[_Part]:
    return [part for word in words(name) for part in _parts(word, language)]


def _joined(parts: Sequence[_Part]) -> tuple[str, str]:
    """Return parts without spaces between them, as file names have them: `createpolicy`."""
    return "".join(part.key for part in parts), "".join(part.word for part in parts)


def rank(chunks: Iterable[Chunk], bonus: Callable[[str, str], float]) -> list[list[RankedSection]]:
    """Return the matching sections of each document, best first; documents by their best section, then by path.

    `bonus` is what a document gets for its path and title.
    """
    sections: dict[tuple[str, int], list[Chunk]] = {}
    for chunk in chunks:
        sections.setdefault((chunk.path, chunk.section), []).append(chunk)
    documents: dict[str, list[RankedSection]] = {}
    bonuses: dict[str, float] = {}
    for (path, number), group in sections.items():
        score = sum(share * chunk.score for share, chunk in zip(CHUNK_SHARES, group, strict=False))
        ranked = RankedSection(path, number, round(score, 9), tuple(group[: len(CHUNK_SHARES)]))
        documents.setdefault(path, []).append(ranked)
        if path not in bonuses:
            bonuses[path] = bonus(path, group[0].title)
    best_first = [sorted(group, key=lambda section: (-section.score, section.number)) for group in documents.values()]
    return sorted(best_first, key=lambda group: (-(group[0].score + bonuses[group[0].path]), group[0].path))


def _hit(
    index: IndexReader, corpus: str, ranked: list[RankedSection], weights: Mapping[str, float], rank: int
) -> SearchHit | None:
    """Return the hit of a document; None if its best chunks cover too little of the question."""
    best = ranked[0]
    entry = index.document(best.path)
    assert entry is not None
    document, text = entry
    first = best.chunks[0]
    facts = document.facts
    best_sections = [section for section in ranked[:MAX_SECTIONS] if section.score >= SECTION_FLOOR * best.score]
    hints = [
        SectionHint(start=start, end=end, heading=heading, score=round(section.score, 6))
        for section in best_sections
        for start, end, heading in [document.sections[section.number]]
    ]
    parts = [facts.title, *(hint.heading for hint in hints)]
    parts += [text[chunk.start : chunk.stop] for section in best_sections for chunk in section.chunks]
    covered = {key for part in parts for word in words(part) for key in word_keys(word, document.key_language)}
    if sum(weights[key] for key in covered & weights.keys()) < COVERAGE_FLOOR * sum(weights.values()):
        return None
    return SearchHit(
        url=document_url(corpus, best.path),
        title=facts.title,
        snippet=_snippet(text[first.start : first.stop][:MAX_SNIPPET_SOURCE], weights, document.key_language),
        rank=rank,
        provider=PROVIDER,
        source_type="file",
        published_at=facts.published_at,
        authors=facts.authors,
        sections=hints,
        content_hash=document.text_hash,
    )


def _snippet(passage: str, weights: Mapping[str, float], language: str) -> str:
    """Return the sentence or line with the rarest words of the question, with what follows it as far as there is room.

    A long sentence is shown from a little before its first word of the question.
    """
    best = -1.0
    start = 0
    for line in re.finditer(r"[^\n]+", passage):
        for first, last in sentence_spans(line[0]):
            keys = {key for word in words(line[0][first:last]) for key in word_keys(word, language)} & weights.keys()
            if (weight := sum(weights[key] for key in keys)) > best:
                best = weight
                start = line.start() + first
    shown = " ".join(passage[start:].split())
    if len(shown) > SNIPPET_CHARACTERS:
        asked = (match.start() for match in re.finditer(r"\S+", shown)
                 if any(key in weights for word in words(match[0]) for key in word_keys(word, language)))  # fmt: skip
        place = next(asked, 0)
        if place > SNIPPET_CHARACTERS // 2:
            shown = "…" + shown[shown.find(" ", place - SNIPPET_CHARACTERS // 4) + 1 :]
    return shorten(shown, SNIPPET_CHARACTERS)


def _nearest(index: IndexReader, key: str, language: str) -> str | None:
    """Return the word in the documents that is most similar to a key found in none of them."""
    nearest_key = index.nearest_key(key)
    if nearest_key is None:
        return None
    chunk = index.best_chunks([nearest_key])[0]
    entry = index.document(chunk.path)
    assert entry is not None
    passage = f"{entry[1][chunk.start : chunk.stop]}\n{entry[0].facts.title}"
    return next((word for word in words(passage) if nearest_key in word_keys(word, language)), nearest_key)
