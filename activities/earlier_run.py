"""The sources of an earlier run as hits for a follow-up question. Pure."""

from collections.abc import Sequence
from typing import Final

from contracts.evidence import SearchHit, Source
from contracts.messages import SearchRequest, SearchResponse
from contracts.names import CORPUS_SCHEME
from contracts.request import EARLIER
from contracts.resolved import ResolvedResearch
from contracts.state import ResearchState
from providers.text import question_stems, stems

LEAST_SHARE: Final = 1 / 3
"""Of a query's words that must be in what is known of a source."""
STATEMENT_CHARACTERS: Final = 600
MOST_SOURCES: Final = 100


def sources_to_offer(earlier: ResearchState, resolved: ResolvedResearch) -> list[SearchHit]:
    """Sources that the earlier run found something in and that this run may read, those that it cited first."""
    statements: dict[str, list[str]] = {}
    for finding in earlier.findings:
        for source_id in finding.source_ids:
            statements.setdefault(source_id, []).append(finding.statement)
    cited = {citation.source_id: citation.number for citation in earlier.citations}
    known = [source for source in earlier.readable_sources() if source.id in statements and _may_read(source, resolved)]
    known.sort(key=lambda source: (cited.get(source.id, len(cited) + 1), source.id))
    return [
        SearchHit(
            url=source.url,
            title=source.title,
            snippet=" ".join(statements[source.id])[:STATEMENT_CHARACTERS],
            rank=rank,
            provider=EARLIER,
            source_type=source.source_type,
            published_at=source.published_at,
            authors=source.authors,
            doi=source.doi,
        )
        for rank, source in enumerate(known[:MOST_SOURCES], start=1)
    ]


def offer(hits: Sequence[SearchHit], request: SearchRequest) -> SearchResponse:
    """Those of an earlier run's sources that say something of the query, the best first."""
    wanted = set(question_stems(request.text, request.language or "en"))
    shares = {hit.url: _share(hit, wanted) for hit in hits}
    fitting = [hit for hit in hits if shares[hit.url] >= LEAST_SHARE]
    found = sorted(fitting, key=lambda hit: (-shares[hit.url], hit.rank))
    ranked = [hit.model_copy(update={"rank": rank}) for rank, hit in enumerate(found[: request.max_results], start=1)]
    return SearchResponse(provider=EARLIER, hits=ranked, cached=True)


def _may_read(source: Source, resolved: ResolvedResearch) -> bool:
    """A document of this run's corpus; a page only where this run searches the web."""
    if source.url.startswith(CORPUS_SCHEME):
        return resolved.corpus is not None and source.url.startswith(f"{CORPUS_SCHEME}{resolved.corpus.name}/")
    return resolved.web


def _share(hit: SearchHit, wanted: set[str]) -> float:
    told = set(stems(f"{hit.title} {hit.snippet}"))
    return len(wanted & told) / len(wanted) if wanted else 0.0
