"""Checks and corrections of a draft's claims: notebook entries, and their figures for the workflow."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final, TypeAlias

from pydantic import model_validator

from contracts.base import BoundedList, CompactModel, Contract, ListEntry
from contracts.evidence import CheckMethod, ClaimVerdict, DocumentRef, Evidence, Verdict
from contracts.sentences import Text


class ShownPassage(CompactModel):
    """A passage with its context from the source's stored text."""

    evidence_id: str
    title: str = ""
    before: str = ""
    quote: str
    after: str = ""
    abstract_only: bool = False
    """True if the source is the abstract of a paper."""

    @property
    def text(self) -> str:
        """Return the passage in its context."""
        return self.before + self.quote + self.after


class ShownSection(CompactModel):
    """A long stretch of a source's stored text, such as a section, in which a checker may quote any words."""

    id: str
    source_id: str
    start: int = 0
    """Offset of the stretch in the stored text."""
    title: str = ""
    text: str
    abstract_only: bool = False
    """True if the source is the abstract of a paper."""


class QuotePlace(CompactModel):
    """The place of a quote in the stored text of a source."""

    source_id: str
    start: int
    end: int


class ClaimPlace(CompactModel):
    """The surroundings of a claim in its draft: they help to read it and are not judged."""

    headings: list[str] = []
    """The headings above it, from the title down."""
    leads: list[str] = []
    """The sentences that introduce its list or table, the outermost first."""
    before: str = ""
    """The text just before it in its section, list items with their numbers."""
    after: str = ""
    """The sentence, the item or the row after it in its section."""
    row: str = ""
    """Of a cell: the other cells of its row, each after the head of its column."""
    column: str = ""
    """Of a cell: the head of its column."""


class Fault(StrEnum):
    """The reason why passages support a statement in part."""

    MISSING = "missing"
    """No passage speaks of a part of it."""
    WEAKER = "weaker"
    """They say it with less force: another quantifier, less certainty."""
    CONDITION = "condition"
    """They attach a condition or an exception to it that it drops."""


class AskedClaim(CompactModel):
    """A claim for a checker or a corrector: the plain-text sentence or cell, its place, and the passages it cites.

    A corrector's has its verdict, too, and further passages.
    """

    fingerprint: str
    """Hash of its text and passages, so that the same claim is judged once."""
    text: str
    place: ClaimPlace = ClaimPlace()
    passages: list[ShownPassage] = []
    sections: list[str] = []
    """Ids of the sections that are shown with it, in a second look."""
    remarks: list[str] = []
    """What a comparison of words did not find in the passages, or found otherwise; a question, no verdict."""
    number: int = 0
    """For a corrector: its index among the draft's claims."""
    verdict: Verdict = Verdict.UNVERIFIED
    """For a corrector: why it is doubtful; a checker is asked for it."""
    reason: Text = ""
    lacking: list[str] = []
    """Of `partial`: its words for which no passage speaks."""
    fault: Fault | None = None
    """Of `partial`, if the checker named it."""
    others: list[ShownPassage] = []
    """Further passages. For a checker: those that the report cites where it says the same. For a corrector: in which a
    second look found the deciding words; before it, those of the run and of its pages that share most with the claim
    among those it does not cite."""
    found: list[Evidence] = []
    """Of them, those that are no evidence of the run yet."""

    @model_validator(mode="before")
    @classmethod
    def _read_nested(cls, value: Any) -> Any:
        """Read a doubtful claim of earlier versions, which had the claim of the checker inside."""
        if isinstance(value, dict) and isinstance(value.get("asked"), dict):
            return value["asked"] | {name: part for name, part in value.items() if name != "asked"}
        return value

    @property
    def shown_passages(self) -> list[ShownPassage]:
        """Return the passages that it cites, then the others."""
        return [*self.passages, *self.others]


class AskedEntry(ListEntry[AskedClaim]):
    """The claims of one text for a checker or a corrector, most important first."""

    controls: list[AskedClaim] = []
    """Statements of the text with a passage that speaks of something else; a call shows one of them."""
    sections: list[ShownSection] = []
    """Of a second look: what the claims name in their `sections`, each once."""


class ClaimAnswer(CompactModel):
    """The usable part of a checker's answer about a claim."""

    fingerprint: str
    verdict: Verdict = Verdict.UNVERIFIED
    reason: Text = ""
    quotes: list[str] = []
    """The deciding quotes from the passages, as stored: one for each part of the claim."""
    evidence_ids: list[str] = []
    """The passages that have them."""
    places: list[QuotePlace] = []
    """Of quotes that only a section has, in their order."""
    lacking: list[str] = []
    """Of `partial`: the words of the claim for which no passage speaks, as they stand in it."""
    fault: Fault | None = None
    """Of `partial`, if the checker named it."""
    is_second: bool = False
    """True if it follows from a second look, which counts before the first."""


