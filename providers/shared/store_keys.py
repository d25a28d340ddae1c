"""Keys of shared stores as bytes, and the parts that they are made of."""

from typing import Final
from urllib.parse import quote

BEYOND: Final = b"\xff"
"""After every text: no UTF-8 holds this byte."""


def key_bytes(key: str) -> bytes:
    """A key as a store keeps it; any text is allowed, half of a surrogate pair too."""
    return key.encode("utf-8", "surrogatepass")


def end_of_prefix(prefix: bytes) -> bytes:
    """The least bytes that stand after every key with this prefix."""
    return prefix + BEYOND


def quote_part(text: str) -> str:
    """A text as one part of a key: it holds no slash, and different texts give different parts."""
    return quote(text, safe="", errors="surrogatepass")
