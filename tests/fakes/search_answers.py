"""What each search service answers, in the form that it documents: results, and its own way of refusing."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from tests.fakes.search_narrowing import BadParameterError, wanted

PROVIDERS = ("tavily", "google", "semantic_scholar", "brave", "searxng", "wikipedia", "anthropic")
KEYS = {
    name: f"planted-{name}-key-0123456789" for name in ("tavily", "google", "semantic_scholar", "brave", "anthropic")
}
CSE_ID = "0123456789abcdef0"
MODEL = "claude-haiku-4-5"
MODEL_RESULTS = 10
"""So many results a search by the model gives."""
PATHS = {
    "tavily": "POST /search",
    "google": "GET /customsearch/v1",
    "semantic_scholar": "GET /graph/v1/paper/search",
    "brave": "GET /res/v1/(web|news)/search",
    "searxng": "GET /search",
    "wikipedia": "GET (/[a-z]{2,3})?/w/api.php",
    "anthropic": "POST /v1/messages",
}
"""Method and path as a pattern; the wiki's language is its host elsewhere, and the first part of the path here."""


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
        places = {
            "tavily": self.headers.get("authorization", "").removeprefix("Bearer "),
            "google": self.headers.get("x-goog-api-key", self.parameters.get("key", "")),
            "semantic_scholar": self.headers.get("x-api-key", ""),
            "brave": self.headers.get("x-subscription-token", ""),
            "anthropic": self.headers.get("x-api-key", ""),
        }
        return places.get(self.provider) or None

    @property
    def query(self) -> str:
        """What is searched for."""
        if self.provider == "anthropic":
            return str(json.loads(self.body["messages"][0]["content"])["query"])
        names = {"tavily": "query", "semantic_scholar": "query", "wikipedia": "srsearch"}
        return str((self.body or self.parameters).get(names.get(self.provider, "q"), ""))


@dataclass(frozen=True)
class Item:
    """One thing to find: its number counts from 0 in the service's own order."""

    number: int
    url: str
    title: str
    snippet: str
    kind: str = ""
    """`web`, `news` or `academic`; empty for all of them."""
    language: str = ""
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
    """What the service says of a key or a parameter that it does not take; null if all is well."""
    key = KEYS.get(asked.provider)
    if key is not None and asked.key != key and not (asked.provider == "semantic_scholar" and asked.key is None):
        status = {"google": 400, "brave": 422, "semantic_scholar": 403}.get(asked.provider, 401)
        return error(asked, status, "SUBSCRIPTION_TOKEN_INVALID" if asked.provider == "brave" else "API key not valid")
    given = {**asked.parameters, **{name: value for name, value in asked.body.items() if isinstance(value, int)}}
    numbers = {
        name: int(given[name])
        for name in ("max_results", "num", "start", "count", "offset", "limit", "srlimit")
        if name in given
    }
    most = {"max_results": 20, "num": 10, "count": 50 if "news" in asked.path else 20, "limit": 100, "srlimit": 500}
    too_long = {"tavily": 400, "brave": 400, "wikipedia": 300}.get(asked.provider, 100_000)
    wrong = (
        not asked.query
        or len(asked.query) > too_long
        or any(not 1 <= numbers[name] <= most[name] for name in numbers.keys() & most.keys())
        or (asked.provider == "google" and numbers["start"] + numbers["num"] > 101)
        or (asked.provider == "google" and asked.parameters.get("cx") != CSE_ID)
        or (asked.provider == "brave" and not 0 <= numbers["offset"] <= 9)
        or (asked.provider == "brave" and len(asked.query.split()) > 50)
        or (asked.provider == "semantic_scholar" and numbers["offset"] + numbers["limit"] > 1_000)
    )
    if asked.provider == "anthropic" and not asked.headers.get("anthropic-version"):
        return error(asked, 400, "anthropic-version: header is required")
    if asked.provider == "searxng" and asked.parameters.get("format") != "json":
        return error(asked, 403, "format")
    if wrong:
        return error(asked, 422 if asked.provider == "brave" else 400, "a parameter is out of range")
    try:
        wanted(asked)
    except (BadParameterError, KeyError, ValueError, TypeError) as unknown:
        return error(asked, 422 if asked.provider == "brave" else 400, f"unknown: {unknown}")
    return None


def error(asked: Asked, status: int, reason: str) -> tuple[int, Any]:
    """An error in the service's own form, which repeats key and query as careless services do."""
    said = f"{reason}; asked: {asked.query}; with: {asked.key}"
    bodies: dict[str, Any] = {
        "tavily": {"detail": {"error": said}},
        "google": {"error": {"code": status, "message": said, "errors": [{"domain": "global", "reason": reason}]}},
        "semantic_scholar": {"error": said} if status == 400 else {"message": said, "code": str(status)},
        "anthropic": {"type": "error", "error": {"type": reason, "message": said}},
        "brave": {"type": "ErrorResponse", "error": {"status": status, "code": reason, "detail": said}, "time": 1},
    }
    return status, bodies.get(asked.provider, f"<!doctype html><title>{status}</title><p>{said}</p>")


def found(asked: Asked, all_items: Sequence[Item], *, ignore_limits: bool = False) -> Any:
    """A good answer: the page of the items that was asked for, or all of them from a service that ignores limits."""
    first, count = _window(asked)
    narrowed = wanted(asked)
    matching = [item for item in all_items if narrowed.holds(item)]
    page = matching if ignore_limits else matching[first : first + count]
    return ANSWERS[asked.provider](asked, page, first, len(matching))


