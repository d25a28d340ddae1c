"""Stable identities: a prefix and a hash of what the thing is, never random, so order and repetition change nothing."""

import hashlib
import re
import unicodedata
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

TRACKING_PARAMETERS = re.compile(r"^(utm_.*|gclid|fbclid|dclid|msclkid|mc_cid|mc_eid|igshid|ref_src)$")
DEFAULT_PORTS = {"http": 80, "https": 443}


def digest(text: str) -> str:
    """SHA-256 of a text as `sha256:<hex>`."""
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def short_hash(*parts: object) -> str:
    """Ten hexadecimal digits that stand for the parts in their order."""
    joined = "\x1f".join(str(part) for part in parts)
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()[:10]


def canonical_url(url: str) -> str:
    """The identity form of a URL: lower-case scheme and host, no default port, fragment or tracking parameters."""
    if url.startswith("corpus:"):
        return url
    parts = urlsplit(url)
    scheme, host = parts.scheme.lower(), (parts.hostname or "").lower()
    port = parts.port
    netloc = host if port is None or DEFAULT_PORTS.get(scheme) == port else f"{host}:{port}"
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    query = urlencode([pair for pair in pairs if not TRACKING_PARAMETERS.match(pair[0].lower())])
    return urlunsplit((scheme, netloc, parts.path or "/", query, ""))


def normalized_text(text: str) -> str:
    """A text for comparing questions: case, white space and punctuation at the ends do not count."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(folded.split()).strip(" .?!;:,")


def source_id(url: str) -> str:
    """Id of a source from its URL."""
    return "src-" + short_hash(canonical_url(url))


def sub_query_id(text: str) -> str:
    """Id of a sub-query from its words."""
    return "sq-" + short_hash(normalized_text(text))


def evidence_id(source: str, start: int, end: int) -> str:
    """Id of a passage from its place."""
    return "ev-" + short_hash(source, start, end)


def finding_id(statement: str, evidence_ids: list[str]) -> str:
    """Id of a finding from its words and its evidence."""
    return "f-" + short_hash(statement, *evidence_ids)


def gap_id(description: str) -> str:
    """Id of a gap from its words."""
    return "gap-" + short_hash(normalized_text(description))
