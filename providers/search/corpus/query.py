"""One query to one index: from matching chunks to sections to documents, always the same for the same index."""

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from contracts.evidence import SearchHit, SectionHint
from contracts.messages import SearchRequest, SearchResponse
from providers.search.corpus.folders import document_url
from providers.search.corpus.index import Chunk, IndexReader, open_index
from providers.text import inverse_document_frequency, question_stems, word_keys, words

PROVIDER: Final = "corpus"
MOST_RESULTS: Final = 200
CHUNK_SHARES: Final = (1.0, 0.8, 0.6, 0.4)
"""Weights of the best chunks' scores in that of their section: a long section must not win by repetition."""
SECTION_FLOOR: Final = 0.25  # share of the best section's score below which another section of a document is no hint
MOST_SECTIONS: Final = 8
COVERAGE_FLOOR: Final = 0.2  # share of the weight of the question's words that a document's best chunks must cover
SNIPPET_CHARACTERS: Final = 200


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
        weights = {key: inverse_document_frequency(count, total) for key, count in counts.items()}
        ranked = rank(index.best_chunks(searched_keys(request.text, stems, language)))
        best = enumerate(ranked[: min(request.max_results, MOST_RESULTS)], start=1)
        hits = [_hit(index, corpus, sections, weights, number) for number, sections in best]
        nearest = {key: _nearest(index, key, language) for key, count in counts.items() if not count}
        return SearchResponse(
            provider=PROVIDER,
            hits=[hit for hit in hits if hit is not None],
            documents_searched=total,
            term_documents=counts,
            spellings={key: word for key, word in nearest.items() if word},
        )


def searched_keys(text: str, stems: Iterable[str], language: str) -> list[str]:
    """Return the keys of a query: the stems, and the parts of compounds."""
    known = set(stems)
    found = (word_keys(word, language) for word in words(text))
    return list(dict.fromkeys([*stems, *(key for keys in found if keys[0] in known for key in keys)]))


def rank(chunks: Iterable[Chunk]) -> list[list[RankedSection]]:
    """Return the matching sections of each document, best first; documents by their best section, then by path."""
    sections: dict[tuple[str, int], list[Chunk]] = {}
    for chunk in chunks:
        sections.setdefault((chunk.path, chunk.section), []).append(chunk)
    documents: dict[str, list[RankedSection]] = {}
    for (path, number), found in sections.items():
        score = sum(share * chunk.score for share, chunk in zip(CHUNK_SHARES, found, strict=False))
        ranked = RankedSection(path, number, round(score, 9), tuple(found[: len(CHUNK_SHARES)]))
        documents.setdefault(path, []).append(ranked)
    best_first = [sorted(found, key=lambda one: (-one.score, one.number)) for found in documents.values()]
    return sorted(best_first, key=lambda found: (-found[0].score, found[0].path))


def _hit(
    index: IndexReader, corpus: str, ranked: list[RankedSection], weights: Mapping[str, float], rank: int
) -> SearchHit | None:
    """Return the hit of a document; None if its best chunks cover too little of the question."""
    best = ranked[0]
    found = index.document(best.path)
    assert found is not None
    (document, text), first = found, best.chunks[0]
    facts = document.facts
    top = [one for one in ranked[:MOST_SECTIONS] if one.score >= SECTION_FLOOR * best.score]
    hints = [
        SectionHint(start=start, end=end, heading=heading, score=round(one.score, 6))
        for one in top
        for start, end, heading in [document.sections[one.number]]
    ]
    parts = [facts.title, *(hint.heading for hint in hints)]
    parts += [text[chunk.start : chunk.stop] for one in top for chunk in one.chunks]
    covered = {key for part in parts for word in words(part) for key in word_keys(word, document.key_language)}
    if sum(weights[key] for key in covered & weights.keys()) < COVERAGE_FLOOR * sum(weights.values()):
        return None
    return SearchHit(
        url=document_url(corpus, best.path),
        title=facts.title,
        snippet=textwrap.shorten(text[first.start : first.stop][:1_000], SNIPPET_CHARACTERS, placeholder="…"),
        rank=rank,
        provider=PROVIDER,
        source_type="file",
        published_at=facts.published_at,
        authors=facts.authors,
        sections=hints,
        content_hash=document.text_hash,
    )


def _nearest(index: IndexReader, key: str, language: str) -> str | None:
    """Return the word in the documents that is most similar to a key found in none of them."""
    near = index.nearest_key(key)
    if near is None:
        return None
    chunk = index.best_chunks([near])[0]
    found = index.document(chunk.path)
    assert found is not None
    passage = f"{found[1][chunk.start : chunk.stop]}\n{found[0].facts.title}"
    return next((word for word in words(passage) if near in word_keys(word, language)), near)
