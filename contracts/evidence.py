"""Evidence, findings, gaps: what was learnt, and from which words of which document."""

from pydantic import Field

from contracts.base import Contract
from contracts.vocabulary import Confidence, GapKind, GapStatus, Severity


class Evidence(Contract):
    """A verbatim passage: `text[start:end]` of the stored text of its source."""

    id: str
    source_id: str
    start: int = Field(ge=0)
    end: int = Field(ge=1)
    quote_hash: str
    """SHA-256 of the quote: what `research audit` compares."""
    heading: str = ""
    sub_query_id: str | None = None


class Finding(Contract):
    """A statement with the evidence that supports it."""

    id: str
    statement: str = Field(max_length=600)
    confidence: Confidence = Confidence.LOW
    evidence_ids: list[str] = []
    source_ids: list[str] = []
    sub_query_id: str | None = None
    category: str | None = None
    iteration: int = 1


class Gap(Contract):
    """What is still missing."""

    id: str
    description: str = Field(max_length=400)
    kind: GapKind = GapKind.MISSING
    status: GapStatus = GapStatus.OPEN
    severity: Severity = Severity.MODERATE
    priority: int = Field(default=1, ge=1)
    suggested_queries: list[str] = []
    origin: str = "analysis"
    """`analysis`, `sub_query:<id>`, `steer`."""
    resolved_by: list[str] = []
    iteration: int = 1


class QualityUpdate(Contract):
    """The analyzer's opinion of a source."""

    source_id: str
    quality: str
