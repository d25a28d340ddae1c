"""Crossref: works by their bibliographic data, read from a PDF whose licence lets everybody read it."""

import html
import re
from datetime import UTC, datetime
from typing import Any, Final

from contracts.messages import SearchRequest, SearchResponse
from providers.search.filters import Filters
from providers.search.hits import TAG, RawResult, doi_url, hit_limit, list_at, shorten_query, text_at
from providers.search.web_api import WebSearch

MAX_ROWS: Final = 100  # of 1,000: a page of them has several megabytes
FIELDS: Final = "DOI,title,abstract,author,issued,container-title,link,license"
TYPES: Final = "journal-article proceedings-article posted-content book-chapter book monograph report dissertation"
"""Works that have a text of their own, unlike journals, figures and reviews."""
OPEN_LICENSE: Final = re.compile(r"https?://(?:www\.)?creativecommons\.org/(?:licenses|publicdomain)/", re.IGNORECASE)
END_OF_BLOCK: Final = re.compile(r"</(?:[a-z]{1,10}:)?(?:p|title|sec|list-item)\s{0,9}>", re.IGNORECASE)
"""Of the markup of abstracts (JATS)."""
MAX_MARKUP: Final = 50_000
"""Characters of an abstract with its markup that are read."""


class CrossrefSearch(WebSearch):
    """Works of publishers; with a mail address as the contact, by the servers for clients that name one."""

    async def find(self, request: SearchRequest, filters: Filters) -> SearchResponse:
        """Make one search request."""
        conditions = [f"type:{name}" for name in TYPES.split()]
        if filters.days.first:
            conditions.append(f"from-pub-date:{filters.days.first}")
        if filters.days.last:
            conditions.append(f"until-pub-date:{filters.days.last}")
        parameters: dict[str, str | int] = {
            "query.bibliographic": shorten_query(request.text, 500),
            "rows": MAX_ROWS if filters.domains.given else max(1, hit_limit(request)),
            "select": FIELDS,
            "filter": ",".join(conditions),
        }
        if self.contact:
            parameters["mailto"] = self.contact
        answer = await self.get("/works", parameters)
        return self.respond(request, list_at(answer, "message", "items"), _result)


def _result(work: dict[str, Any]) -> RawResult:
    doi = text_at(work, "DOI")
    pdf = _open_pdf(work)
    abstract = _abstract(text_at(work, "abstract"))
    return RawResult(
        url=pdf or (doi_url(doi) if doi else None),
        title=_first_text(list_at(work, "title")),
        snippet=abstract,
        published=_date(work),
        authors=[_name(author) for author in list_at(work, "author") or ()],
        venue=_first_text(list_at(work, "container-title")),
        doi=doi,
        source_type="academic",
        abstract=abstract,
        is_open=pdf is not None,
        expects_pdf=pdf is not None,
    )


def _open_pdf(work: dict[str, Any]) -> str | None:
    """Return the address of a PDF that anybody may read; None if no licence in force says so.

    Links for checking similarity lead publishers' contractors to texts, and nobody else.
    """
    licenses = list_at(work, "license") or ()
    if not any(_is_open(one) for one in licenses):
        return None
    links = [link for link in list_at(work, "link") or () if text_at(link, "content-type") == "application/pdf"]
    usable = [text_at(link, "URL") for link in links if text_at(link, "intended-application") != "similarity-checking"]
    return next(filter(None, usable), None)


def _is_open(license_: Any) -> bool:
    """Return whether a licence lets anybody read the work from today on."""
    start = _parts(list_at(license_, "start", "date-parts"))
    in_force = start is None or start <= datetime.now(UTC).date().isoformat()
    return in_force and OPEN_LICENSE.match(text_at(license_, "URL") or "") is not None


def _abstract(markup: str | None) -> str:
    """Return the paragraphs of an abstract without its markup."""
    text = END_OF_BLOCK.sub("\n", " ".join((markup or "")[:MAX_MARKUP].split()))
    return html.unescape(TAG.sub("", text))


def _date(work: dict[str, Any]) -> str | None:
    return _parts(list_at(work, "issued", "date-parts"))


def _parts(parts: Any) -> str | None:
    """Return a date, perhaps without day and month, from `[[2021, 3, 4]]`; None for anything else."""
    first = parts[0] if parts else None
    if not isinstance(first, list) or not first or not all(type(part) is int for part in first[:3]):
        return None
    if not all(0 < part < 10_000 for part in first[:3]):
        return None
    return "-".join(f"{part:02}" for part in first[:3])


def _name(author: Any) -> str | None:
    """Return the name of a person or an organization."""
    names = filter(None, (text_at(author, "given"), text_at(author, "family")))
    return " ".join(names) or text_at(author, "name")


def _first_text(values: list[Any] | None) -> str | None:
    return next((value for value in values or () if isinstance(value, str)), None)
