"""How each search service narrows down what it finds: its own parameters, read as documented and nothing else."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Any, Protocol

from googleapiclient.discovery_cache import get_static_doc  # type: ignore[import-untyped]

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


class Request(Protocol):
    """What is looked at of a request."""

    provider: str
    path: str
    parameters: Mapping[str, str]
    body: Mapping[str, Any]


class Findable(Protocol):
    """What is looked at of a thing to find; what it does not say never excludes it."""

    @property
    def url(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def language(self) -> str: ...
    @property
    def published(self) -> str: ...


@dataclass
class Wanted:
    """What the parameters ask for."""

    kind: str = "web"
    allow: list[str] = field(default_factory=list)
    deny: list[str] = field(default_factory=list)
    language: str | None = None
    first: date = date.min
    last: date = date.max

    def holds(self, item: Findable) -> bool:
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


def wanted(asked: Request) -> Wanted:
    """What is asked for. Raises `BadParameterError`."""
    known = "brave_news" if "news" in asked.path else asked.provider
    _only(asked.parameters, "" if asked.body else KNOWN[known])
    _only(asked.body, KNOWN[known])
    return READERS[asked.provider](asked)


def _tavily(asked: Request) -> Wanted:
    topic = _one_of(asked.body.get("topic", "general"), {"general": "web", "news": "news"})
    lists = [asked.body.get(name, []) for name in ("include_domains", "exclude_domains")]
    if any(not isinstance(given, list) or not all("." in host for host in given) for given in lists):
        raise BadParameterError("domains")
    first, last = (asked.body.get(name) for name in ("start_date", "end_date"))
    return Wanted(topic, *lists, None, *_days(first, last))


def _google(asked: Request) -> Wanted:
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


def _semantic_scholar(asked: Request) -> Wanted:
    if "-" in asked.parameters["query"]:
        raise BadParameterError("words with a hyphen match nothing")
    first, colon, last = asked.parameters.get("publicationDateOrYear", ":").partition(":")
    if not colon:
        raise BadParameterError("publicationDateOrYear")
    return Wanted("academic", [], [], None, *_days(first or None, last or None))


def _brave(asked: Request) -> Wanted:
    given = asked.parameters
    if "search_lang" in given and given["search_lang"] not in BRAVE_LANGUAGES:
        raise BadParameterError("search_lang")
    code = given.get("search_lang")
    first, to, last = given.get("freshness", "0001-01-01to9999-12-31").partition("to")
    if not to or not first or not last:
        raise BadParameterError("freshness")
    language = OWN_NAMES.get(code, code) if code else None
    return Wanted("news" if "news" in asked.path else "web", *_sites(given["q"]), language, *_days(first, last))


def _searxng(asked: Request) -> Wanted:
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


def _wikipedia(asked: Request) -> Wanted:
    language = asked.path.split("/")[1]
    return Wanted("web", language=None if language == "w" else language)


def _anthropic(asked: Request) -> Wanted:
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


READERS: dict[str, Callable[[Request], Wanted]] = {
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
