"""What each search service answers, in the form that it documents: results, and its own way of refusing."""

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


KNOWN = {
    "tavily": """query max_results search_depth topic include_answer include_raw_content include_images include_domains
        exclude_domains start_date end_date time_range country""",
    "google": "q cx num start lr sort siteSearch siteSearchFilter dateRestrict alt",
    "semantic_scholar": "query fields limit offset publicationDateOrYear",
    "brave": "q count offset result_filter text_decorations search_lang freshness country",
    "brave_news": "q count offset search_lang freshness country",
    "searxng": "q format pageno categories language time_range",
    "wikipedia": "action format formatversion list srsearch srlimit sroffset srprop meta siprop",
    "anthropic": "model max_tokens system messages tools tool_choice",
    "anthropic_tool": "type name max_uses allowed_domains blocked_domains user_location",
}
"""Every parameter that is documented and that a client of ours may send."""
BRAVE_LANGUAGES = set(
    """ar eu bn bg ca zh-hans zh-hant hr cs da nl en en-gb et fi fr gl de gu he hi hu is it jp kn ko lv lt ms ml mr nb
    pl pt-br pt-pt pa ro ru sr sk sl es sv ta te th tr uk vi""".split()
)
OWN_NAMES = {"iw": "he", "jp": "ja", "zh-CN": "zh", "zh-hans": "zh", "pt-br": "pt"}
SITE = re.compile(r"(?<!\S)\(?(-?)site:([^\s()]+)\)?")
RANGES = {"day": 1, "week": 7, "month": 31, "year": 366}


class BadParameterError(Exception):
    """A name or a value that the service does not know."""


@dataclass
class Wanted:
    """What the parameters ask for."""

    kind: str = "web"
    allow: list[str] = field(default_factory=list)
    deny: list[str] = field(default_factory=list)
    language: str | None = None
    first: date = date.min
    last: date = date.max

    def holds(self, item: Item) -> bool:
        """Whether the service would give this."""
        host = "." + re.split(r"[/:?#]", item.url.partition("//")[2], maxsplit=1)[0]
        day = date.fromisoformat(item.published) if item.published else None
        return (
            item.kind in {"", self.kind}
            and (not self.allow or any(host.endswith("." + name) for name in self.allow))
            and not any(host.endswith("." + name) for name in self.deny)
            and (self.language is None or item.language in {"", self.language})
            and (day is None or self.first <= day <= self.last)
        )


def wanted(asked: Asked) -> Wanted:
    """What is asked for. Raises `BadParameterError`."""
    known = "brave_news" if "news" in asked.path else asked.provider
    _only(asked.parameters, "" if asked.body else KNOWN[known])
    _only(asked.body, KNOWN[known])
    return READERS[asked.provider](asked)


def _tavily(asked: Asked) -> Wanted:
    topic = _one_of(asked.body.get("topic", "general"), {"general": "web", "news": "news"})
    lists = [asked.body.get(name, []) for name in ("include_domains", "exclude_domains")]
    if any(not isinstance(given, list) or not all("." in host for host in given) for given in lists):
        raise BadParameterError("domains")
    first, last = (asked.body.get(name) for name in ("start_date", "end_date"))
    return Wanted(topic, *lists, None, *_days(first, last))


def _google(asked: Asked) -> Wanted:
    given = asked.parameters
    allow, deny = _sites(given["q"])
    if "siteSearch" in given:
        (allow if _one_of(given["siteSearchFilter"], {"i": True, "e": False}) else deny).append(given["siteSearch"])
    language = _one_of(given["lr"], _google_languages()) if "lr" in given else None
    found = re.fullmatch(r"date:r:([0-9]{8}):([0-9]{8})", given.get("sort", "date:r:00010101:99991231"))
    if found is None:
        raise BadParameterError("sort")
    first, last = (date(int(text[:4]), int(text[4:6]), int(text[6:])) for text in found.groups())
    return Wanted("web", allow, deny, language, first, last)


