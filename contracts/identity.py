"""Stable identities: a prefix and a hash of what the thing is, never random, so order and repetition change nothing."""

import hashlib

from contracts.doi import doi_of
from contracts.unicode_forms import normalize
from contracts.web_addresses import canonical_url

__all__ = [
    "canonical_url",
    "digest",
    "doi_of",
    "evidence_id",
    "finding_id",
    "gap_id",
    "long_hash",
    "normalized_text",
    "short_hash",
    "source_id",
    "sub_query_id",
]


def digest(text: str) -> str:
    """SHA-256 of a text as `sha256:<hex>`."""
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def short_hash(*parts: object) -> str:
    """Ten hexadecimal digits that stand for the parts in their order: for names that are not worth forging."""
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
