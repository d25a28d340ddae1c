"""PubMed: papers of medicine and the life sciences, by the E-utilities of its library."""

import calendar
import re
from typing import Any, Final
from urllib.parse import quote

from contracts.messages import SearchRequest, SearchResponse
from providers.search.filters import Filters
from providers.search.hits import RawResult, content_words, hit_limit, list_at, text_at
from providers.search.web_api import WebSearch
from providers.search.xml_answers import read_xml, text_of, whole_text

TOOL: Final = "durable-research"
"""Name by which the library knows its clients."""
MAX_PAGE_SIZE: Final = 100
PMID: Final = re.compile(r"[0-9]{1,9}")
PMC_ID: Final = re.compile(r"PMC[0-9]{1,9}")
MONTHS: Final = {name.lower(): number for number, name in enumerate(calendar.month_abbr) if name}
ARTICLE: Final = "MedlineCitation/Article"


class PubmedSearch(WebSearch):
    """Papers that have all of the words; if there are none, those that have any of them.

    A search is two requests, for the identifiers and for the papers, or three. They are forms, so that no URL contains
    the key.
    """

    async def find(self, request: SearchRequest, filters: Filters) -> SearchResponse:
        """Make one search."""
        words = content_words(request, 300)
        if not words:
            return SearchResponse(provider=self.name, warnings=["takes words alone: no search was made"])
        found = await self._identifiers(" ".join(words), request, filters)
        if not found and len(words) > 1:
            found = await self._identifiers(" OR ".join(words), request, filters)
        if not found:
            return self.respond(request, [], _result)
        return self.respond(request, await self._papers(found), _result)

    async def _identifiers(self, term: str, request: SearchRequest, filters: Filters) -> list[str]:
        """Return the identifiers of the papers, the most relevant ones first."""
        fields: dict[str, str | int] = {
            "term": term,
            "retmode": "json",
            "retmax": MAX_PAGE_SIZE if filters.domains.given else max(1, hit_limit(request)),
            "sort": "relevance",
        }
        if filters.days.given:
            first, last = (day.replace("-", "/") for day in filters.days.both())
            fields |= {"datetype": "pdat", "mindate": first, "maxdate": last}
        form = self._form(fields)
        answer = await self.fetch("POST", f"{self.address}/entrez/eutils/esearch.fcgi", data=form)
        if text_at(answer, "esearchresult", "ERROR") is not None:
            raise self.unavailable("its search does not work at the moment")
        found = list_at(answer, "esearchresult", "idlist")
        if found is None or not all(isinstance(one, str) and PMID.fullmatch(one) for one in found):
            raise self.malformed()
        return list(dict.fromkeys(found))

    async def _papers(self, identifiers: list[str]) -> list[dict[str, Any]]:
        """Return the papers in the order of their identifiers; one that is missing takes up its rank."""
        form = self._form({"id": ",".join(identifiers), "retmode": "xml"})
        root = read_xml(await self.fetch_bytes("POST", f"{self.address}/entrez/eutils/efetch.fcgi", data=form))
        if root is None or root.tag != "PubmedArticleSet":
            raise self.malformed()
        papers = {text_of(paper, "MedlineCitation/PMID"): paper for paper in root.findall("PubmedArticle")}
        return [{"paper": papers.get(one), "id": one} for one in identifiers]

    def _form(self, fields: dict[str, str | int]) -> dict[str, str]:
        """Return the fields of a request, with the names of this client and of its operator."""
        form = {"db": "pubmed", "tool": TOOL} | {name: str(value) for name, value in fields.items()}
        if self.contact:
            form["email"] = self.contact
        return form


def _result(row: dict[str, Any]) -> RawResult:
    paper = row["paper"]
    if paper is None:
        return RawResult(url=None)
    # Only of the paper itself: those that it cites have lists of identifiers, too.
    known = {one.get("IdType"): whole_text(one) for one in paper.findall("PubmedData/ArticleIdList/ArticleId")}
    archived = PMC_ID.fullmatch(known.get("pmc", "").strip())
    url = f"https://pubmed.ncbi.nlm.nih.gov/{row['id']}/"
    if archived is not None:
        url = f"https://europepmc.org/articles/{quote(archived[0])}?pdf=render"
    abstract = "\n".join(map(_part, paper.findall(f"{ARTICLE}/Abstract/AbstractText")))
    return RawResult(
        url=url,
        title=(text_of(paper, f"{ARTICLE}/ArticleTitle") or "").strip().removesuffix("."),
        snippet=abstract,
        published=_date(paper),
        authors=[_name(author) for author in paper.findall(f"{ARTICLE}/AuthorList/Author")],
        venue=text_of(paper, f"{ARTICLE}/Journal/Title"),
        doi=known.get("doi") or text_of(paper, f"{ARTICLE}/ELocationID[@EIdType='doi']"),
        source_type="academic",
        abstract=abstract,
        is_open=archived is not None,
        expects_pdf=archived is not None,
    )


def _part(element: Any) -> str:
    """Return one part of an abstract in one line, after its label."""
    label = element.get("Label")
    text = " ".join(whole_text(element).split())
    return f"{label}: {text}" if label else text


def _date(paper: Any) -> str | None:
    """Return the day of publication online, else the day, month or year of the issue."""
    online = paper.find(f"{ARTICLE}/ArticleDate")
    issue = paper.find(f"{ARTICLE}/Journal/JournalIssue/PubDate")
    if online is not None:
        return "-".join(filter(None, (text_of(online, name) for name in ("Year", "Month", "Day"))))
    if issue is None:
        return None
    year = text_of(issue, "Year") or (text_of(issue, "MedlineDate") or "")[:4]
    month = text_of(issue, "Month") or ""
    number = MONTHS.get(month[:3].lower()) or (int(month) if re.fullmatch("[0-9]{1,2}", month) else 0)
    day = text_of(issue, "Day")
    if not number:
        return year
    return f"{year}-{number:02}" + (f"-{day:0>2}" if day else "")


def _name(author: Any) -> str | None:
    names = filter(None, (text_of(author, "ForeName"), text_of(author, "LastName")))
    return " ".join(names) or text_of(author, "CollectiveName")
