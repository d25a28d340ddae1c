"""The roles that work on every strategy's report: checker, corrector, reviewer."""

from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, WithJsonSchema

from contracts.base import Contract
from contracts.checking import AskedClaim, ClaimAnswer, CorrectionAction, Fault, Proposal, ReviewScores, ShownSection
from contracts.evidence import DocumentRef, Gap, Verdict
from contracts.lenient import Sentence, clamp, max_lines, member_or
from contracts.roles import RoleAnswer, RoleInput, RoleSpec
from contracts.texts import plural
from contracts.tokens import TokenShare
from contracts.vocabulary import Tier

PROPOSED_ACTIONS: Final = {
    "type": "string",
    "enum": [action.value for action in CorrectionAction if action is not CorrectionAction.CITE],
}
"""What a corrector may propose; further citations come from a second look."""
JUDGEMENTS: Final = tuple(verdict.value for verdict in Verdict if verdict is not Verdict.UNVERIFIED)


def _objects(value: Any) -> Any:
    """Drop list items that are not objects, so that one unreadable item does not invalidate the others."""
    if isinstance(value, list):
        return [item for item in value if isinstance(item, (dict, Contract))]
    return value


def _texts(value: Any) -> list[str]:
    """Return the texts of a list; a single text is a list of one."""
    values = value if isinstance(value, list) else [value]
    return [item for item in values if isinstance(item, str)]


VERDICT_TOKENS: Final = 180
"""Of a verdict with its quotes and reason; real models wrote 45 to 130 in the mean of a call."""
QUOTE_TOKENS: Final = 25
"""Of each quote of a verdict: about fifteen words."""
MAX_VERDICT_QUOTES: Final = 8
LEAST_VERDICT_QUOTES: Final = 2
PROPOSAL_TOKENS: Final = 300
"""Of a correction with its new sentence, what it drops and why; real models wrote 70 to 130 in the mean of a call."""
REVIEW_TOKENS: Final = 900
"""Of a review with fifteen one-line notes; real models wrote 540 to 700."""
ANSWERED_GAP_TOKENS: Final = 50
"""Of a gap that a review calls answered, with the labels of some passages."""
LenientText = Annotated[str, BeforeValidator(lambda value: value if isinstance(value, str) else "")]


class ClaimBatchInput(RoleInput):
    """Hand-off of a batch of claims, loaded by the activity from their entry."""

    entry: str = ""
    """Hash of the stored entry with the claims."""
    numbers: list[int] = []
    """Indexes of the claims in the entry, from 0."""
    bytes_shown: int = 0
    """Size of these claims with their passages, for the ledger."""
    claims: list[AskedClaim] = []

    def subject(self) -> str:
        """Return the number of claims, in words."""
        return plural(len(self.numbers), "statement")


class CheckInput(ClaimBatchInput):
    """Hand-off to the checker: claims with their passages, without the report or the question."""

    controls: list[AskedClaim] = []
    """Statements with a passage that speaks of something else, of which the call shows one."""
    sections: list[ShownSection] = []
    """Sections of pages that claims name, in a second look."""

    @property
    def asked_output_tokens(self) -> int:
        """Return the tokens of a verdict on each statement, the control included."""
        return self._verdicts * VERDICT_TOKENS

    @property
    def asked_quotes(self) -> int:
        """Return the most quotes to ask for in one verdict: fewer where the answer has less room than it may need."""
        room = self.reserved_output_tokens
        if room is None or room >= self.asked_output_tokens:
            return MAX_VERDICT_QUOTES
        # What is beside the quotes needs as much as they do where a verdict has as many as usual.
        quotes = room // self._verdicts // (2 * QUOTE_TOKENS)
        return min(MAX_VERDICT_QUOTES, max(LEAST_VERDICT_QUOTES, quotes))

    @property
    def _verdicts(self) -> int:
        return max(len(self.numbers), len(self.claims)) + 1


class GivenVerdict(Contract):
    """A checker's verdict; unreadable fields are empty."""

    claim: LenientText = ""
    verdict: LenientText = Field(default="", json_schema_extra={"enum": list(JUDGEMENTS)})
    quotes: Annotated[list[str], BeforeValidator(_texts)] = Field(
        default=[], description="the deciding words of its passages, copied exactly: one quote for each part of it"
    )
    lacking: Annotated[list[str], BeforeValidator(_texts)] = Field(
        default=[], description="of `partial`: the words of the statement that no passage supports, copied from it"
    )
    fault: LenientText = Field(
        default="",
        description="of `partial`: why it is no full support",
        json_schema_extra={"enum": ["", *(fault.value for fault in Fault)]},
    )
    reason: LenientText = Field(default="", description="why it is not supported, or how it follows; else empty")
    conclusion: Annotated[bool, BeforeValidator(lambda value: value is True)] = Field(
        default=False,
        description="true for advice, another conclusion or a remark on the research: its facts alone are judged",
    )


class CheckerAnswer(RoleAnswer):
    """Verdicts, in any order."""

    verdicts: Annotated[list[GivenVerdict], BeforeValidator(_objects)]


