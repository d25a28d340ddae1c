"""Bounded updates of a live report: the role that writes them, and the activities that apply them.

A live report has the headings of the approved outline and grows by a few operations on one section at a time.
"""

from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import Field

from contracts.base import CompactModel, Contract
from contracts.evidence import DocumentRef, ReportDraft
from contracts.lenient import UnfitAnswer, member_or
from contracts.messages import RunRequest
from contracts.roles import ChosenFindingsInput, RoleAnswer, RoleSpec
from contracts.tokens import TokenShare
from contracts.vocabulary import ReportKind, Tier

MAX_OPERATIONS: Final = 12
"""Per update."""
SHOWN_SECTION_CHARACTERS: Final = 3_000
"""Of a section, as returned to the workflow after an update: about 500 words."""
CHARACTERS_PER_TOKEN: Final = 3
"""Of an update's text: names and code of manuals take more tokens than plain words."""
MARKER_TOKENS: Final = 14
"""Of the marker of one passage, whose digits are no words."""
REPEATED_MARKERS: Final = 1.5
"""Markers of an update for each passage of its notes: a passage is cited twice, and replaced sentences keep theirs."""
FRAME_TOKENS: Final = 250
"""Of the operations of an update around their texts, and of the notes that it names."""
HEADING_TOKENS: Final = 20
"""Of a heading's number and the frame of its list, where notes are assigned to headings."""
NUMBER_TOKENS: Final = 3
"""Of the number of a note in such a list."""
LEAST_ASKED_CHARACTERS: Final = 300
"""Of an update, however little room its answer has: two sentences."""
MAX_REVISIONS: Final = 40
"""Earlier versions of a live report that can still be fetched by hash."""


class OperationKind(StrEnum):
    """Kind of change to a section."""

    APPEND = "append"
    PUT_AFTER = "put_after"
    EXTEND = "extend"
    """Within a list item, after its last words; of a sentence the same as `put_after`."""
    REPLACE = "replace"
    REMOVE = "remove"
    """Only in a revision: a sentence or item that a remark of the review calls wrong, repeated or out of place."""


class Operation(Contract):
    """A change at one place in a section."""

    kind: Annotated[OperationKind, member_or(OperationKind, OperationKind.APPEND)] = OperationKind.APPEND
    anchor: int = Field(default=0, description="number of the sentence or list item; 0 for append")
    text: str = Field(default="", description="Markdown with passage markers; empty for remove")


def asked_of_limit(most_characters: int) -> int:
    """Return the characters of an update to ask for and to name, a tenth below the limit that is enforced."""
    return most_characters * 9 // 10


class UpdateInput(ChosenFindingsInput):
    """Hand-off to the reporter: one section, the notes for it, and the size limit."""

    SUBJECT = "heading"

    draft: DocumentRef | None = None
    """Text of the report; None if it has only headings."""
    heading: str
    outline: list[str] = []
    purpose: str = ""
    most_characters: int = 800
    """Limit of inserted plus removed characters, without markers of passages."""

    @property
    def asked_characters(self) -> int:
        """Return the most characters to ask for: a tenth below the limit, and no more than the answer has room for."""
        most = asked_of_limit(self.most_characters)
        if self.reserved_output_tokens is None:
            return most
        room = (self.reserved_output_tokens - self._other_tokens) * CHARACTERS_PER_TOKEN
        return min(most, max(LEAST_ASKED_CHARACTERS, room))

    @property
    def asked_output_tokens(self) -> int:
        """Return the tokens of a text of the longest length with a marker for each passage of the notes."""
        return asked_of_limit(self.most_characters) // CHARACTERS_PER_TOKEN + self._other_tokens

    @property
    def _other_tokens(self) -> int:
        passages = sum(len(finding.evidence_ids) for finding in self.findings) or len(self.finding_ids)
        return FRAME_TOKENS + int(passages * REPEATED_MARKERS) * MARKER_TOKENS


class NotePlace(Contract):
    """A note, and the heading that it belongs under."""

    note: int = Field(description="number of the note")
    heading: int = Field(description="number of the heading that it belongs under")


class ReporterAnswer(RoleAnswer):
    """Operations on the requested section, and the notes that it needs no more."""

    operations: list[Operation]
    belongs_under: list[NotePlace] = Field(
        default=[], description="notes that belong under another heading of the report, where they are offered next"
    )
    omitted: list[int] = Field(
        default=[],
        description="numbers of notes that no section needs: the report says them, or they do not serve the question",
    )

    def fitted(self, request: UpdateInput, notes: list[str]) -> Self:
        """Require an operation if there are notes to report here that are not omitted. Raises `UnfitAnswer`."""
        del notes
        numbers = set(range(1, len(request.findings) + 1))
        left = numbers - set(self.omitted) - {place.note for place in self.belongs_under}
        if left and not request.issues and not self.operations:
            raise UnfitAnswer("operations: at least one is needed, because there are notes to report")
        if len(self.operations) > MAX_OPERATIONS:
            raise UnfitAnswer(f"operations: at most {MAX_OPERATIONS} in one update")
        return self


