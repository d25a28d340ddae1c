"""What each search service takes and answers, in the form that it documents, and its own way of refusing."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any
from xml.sax.saxutils import escape

PROVIDERS = (
    "tavily", "google", "vertex_ai_search", "semantic_scholar", "openalex", "pubmed", "crossref", "arxiv", "brave",
    "exa", "serper", "searxng", "wikipedia", "anthropic",
)  # fmt: skip
PAPERS = ("semantic_scholar", "openalex", "pubmed", "crossref", "arxiv")
"""Services that have papers alone."""
BY_WORDS = ("openalex", "pubmed", "arxiv")
"""Services whose query language has operators: they get the words of a query."""
IN_XML = ("pubmed", "arxiv")
WITH_KEY = (
    "tavily", "google", "vertex_ai_search", "semantic_scholar", "openalex", "pubmed", "brave", "exa", "serper",
    "anthropic",
)  # fmt: skip
KEYS = {name: f"planted-{name}-key-0123456789" for name in WITH_KEY}
KEY_PARAMETERS = {"openalex": "api_key", "pubmed": "api_key"}
"""The parameter in which a service looks for its key."""
KEY_IS_OPTIONAL = ("semantic_scholar", "pubmed")
CSE_ID = "0123456789abcdef0"
APP = "projects/example/locations/global/collections/default_collection/engines/docs"
ACCOUNT_TOKEN = "planted-token-of-a-service-account"
"""What Google's service of tokens gives for a service account."""
VERTEX_PAGE = 25
"""So many results an answer has at most."""
MODEL = "claude-haiku-4-5"
MODEL_RESULTS = 10
"""So many results a search by the model gives."""
KEY_HEADERS = {
    "tavily": "authorization",
    "google": "x-goog-api-key",
    "vertex_ai_search": "x-goog-api-key",
    "semantic_scholar": "x-api-key",
    "brave": "x-subscription-token",
    "exa": "x-api-key",
    "serper": "x-api-key",
    "anthropic": "x-api-key",
}
"""The header in which a service looks for its key."""
PATHS = {
    "tavily": "POST /search",
    "google": "GET /customsearch/v1",
    "vertex_ai_search": f"POST /v1/{APP}/servingConfigs/default_search:search(Lite)?|POST /token",
    "semantic_scholar": "GET /graph/v1/paper/search",
    "openalex": "GET /works",
    "pubmed": "POST /entrez/eutils/(esearch|efetch).fcgi",
    "crossref": "GET /works",
    "arxiv": "GET /api/query",
    "exa": "POST /search",
    "serper": "POST /(search|news)",
    "brave": "GET /res/v1/(web|news)/search",
    "searxng": "GET /search",
    "wikipedia": "GET (/[a-z]{2,3})?/w/api.php",
    "anthropic": "POST /v1/messages",
}
"""Method and path as a pattern; the wiki's language is its host elsewhere, and the first part of the path here."""
KNOWN = {
    "tavily": """query max_results search_depth topic include_answer include_raw_content include_images include_domains
        exclude_domains start_date end_date""",
    "google": "q cx num lr sort alt",
    "vertex_ai_search": "query pageSize pageToken contentSearchSpec alt",
    "semantic_scholar": "query fields limit offset publicationDateOrYear",
    "openalex": "search per_page page filter select sort api_key mailto",
    "pubmed": "db term id retmode retmax retstart sort datetype mindate maxdate tool email api_key",
    "crossref": "query query.bibliographic rows offset cursor select filter sort order mailto",
    "arxiv": "search_query id_list start max_results sortBy sortOrder",
    "exa": """query type category numResults includeDomains excludeDomains startPublishedDate endPublishedDate
        contents""",
    "serper": "q num page gl hl tbs",
    "brave": "q count result_filter text_decorations search_lang freshness",
    "brave_news": "q count search_lang freshness",
    "searxng": "q format pageno categories language time_range",
    "wikipedia": "action format formatversion list srsearch srlimit srprop meta siprop",
    "anthropic": "model max_tokens system messages tools tool_choice",
}
"""Every documented parameter that a client of ours may send."""
QUERIES = {
    "tavily": "query",
    "google": "q",
    "vertex_ai_search": "query",
    "semantic_scholar": "query",
    "openalex": "search",
    "pubmed": "term",
    "crossref": "query.bibliographic",
    "arxiv": "search_query",
    "exa": "query",
    "serper": "q",
    "brave": "q",
    "searxng": "q",
    "wikipedia": "srsearch",
}
"""The parameter with the words; a model reads them in its message."""
JAPANESE = {
    "google": ("lr", "lang_ja"),
    "openalex": ("filter", "language:ja"),
    "brave": ("search_lang", "jp"),
    "searxng": ("language", "ja"),
}
"""The parameter of a language and its word for Japanese, of services that take one."""
COUNTS: Mapping[str, str | int] = {
    "tavily": "max_results",
    "google": "num",
    "vertex_ai_search": "pageSize",
    "semantic_scholar": "limit",
    "openalex": "per_page",
    "pubmed": "retmax",
    "crossref": "rows",
    "arxiv": "max_results",
    "exa": "numResults",
    "serper": "num",
    "brave": "count",
    "searxng": 30,
    "wikipedia": "srlimit",
    "anthropic": MODEL_RESULTS,
}
"""The parameter with the number of results, or the number that the service always gives."""
ROWS = {
    "tavily": "results",
    "google": "items",
    "vertex_ai_search": "results",
    "semantic_scholar": "data",
    "openalex": "results",
    "crossref": "message/items",
    "exa": "results",
    "serper": "organic",
    "brave": "web/results",
    "searxng": "results",
    "wikipedia": "query/search",
}
"""The place of the results in an answer; that of a model has blocks."""