def _semantic_scholar(asked: Asked) -> Wanted:
    if "-" in asked.parameters["query"]:
        raise BadParameterError("words with a hyphen match nothing")
    first, colon, last = asked.parameters.get("publicationDateOrYear", ":").partition(":")
    if not colon:
        raise BadParameterError("publicationDateOrYear")
    return Wanted("academic", [], [], None, *_days(first or None, last or None))


def _brave(asked: Asked) -> Wanted:
    given = asked.parameters
    if "search_lang" in given and given["search_lang"] not in BRAVE_LANGUAGES:
        raise BadParameterError("search_lang")
    code = given.get("search_lang")
    first, to, last = given.get("freshness", "0001-01-01to9999-12-31").partition("to")
    if not to or not first or not last:
        raise BadParameterError("freshness")
    language = OWN_NAMES.get(code, code) if code else None
    return Wanted("news" if "news" in asked.path else "web", *_sites(given["q"]), language, *_days(first, last))


def _searxng(asked: Asked) -> Wanted:
    given = asked.parameters
    if any(re.match(r"[!:?]|<[0-9]", word) for word in given["q"].split()):
        raise BadParameterError("a word that leads elsewhere")
    kind = _one_of(given.get("categories", "general"), {"general": "web", "news": "news", "science": "academic"})
    if not re.fullmatch(r"all|[a-z]{2,3}(-[a-zA-Z]{2})?", given.get("language", "all")):
        raise BadParameterError("language")
    back = _one_of(given["time_range"], RANGES) if "time_range" in given else None
    first = datetime.now(UTC).date() - timedelta(days=back) if back else date.min
    language = None if given.get("language", "all") == "all" else given["language"]
    return Wanted(kind, *_sites(given["q"]), language, first)


def _wikipedia(asked: Asked) -> Wanted:
    language = asked.path.split("/")[1]
    return Wanted("web", language=None if language == "w" else language)


def _anthropic(asked: Asked) -> Wanted:
    (tool,) = asked.body["tools"]
    _only(tool, KNOWN["anthropic_tool"])
    if (tool["type"], tool["name"]) != ("web_search_20250305", "web_search") or tool["max_uses"] < 1:
        raise BadParameterError("tools")
    choice = asked.body["tool_choice"]
    if choice.get("name", "web_search" if choice["type"] == "auto" else "") != "web_search":
        raise BadParameterError("tool_choice")
    if asked.body["max_tokens"] < 1:
        raise BadParameterError("max_tokens")
    if {"allowed_domains", "blocked_domains"} <= tool.keys():
        raise BadParameterError("only one of the two lists")
    if list(json.loads(asked.body["messages"][0]["content"])) != ["query"]:
        raise BadParameterError("messages")
    return Wanted("web", tool.get("allowed_domains", []), tool.get("blocked_domains", []))


READERS: dict[str, Callable[[Asked], Wanted]] = {
    "tavily": _tavily,
    "google": _google,
    "semantic_scholar": _semantic_scholar,
    "brave": _brave,
    "searxng": _searxng,
    "wikipedia": _wikipedia,
    "anthropic": _anthropic,
}


def _only(given: Mapping[str, Any], known: str) -> None:
    unknown = given.keys() - set(known.split())
    if unknown:
        raise BadParameterError(min(unknown))


def _one_of(value: str, values: Mapping[str, Any]) -> Any:
    if value not in values:
        raise BadParameterError(value)
    return values[value]


def _days(first: str | None, last: str | None) -> tuple[date, date]:
    try:
        return date.fromisoformat(first or "0001-01-01"), date.fromisoformat(last or "9999-12-31")
    except ValueError:
        raise BadParameterError("a date") from None


def _sites(query: str) -> tuple[list[str], list[str]]:
    found: Sequence[tuple[str, str]] = SITE.findall(query)
    return [host for sign, host in found if not sign], [host for sign, host in found if sign]


@cache
def _google_languages() -> dict[str, str]:
    """The values of `lr` that the description of the interface lists."""
    methods = json.loads(get_static_doc("customsearch", "v1"))["resources"]["cse"]["methods"]
    codes = re.findall(r"lang_([A-Za-z-]+)", methods["list"]["parameters"]["lr"]["description"])
    return {f"lang_{code}": OWN_NAMES.get(code, code) for code in codes}
