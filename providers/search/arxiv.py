"""arXiv: preprints by relevance, read from their PDF. It allows one request in three seconds, one at a time."""

import re
from typing import Any, Final
from urllib.parse import quote

from contracts.messages import SearchRequest, SearchResponse
from providers.errors import InvalidCall
from providers.search.filters import Filters
from providers.search.hits import RawResult, content_words, hit_limit
from providers.search.web_api import MALFORMED, WebSearch
from providers.search.xml_answers import read_xml, text_of, whole_text

NAMESPACES: Final = {"atom": "http://www.w3.org/2005/Atom", "arxiv": "http://arxiv.org/schemas/atom"}
FEED: Final = "{http://www.w3.org/2005/Atom}feed"
PAPER: Final = re.compile(
    r"https?://arxiv\.org/abs/((?:[0-9]{4}\.[0-9]{4,5}|[a-z-]{2,20}(?:\.[A-Z]{2})?/[0-9]{7})(?:v[0-9]{1,3})?)"
)
"""The `id` of an entry, with the identifier of the paper and its version."""
ERROR: Final = "/api/errors"
"""In the `id` of the only entry of an answer that reports an error, with status 200 or 400."""


class ArxivSearch(WebSearch):
    """Papers that have any of the words, those with most of them first, by the day of their first version."""

    async def find(self, request: SearchRequest, filters: Filters) -> SearchResponse:
        """Make one search request."""
        words = content_words(request, 300)
        if not words:
            return SearchResponse(provider=self.name, warnings=["takes words alone: no search was made"])
        query = " OR ".join(f'all:"{word}"' for word in words)
        if filters.days.given:
            first, last = (day.replace("-", "") for day in filters.days.both())
            query = f"({query}) AND submittedDate:[{first}0000 TO {last}2359]"
        parameters = {
            "search_query": query,
            "start": 0,
            "max_results": max(1, hit_limit(request)),
            "sortBy": "relevance",
            "sortOrder": "descending",
        }
        feed = read_xml(await self.fetch_bytes("GET", f"{self.address}/api/query", params=parameters))
        if feed is None or feed.tag != FEED:
            raise self.unavailable(MALFORMED)
        entries = feed.findall("atom:entry", NAMESPACES)
        if any(ERROR in (text_of(entry, "atom:id", NAMESPACES) or "") for entry in entries):
            raise InvalidCall("arXiv refuses the search")
        return self.respond(request, [{"entry": entry} for entry in entries], _result)


def _result(row: dict[str, Any]) -> RawResult:
    entry = row["entry"]
    paper = PAPER.fullmatch((text_of(entry, "atom:id", NAMESPACES) or "").strip())
    url = None
    preprint_doi = None
    if paper is not None:
        url = f"https://arxiv.org/pdf/{quote(paper[1])}"
        preprint_doi = f"10.48550/arXiv.{re.sub(r'v[0-9]+$', '', paper[1])}"
    return RawResult(
        url=url,
        title=text_of(entry, "atom:title", NAMESPACES),
        snippet=_summary(entry),
        published=text_of(entry, "atom:published", NAMESPACES),
        authors=[whole_text(name) for name in entry.findall("atom:author/atom:name", NAMESPACES)],
        venue=text_of(entry, "arxiv:journal_ref", NAMESPACES) or "arXiv",
        doi=text_of(entry, "arxiv:doi", NAMESPACES) or preprint_doi,
        source_type="academic",
        abstract=_summary(entry),
        expects_pdf=True,
    )


def _summary(entry: Any) -> str:
    """Return the abstract in one paragraph: its line breaks are those of a terminal."""
    return " ".join((text_of(entry, "atom:summary", NAMESPACES) or "").split())
