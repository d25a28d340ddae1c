"""Sources protected by a request: web pages and documents of its corpus, by address. Pure."""

import re
from typing import Final
from urllib.parse import unquote

from contracts.addresses import belongs_to, canonical_url, url_host
from contracts.exclusions import is_excluded
from contracts.names import CORPUS_SCHEME
from contracts.request import Mode, ResearchRequest, SearchOptions
from contracts.resolved import EffectiveSearch

NAMED: Final = "request"
"""Provider of a source named by the request itself."""
SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
UNSAFE: Final = re.compile(r"[\x00-\x20#?\\<>\"\x7f]")
"""Characters escaped in document addresses, besides the percent sign."""


def resolve_protected_sources(
    request: ResearchRequest, search: SearchOptions | EffectiveSearch
) -> tuple[list[str], list[str]]:
    """Return the distinct addresses of the protected sources, and one line for each problem."""
    urls = list[str]()
    lines = list[str]()
    for index, source in enumerate(request.protected_sources):
        try:
            url = _resolve_address(source, request.corpus)
            _check_against(url, request, search)
        except ValueError as problem:
            lines.append(f"protected_sources.{index}: {problem}")
        else:
            urls.append(url)
    urls = list(dict.fromkeys(urls))
    limit = request.limits.max_sources
    if limit is not None and limit < len(urls):
        lines.append("limits.max_sources: less than there are protected_sources; raise it, or protect fewer")
    if urls and request.mode is Mode.DIRECT:
        lines.append("mode: an answer without research reads no protected_sources; choose another mode")
    return urls, lines


def _resolve_address(source: str, corpus: str | None) -> str:
    """Return the address of a page or document as searches spell it. Raises ValueError."""
    if SCHEME.match(source):
        if not url_host(source):
            raise ValueError("no address of a page; write it like https://example.org/page")
        return canonical_url(source)
    name = corpus
    path = source.replace("%", "%25")
    if source.startswith(CORPUS_SCHEME):
        name, _, path = source.removeprefix(CORPUS_SCHEME).partition("/")
    if corpus is None:
        raise ValueError("a document of a corpus, and the request has none; name its `corpus`, or a whole address")
    if name != corpus:
        raise ValueError("a document of another corpus than the request's; name one of its own `corpus`")
    if any(part in {"", ".", ".."} for part in unquote(path).split("/")):
        raise ValueError("leads out of the corpus; write a path below its folder, like notes/plan.md")
    escaped = UNSAFE.sub(lambda sign: f"%{ord(sign[0]):02X}", path)
    return f"{CORPUS_SCHEME}{corpus}/{escaped}"


def _check_against(url: str, request: ResearchRequest, search: SearchOptions | EffectiveSearch) -> None:
    """Raise ValueError for an address that another part of the request excludes."""
    remedy = "take it from one of the two"
    host = url_host(url)
    allowed = search.domains_allow
    if host and _is_below(host, search.domains_deny):
        raise ValueError(f"its host is in search.domains_deny; {remedy}")
    if host and allowed and not _is_below(host, allowed):
        raise ValueError("its host is not in search.domains_allow; add it there, or do not protect it")
    if is_excluded("", url, request.exclude):
        raise ValueError(f"`exclude` keeps it out; {remedy}")


def _is_below(host: str, domains: list[str] | None) -> bool:
    return any(belongs_to(host, url_host(f"https://{domain}")) for domain in domains or [])
