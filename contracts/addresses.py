"""Addresses and identities: canonical web addresses, digital object identifiers, stable ids of things. Pure."""

import hashlib
import re
import unicodedata
from functools import lru_cache
from typing import Final, Literal

MOST_MARKS: Final = 30
"""On one letter (Unicode's stream-safe format); a longer run is put in order in time that grows with its square."""
PERHAPS_MARKS: Final = re.compile(f"[^\x00-\u02ff]{{{MOST_MARKS + 1}}}")
LONG_RUN: Final = re.compile(b"\x01{%d,}+" % (MOST_MARKS + 1))


def normalize(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """The text in a form of Unicode, with at most thirty combining marks on a letter."""
    return unicodedata.normalize(form, with_few_marks(text))


def with_few_marks(text: str) -> str:
    """The text with runs of combining marks cut."""
    if not PERHAPS_MARKS.search(text):
        return text
    is_mark = bytes(map(bool, map(unicodedata.combining, text)))
    kept, start = [], 0
    for run in LONG_RUN.finditer(is_mark):
        kept.append(text[start : run.start() + MOST_MARKS])
        start = run.end()
    return "".join(kept) + text[start:]


TRACKING_NAMES: Final = frozenset(
    """__hsfp __hssc __hstc _branch_match_id _ga _gl _hsenc _hsmi _openstat action_object_map action_ref_map
    action_type_map cmpid dclid epik fb_action_ids fb_action_types fb_ref fb_source fbclid gad_campaignid
    gad_source gbraid gclid gclsrc guccounter guce_referrer guce_referrer_sig hsctatracking igsh igshid irclickid
    jsessionid li_fat_id mc_cid mc_eid mkt_tok ml_subscriber ml_subscriber_hash msclkid oly_anon_id oly_enc_id
    phpsessid rb_clickid ref_src ref_url s_cid s_kwcid srsltid trk trkcampaign ttclid twclid vero_conv vero_id
    wbraid wickedid wt.mc_id xtor yclid ysclid""".split()
)
"""Parameters about the visit to a page, never about its identity."""

TRACKING_PREFIXES: Final = ("utm_", "mtm_", "pk_", "piwik_", "hsa_", "at_custom", "ns_mchannel", "ns_campaign")
"""The same, for families of names."""

ADDRESS: Final = re.compile(r"(https?)://([^/?#]+)([^?#]*)(?:\?([^#]*))?(?:#.*)?", re.IGNORECASE | re.DOTALL)
HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]+)(?::([0-9]{0,5}))?", re.ASCII)
NOT_IN_A_HOST: Final = re.compile(r"[\x00-\x20\x7f/?#@:\\%\[\]<>^|]")
OTHER_DOTS: Final = re.compile("[。．｡]")
SESSION_IN_PATH: Final = re.compile(r";jsessionid=[^/;]*", re.IGNORECASE)
IN_PATH: Final = "A-Za-z0-9._~!'()*,:@-"
"""Characters that mean the same with and without their escape: the unreserved ones, and some that part nothing."""
IN_QUERY: Final = IN_PATH.removesuffix("-") + "/?-"
SEPARATORS: Final = "/;=&+$"
DEFAULT_PORTS: Final = {"http": 80, "https": 443}
LAST_PORT: Final = 65_535
REMEMBERED: Final = 8_192


def _to_respell(plain: str) -> re.Pattern[str]:
    """Match escapes, and characters that must be escaped."""
    return re.compile(rf"%([0-9A-Fa-f]{{2}})|([^{plain.removesuffix('-')}{SEPARATORS}-])", re.DOTALL)


PATH_SPELLING: Final = (_to_respell(IN_PATH), re.compile(f"[{IN_PATH}]"))
QUERY_SPELLING: Final = (_to_respell(IN_QUERY), re.compile(f"[{IN_QUERY}]"))


@lru_cache(maxsize=REMEMBERED)
def canonical_url(url: str) -> str:
    """The identity form of an http(s) address; anything else, and what cannot be parsed, stays as it is. Never raises.

    Lower-case scheme and host, the host in ASCII without a dot at its end, no default port, user or fragment; escapes
    in one spelling; no dot segments; no tracking parameters. A fragment is never sent to a server, so that what is
    read is the same with every one, `#!` too. Applied twice it changes nothing.
    """
    found = ADDRESS.fullmatch(url)
    if found is None:
        return url
    scheme, authority, path, query = found[1].lower(), found[2], found[3], found[4]
    place = HOST.fullmatch(authority.rpartition("@")[2])
    host = _host(place[1]) if place else ""
    if place is None or not host:
        return url
    port = int(place[2]) if place[2] else DEFAULT_PORTS[scheme]
    if port > LAST_PORT:
        return url
    netloc = host if port == DEFAULT_PORTS[scheme] else f"{host}:{port}"
    kept = _query(query or "")
    return f"{scheme}://{netloc}{_path(path)}" + (f"?{kept}" if kept else "")


