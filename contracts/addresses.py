"""Addresses and identities: canonical URLs, digital object identifiers, stable ids. Pure."""

import hashlib
import posixpath
import re
import string
import unicodedata
from functools import lru_cache
from typing import Final, Literal
from urllib.parse import quote, unquote

from contracts.names import CORPUS_SCHEME, OWN_SCHEMES

MAX_MARKS: Final = 30
"""Per letter (Unicode's stream-safe format); normalizing a longer run takes quadratic time."""
POSSIBLE_MARKS: Final = re.compile(f"[^\x00-\u02ff]{{{MAX_MARKS + 1}}}")


def normalize(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Return the text in a Unicode normalization form, with at most thirty combining marks per letter."""
    return unicodedata.normalize(form, truncate_marks(text))


def truncate_marks(text: str) -> str:
    """Return the text with long runs of combining marks truncated."""
    if text.isascii() or not POSSIBLE_MARKS.search(text):
        return text
    characters = []
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks <= MAX_MARKS:
            characters.append(character)
    return "".join(characters)


TRACKING_NAMES: Final = frozenset(
    """__hsfp __hssc __hstc _branch_match_id _ga _gl _hsenc _hsmi _openstat action_object_map action_ref_map
    action_type_map cmpid dclid epik fb_action_ids fb_action_types fb_ref fb_source fbclid gad_campaignid
    gad_source gbraid gclid gclsrc guccounter guce_referrer guce_referrer_sig hsctatracking igsh igshid irclickid
    jsessionid li_fat_id mc_cid mc_eid mkt_tok ml_subscriber ml_subscriber_hash msclkid oly_anon_id oly_enc_id
    phpsessid rb_clickid ref_src ref_url s_cid s_kwcid srsltid trk trkcampaign ttclid twclid vero_conv vero_id
    wbraid wickedid wt.mc_id xtor yclid ysclid""".split()
)
"""Query parameters that track a visit and never identify a page."""

TRACKING_PREFIXES: Final = ("utm_", "mtm_", "pk_", "piwik_", "hsa_", "at_custom", "ns_mchannel", "ns_campaign")
"""Prefixes of tracking parameters."""

ADDRESS: Final = re.compile(r"(https?)://([^/?#]+)([^?#]*)(?:\?([^#]*))?(?:#.*)?", re.IGNORECASE | re.DOTALL)
HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]+)(?::([0-9]{0,5}))?", re.ASCII)
INVALID_IN_HOST: Final = re.compile(r"[\x00-\x20\x7f/?#@:\\%\[\]<>^|]")
DOT_VARIANTS: Final = re.compile("[。．｡]")
SESSION_IN_PATH: Final = re.compile(r";jsessionid=[^/;]*", re.IGNORECASE)
ESCAPE: Final = re.compile("%([0-9A-Fa-f]{2})?")
UNESCAPED: Final = string.ascii_letters + string.digits + "-._~!'()*,:@"
"""Characters with the same meaning escaped or plain: the unreserved ones, and some that separate nothing."""
SEPARATORS: Final = "/;=&+$"
DEFAULT_PORTS: Final = {"http": 80, "https": 443}
MAX_PORT: Final = 65_535
CACHE_SIZE: Final = 8_192
PLACE_CHARACTERS: Final = 80
PLACE_MARKS: Final = " []`'\"“”"  # around a place in a prompt
UNSAFE_IN_PATH: Final = re.compile(r"[\x00-\x20%#?\\<>\"\x7f]")
"""Characters of a path that the address of a document has escaped."""


@lru_cache(maxsize=CACHE_SIZE)
def canonical_url(url: str) -> str:
    """Return the canonical form of an http(s) URL, and any other or unparsable text unchanged. Never raises.

    Lower-case scheme and host, the host in ASCII without a trailing dot; no default port, user info or fragment; one
    spelling of escapes; no dot segments or tracking parameters. Fragments, `#!` included, are never sent to a server,
    so they do not change the page. Idempotent.
    """
    match = ADDRESS.fullmatch(url)
    if match is None:
        return url
    scheme = match[1].lower()
    authority = match[2]
    path = match[3]
    query = match[4]
    host_match = HOST.fullmatch(authority.rpartition("@")[2])
    host = _host(host_match[1]) if host_match else ""
    if host_match is None or not host:
        return url
    port = int(host_match[2]) if host_match[2] else DEFAULT_PORTS[scheme]
    if port > MAX_PORT:
        return url
    netloc = host if port == DEFAULT_PORTS[scheme] else f"{host}:{port}"
    address = f"{scheme}://{netloc}{_path(path)}"
    if query_string := _query(query or ""):
        address += f"?{query_string}"
    return address


def url_host(url: str) -> str:
    """Return the host of a canonical http(s) URL, without the port; empty for anything else."""
    match = ADDRESS.fullmatch(canonical_url(url))
    host_match = HOST.fullmatch(match[2]) if match else None
    return host_match[1] if host_match else ""


def page_place(url: str) -> str:
    """Return the path of a document in its collection, or the host of a web page; the end of a long one."""
    is_own = url.startswith(OWN_SCHEMES)
    if is_own:
        place = unquote(url.partition("/")[2])
    else:
        place = url_host(url).removeprefix("www.")
    place = " ".join(place.split())
    if len(place) <= PLACE_CHARACTERS:
        return place
    return f"…{place[-PLACE_CHARACTERS:]}"


def document_at(collection: str, place: str) -> str:
    """Return the address of the document at a place of a collection; empty for a place outside of it.

    `place` is a path as prompts show it, with or without the brackets around it, or a whole address.
    """
    named = place.strip(PLACE_MARKS).removeprefix(f"{CORPUS_SCHEME}{collection}/").partition("#")[0]
    path = named.removeprefix("./").lstrip("/")
    if not path or ":" in path.partition("/")[0] or ".." in path.split("/"):
        return ""
    return f"{CORPUS_SCHEME}{collection}/{UNSAFE_IN_PATH.sub(lambda one: f'%{ord(one[0]):02X}', path)}"


def linked_place(url: str, link: str) -> str:
    """Return the place in its collection to which a document's relative link leads; empty for any other link."""
    target = unquote(link.partition("#")[0].partition("?")[0])
    if not url.startswith(CORPUS_SCHEME) or not target or target.startswith("/") or ":" in target.partition("/")[0]:
        return ""
    own = unquote(url.partition("/")[2])
    place = posixpath.normpath(posixpath.join(posixpath.dirname(own), target))
    if place == own or place.startswith(".."):
        return ""
    return place


def name_page(title: str, url: str) -> str:
    """Return the title of a page with its place in brackets, since “13.1. Introduction” says little by itself."""
    place = page_place(url)
    return f"{title} [{place}]" if place else title


def belongs_to(host: str, domain: str) -> bool:
    """Return whether a host is a domain or a subdomain of it: `notnature.com` does not belong to `nature.com`."""
    return host == domain or host.endswith("." + domain)


def _host(text: str) -> str:
    """Return the host in ASCII; empty for an invalid one."""
    if text.startswith("["):
        return text.lower()
    host = DOT_VARIANTS.sub(".", text)
    for _ in range(2):  # the compatibility form of a letter may be a capital
        host = "".join(map(str.lower, normalize("NFKC", host)))
    host = host.rstrip(".")
    if INVALID_IN_HOST.search(host):  # a compatibility form may hide a separator (`⁈`)
        return ""
    # IDNA 2008 leaves `ß` as it is; the standard library's IDNA 2003 codec would merge two sites.
    labels = (label if label.isascii() else "xn--" + label.encode("punycode").decode() for label in host.split("."))
    try:
        return ".".join(labels)
    except UnicodeError:
        return ""


def _path(path: str) -> str:
    resolved: list[str] = []
    segments = SESSION_IN_PATH.sub("", _respell(path, UNESCAPED)).split("/")[1:]
    for segment in segments:
        if segment == "..":
            del resolved[-1:]
        elif segment != ".":
            resolved.append(segment)
    if segments and segments[-1] in {".", ".."}:
        resolved.append("")
    return "/" + "/".join(resolved)


def _query(query: str) -> str:
    pairs = _respell(query, UNESCAPED + "/?").replace("%20", "+").split("&")
    names = [pair.partition("=")[0].lower() for pair in pairs]
    tracking = [name in TRACKING_NAMES or name.startswith(TRACKING_PREFIXES) for name in names]
    return "&".join(pair for pair, tracks in zip(pairs, tracking, strict=True) if pair and not tracks)


def _respell(text: str, plain: str) -> str:
    """Return the text with one spelling of each character, plain or escaped."""

    def spell(escape: re.Match[str]) -> str:
        character = chr(int(escape[1] or "25", 16))  # a bare `%`
        if character in plain:
            return character
        return f"%{ord(character):02X}"

    return quote(ESCAPE.sub(spell, text), safe=plain + SEPARATORS + "%", errors="surrogatepass")


DOI: Final = re.compile(r"10\.[0-9]{4,9}/[^\s\"{}|\\^`]{1,200}")
"""Old DOIs contain `<` and `>`: 10.1002/(SICI)1097-4571(199806)49:8<693::AID-ASI4>3.0.CO;2-O."""
DOI_LABEL: Final = re.compile(r"\s*(?:doi\s*:\s*)?(?=10\.)", re.IGNORECASE)
ARXIV: Final = re.compile(
    r"/(?:abs|pdf|html)/([0-9]{4}\.[0-9]{4,5}|[a-z-]+(?:\.[A-Za-z]{2})?/[0-9]{7})(?:v[0-9]+)?(?:\.pdf)?/?"
)
MAX_DOI_TEXT: Final = 2_048


@lru_cache(maxsize=CACHE_SIZE)
def find_doi(text: str | None) -> str | None:
    """Return the lower-case DOI of a text (`10.1000/1`, `doi:10.1000/1`) or of a doi.org or arXiv URL.

    None unless the whole text is one DOI, because many DOIs share a prefix. Never raises.
    """
    if not text or len(text) > MAX_DOI_TEXT:
        return None
    host = url_host(text)
    match = ADDRESS.fullmatch(canonical_url(text))
    path = unquote(match[3]) if match else ""
    if belongs_to(host, "arxiv.org"):
        paper = ARXIV.fullmatch(path)
        if not paper:
            return None
        return f"10.48550/arxiv.{paper[1].lower()}"
    label = DOI_LABEL.match(text)
    if belongs_to(host, "doi.org"):
        name = path[1:]
    elif not host and label:
        name = text[label.end() :]
    else:
        return None
    doi = name.strip().lower().rstrip(".,;:/")
    return doi if DOI.fullmatch(doi) else None


def digest(data: str | bytes) -> str:
    """Return the SHA-256 of a text or of bytes, as `sha256:<hex>`."""
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass")
    return "sha256:" + hashlib.sha256(data).hexdigest()


def short_hash(*parts: object) -> str:
    """Hash the parts, in order, to ten hexadecimal digits, for names that are not worth forging."""
    return long_hash(*parts)[:10]


def long_hash(*parts: object) -> str:
    """Hash the parts, in order, to 128 bits in hexadecimal digits, so that ids are collision-resistant."""
    joined = "\x1f".join(str(part) for part in parts)
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def normalized_text(text: str) -> str:
    """Return a text for comparing questions, without case, extra white space or punctuation at the ends."""
    folded = normalize("NFKC", text).casefold()
    return " ".join(folded.split()).strip(" .?!;:,")


def source_id(url: str) -> str:
    """Return the id of a source, from its URL."""
    return "src-" + long_hash(canonical_url(url))


def source_version_id(source: str, text_hash: str) -> str:
    """Return the id of another text of a source, in a document that cites two versions of one page."""
    return "src-" + long_hash(source, text_hash)


def sub_query_id(text: str) -> str:
    """Return the id of a sub-query, from its text."""
    return "sq-" + long_hash(normalized_text(text))


def evidence_id(source: str, start: int, end: int) -> str:
    """Return the id of a passage, from its source and offsets."""
    return "ev-" + long_hash(source, start, end)


def finding_id(statement: str, evidence_ids: list[str]) -> str:
    """Return the id of a finding, from its statement and evidence."""
    return "f-" + long_hash(statement, *evidence_ids)


def gap_id(description: str) -> str:
    """Return the id of a gap, from its description."""
    return "gap-" + long_hash(normalized_text(description))