@dataclass(frozen=True)
class Asked:
    """One request that arrived."""

    provider: str
    method: str
    path: str
    parameters: Mapping[str, str]
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def key(self) -> str | None:
        """The credential where the service looks for it."""
        if self.provider in KEY_PARAMETERS:
            return self.parameters.get(KEY_PARAMETERS[self.provider])
        return self.headers.get(KEY_HEADERS.get(self.provider, ""), "").removeprefix("Bearer ") or None

    @property
    def query(self) -> str:
        if self.provider == "anthropic":
            return str(json.loads(self.body["messages"][0]["content"])["query"])
        text = str((self.body or self.parameters).get(QUERIES[self.provider], ""))
        if self.provider == "arxiv":
            return " ".join(re.findall(r'all:"([^"]*)"', text))
        return text


@dataclass(frozen=True)
class Item:
    """One thing to find: its number counts from 0 in the service's own order."""

    number: int
    url: str
    title: str
    snippet: str
    kind: str = ""
    """`web`, `news` or `academic`; empty for all of them."""
    published: str = ""
    """The day; empty where a service shows the same one for everything."""


def items(count: int) -> list[Item]:
    """Things to find, with the markup that services put into their texts."""
    return [
        Item(
            n,
            f"https://site-{n}.example/page?id={n}",
            f"Result <b>number</b> {n}",
            f"About &quot;it&quot; <em>{n}</em>.",
        )
        for n in range(count)
    ]


def refused(asked: Asked) -> tuple[int, Any] | None:
    """What the service says of a key or a parameter that it does not take; None if all is well."""
    key, bad = KEYS.get(asked.provider), 422 if asked.provider == "brave" else 400
    if asked.path.endswith(":search") and asked.headers.get("authorization") == f"Bearer {ACCOUNT_TOKEN}":
        key = None  # the whole method takes no key
    if key is not None and asked.key != key and not (asked.provider in KEY_IS_OPTIONAL and asked.key is None):
        status = {
            "google": 400,
            "vertex_ai_search": 400,
            "pubmed": 400,
            "brave": 422,
            "semantic_scholar": 403,
            "serper": 403,
        }
        reason = {"brave": "SUBSCRIPTION_TOKEN_INVALID", "pubmed": "API key invalid", "serper": "Unauthorized."}
        return error(asked, status.get(asked.provider, 401), reason.get(asked.provider, "API key not valid"))
    if asked.path.endswith("/efetch.fcgi"):
        return None
    if asked.provider == "searxng" and asked.parameters.get("format") != "json":
        return error(asked, 403, "format")
    longest = {"tavily": 400, "brave": 400, "wikipedia": 300}.get(asked.provider, 100_000)
    most = {
        "tavily": 20,
        "google": 10,
        "vertex_ai_search": VERTEX_PAGE,
        "brave": 20,
        "semantic_scholar": 100,
        "wikipedia": 500,
        "crossref": 1_000,
    }
    known = KNOWN["brave_news" if "v1/news" in asked.path else asked.provider].split()
    try:
        count = count_of(asked)
        usable = 1 <= len(asked.query) <= longest and 1 <= count <= most.get(asked.provider, 100)
        usable = usable and asked.parameters.get("cx", CSE_ID) == CSE_ID
        usable = usable and asked.parameters.keys() | asked.body.keys() <= set(known)
    except (KeyError, ValueError, TypeError):
        usable = False
    return None if usable else error(asked, bad, "unknown: a parameter")


