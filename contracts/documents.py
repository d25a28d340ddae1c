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


class ConfidenceSummary(Contract):
    """How many findings are well supported."""

    high: int = 0
    medium: int = 0
    low: int = 0


class ReportDraft(Contract):
    """A draft in the content store. Markers are evidence ids in brackets: `[ev-…]`.

    `characters`, `has_headings` and `unresolved_markers` are what the report gate looks at.
    """

    document: DocumentRef
    section_documents: list[DocumentRef] = []
    """The head with the title, then each section: one after the other they are the draft, to the character."""
    revision: int = 1
    """A revision counts on; a report that is written anew begins at 1."""
    title: str = ""
    summary: str = ""
    sections: list[str] = []
    word_count: int = 0
    characters: int = 0
    has_headings: bool = False
    evidence_ids: list[str] = []
    """Evidence cited, in order of first appearance."""
    unresolved_markers: list[str] = []
    """Markers that named nothing known; removed from the draft and reported."""
    foreign_urls: list[str] = []
    """Addresses outside the source registry; removed from the draft and reported."""
    not_left_out: list[str] = []
    """What was to be left out, and has a section of its own in the report, or several statements."""
    confidence: ConfidenceSummary = ConfidenceSummary()
    iteration: int = 1
    answers_question: bool | None = None
    """False where the writer found that no passage answers in the form that is asked for; null: not judged."""
    unanswered: str = ""
    """Why it does not, as a clause."""
    direct: bool = False
    """True for an answer that was given without research: it cites nothing."""
    empty: bool = False
    """True for the brief that says that nothing was found: it cites nothing."""
