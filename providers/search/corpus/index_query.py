"""One query to one index: the blocking part of a search, run in a thread."""

from pathlib import Path
from typing import Final

from contracts.evidence import SearchHit, SectionHint
from contracts.messages import SearchRequest, SearchResponse
from providers.search.corpus.document_addresses import document_url
from providers.search.corpus.index_reader import IndexReader, Match, open_index
from providers.search.corpus.indexed_passages import PATH_SEPARATOR
from providers.search.corpus.section_ranking import (
    COVERAGE_FLOOR,
    HISTORY,
    HISTORY_ASKED,
    HISTORY_FACTOR,
    QueryWeights,
    RankedDocument,
    RankedSection,
    is_copy,
    rank,
    searched_keys,
    section_factor,
    selective,
)
from providers.text import question_stems

PROVIDER: Final = "corpus"
MOST_RESULTS: Final = 200


def search_index(index: Path, corpus: str, language: str, request: SearchRequest) -> SearchResponse:
    """Answer a query from an index; without a language it is the one the index was made in.

    Raises `CorpusUnknown`, `Unavailable`.
    """
    with open_index(index) as reader:
        return _Search(reader, corpus, language, request).run()


class _Search:
    def __init__(self, reader: IndexReader, corpus: str, language: str, request: SearchRequest) -> None:
        self.reader = reader
        self.corpus = corpus
        self.request = request
        self.language = language = language or reader.language()
        self.stems = question_stems(request.text, language)
        self.documents = reader.documents()
        keys = searched_keys(request.text, self.stems, language)
        counts = reader.document_counts(keys)
        self.keys = selective(keys, self.documents, counts)
        self.counts = {stem: counts[stem] for stem in self.stems}
        self.weights = QueryWeights.of(request.text, language, self.documents, self.counts)

    def run(self) -> SearchResponse:
        matches = self.reader.matches(self.keys)
        ranked = rank(matches, self.reader.paths({match.document for match in matches}), self._factors(matches))
        first = max(0, self.request.offset)
        last = first + max(0, min(self.request.max_results, MOST_RESULTS))
        hits: list[SearchHit] = []
        taken: list[list[frozenset[str]]] = []
        best, passed = 0.0, 0
        for candidate in ranked:
            if passed >= last:
                break
            coverage, passage, bodies = self._best_passage(candidate)
            best = max(best, coverage)
            if coverage < COVERAGE_FLOOR or any(is_copy(bodies, earlier) for earlier in taken):
                continue
            taken.append(bodies)
            passed += 1
            if passed > first:
                hits.append(self._hit(candidate, passage, passed))
        return SearchResponse(
            provider=PROVIDER,
            hits=hits,
            documents_searched=self.documents,
            term_documents=self.counts,
            coverage=round(best, 6) if self.stems else None,
        )

    def _factors(self, matches: list[Match]) -> dict[tuple[int, int], float]:
        """How much the heading of each section, and its document, speak for or against it."""
        places = {(match.document, match.section) for match in matches}
        documents = self.reader.sizes({document for document, _ in places})
        told = 1.0 if HISTORY_ASKED.search(self.request.text) else HISTORY_FACTOR
        history = {number: told if HISTORY.search(title) else 1.0 for number, (title, _) in documents.items()}
        titles = {number: self._likeness(title) for number, (title, _) in documents.items()}
        return {
            (document, number): history[document]
            * section_factor(
                max(self._likeness(heading.rpartition(PATH_SEPARATOR)[2]), titles[document]), documents[document][1]
            )
            for (document, number), heading in self.reader.headings(places).items()
        }

    def _likeness(self, heading: str) -> float:
        return self.weights.likeness(heading, self.language)

    def _best_passage(self, candidate: RankedDocument) -> tuple[float, Match, list[frozenset[str]]]:
        """Coverage and place of the passage that covers most, and the stems of all that were looked at."""
        matches = candidate.best_matches()
        stems = self.reader.passage_stems([match.passage for match in matches])
        covered = [self.weights.coverage(*found) for found in stems]
        number = max(range(len(matches)), key=lambda place: (covered[place], matches[place].score, -place))
        return covered[number], matches[number], [body for body, _ in stems]

    def _hit(self, candidate: RankedDocument, passage: Match, rank_number: int) -> SearchHit:
        document = self.reader.document(number=candidate.document)
        assert document is not None
        return SearchHit(
            url=document_url(self.corpus, document.path),
            title=document.title,
            snippet=self.reader.snippet(passage),
            rank=rank_number,
            provider=PROVIDER,
            source_type="file",
            published_at=document.published_at,
            authors=document.authors,
            sections=[self._hint(section) for section in candidate.sections],
            content_hash=document.text_hash,
        )

    def _hint(self, section: RankedSection) -> SectionHint:
        start, end, heading = self.reader.section(section.document, section.number)
        return SectionHint(start=start, end=end, heading=heading, score=round(section.score, 6))