class CheckerResult(RoleAnswer):
    """Verdicts with their reasons."""

    entry: str | None = None
    """Hash of the stored entry with the answers; None if they are inline."""
    answers: list[ClaimAnswer] = []
    verdicts: list[Verdict] = []
    """Verdict on each claim, in order."""


class CorrectInput(ClaimBatchInput):
    """Hand-off to the corrector: claims without support from their passages."""

    @property
    def asked_output_tokens(self) -> int:
        """Return the tokens of a correction of each statement."""
        return max(len(self.numbers), len(self.claims)) * PROPOSAL_TOKENS


class ProposedCorrection(Contract):
    """A correction proposed by a corrector; unreadable fields are empty."""

    claim: LenientText = ""
    action: Annotated[
        CorrectionAction, member_or(CorrectionAction, CorrectionAction.KEEP), WithJsonSchema(PROPOSED_ACTIONS)
    ] = CorrectionAction.KEEP
    text: LenientText = Field(
        default="", description="the new sentence, without citations; of a split, what is supported"
    )
    rest: LenientText = Field(default="", description="of a split: the part that no passage supports, as a sentence")
    passages: Annotated[list[str], BeforeValidator(_texts)] = Field(
        default=[], description="ids of the passages that the text cites"
    )
    dropped: LenientText = Field(
        default="", description="what the old sentence says and the new one does not; else empty"
    )
    reason: LenientText = ""


class CorrectorAnswer(RoleAnswer):
    """Corrections, in any order."""

    proposals: Annotated[list[ProposedCorrection], BeforeValidator(_objects)]


class CorrectorResult(RoleAnswer):
    """One proposal for each claim."""

    entry: str | None = None
    """Hash of the stored entry with the proposals; None if they are inline."""
    proposals: list[Proposal] = []


class ReviewedClaim(Contract):
    """A claim of a draft with what is known of its support, for a reviewer."""

    text: str
    verdict: Verdict
    reason: str = ""
    evidence_ids: list[str] = []
    """The passages that it cites."""


class ReviewInput(RoleInput):
    """Hand-off to the reviewer: the draft, with the question and the plan."""

    brief: str = ""
    draft: DocumentRef
    sub_queries: list[str] = []
    unanswered: list[str] = []
    """Sub-queries without findings."""
    sources_cited: int = 0
    findings: int = 0
    passages_cited: int = 0
    passage_ids: list[str] = []
    """Of the passages that the draft cites, if `gaps` are to be judged."""
    gaps: list[Gap] = []
    """Open gaps of the run, which the draft may answer."""
    claims_entry: str = ""
    """Hash of the stored entry with the claims of the draft; empty if not known."""
    answers: list[str] = []
    """Hashes of the entries of all checker answers of the run."""
    claims: list[ReviewedClaim] = []

    @property
    def asked_output_tokens(self) -> int:
        """Return the tokens of the longest review."""
        return REVIEW_TOKENS + ANSWERED_GAP_TOKENS * len(self.gaps)

    @property
    def fields_left_out(self) -> tuple[str, ...]:
        """Return the field for gaps that the draft answers, if none are listed."""
        return () if self.gaps else ("answered_gaps",)


Score = Annotated[float, clamp(0, 10), Field(json_schema_extra={"minimum": 0, "maximum": 10})]
Lines = Annotated[list[Sentence], max_lines(5)]


class AnsweredGap(Contract):
    """A gap that a draft answers."""

    gap_id: str
    passages: list[str] = Field(default=[], description="labels of the passages cited where the draft answers it")


class ReviewerAnswer(RoleAnswer):
    """A review: scores from 0 to 10, and a few one-line notes."""

    coverage: Score = 5
    support: Score = 5
    depth: Score = 5
    readability: Score = 5
    reasons: Lines = Field(default=[], description="reason for each score, one line each")
    missing: Lines = Field(default=[], description="what the question asks for and the draft lacks")
    notes: Lines = Field(default=[], description="what a revision should do, the most important first")
    answered_gaps: list[AnsweredGap] = Field(default=[], description="listed gaps that the draft answers in full")

    @property
    def scores(self) -> ReviewScores:
        """Return the four scores."""
        return ReviewScores.model_validate(self, from_attributes=True)


CHECKER: Final = RoleSpec(
    "checker", "check_claims", Tier.SIMPLE, CheckInput, CheckerAnswer, CheckerResult,
    share=TokenShare.SYNTHESIS, output_tokens=4_000, has_fallback=False, expected_output_tokens=1_000,
    work="verification",
)  # fmt: skip
CORRECTOR: Final = RoleSpec(
    "corrector", "correct_claims", Tier.ANALYTICAL, CorrectInput, CorrectorAnswer, CorrectorResult,
    share=TokenShare.SYNTHESIS, output_tokens=3_000, has_fallback=False, expected_output_tokens=700,
    work="verification",
)  # fmt: skip
REVIEWER: Final = RoleSpec(
    "reviewer", "review_report", Tier.ANALYTICAL, ReviewInput, ReviewerAnswer, ReviewerAnswer,
    share=TokenShare.SYNTHESIS, output_tokens=1_500, expected_output_tokens=500, work="verification",
)  # fmt: skip
