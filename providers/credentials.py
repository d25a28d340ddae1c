"""What a key can look like: anything else breaks the header that it is sent in."""

import re
from typing import Final

from providers.errors import NotConfigured

HEADER_VALUE: Final = re.compile(r"[!-~]+")


def ensure_key(key: str, variable: str) -> None:
    """Raises `NotConfigured`, which names the variable and never the value, for what cannot be a key."""
    if not HEADER_VALUE.fullmatch(key):
        raise NotConfigured(f"{variable} holds characters that no key has")
