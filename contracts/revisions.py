"""Revisions of a draft, and reports that are put together from sections: what is asked, and what is told of it."""

from contracts.base import Terse
from contracts.documents import DocumentRef, ReportDraft


class Removals(Terse):
    """What a revision leaves out on purpose."""

    sections: list[str] = []
    """Headings."""
    evidence_ids: list[str] = []
    """Passages that are not cited any more."""
    outline: bool = False
    """Whether the sections may stand in another order."""


class ReviseRequest(Terse):
    """A draft, and what is to become of it."""

    research_id: str
    tenant: str = "default"
    draft: ReportDraft
    sections: dict[int, DocumentRef] = {}
    """New texts of parts by their numbers from 0, the head included; all others stay word for word."""
    text: DocumentRef | None = None
    """A new text of the whole report, in place of `sections`."""
    removes: Removals = Removals()


class RevisedDraft(Terse):
    """The next revision, or why there is none."""

    draft: ReportDraft | None = None
    losses: list[str] = []
    """What it would have left out without saying so; then it was refused."""


class JoinRequest(Terse):
    """Sections that were written apart, and the frame around them."""

    research_id: str
    tenant: str = "default"
    frame: ReportDraft
    sections: list[DocumentRef]
    headings: list[str]
    """Of each section, where its text has none."""
