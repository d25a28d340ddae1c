"""Bounded updates of a live report: the role that writes them, and the activities that apply them.

A live report has the headings of the agreed outline, and grows by a few operations on one section at a time.
"""

from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import Field

from contracts.base import CompactModel, Contract
from contracts.evidence import DocumentRef, ReportDraft
from contracts.lenient import UnfitAnswer, known_word
from contracts.messages import RunRequest
from contracts.roles import FindingsInput, RoleAnswer, RoleSpec
from contracts.tokens import TokenShare
from contracts.vocabulary import ReportKind, Tier

LONGER_FIGURES: Final = {"title": "", "summary": "", "sections": [], "evidence_ids": [], "words_by_section": {}}
"""Empty, for a draft of which only the text counts: they follow from it, and a history need not have them."""
MOST_OPERATIONS: Final = 12
"""Of one update."""
MOST_REVISIONS: Final = 40
"""Earlier texts of a live report that can still be fetched by their hash."""


class OperationKind(StrEnum):
    """Change of a section."""

    APPEND = "append"
    PUT_AFTER = "put_after"
    REPLACE = "replace"


class Operation(Contract):
    """A change at one place of a section."""

    kind: Annotated[OperationKind, known_word(OperationKind, OperationKind.APPEND)] = OperationKind.APPEND
    anchor: int = Field(default=0, description="number of the sentence or list item; 0 for append")
    text: str = Field(description="Markdown with the markers of passages")


class UpdateInput(FindingsInput):
    """Hand-off to the reporter: one section as it is, the notes that belong into it, and the room."""

    SUBJECT = "heading"

    draft: DocumentRef | None = None
    """Text of the report; None where it has only its headings."""
    heading: str
    outline: list[str] = []
    purpose: str = ""
    most_characters: int = 800
    """Bound of the characters inserted and removed together."""
    finding_ids: list[str] = []
    """The notes in their order, stored ones included."""


class ReporterAnswer(RoleAnswer):
    """Operations on the section of the request."""

    operations: list[Operation]

    def fitted(self, request: UpdateInput, notes: list[str]) -> Self:
        """Require an operation where there are notes to report. Raises `UnfitAnswer`."""
        del notes
        if request.findings and not request.issues and not self.operations:
            raise UnfitAnswer("operations: at least one is needed, for there are notes to report")
        if len(self.operations) > MOST_OPERATIONS:
            raise UnfitAnswer(f"operations: at most {MOST_OPERATIONS} in one update")
        return self


class ReportUpdate(Contract):
    """Operations on one section, as they can be applied: their citations are evidence ids, `[ev-…]`."""

    heading: str
    base: str
    """Hash of the section's text before it: an update is applied to that text alone, so never twice."""
    operations: list[Operation] = []
    inserted: int = 0
    removed: int = 0
    """Characters, as the text of the draft counts them."""
    kind: ReportKind = ReportKind.REPORT
    """`passages` for the work of rules."""


class ReporterResult(RoleAnswer):
    """An update that fits the section, and the notes without room in it."""

    IS_REPORT = True

    update: ReportUpdate
    notes_left: list[str] = []
    """Ids of findings; they wait for the next update."""


REPORTER: Final = RoleSpec(
    "reporter", "write_report_update", Tier.COMPLEX, UpdateInput, ReporterAnswer, ReporterResult,
    share=TokenShare.SYNTHESIS, output_tokens=3_000, expected_output_tokens=500, work="synthesis",
)  # fmt: skip


class LiveReportRequest(RunRequest):
    """A live report: its text, and what the text keeps to."""

    base: ReportDraft | None = None
    """None where there is no text yet: then it is the title and the headings of the outline."""
    title: str = ""
    outline: list[str] = []
    most_characters: int


class UpdatesRequest(LiveReportRequest):
    """Updates to be applied in order; an update of a section that changed since it was written is refused."""

    updates: list[ReportUpdate] = []


class DraftStep(CompactModel):
    """A text that differs from the one before it by at most the bound."""

    draft: ReportDraft
    """Without its evidence; the last of several steps alone has the other longer figures."""
    inserted: int = 0
    removed: int = 0
    cited: list[str] = []
    """Evidence that this text cites and the one before it does not."""
    withdrawn: list[str] = []
    """Evidence that the one before it cites and this text does not."""


class AppliedUpdate(CompactModel):
    """Outcome of one update: the text after it, or the reason why the text is unchanged."""

    step: DraftStep | None = None
    refusal: str = ""
    """In plain English, with the remedy; empty for an applied update."""


class AppliedUpdates(CompactModel):
    """Outcome of each update in order."""

    base: ReportDraft | None = None
    """The headings of the outline, where the request has no text."""
    outcomes: list[AppliedUpdate] = []

    @property
    def draft(self) -> ReportDraft | None:
        """The newest text."""
        return next((each.step.draft for each in reversed(self.outcomes) if each.step), self.base)


class SplitRequest(LiveReportRequest):
    """A new text for a live report, to be reached by steps within the bound."""

    after: ReportDraft


class WithdrawRequest(LiveReportRequest):
    """Passages that do not count any more, with everything that a live report says from them."""

    evidence_ids: list[str]


class DraftSteps(CompactModel):
    """The way from one text to another; empty where they do not differ."""

    steps: list[DraftStep] = []
    unreached: int = 0
    """Changes of a single sentence, item or block that are greater than the bound: they were not made."""