def error(asked: Asked, status: int, reason: str) -> tuple[int, Any]:
    """An error in the service's own form, which repeats key and query as careless services do."""
    said = f"{reason}; asked: {asked.query}; with: {asked.key}"
    bodies: dict[str, Any] = {
        "tavily": {"detail": {"error": said}},
        "google": {"error": {"code": status, "message": said, "errors": [{"domain": "global", "reason": reason}]}},
        "vertex_ai_search": {"error": {"code": status, "message": said, "status": reason}},
        "semantic_scholar": {"error": said} if status == 400 else {"message": said, "code": str(status)},
        "anthropic": {"type": "error", "error": {"type": reason, "message": said}},
        "openalex": {"error": reason, "message": said},
        "pubmed": {"error": reason, "api-key": asked.key, "type": "client", "status": reason},
        "crossref": {
            "status": "failed",
            "message-type": "validation-failure",
            "message": [{"type": "parameter-not-allowed", "value": asked.query, "message": reason}],
        },
        "exa": {"requestId": "0123", "error": said, "tag": reason},
        "serper": {"message": said, "statusCode": status},
        "brave": {"type": "ErrorResponse", "error": {"status": status, "code": reason, "detail": said}, "time": 1},
    }
    return status, bodies.get(asked.provider, f"<!doctype html><title>{status}</title><p>{said}</p>")


def found(asked: Asked, all_items: Sequence[Item]) -> Any:
    """A good answer: the page of the items that was asked for.

    Domains, languages and days are not applied: clients must not rely on it that a service does.
    """
    matching = [item for item in all_items if item.kind in {"", _kind(asked)}]
    start = int((asked.body or asked.parameters).get("pageToken") or 0)
    end = start + count_of(asked)
    answer = ANSWERS[asked.provider](asked, matching[start:end], len(matching))
    if asked.provider == "vertex_ai_search" and end < len(matching):
        answer["nextPageToken"] = str(end)
    return answer


def _kind(asked: Asked) -> str:
    """The type of source that is searched for."""
    if asked.provider == "searxng":
        return {"general": "web", "news": "news", "science": "academic"}[asked.parameters["categories"]]
    if asked.provider in PAPERS or asked.body.get("category") == "research paper":
        return "academic"
    return "news" if "news" in (*asked.path.split("/"), asked.body.get("topic"), asked.body.get("category")) else "web"


def count_of(asked: Asked) -> int:
    """The number of results that is asked for, or that the service always gives."""
    if asked.path.endswith("/efetch.fcgi"):
        return len(asked.parameters["id"].split(","))
    count = COUNTS[asked.provider]
    return count if isinstance(count, int) else int((asked.body or asked.parameters)[count])


def encoded(answer: Any) -> tuple[str, bytes]:
    """Media type and bytes of an answer."""
    if isinstance(answer, str) and answer.startswith("<?xml"):
        return "application/xml; charset=utf-8", answer.encode()
    if isinstance(answer, str):
        return "text/html; charset=utf-8", answer.encode()
    return "application/json; charset=utf-8", json.dumps(answer).encode()


def message(*blocks: Any) -> Any:
    """An answer of the Messages API with these blocks."""
    usage = {"input_tokens": 2_000, "output_tokens": 100, "server_tool_use": {"web_search_requests": 1}}
    message = {
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": list(blocks),
        "stop_reason": "end_turn",
    }
    return message | {"usage": usage | {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}}


def _tavily(asked: Asked, page: Sequence[Item], total: int) -> Any:
    rows = [{"title": i.title, "url": i.url, "content": i.snippet, "score": 0.9, "raw_content": None} for i in page]
    if asked.body["topic"] == "news":
        rows = [row | {"published_date": item.published} for row, item in zip(rows, page, strict=True)]
    return {"query": asked.query, "answer": None, "images": [], "results": rows, "response_time": 0.5}


