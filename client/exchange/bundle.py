"""The form of a bundle: a ZIP file of a report, the stored texts behind it, and a manifest of hashes."""

import hashlib
import re
from typing import Final, Literal

from pydantic import Field

from contracts.base import StrictContract

MANIFEST: Final = "manifest.json"
REPORT: Final = "report.json"
MARKDOWN: Final = "report.md"
HTML: Final = "report.html"
MEMBER: Final = re.compile(r"manifest\.json|report\.(?:md|html|json)|texts/[0-9a-f]{64}\.txt")
"""Every name that a bundle may hold; there are no folders, no other places and no links."""

MOST_FILES: Final = 20_000
LARGEST_BYTES: Final = 500_000_000
"""Of all files together, unpacked: a report with a thousand sources is a fifth of it."""
SMALLEST_SUSPECT_BYTES: Final = 10_000_000
LARGEST_RATIO: Final = 200
"""How many times its size a file may unpack to, once it is large; written text has a ratio of three to twenty."""


class BundledFile(StrictContract):
    """A file of a bundle."""

    path: str = Field(max_length=200)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    bytes: int = Field(ge=0)


class Manifest(StrictContract):
    """`manifest.json`: what a bundle holds."""

    schema_version: Literal[1] = 1
    kind: Literal["durable-research-bundle"] = "durable-research-bundle"
    research_id: str
    product_version: str
    quotes_only: bool
    """Whether the whole texts of the sources were left out."""
    files: list[BundledFile] = Field(max_length=MOST_FILES)


def text_path(text_hash: str) -> str:
    """Where the stored text of this hash (`sha256:<hex>`) lies."""
    return f"texts/{text_hash.removeprefix('sha256:')}.txt"


def bundled_file(path: str, data: bytes) -> BundledFile:
    """The manifest's line on a file."""
    return BundledFile(path=path, sha256=hashlib.sha256(data).hexdigest(), bytes=len(data))
