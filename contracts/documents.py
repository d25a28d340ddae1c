"""References to what lies in the content store: big things travel by reference."""

from pydantic import Field

from contracts.base import Contract
from contracts.shapes import DOCUMENT_HASH


class DocumentRef(Contract):
    """A stored document: content-addressed, immutable."""

    hash: str = Field(pattern=DOCUMENT_HASH.pattern)
    media_type: str = "text/plain"
    size: int = Field(default=0, ge=0, description="characters for text, bytes for anything else")


class SectionHint(Contract):
    """A part of a document that retrieval found relevant: character range into the stored text."""

    start: int = Field(ge=0)
    end: int = Field(ge=0)
    heading: str = ""
    score: float = 0.0