def _window(asked: Asked) -> tuple[int, int]:
    given = asked.parameters
    if asked.provider == "tavily":
        return 0, int(asked.body["max_results"])
    if asked.provider == "anthropic":
        return 0, MODEL_RESULTS
    if asked.provider == "google":
        return int(given["start"]) - 1, int(given["num"])
    if asked.provider == "brave":
        return int(given["offset"]) * int(given["count"]), int(given["count"])
    if asked.provider == "searxng":
        return (int(given.get("pageno", "1")) - 1) * 30, 30
    if asked.provider == "wikipedia":
        return int(given["sroffset"]), int(given["srlimit"])
    return int(given["offset"]), int(given["limit"])


def _tavily(asked: Asked, page: Sequence[Item], first: int, total: int) -> Any:
    rows = [
        {
            "title": i.title,
            "url": i.url,
            "content": i.snippet,
            "score": 0.9,
            "raw_content": None,
            **({"published_date": i.published} if asked.body["topic"] == "news" else {}),
        }
        for i in page
    ]
    return {"query": asked.query, "answer": None, "images": [], "results": rows, "response_time": 0.5}


def _google(asked: Asked, page: Sequence[Item], first: int, total: int) -> Any:
    rows = [
        {
            "kind": "customsearch#result",
            "title": i.title,
            "link": i.url,
            "snippet": i.snippet,
            "pagemap": {
                "metatags": [
                    {"article:published_time": i.published or "2024-05-17T08:00:00Z", "author": "Ada Lovelace"}
                ]
            },
        }
        for i in page
    ]
    base = {"kind": "customsearch#search", "searchInformation": {"totalResults": str(total)}}
    return {**base, "items": rows} if rows else base


def _semantic_scholar(asked: Asked, page: Sequence[Item], first: int, total: int) -> Any:
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
    if not total:
        return {"total": 0, "offset": first}
    following = {"next": first + len(page)} if first + len(page) < total else {}
    return {"total": total, "offset": first, **following, "data": rows}


def _brave(asked: Asked, page: Sequence[Item], first: int, total: int) -> Any:
    rows = [
        {
            "type": "search_result",
            "title": i.title,
            "url": i.url,
            "description": i.snippet,
            "page_age": f"{i.published or '2024-05-17'}T08:00:00",
            "age": "May 17, 2024",
        }
        for i in page
    ]
    if "news" in asked.path:
        return {"type": "news", "query": {"original": asked.query}, "results": rows}
    answer = {"type": "search", "query": {"original": asked.query, "more_results_available": bool(rows)}}
    return {**answer, "web": {"type": "search", "results": rows}} if rows else answer


def _searxng(asked: Asked, page: Sequence[Item], first: int, total: int) -> Any:
    category = asked.parameters.get("categories", "general")
    rows = [
        {
            "url": i.url,
            "title": i.title,
            "content": i.snippet,
            "engine": "example",
            "category": "science" if i.number == 1 else category,
            "publishedDate": i.published or ("2024-05-17T00:00:00" if i.number == 1 else None),
            "authors": ["Ada Lovelace"] if i.number == 1 else None,
            "doi": "10.1234/example" if i.number == 1 else None,
        }
        for i in page
    ]
    return {"query": asked.query, "number_of_results": total, "results": rows, "unresponsive_engines": []}


def _wikipedia(asked: Asked, page: Sequence[Item], first: int, total: int) -> Any:
    rows = [
        {
            "ns": 0,
            "title": f"Page {i.number}: a title",
            "pageid": i.number,
            "snippet": f'About <span class="searchmatch">it</span> {i.number}',
            "timestamp": "2024-05-17T08:00:00Z",
        }
        for i in page
    ]
    language = "en" if asked.path.startswith("/w/") else asked.path.split("/")[1]
    general = {"server": f"https://{language}.wikipedia.example", "articlepath": "/wiki/$1", "sitename": "Wikipedia"}
    return {"batchcomplete": True, "query": {"general": general, "searchinfo": {"totalhits": total}, "search": rows}}


def _anthropic(asked: Asked, page: Sequence[Item], first: int, total: int) -> Any:
    rows = [
        {
            "type": "web_search_result",
            "title": i.title,
            "url": i.url,
            "encrypted_content": "About",
            "page_age": f"{date.fromisoformat(i.published):%B} {int(i.published[8:])}, {i.published[:4]}"
            if i.published
            else None,
        }
        for i in page
    ]
    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": asked.query}}
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": rows}
    return message(call, result, {"type": "text", "text": "See https://invented.example/ for all of it."})


def message(*blocks: Any, stop_reason: str = "end_turn", searches: int = 1) -> Any:
    """An answer of the Messages API that holds these blocks."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": list(blocks),
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {
            "input_tokens": 2_000,
            "output_tokens": 100,
            "cache_read_input_tokens": 0,
            "cache_creation_input_tokens": 0,
            "server_tool_use": {"web_search_requests": searches, "web_fetch_requests": 0},
        },
    }


ANSWERS = {
    "tavily": _tavily,
    "google": _google,
    "semantic_scholar": _semantic_scholar,
    "brave": _brave,
    "searxng": _searxng,
    "wikipedia": _wikipedia,
    "anthropic": _anthropic,
}


def encoded(answer: Any) -> tuple[str, bytes]:
    """Media type and bytes of an answer."""
    if isinstance(answer, str):
        return "text/html; charset=utf-8", answer.encode()
    return "application/json; charset=utf-8", json.dumps(answer).encode()