class ReportUpdate(Contract):
    """Operations on one section, ready to apply; citations are evidence ids, `[ev-…]`."""

    heading: str
    base: str
    """Hash of the section's text before it; an update applies only to that text, so never twice."""
    operations: list[Operation] = []
    kind: ReportKind = ReportKind.REPORT
    """`passages` if rules wrote it."""


class ReporterResult(RoleAnswer):
    """An update that fits the section, the notes that did not fit, and those that it needs no more."""

    IS_REPORT = True

    update: ReportUpdate
    notes_left: list[str] = []
    """Ids of findings deferred to the next update."""
    notes_omitted: list[str] = []
    """Ids of findings that the reporter leaves out for good."""
    notes_moved: dict[str, str] = {}
    """Headings that findings belong under, as the reporter judges, by their ids."""


REPORTER: Final = RoleSpec(
    "reporter", "write_report_update", Tier.COMPLEX, UpdateInput, ReporterAnswer, ReporterResult,
    share=TokenShare.SYNTHESIS, output_tokens=4_000, expected_output_tokens=1_000, work="synthesis",
)  # fmt: skip


class ArrangeInput(ChosenFindingsInput):
    """Hand-off to the arranger: the report, and the notes that it lacks."""

    draft: DocumentRef | None = None
    """Text of the report; None if it has only headings."""
    outline: list[str] = []

    @property
    def asked_output_tokens(self) -> int:
        """Return the tokens of a list of numbers for each heading, with every note in one of them."""
        return (
            FRAME_TOKENS
            + len(self.outline) * HEADING_TOKENS
            + (len(self.findings) or len(self.finding_ids)) * NUMBER_TOKENS
        )


class SectionNotes(Contract):
    """The notes that belong under one heading."""

    heading: int = Field(description="number of the heading")
    notes: list[int] = Field(description="numbers of the notes that belong under it, most important first")


class ArrangerAnswer(RoleAnswer):
    """The notes by heading; a note in no list is needed nowhere."""

    sections: list[SectionNotes]

    def fitted(self, request: ArrangeInput, notes: list[str]) -> Self:
        """Keep known headings and notes, each note under the first heading that names it."""
        seen = set[int]()
        sections = []
        for section in self.sections:
            numbers = [n for n in dict.fromkeys(section.notes) if 0 < n <= len(request.findings) and n not in seen]
            seen.update(numbers)
            if 0 < section.heading <= len(request.outline) and numbers:
                sections.append(section.with_fields(notes=numbers))
        if not sections and self.sections:
            notes.append("the answer names no heading and no note that exists")
        return self.with_fields(sections=sections)


ARRANGER: Final = RoleSpec(
    "arranger", "arrange_notes", Tier.ANALYTICAL, ArrangeInput, ArrangerAnswer, ArrangerAnswer,
    share=TokenShare.SYNTHESIS, output_tokens=2_000, expected_output_tokens=400, work="synthesis", has_fallback=False,
)  # fmt: skip
"""Assigns the notes that a live report lacks at its end to its headings, all in one call."""


class LiveReportRequest(RunRequest):
    """A live report: its text and the constraints on it."""

    base: ReportDraft | None = None
    """None before the first text, when the report is only title and headings."""
    title: str = ""
    outline: list[str] = []
    most_characters: int


class UpdatesRequest(LiveReportRequest):
    """Updates to apply in order; an update of a section that has changed since is refused."""

    updates: list[ReportUpdate] = []


class DraftStep(CompactModel):
    """A text that differs from the previous one by at most the limit."""

    draft: ReportDraft
    """Without its evidence; of several steps, only the last has its longer figures."""
    inserted: int = 0
    removed: int = 0
    cited: list[str] = []
    """Evidence cited by this text but not by the previous one."""
    withdrawn: list[str] = []
    """Evidence cited by the previous text but not by this one."""


class AppliedUpdate(CompactModel):
    """Outcome of one update: the new text, or the reason why it is unchanged."""

    step: DraftStep | None = None
    section: str = ""
    """Markdown of the section after an applied update, without citations: its end, if it is long."""
    refusal: str = ""
    """In plain English, with the remedy; empty for an applied update."""


class AppliedUpdates(CompactModel):
    """Outcome of each update, in order."""

    base: ReportDraft | None = None
    """The outline as a draft, if the request has no text."""
    outcomes: list[AppliedUpdate] = []

    @property
    def draft(self) -> ReportDraft | None:
        """Return the latest text."""
        return next((outcome.step.draft for outcome in reversed(self.outcomes) if outcome.step), self.base)


class SplitRequest(LiveReportRequest):
    """A new text for a live report, to be reached in steps within the limit."""

    after: ReportDraft


class WithdrawRequest(LiveReportRequest):
    """Evidence to withdraw, together with everything that a live report cites from it."""

    evidence_ids: list[str]


class DraftSteps(CompactModel):
    """The steps from one text to another; empty if they are equal."""

    steps: list[DraftStep] = []
    unreached: int = 0
    """Changes not made, because a single sentence, item or block exceeds the limit."""