AnswersEntry: TypeAlias = ListEntry[ClaimAnswer]
"""Answers of one checker call."""


def is_judged(answer: ClaimAnswer | None) -> bool:
    """Return whether an answer has a verdict."""
    return answer is not None and answer.verdict is not Verdict.UNVERIFIED


def best_answers(answers: Sequence[ClaimAnswer]) -> dict[str, ClaimAnswer]:
    """Return the answer that counts for each claim: that of a second look, the first with a verdict, else the last."""
    known = {answer.fingerprint: answer for answer in answers}
    known |= {answer.fingerprint: answer for answer in reversed(answers) if is_judged(answer)}
    return known | {answer.fingerprint: answer for answer in answers if answer.is_second}


class ExtractedClaim(CompactModel):
    """A statement of a draft that can be true or false, found by rules.

    The id follows from its text, its evidence and the number of earlier occurrences of both in the draft. Renumbering
    or moving it does not change the id; new text or evidence does.
    """

    id: str
    text: str
    """Plain text, without markers and markup, white space collapsed."""
    subject: str = ""
    """Of a cell: its text after the heads of its row and column; these words make its fingerprint."""
    place: ClaimPlace = ClaimPlace()
    section: str = ""
    """The nearest heading above it; empty if only the title precedes it."""
    evidence_ids: list[str] = []
    """In order of appearance; empty for an uncited assertion."""
    start: int = 0
    end: int = 0
    """`draft[start:end]` is the sentence or the cell with its markers, the table row or the block quote."""
    fingerprint: str
    importance: float = 0.0
    """Weight in the report, 0 to 1; claims near the start and claims with figures weigh most."""
    ruled: ClaimVerdict = ClaimVerdict(claim_id="", verdict=Verdict.UNVERIFIED, method=CheckMethod.NONE)
    """Verdict by rules."""
    asked: bool = False
    """True if a checker decides; if it gives no verdict, that of the rules counts where they found a difference."""
    remarks: list[str] = []
    """Differences that the rules found, for the checker."""
    others: list[str] = []
    """Passages that it does not cite and that its checker is shown, too; those quoted for it become its citations."""
    row: bool = False
    """True for a block quote, a listing or a table row that is one claim, which are never corrected."""
    cell: bool = False
    """True for a cell of a table."""
    shared: bool = False
    """True if it has no citation of its own: that of a later sentence, or of its row, counts for it."""
    names_row: bool = False
    """True for the first cell of a row, without which no other cell of it says anything."""

    @property
    def words(self) -> str:
        """Its text; of a cell with the heads of its row and column."""
        return self.subject or self.text

    @property
    def citations(self) -> int:
        """The count of its passages."""
        return len(self.evidence_ids)


class CheckedSource(CompactModel):
    """A source with its stored text."""

    id: str
    url: str = ""
    title: str = ""
    text: DocumentRef
    abstract_only: bool = False
    """True if the text is the abstract of a paper."""


class ClaimsEntry(CompactModel):
    """The claims of one draft, with the run's evidence and sources."""

    draft: DocumentRef
    query: str = ""
    language: str = "en"
    written_freely: bool = True
    """True if an uncited sentence may be a claim."""
    claims: list[ExtractedClaim] = []
    evidence: list[Evidence] = []
    """Every passage of the run."""
    sources: list[CheckedSource] = []


class CorrectionAction(StrEnum):
    """Action on a claim that its passages do not support, the mildest first."""

    KEEP = "keep"
    CITE = "cite"
    """Cite more passages of the run, without a change of its words."""
    SPLIT = "split"
    """Keep the supported part with its citations, and make the rest a sentence of its own."""
    SOFTEN = "soften"
    """Assert less, or with less certainty."""
    CORRECT = "correct"
    """Correct a figure, a name or a date."""
    REMOVE = "remove"


ACTION_ORDER: Final = tuple(CorrectionAction)
"""Actions from the mildest: a later one is taken only if no earlier one passes."""


class Proposal(CompactModel):
    """A proposal for a claim."""

    number: int
    action: CorrectionAction = CorrectionAction.KEEP
    text: str = ""
    """The new sentence, in plain text without citations; of a split, its supported part."""
    rest: str = ""
    """Of a split: the part that no passage supports, as a sentence."""
    evidence_ids: list[str] = []
    """The passages that the new sentence cites."""
    rest_evidence_ids: list[str] = []
    """What the rest cites; empty: those of the statement's citations that the new sentence does not need."""
    dropped: str = ""
    """What the old sentence says and the new one does not."""
    reason: Text = ""