def _google(asked: Asked, page: Sequence[Item], total: int) -> Any:
    rows = [
        {
            "kind": "customsearch#result",
            "title": i.title,
            "link": i.url,
            "snippet": i.snippet,
            "pagemap": {
                "metatags": [{"article:published_time": i.published or "2024-05-17", "author": "Ada Lovelace"}]
            },
        }
        for i in page
    ]
    base = {"kind": "customsearch#search", "searchInformation": {"totalResults": str(total)}}
    return {**base, "items": rows} if rows else base


def _vertex(asked: Asked, page: Sequence[Item], total: int) -> Any:
    rows = [
        {
            "id": f"{i.number:032x}",
            "document": {
                "name": f"{APP}/branches/0/documents/{i.number:032x}",
                "id": f"{i.number:032x}",
                "derivedStructData": {
                    "title": i.title,
                    "link": i.url,
                    "displayLink": "site.example",
                    "snippets": [{"snippet": i.snippet, "snippet_status": "SUCCESS"}],
                    "pagemap": {"metatags": [{"article:published_time": i.published or "2024-05-17"}]},
                },
            },
        }
        for i in page
    ]
    base: dict[str, Any] = {"attributionToken": "wAHw_QoM", "summary": {}}
    return {**base, "results": rows, "totalSize": total} if rows else base


def _semantic_scholar(asked: Asked, page: Sequence[Item], total: int) -> Any:
    rows = [
        {
            "paperId": f"{i.number:040x}",
            "title": i.title,
            "abstract": i.snippet,
            "authors": [{"authorId": "1", "name": "Ada Lovelace"}, {"authorId": "2", "name": "Alan Turing"}],
            "year": 2021,
            "publicationDate": i.published or ("2021-03-04" if i.number % 2 == 0 else None),
            "venue": "Journal of Examples",
            "externalIds": {"DOI": f"10.1234/example.{i.number}", "CorpusId": i.number},
            "url": f"https://www.semanticscholar.org/paper/{i.number:040x}",
            "openAccessPdf": {"url": i.url, "status": "GREEN"},
        }
        for i in page
    ]
    return {"total": total, "offset": 0, "data": rows} if total else {"total": 0, "offset": 0}


def _openalex(asked: Asked, page: Sequence[Item], total: int) -> Any:
    rows = [
        {
            "id": f"https://openalex.org/W{i.number}",
            "doi": f"https://doi.org/10.1234/example.{i.number}",
            "display_name": i.title,
            "publication_year": 2021,
            "publication_date": i.published or "2021-03-04",
            "authorships": [
                {
                    "author_position": "first",
                    "author": {"id": "https://openalex.org/A1", "display_name": "Ada Lovelace"},
                },
                {"author_position": "last", "author": {"id": "https://openalex.org/A2", "display_name": "Alan Turing"}},
            ],
            "primary_location": {
                "is_oa": False,
                "landing_page_url": f"https://doi.org/10.1234/example.{i.number}",
                "pdf_url": None,
                "source": {"id": "https://openalex.org/S1", "display_name": "Journal of Examples"},
            },
            "best_oa_location": {"is_oa": True, "landing_page_url": i.url, "pdf_url": i.url, "license": "cc-by"},
            "abstract_inverted_index": {word: [n] for n, word in enumerate(i.snippet.split())},
        }
        for i in page
    ]
    return {"meta": {"count": total, "page": 1, "per_page": count_of(asked)}, "results": rows, "group_by": []}


def _crossref(asked: Asked, page: Sequence[Item], total: int) -> Any:
    rows = [
        {
            "DOI": f"10.1234/example.{i.number}",
            "title": [i.title],
            "abstract": f"<jats:p>{i.snippet}</jats:p>",
            "author": [
                {"given": "Ada", "family": "Lovelace", "sequence": "first", "affiliation": []},
                {"name": "Analytical Society", "sequence": "additional", "affiliation": []},
            ],
            "issued": {"date-parts": [[int(part) for part in (i.published or "2021-03-04").split("-")]]},
            "container-title": ["Journal of Examples"],
            "license": [
                {
                    "start": {"date-parts": [[2021, 3, 4]], "date-time": "2021-03-04T00:00:00Z"},
                    "content-version": "vor",
                    "delay-in-days": 0,
                    "URL": "https://creativecommons.org/licenses/by/4.0/",
                }
            ],
            "link": [
                {
                    "URL": i.url,
                    "content-type": "application/pdf",
                    "content-version": "vor",
                    "intended-application": "text-mining",
                }
            ],
        }
        for i in page
    ]
    message = {"facets": {}, "total-results": total, "items": rows, "items-per-page": count_of(asked), "query": {}}
    return {"status": "ok", "message-type": "work-list", "message-version": "1.0.0", "message": message}


