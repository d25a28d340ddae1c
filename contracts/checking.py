"""Checks and corrections of the claims of a draft: entries of a run's notebook, and their figures for the workflow."""

from enum import StrEnum
from typing import TypeAlias

from contracts.base import BoundedList, CompactModel, Contract, ListEntry
from contracts.evidence import ClaimVerdict, DocumentRef, Evidence, Verdict


class ShownPassage(CompactModel):
    """A passage with its context in the stored text of its source."""

    evidence_id: str
    title: str = ""
    before: str = ""
    quote: str
    after: str = ""

    @property
    def text(self) -> str:
        """The passage in its context."""
        return self.before + self.quote + self.after


class AskedClaim(CompactModel):
    """A claim for a checker: the sentence in plain text, and the passages that it cites."""

    fingerprint: str
    """Hash of its words and its passages: the same claim is judged once."""
    text: str
    passages: list[ShownPassage] = []


AskedEntry: TypeAlias = ListEntry[AskedClaim]
"""The claims of one text that a checker is to judge, the most important first."""


class ClaimAnswer(CompactModel):
    """The usable part of the answer of a checker to a claim."""

    fingerprint: str
    verdict: Verdict = Verdict.UNVERIFIED
    reason: str = ""
    quote: str = ""
    """The deciding words of the passages, as stored."""


AnswersEntry: TypeAlias = ListEntry[ClaimAnswer]
"""Answers of one call of a checker."""


class ExtractedClaim(CompactModel):
    """A statement of a draft that can be true or false, as rules see it.

    The id follows from its words, its evidence and how often both occur before in the same draft: neither other
    numbers nor another place change it, other words or other evidence do.
    """

    id: str
    text: str
    """Plain text: without markers and markup, white space as single blanks."""
    section: str = ""
    """The nearest heading above it; empty where there is none below the title."""
    evidence_ids: list[str] = []
    """In order of appearance; empty for an assertion without a citation."""
    start: int = 0
    end: int = 0
    """`draft[start:end]` is the sentence with its markers, the row or the quoted passage."""
    fingerprint: str
    importance: float = 0.0
    """Weight for the report, 0 to 1: claims at the beginning and claims with figures matter most."""
    decided: ClaimVerdict | None = None
    """Verdict by rules; None: a checker decides."""
    row: bool = False
    """True if it is a row of a table or a quoted passage, which is not corrected."""


class CheckedSource(CompactModel):
    """Place of the stored text of a source."""

    id: str
    url: str = ""
    title: str = ""
    text: DocumentRef


class ClaimsEntry(CompactModel):
    """The claims of one draft, with the evidence and the sources of the run."""

    draft: DocumentRef
    query: str = ""
    language: str = "en"
    written_freely: bool = True
    """True if a sentence without a citation may be a claim."""
    claims: list[ExtractedClaim] = []
    evidence: list[Evidence] = []
    """Every passage of the run."""
    sources: list[CheckedSource] = []


class CorrectionAction(StrEnum):
    """Action on a claim that its passages do not support."""

    KEEP = "keep"
    REWRITE = "rewrite"
    """The sentence follows the passages."""
    SOFTEN = "soften"
    """The sentence asserts less, or with less certainty."""
    REMOVE = "remove"


class DoubtfulClaim(CompactModel):
    """A claim for a corrector."""

    number: int
    """Its place among the claims of the draft."""
    asked: AskedClaim
    verdict: Verdict
    reason: str = ""


DoubtfulEntry: TypeAlias = ListEntry[DoubtfulClaim]
"""Doubtful claims of one draft, the most important first."""


class Proposal(CompactModel):
    """Proposal of a corrector for a claim."""

    number: int
    action: CorrectionAction = CorrectionAction.KEEP
    text: str = ""
    """The new sentence, plain text without citations."""
    evidence_ids: list[str] = []
    reason: str = ""


ProposalsEntry: TypeAlias = ListEntry[Proposal]
"""Proposals of one call of a corrector."""


class TriedProposal(CompactModel):
    """A proposal with the claims of its text."""

    proposal: Proposal
    claims: list[ExtractedClaim] = []


class CorrectedEntry(CompactModel):
    """Proposals for a draft, to be checked before any of them is accepted."""

    before: str
    """Hash of the entry of the draft's claims."""
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
    """Verdict on the corrected text; of a removed one on what it was."""


CorrectionsEntry: TypeAlias = ListEntry[Correction]
"""The corrections of a run, in order."""


class VerificationSummary(Contract):
    """Check of a report's claims, in figures."""

    mode: str = ""
    """`off`, `light` or `full`."""
    claims: int = 0
    uncited_claims: int = 0
    unsupported_share: float = 0.0
    contradicted_share: float = 0.0
    """Shares of the judged claims."""
    effective_citations: int = 0
    """Citations of claims that are supported."""
    not_reached: int = 0
    """Claims for a checker that were not judged, for time, a limit or a person."""
    warning: bool = False
    """True if a statement is contradicted, one of the first section unsupported, or more than 20 % of the cited ones
    unsupported, or all were removed: the run is not `completed`."""
    verdict_counts: dict[str, int] = {}
    method_counts: dict[str, int] = {}
    correction_counts: dict[str, int] = {}
    """By action."""

    @property
    def shortfall(self) -> tuple[int, int]:
        """Statements that are unsupported, and all that cite something; if none is left, those that were removed."""
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
        """Score for the bar: style weighs least, missing parts and missing support most."""
        return round(0.4 * self.coverage + 0.3 * self.support + 0.2 * self.depth + 0.1 * self.readability, 2)


class ReviewSummary(Contract):
    """Result of a review, and its effect."""

    method: str = ""
    """`rules` or `model`."""
    scores: ReviewScores = ReviewScores()
    overall: float = 0.0
    reasons: BoundedList[str] = []
    missing: BoundedList[str] = []
    revised: bool = False
    """True if a revision by its notes scored higher and replaced the draft."""
    before: float | None = None
    """Overall score of the first draft; None where no revision was written."""


class Verification(CompactModel):
    """Progress of the verification of a run: hashes of entries, and figures."""

    claims_entry: str = ""
    verdicts_entry: str = ""
    """With the verdicts of the claims of the draft."""
    answers: list[str] = []
    """Hashes of the entries of all answers of checkers; no claim is judged twice."""
    corrections_entry: str = ""
    summary: VerificationSummary = VerificationSummary()
    review: ReviewSummary | None = None
