"""What each search service takes and answers, in the form that it documents, and its own way of refusing."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Any

from googleapiclient.discovery_cache import get_static_doc  # type: ignore[import-untyped]

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
KNOWN = {
    "tavily": """query max_results search_depth topic include_answer include_raw_content include_images include_domains
        exclude_domains start_date end_date""",
    "google": "q cx num start lr sort alt",
    "semantic_scholar": "query fields limit offset publicationDateOrYear",
    "brave": "q count offset result_filter text_decorations search_lang freshness",
    "brave_news": "q count offset search_lang freshness",
    "searxng": "q format pageno categories language time_range",
    "wikipedia": "action format formatversion list srsearch srlimit sroffset srprop meta siprop",
    "anthropic": "model max_tokens system messages tools tool_choice",
    "anthropic_tool": "type name max_uses allowed_domains blocked_domains",
}
"""Every documented parameter that a client of ours may send."""
BRAVE_LANGUAGES = set(
    """ar eu bn bg ca zh-hans zh-hant hr cs da nl en en-gb et fi fr gl de gu he hi hu is it jp kn ko lv lt ms ml mr nb
    pl pt-br pt-pt pa ro ru sr sk sl es sv ta te th tr uk vi""".split()
)
OWN_NAMES = {"iw": "he", "jp": "ja", "zh-CN": "zh", "zh-hans": "zh", "pt-br": "pt"}


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
        headers = {"google": "x-goog-api-key", "brave": "x-subscription-token", "tavily": "authorization"}
        return self.headers.get(headers.get(self.provider, "x-api-key"), "").removeprefix("Bearer ") or None

    @property
    def query(self) -> str:
        """The words of the search."""
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


class BadParameterError(Exception):
    """A name or a value that the service does not know."""


@dataclass
class Wanted:
    """The meaning of the parameters: which part of the results, and which of them."""

    first: int
    count: int
    kind: str = "web"
    allow: Sequence[str] = ()
    deny: Sequence[str] = ()
    language: str | None = None
    days: tuple[date, date] = field(default=(date.min, date.max))

    def admits(self, item: Item) -> bool:
        """Whether the service would give this."""
        host = "." + re.split(r"[/:?#]", item.url.partition("//")[2], maxsplit=1)[0]
        day = date.fromisoformat(item.published) if item.published else None
        return (
            item.kind in {"", self.kind}
            and (not self.allow or any(host.endswith("." + name) for name in self.allow))
            and not any(host.endswith("." + name) for name in self.deny)
            and (self.language is None or item.language in {"", self.language})
            and (day is None or self.days[0] <= day <= self.days[1])
        )


def refused(asked: Asked) -> tuple[int, Any] | None:
    """What the service says of a key or a parameter that it does not take; None if all is well."""
    key, bad = KEYS.get(asked.provider), 422 if asked.provider == "brave" else 400
    if key is not None and asked.key != key and not (asked.provider == "semantic_scholar" and asked.key is None):
        status = {"google": 400, "brave": 422, "semantic_scholar": 403}.get(asked.provider, 401)
        return error(asked, status, "SUBSCRIPTION_TOKEN_INVALID" if asked.provider == "brave" else "API key not valid")
    if asked.provider == "searxng" and asked.parameters.get("format") != "json":
        return error(asked, 403, "format")
    longest = {"tavily": 400, "brave": 400, "wikipedia": 300}.get(asked.provider, 100_000)
    most = {"tavily": 20, "google": 10, "brave": 20, "semantic_scholar": 100, "wikipedia": 500}
    try:
        wanted = _wanted(asked)
        _check(1 <= len(asked.query) <= longest, "length of the query")
        _check(1 <= wanted.count <= most.get(asked.provider, 100), "number of results")
    except (BadParameterError, KeyError, ValueError, TypeError) as unknown:
        return error(asked, bad, f"unknown: {unknown}")
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
    wanted = _wanted(asked)
    matching = [item for item in all_items if wanted.admits(item)]
    page = matching if ignore_limits else matching[wanted.first : wanted.first + wanted.count]
    return ANSWERS[asked.provider](asked, page, wanted.first, len(matching))


def encoded(answer: Any) -> tuple[str, bytes]:
    """Media type and bytes of an answer."""
    if isinstance(answer, str):
        return "text/html; charset=utf-8", answer.encode()
    return "application/json; charset=utf-8", json.dumps(answer).encode()


def message(*blocks: Any, stop_reason: str = "end_turn", searches: int = 1) -> Any:
    """An answer of the Messages API with these blocks."""
    usage = {"input_tokens": 2_000, "output_tokens": 100, "server_tool_use": {"web_search_requests": searches}}
    return {
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": list(blocks),
        "stop_reason": stop_reason,
        "usage": usage | {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 0},
    }


def _wanted(asked: Asked) -> Wanted:
    """The meaning of a request. Raises `BadParameterError`, and whatever a missing or malformed parameter raises."""
    known = "brave_news" if "news" in asked.path else asked.provider
    _only(asked.parameters, "" if asked.body else KNOWN[known])
    _only(asked.body, KNOWN[known])
    return READERS[asked.provider](asked)


def _read_tavily(asked: Asked) -> Wanted:
    given = asked.body
    allow, deny = given.get("include_domains", []), given.get("exclude_domains", [])
    _check(all("." in host for host in (*allow, *deny)), "domains")
    kind = {"general": "web", "news": "news"}[given["topic"]]
    return Wanted(
        0, given["max_results"], kind, allow, deny, None, _days(given.get("start_date"), given.get("end_date"))
    )


def _read_google(asked: Asked) -> Wanted:
    given = asked.parameters
    allow, deny = _sites(given["q"])
    start, count = int(given["start"]), int(given["num"])
    _check(start + count <= 101 and given["cx"] == CSE_ID, "start or cx")
    language = _google_languages()[given["lr"]] if "lr" in given else None
    ends = re.fullmatch(r"date:r:(\d{8}):(\d{8})", given.get("sort", "date:r:00010101:99991231"))
    first, last = (date(int(end[:4]), int(end[4:6]), int(end[6:])) for end in ends.groups()) if ends else _fail("sort")
    return Wanted(start - 1, count, "web", allow, deny, language, (first, last))


def _read_semantic_scholar(asked: Asked) -> Wanted:
    given = asked.parameters
    _check("-" not in given["query"], "words with a hyphen match nothing")
    _check(int(given["offset"]) + int(given["limit"]) <= 1_000, "window")
    first, last = given.get("publicationDateOrYear", ":").split(":")
    return Wanted(int(given["offset"]), int(given["limit"]), "academic", days=_days(first, last))


def _read_brave(asked: Asked) -> Wanted:
    given, code = asked.parameters, asked.parameters.get("search_lang")
    _check(code is None or code in BRAVE_LANGUAGES, "search_lang")
    _check(0 <= int(given["offset"]) <= 9 and len(given["q"].split()) <= 50, "offset or words")
    count, kind = int(given["count"]), "news" if "news" in asked.path else "web"
    first, last = given.get("freshness", "0001-01-01to9999-12-31").split("to")
    language = OWN_NAMES.get(code, code) if code else None
    return Wanted(int(given["offset"]) * count, count, kind, *_sites(given["q"]), language, _days(first, last))


def _read_searxng(asked: Asked) -> Wanted:
    given, language = asked.parameters, asked.parameters.get("language")
    _check(not any(re.match(r"[!:?]|<[0-9]", word) for word in given["q"].split()), "a word that leads elsewhere")
    _check(language is None or re.fullmatch(r"[a-z]{2,3}", language) is not None, "language")
    kind = {"general": "web", "news": "news", "science": "academic"}[given["categories"]]
    back = {"day": 1, "week": 7, "month": 31, "year": 366}[given["time_range"]] if "time_range" in given else None
    first = datetime.now(UTC).date() - timedelta(days=back) if back else date.min
    return Wanted((int(given["pageno"]) - 1) * 30, 30, kind, *_sites(given["q"]), language, (first, date.max))


def _read_wikipedia(asked: Asked) -> Wanted:
    language = asked.path.split("/")[1]
    given = asked.parameters
    return Wanted(int(given["sroffset"]), int(given["srlimit"]), language=None if language == "w" else language)


def _read_anthropic(asked: Asked) -> Wanted:
    (tool,) = asked.body["tools"]
    _only(tool, KNOWN["anthropic_tool"])
    choice = asked.body["tool_choice"]
    _check((tool["type"], tool["name"], tool["max_uses"]) == ("web_search_20250305", "web_search", 1), "tools")
    _check(choice.get("name", "web_search" if choice["type"] == "auto" else "") == "web_search", "tool_choice")
    _check(not {"allowed_domains", "blocked_domains"} <= tool.keys(), "only one of the two lists")
    _check(list(json.loads(asked.body["messages"][0]["content"])) == ["query"], "messages")
    _check(asked.body["max_tokens"] >= 1 and bool(asked.headers["anthropic-version"]), "max_tokens")
    return Wanted(0, MODEL_RESULTS, "web", tool.get("allowed_domains", []), tool.get("blocked_domains", []))


READERS: dict[str, Callable[[Asked], Wanted]] = {
    "tavily": _read_tavily,
    "google": _read_google,
    "semantic_scholar": _read_semantic_scholar,
    "brave": _read_brave,
    "searxng": _read_searxng,
    "wikipedia": _read_wikipedia,
    "anthropic": _read_anthropic,
}


def _check(holds: bool, parameter: str) -> None:
    if not holds:
        raise BadParameterError(parameter)


def _fail(parameter: str) -> Any:
    raise BadParameterError(parameter)


def _only(given: Mapping[str, Any], known: str) -> None:
    _check(given.keys() <= set(known.split()), ", ".join(sorted(given)))


def _days(first: str | None, last: str | None) -> tuple[date, date]:
    return date.fromisoformat(first or "0001-01-01"), date.fromisoformat(last or "9999-12-31")


def _sites(query: str) -> tuple[list[str], list[str]]:
    sites: Sequence[tuple[str, str]] = re.findall(r"(?<!\S)\(?(-?)site:([^\s()]+)\)?", query)
    return [host for sign, host in sites if not sign], [host for sign, host in sites if sign]


@cache
def _google_languages() -> dict[str, str]:
    """The values of `lr` that the description of the interface lists."""
    methods = json.loads(get_static_doc("customsearch", "v1"))["resources"]["cse"]["methods"]
    codes = re.findall(r"lang_([A-Za-z-]+)", methods["list"]["parameters"]["lr"]["description"])
    return {f"lang_{code}": OWN_NAMES.get(code, code) for code in codes}


def _tavily(asked: Asked, page: Sequence[Item], first: int, total: int) -> Any:
    rows = [{"title": i.title, "url": i.url, "content": i.snippet, "score": 0.9, "raw_content": None} for i in page]
    if asked.body["topic"] == "news":
        rows = [row | {"published_date": item.published} for row, item in zip(rows, page, strict=True)]
    return {"query": asked.query, "answer": None, "images": [], "results": rows, "response_time": 0.5}


def _google(asked: Asked, page: Sequence[Item], first: int, total: int) -> Any:
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
    return {"total": total, "offset": first, "data": rows} if total else {"total": 0, "offset": first}


def _brave(asked: Asked, page: Sequence[Item], first: int, total: int) -> Any:
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


def _searxng(asked: Asked, page: Sequence[Item], first: int, total: int) -> Any:
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


def _wikipedia(asked: Asked, page: Sequence[Item], first: int, total: int) -> Any:
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


def _anthropic(asked: Asked, page: Sequence[Item], first: int, total: int) -> Any:
    days = [date.fromisoformat(i.published) if i.published else None for i in page]
    ages = [f"{day:%B} {day.day}, {day.year}" if day else None for day in days]
    rows = [
        {"type": "web_search_result", "title": i.title, "url": i.url, "encrypted_content": "About", "page_age": age}
        for i, age in zip(page, ages, strict=True)
    ]
    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": asked.query}}
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": rows}
    return message(call, result, {"type": "text", "text": "See https://invented.example/ for all of it."})


ANSWERS: dict[str, Callable[[Asked, Sequence[Item], int, int], Any]] = {
    "tavily": _tavily,
    "google": _google,
    "semantic_scholar": _semantic_scholar,
    "brave": _brave,
    "searxng": _searxng,
    "wikipedia": _wikipedia,
    "anthropic": _anthropic,
}
