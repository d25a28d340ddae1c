"""Digital object identifiers: found where a page's own address names them, never where a page only speaks of one."""

import re
from functools import lru_cache
from typing import Final

from contracts.web_addresses import REMEMBERED, belongs_to, canonical_url, host_of

DOI: Final = re.compile(r"10\.[0-9]{4,9}/[^\s\"{}|\\^`]{1,200}")
"""Old ones hold `<` and `>`: 10.1002/(SICI)1097-4571(199806)49:8<693::AID-ASI4>3.0.CO;2-O."""
MAY_NAME: Final = re.compile(r"10\.|%|arxiv|nature", re.IGNORECASE)
LABEL: Final = re.compile(r"\s*(?:doi\s*:\s*)?(?=10\.)", re.IGNORECASE)
ESCAPE: Final = re.compile(r"%([2-7][0-9A-F])")

RESOLVERS: Final = ("doi.org",)
PUBLISHERS: Final = (
    "acm.org", "acs.org", "aip.org", "annualreviews.org", "aps.org", "asm.org", "biorxiv.org", "bmj.com",
    "cambridge.org", "elifesciences.org", "emerald.com", "frontiersin.org", "informs.org", "iop.org", "medrxiv.org",
    "nejm.org", "plos.org", "pnas.org", "royalsocietypublishing.org", "rsc.org", "sagepub.com", "science.org",
    "springer.com", "tandfonline.com", "wiley.com", "worldscientific.com",
)  # fmt: skip
"""Sites whose own pages carry the identifier of the work that they show. A page of another site about a work (a
review, a citation index, a forgery) may carry it too: that is not the work."""

PLACE: Final = re.compile(
    r"/(?:[^?]*/)?(?:doi|articles?|chapter|book|content|abs|pdf|full|pr[a-z]|rmp)/(?:[a-z-]+/)*(?=10\.)"
)
PLOS_PLACE: Final = re.compile(r"[?&]id=(10\.[^&]*)")
AFTER: Final = re.compile(
    r"(?:/(?:full|pdf|epdf|pdfdirect|abstract|html|fulltext|meta|references|figures?|summary|xml|epub)(?:/.*)?"
    r"|\.full(?:[.-].*)?|\.pdf|\.html?)$",
    re.IGNORECASE,
)
BRACKETS: Final = {")": "(", "]": "[", ">": "<"}
PREPRINT_VERSION: Final = re.compile(r"(?<=[0-9])v[0-9]{1,2}$")
PREPRINT_PREFIX: Final = "10.1101/"
ARXIV: Final = re.compile(
    r"/(?:abs|pdf|html)/([0-9]{4}\.[0-9]{4,5}|[a-z-]+(?:\.[A-Za-z]{2})?/[0-9]{7})(?:v[0-9]+)?(?:\.pdf)?/?"
)


NATURE: Final = re.compile(r"/articles/([a-z]*[0-9][a-z0-9.-]*?)(?:\.pdf)?/?")
LONGEST: Final = 2_048


@lru_cache(maxsize=REMEMBERED)
def doi_of(text: str | None) -> str | None:
    """The identifier, in lower case, that a text is (`10.1000/1`, `doi:10.1000/1`) or that an address stands for.

    Addresses: those of the resolver, of arXiv, and of publishers that have the identifier in their paths. None for
    anything else, and for what is no identifier to its end: many may begin alike. Never raises.
    """
    if not text or len(text) > LONGEST or not MAY_NAME.search(text):
        return None
    host = host_of(text)
    if not host:
        label = LABEL.match(text)
        return _clean(text[label.end() :]) if label else None
    return _of_address(host, canonical_url(text))


def _of_address(host: str, url: str) -> str | None:
    path, _, query = url.partition("://")[2].partition("/")[2].partition("?")
    path = "/" + _unescape(path)
    if any(belongs_to(host, resolver) for resolver in RESOLVERS):
        return _clean(path[1:])
    if belongs_to(host, "arxiv.org"):
        paper = ARXIV.fullmatch(path)
        return f"10.48550/arxiv.{paper[1].lower()}" if paper else None
    if belongs_to(host, "nature.com"):
        article = NATURE.fullmatch(path)
        return f"10.1038/{article[1]}" if article else None
    if belongs_to(host, "plos.org"):
        named = PLOS_PLACE.search("?" + query)
        return _clean(AFTER.sub("", _unescape(named[1]))) if named else None
    if not any(belongs_to(host, publisher) for publisher in PUBLISHERS):
        return None
    place = PLACE.match(path)
    return _clean(AFTER.sub("", path[place.end() :])) if place else None


def _unescape(text: str) -> str:
    return ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), text)


def _clean(written: str) -> str | None:
    doi = _trim(written.strip().lower())
    return doi if DOI.fullmatch(doi) else None


def _trim(doi: str) -> str:
    """Without what the sentence around it left at the end; identifiers themselves may hold pairs of brackets."""
    before = ""
    while doi != before:
        before, doi = doi, doi.rstrip(".,;:/")
        if doi.endswith(tuple(BRACKETS)) and doi.count(doi[-1]) > doi.count(BRACKETS[doi[-1]]):
            doi = doi[:-1]
        if doi.startswith(PREPRINT_PREFIX):
            doi = PREPRINT_VERSION.sub("", doi)
    return doi