def host_of(url: str) -> str:
    """The host of an http(s) address in its identity form, without a port; empty for anything else."""
    found = ADDRESS.fullmatch(canonical_url(url))
    place = HOST.fullmatch(found[2]) if found else None
    return place[1] if place else ""


def belongs_to(host: str, domain: str) -> bool:
    """Return whether a host is a domain or lies below it: `notnature.com` does not belong to `nature.com`."""
    return host == domain or host.endswith("." + domain)


def _host(written: str) -> str:
    if written.startswith("["):
        return written.lower()
    if written.isascii() and not NOT_IN_A_HOST.search(written):
        return written.lower().rstrip(".")
    folded = _fold(_fold(OTHER_DOTS.sub(".", written)))
    # A compatibility form may hide a separator (`⁈`): such a host has no identity.
    if NOT_IN_A_HOST.search(folded):
        return ""
    host = folded.rstrip(".")
    try:
        return ".".join(_label(label) for label in host.split("."))
    except UnicodeError:
        return ""


def _fold(text: str) -> str:
    return "".join(map(str.lower, normalize("NFKC", text)))


def _label(label: str) -> str:
    # The modern form (`ß` stays a letter of its own); the older codec of the standard library would merge two sites.
    return label if label.isascii() else "xn--" + label.encode("punycode").decode("ascii")


def _path(path: str) -> str:
    kept: list[str] = []
    segments = SESSION_IN_PATH.sub("", _respell(path, *PATH_SPELLING)).split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments and segments[-1] in {".", ".."}:
        kept.append("")
    return "/" + "/".join(kept)


def _query(query: str) -> str:
    pairs = _respell(query, *QUERY_SPELLING).replace("%20", "+").split("&")
    return "&".join(pair for pair in pairs if pair and not _tracks(pair.partition("=")[0].lower()))


def _tracks(name: str) -> bool:
    return name in TRACKING_NAMES or name.startswith(TRACKING_PREFIXES)


def _respell(text: str, doubtful: re.Pattern[str], plain: re.Pattern[str]) -> str:
    """Each character plain or escaped, whichever is its one spelling here."""

    def spell(match: re.Match[str]) -> str:
        if match[1] is not None:
            character = chr(int(match[1], 16))
            return character if plain.fullmatch(character) else "%" + match[1].upper()
        return "".join(f"%{byte:02X}" for byte in match[2].encode("utf-8", "surrogatepass"))

    return doubtful.sub(spell, text)


DOI: Final = re.compile(r"10\.[0-9]{4,9}/[^\s\"{}|\\^`]{1,200}")
"""Old ones contain `<` and `>`: 10.1002/(SICI)1097-4571(199806)49:8<693::AID-ASI4>3.0.CO;2-O."""
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
"""Sites whose own pages carry the identifier of their work. A page of another site about a work (a
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
    """Return the identifier in lower case of a text (`10.1000/1`, `doi:10.1000/1`) or of an address.

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
    """Remove punctuation of the sentence at the end; identifiers themselves may contain pairs of brackets."""
    before = ""
    while doi != before:
        before, doi = doi, doi.rstrip(".,;:/")
        if doi.endswith(tuple(BRACKETS)) and doi.count(doi[-1]) > doi.count(BRACKETS[doi[-1]]):
            doi = doi[:-1]
        if doi.startswith(PREPRINT_PREFIX):
            doi = PREPRINT_VERSION.sub("", doi)
    return doi


def digest(text: str) -> str:
    """SHA-256 of a text as `sha256:<hex>`."""
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def short_hash(*parts: object) -> str:
    """Hash the parts in their order to ten hexadecimal digits, for names that are not worth forging."""
    return long_hash(*parts)[:10]


def long_hash(*parts: object) -> str:
    """128 bits in hexadecimal digits, so that two things of one id cannot be found."""
    joined = "\x1f".join(str(part) for part in parts)
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def normalized_text(text: str) -> str:
    """A text for comparing questions: case, white space and punctuation at the ends do not count."""
    folded = normalize("NFKC", text).casefold()
    return " ".join(folded.split()).strip(" .?!;:,")


def source_id(url: str) -> str:
    """Id of a source from its URL."""
    return "src-" + long_hash(canonical_url(url))


def sub_query_id(text: str) -> str:
    """Id of a sub-query from its words."""
    return "sq-" + long_hash(normalized_text(text))


def evidence_id(source: str, start: int, end: int) -> str:
    """Id of a passage from its place."""
    return "ev-" + long_hash(source, start, end)


def finding_id(statement: str, evidence_ids: list[str]) -> str:
    """Id of a finding from its words and its evidence."""
    return "f-" + long_hash(statement, *evidence_ids)


def gap_id(description: str) -> str:
    """Id of a gap from its words."""
    return "gap-" + long_hash(normalized_text(description))
