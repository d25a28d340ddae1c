"""Exclusions of a request: words, names or domains barred from sources, passages and searches. Pure."""

from collections.abc import Iterable
from urllib.parse import urlsplit

from contracts.addresses import normalize
from contracts.names import OWN_SCHEMES


def is_excluded(title: str, url: str, exclude: Iterable[str]) -> bool:
    """Return true for a source whose title contains an exclusion, or whose host or folder is one."""
    return any(mentions(title, exclusion) or _is_below(url, exclusion) for exclusion in exclude)


def mentions_any(text: str, exclude: Iterable[str]) -> bool:
    """Return true if a text contains one of the exclusions."""
    return any(mentions(text, exclusion) for exclusion in exclude)


def mentions(text: str, exclusion: str) -> bool:
    """Return true if a text contains the exclusion as whole words in order, after NFKC and case folding."""
    if not _words(exclusion):
        return False
    return f" {_words(exclusion)} " in f" {_words(text)} "


def _words(text: str) -> str:
    folded = normalize("NFKC", text).casefold()
    words = "".join(character if character.isalnum() or character == "." else " " for character in folded).split()
    return " ".join(word.strip(".") for word in words)


def _is_below(url: str, exclusion: str) -> bool:
    """Return true if a place is the URL's host or a parent domain of it, or a path in an own document's URL."""
    folded = exclusion.casefold().strip("/ ")
    if not folded:
        return False
    if url.startswith(OWN_SCHEMES):
        return f"/{folded}/" in f"/{url.partition(':')[2].casefold()}/"
    host = urlsplit(url).hostname or ""
    return "." in folded and (host == folded or host.endswith(f".{folded}"))