def in_xml(text: str) -> str:
    """A text as XML may contain it."""
    return escape(re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", "", text))


def atom_entry(number: int, title: str, summary: str, published: str = "", doi: str = "") -> str:
    """A paper as arXiv writes it."""
    address = f"arxiv.org/abs/2103.{number:05}v2"
    written_doi = f"<arxiv:doi>{doi}</arxiv:doi>" if doi else ""
    return f"""<entry><id>http://{address}</id><title>{in_xml(title)}</title><updated>2022-01-01T00:00:00Z</updated>
<link href="https://{address}" rel="alternate" type="text/html"/>
<link href="https://arxiv.org/pdf/2103.{number:05}v2" rel="related" type="application/pdf" title="pdf"/>
<summary>  {in_xml(summary)}\n</summary><published>{published or "2021-03-04"}T09:00:00Z</published>{written_doi}
<author><name>Ada Lovelace</name><arxiv:affiliation>Analytical Society</arxiv:affiliation></author>
<author><name>Alan Turing</name></author><category term="cs.IR" scheme="http://arxiv.org/schemas/atom"/></entry>"""


def atom_feed(*entries: str) -> str:
    """An answer of arXiv."""
    return f"""<?xml version='1.0' encoding='UTF-8'?>
<feed xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/" xmlns:arxiv="http://arxiv.org/schemas/atom"
 xmlns="http://www.w3.org/2005/Atom"><id>https://arxiv.org/api/x</id><title>arXiv Query</title>
<opensearch:totalResults>{len(entries)}</opensearch:totalResults>{"".join(entries)}</feed>"""


def _arxiv(asked: Asked, page: Sequence[Item], total: int) -> Any:
    return atom_feed(*(atom_entry(i.number, i.title, i.snippet, i.published) for i in page))


def pubmed_article(
    identity: str, title: str, parts: str, published: str = "", *, pmc: str = "", doi: str = "", cited: str = ""
) -> str:
    """A paper as PubMed writes it; `parts` are the elements of its abstract, title and parts are XML."""
    year, month, day = (published or "2021-03-04").split("-")
    archived = f'<ArticleId IdType="pmc">{pmc}</ArticleId>' if pmc else ""
    named = f'<ArticleId IdType="doi">{doi}</ArticleId>' if doi else ""
    return f"""<PubmedArticle><MedlineCitation Status="MEDLINE" Owner="NLM"><PMID Version="1">{identity}</PMID>
<Article PubModel="Print"><Journal><JournalIssue><PubDate><Year>2021</Year><Month>Apr</Month></PubDate></JournalIssue>
<Title>Journal of Examples</Title></Journal><ArticleTitle>{title}</ArticleTitle><Abstract>{parts}</Abstract>
<AuthorList><Author><LastName>Lovelace</LastName><ForeName>Ada</ForeName></Author>
<Author><CollectiveName>Analytical Society</CollectiveName></Author></AuthorList>
<ArticleDate DateType="Electronic"><Year>{year}</Year><Month>{month}</Month><Day>{day}</Day></ArticleDate>
</Article></MedlineCitation><PubmedData><ArticleIdList><ArticleId IdType="pubmed">{identity}</ArticleId>{named}{archived}
</ArticleIdList><ReferenceList><Reference><ArticleIdList>{cited}</ArticleIdList></Reference></ReferenceList></PubmedData>
</PubmedArticle>"""


def pubmed_set(*articles: str) -> str:
    """An answer of `efetch`."""
    return f"""<?xml version="1.0" ?>
<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle, 1st January 2025//EN"
 "https://dtd.nlm.nih.gov/ncbi/pubmed/out/pubmed_250101.dtd">
<PubmedArticleSet>{"".join(articles)}</PubmedArticleSet>"""


def _pubmed(asked: Asked, page: Sequence[Item], total: int) -> Any:
    if asked.path.endswith("/esearch.fcgi"):
        names = [str(1_000 + i.number) for i in page]
        result = {"count": str(total), "retmax": str(len(names)), "retstart": "0", "idlist": names}
        return {"header": {"type": "esearch", "version": "0.3"}, "esearchresult": result}
    wanted = asked.parameters["id"].split(",")
    return pubmed_set(
        *(
            pubmed_article(
                str(1_000 + i.number),
                in_xml(i.title),
                f"<AbstractText>{in_xml(i.snippet)}</AbstractText>",
                i.published,
                pmc=f"PMC{1_000 + i.number}",
                doi=f"10.1234/example.{i.number}",
            )
            for i in page
            if str(1_000 + i.number) in wanted
        )
    )


def _exa(asked: Asked, page: Sequence[Item], total: int) -> Any:
    rows = [
        {
            "id": i.url,
            "title": i.title,
            "url": i.url,
            "publishedDate": f"{i.published or '2024-05-17'}T00:00:00.000Z",
            "author": "Ada Lovelace",
            "highlights": [i.snippet],
            "highlightScores": [0.5],
        }
        for i in page
    ]
    return {"requestId": "0123", "resolvedSearchType": "neural", "results": rows, "costDollars": {"total": 0.007}}


def _serper(asked: Asked, page: Sequence[Item], total: int) -> Any:
    rows = [
        {"title": i.title, "link": i.url, "snippet": i.snippet, "date": i.published or "May 17, 2024", "position": n}
        for n, i in enumerate(page, start=1)
    ]
    asked_for = {"q": asked.query, "type": asked.path.strip("/"), "engine": "google"}
    place = "news" if asked.path == "/news" else "organic"
    return {"searchParameters": asked_for, **({place: rows} if rows else {}), "credits": 1}


def _brave(asked: Asked, page: Sequence[Item], total: int) -> Any:
    rows = [
        {
            "title": i.title,
            "url": i.url,
            "description": i.snippet,
            "page_age": f"{i.published or '2024-05-17'}T08:00:00",
            "age": "May 17, 2024",
        }
        for i in page
    ]
    if "news" in asked.path:
        return {"type": "news", "results": rows}
    return {"type": "search"} | ({"web": {"type": "search", "results": rows}} if rows else {})


def _searxng(asked: Asked, page: Sequence[Item], total: int) -> Any:
    rows = [
        {
            "url": i.url,
            "title": i.title,
            "content": i.snippet,
            "category": "science" if i.number == 1 else asked.parameters["categories"],
            "publishedDate": i.published or ("2024-05-17T00:00:00" if i.number == 1 else None),
            "authors": ["Ada Lovelace"] if i.number == 1 else None,
            "doi": "10.1234/example" if i.number == 1 else None,
        }
        for i in page
    ]
    return {"query": asked.query, "number_of_results": total, "results": rows, "unresponsive_engines": []}


def _wikipedia(asked: Asked, page: Sequence[Item], total: int) -> Any:
    rows = [
        {
            "title": f"Page {i.number}: a title",
            "snippet": f'About <span class="searchmatch">it</span> {i.number}',
            "timestamp": "2024-05-17T08:00:00Z",
        }
        for i in page
    ]
    language = "en" if asked.path.startswith("/w/") else asked.path.split("/")[1]
    general = {"server": f"https://{language}.wikipedia.example", "articlepath": "/wiki/$1"}
    return {"batchcomplete": True, "query": {"general": general, "search": rows}}


def _anthropic(asked: Asked, page: Sequence[Item], total: int) -> Any:
    days = [date.fromisoformat(i.published) if i.published else None for i in page]
    ages = [f"{day:%B} {day.day}, {day.year}" if day else None for day in days]
    rows = [
        {"type": "web_search_result", "title": i.title, "url": i.url, "encrypted_content": "About", "page_age": age}
        for i, age in zip(page, ages, strict=True)
    ]
    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": asked.query}}
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": rows}
    return message(call, result, {"type": "text", "text": "See https://invented.example/ for all of it."})


ANSWERS: dict[str, Callable[[Asked, Sequence[Item], int], Any]] = {
    "tavily": _tavily,
    "google": _google,
    "vertex_ai_search": _vertex,
    "semantic_scholar": _semantic_scholar,
    "openalex": _openalex,
    "pubmed": _pubmed,
    "crossref": _crossref,
    "arxiv": _arxiv,
    "exa": _exa,
    "serper": _serper,
    "brave": _brave,
    "searxng": _searxng,
    "wikipedia": _wikipedia,
    "anthropic": _anthropic,
}