ProposalsEntry: TypeAlias = ListEntry[Proposal]
"""Proposals of one corrector call."""


class TriedProposal(CompactModel):
    """A proposal with the claims in its text."""

    proposal: Proposal
    claims: list[ExtractedClaim] = []
    """Of its text; of a split, those of the rest come last."""
    rest_claims: int = 0
    """Number of claims of the rest."""

    @property
    def main(self) -> list[ExtractedClaim]:
        """The claims of its text."""
        return self.claims[: len(self.claims) - self.rest_claims]

    @property
    def rest(self) -> list[ExtractedClaim]:
        """The claims of the rest of a split."""
        return self.claims[len(self.claims) - self.rest_claims :]


class CorrectedEntry(CompactModel):
    """Proposals for a draft, checked before any of them is accepted."""

    before: str
    """Hash of the entry with the draft's claims."""
    tried: list[TriedProposal] = []
    actions: dict[int, CorrectionAction] = {}
    """What a corrector proposed for each claim, by its index, tried or not."""
    found: list[Evidence] = []
    """Passages of pages that are tried as citations."""


class Correction(CompactModel):
    """A correction of a claim."""

    claim_id: str
    section: str = ""
    action: CorrectionAction
    before: str
    after: str = ""
    split_off: list[str] = []
    """The sentences of `after` that were split off, because no passage supports them."""
    dropped: str = ""
    """What the corrected text does not say any more; empty for a removal, which drops all of it."""
    reason: Text = ""
    verdict: Verdict = Verdict.UNVERIFIED
    """Verdict on the corrected text; for a removed claim, on the original."""


CorrectionsEntry: TypeAlias = ListEntry[Correction]
"""The corrections of a run, in order."""


class VerificationSummary(Contract):
    """Figures on the check of a report's claims."""

    mode: str = ""
    """`off`, `light` or `full`."""
    claims: int = 0
    uncited_claims: int = 0
    unsupported_share: float = 0.0
    contradicted_share: float = 0.0
    """Both are shares of the judged claims."""
    effective_citations: int = 0
    """Citations of supported claims."""
    not_reached: int = 0
    """Claims that no checker judged, because of time, a limit or a user's stop."""
    warning: bool = False
    """True if a claim is contradicted, one of the first section is unsupported (other than a part that was split off),
    more than 20 % of the cited claims are unsupported, or all were removed; the run is then not `completed`."""
    verdict_counts: dict[str, int] = {}
    method_counts: dict[str, int] = {}
    correction_counts: dict[str, int] = {}
    """Number of corrections by action."""

    @property
    def shortfall(self) -> tuple[int, int]:
        """Count the unsupported and all cited claims; if no cited claim remains, both count the removed ones."""
        wrong = sum(self.verdict_counts.get(verdict, 0) for verdict in (Verdict.UNSUPPORTED, Verdict.CONTRADICTED))
        cited = self.claims - self.uncited_claims
        removed = self.correction_counts.get(CorrectionAction.REMOVE, 0)
        if cited:
            return (wrong, cited)
        return (removed, removed)


class ReviewScores(Contract):
    """Scores of a draft, each from 0 to 10."""

    coverage: float = 0.0
    support: float = 0.0
    depth: float = 0.0
    readability: float = 0.0

    @property
    def overall(self) -> float:
        """Return the weighted score: coverage and support weigh most, style least."""
        return round(0.4 * self.coverage + 0.3 * self.support + 0.2 * self.depth + 0.1 * self.readability, 2)


class ReviewSummary(Contract):
    """Result of a review and its effect."""

    method: str = ""
    """`rules` or `model`."""
    scores: ReviewScores = ReviewScores()
    overall: float = 0.0
    reasons: BoundedList[str] = []
    missing: BoundedList[str] = []
    revised: bool = False
    """True if a revision based on its notes scored higher and replaced the draft."""
    before: float | None = None
    """Overall score of the first draft; None without a revision."""


class Verification(CompactModel):
    """Verification progress of a run: entry hashes and figures."""

    claims_entry: str = ""
    verdicts_entry: str = ""
    """Hash of the entry with the verdicts on the draft's claims."""
    answers: list[str] = []
    """Hashes of the entries of all checker answers; no claim is judged twice."""
    corrections_entry: str = ""
    summary: VerificationSummary = VerificationSummary()
    review: ReviewSummary | None = None
