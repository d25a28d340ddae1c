"""Checks and corrections of a draft's claims: notebook entries, and their figures for the workflow."""

from enum import StrEnum
from typing import TypeAlias

from contracts.base import BoundedList, CompactModel, Contract, ListEntry
from contracts.evidence import ClaimVerdict, DocumentRef, Evidence, Verdict


class ShownPassage(CompactModel):
    """A passage with its context from the source's stored text."""

    evidence_id: str
    title: str = ""
    before: str = ""
    quote: str
    after: str = ""

    @property
    def text(self) -> str:
        """Return the passage in its context."""
        return self.before + self.quote + self.after


class AskedClaim(CompactModel):
    """A claim for a checker: the plain-text sentence and the passages it cites."""

    fingerprint: str
    """Hash of its text and passages, so that the same claim is judged once."""
    text: str
    passages: list[ShownPassage] = []


AskedEntry: TypeAlias = ListEntry[AskedClaim]
"""The claims of one text for a checker, most important first."""


class ClaimAnswer(CompactModel):
    """The usable part of a checker's answer about a claim."""

    fingerprint: str
    verdict: Verdict = Verdict.UNVERIFIED
    reason: str = ""
    quote: str = ""
    """The deciding quote from the passages, as stored."""


AnswersEntry: TypeAlias = ListEntry[ClaimAnswer]
"""Answers of one checker call."""


class ExtractedClaim(CompactModel):
    """A statement of a draft that can be true or false, found by rules.

    The id follows from its text, its evidence and the number of earlier occurrences of both in the draft. Renumbering
    or moving it does not change the id; new text or evidence does.
    """

    id: str
    text: str
    """Plain text, without markers and markup, white space collapsed."""
    section: str = ""
    """The nearest heading above it; empty if only the title precedes it."""
    evidence_ids: list[str] = []
    """In order of appearance; empty for an uncited assertion."""
    start: int = 0
    end: int = 0
    """`draft[start:end]` is the sentence with its markers, the table row or the block quote."""
    fingerprint: str
    importance: float = 0.0
    """Weight in the report, 0 to 1; claims near the start and claims with figures weigh most."""
    decided: ClaimVerdict | None = None
    """Verdict by rules; None if a checker decides."""
    row: bool = False
    """True for a table row or block quote, which is never corrected."""


class CheckedSource(CompactModel):
    """A source with its stored text."""

    id: str
    url: str = ""
    title: str = ""
    text: DocumentRef


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
    """Action on a claim that its passages do not support."""

    KEEP = "keep"
    REWRITE = "rewrite"
    """Restate it as the passages do."""
    SOFTEN = "soften"
    """Assert less, or with less certainty."""
    REMOVE = "remove"


class DoubtfulClaim(CompactModel):
    """A claim for a corrector."""

    number: int
    """Its index among the draft's claims."""
    asked: AskedClaim
    verdict: Verdict
    reason: str = ""


DoubtfulEntry: TypeAlias = ListEntry[DoubtfulClaim]
"""Doubtful claims of one draft, most important first."""


class Proposal(CompactModel):
    """A corrector's proposal for a claim."""

    number: int
    action: CorrectionAction = CorrectionAction.KEEP
    text: str = ""
    """The new sentence, in plain text without citations."""
    evidence_ids: list[str] = []
    reason: str = ""


ProposalsEntry: TypeAlias = ListEntry[Proposal]
"""Proposals of one corrector call."""


class TriedProposal(CompactModel):
    """A proposal with the claims in its text."""

    proposal: Proposal
    claims: list[ExtractedClaim] = []


class CorrectedEntry(CompactModel):
    """Proposals for a draft, checked before any of them is accepted."""

    before: str
    """Hash of the entry with the draft's claims."""
    tried: list[TriedProposal] = []


class Correction(CompactModel):
    """A correction of a claim."""

    claim_id: str
    section: str = ""
    action: CorrectionAction
    before: str
    after: str = ""
    reason: str = ""
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
    """True if a claim is contradicted, one of the first section is unsupported, more than 20 % of the cited claims are
    unsupported, or all were removed; the run is then not `completed`."""
    verdict_counts: dict[str, int] = {}
    method_counts: dict[str, int] = {}
    correction_counts: dict[str, int] = {}
    """Number of corrections by action."""

    @property
    def shortfall(self) -> tuple[int, int]:
        """Count the unsupported and all cited claims; if no cited claim remains, both count the removed ones."""
        wrong = sum(self.verdict_counts.get(verdict, 0) for verdict in (Verdict.UNSUPPORTED, Verdict.CONTRADICTED))
        cited, removed = self.claims - self.uncited_claims, self.correction_counts.get(CorrectionAction.REMOVE, 0)
        return (wrong, cited) if cited else (removed, removed)


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
