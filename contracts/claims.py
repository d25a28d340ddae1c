"""Claims of a draft and what is said of them: records that travel between the phases of a run."""

from enum import StrEnum

from pydantic import Field

from contracts.base import Terse


class ClaimKind(StrEnum):
    """What sort of statement a claim is, and so which check fits it."""

    GENERAL = "general"
    NUMERIC = "numeric"
    """It has a number, a date or an amount."""
    QUOTE = "quote"
    """Most of it stands in quotation marks, or it is a block quote."""


class Verdict(StrEnum):
    """What a check says of a claim."""

    SUPPORTED = "supported"
    PARTIAL = "partial"
    UNSUPPORTED = "unsupported"
    CONTRADICTED = "contradicted"
    NOT_ENOUGH_INFORMATION = "not_enough_information"
    UNVERIFIED = "unverified"
    """Nobody judged it, or the judge gave no usable answer: never counted as supported."""


class CheckMethod(StrEnum):
    """Who judged a claim."""

    VERBATIM = "verbatim"
    """It is word for word a passage that it cites."""
    RULES = "rules"
    MODEL = "model"
    NONE = "none"


class ClaimPart(Terse):
    """One of several things that a sentence asserts, fit to be judged by itself."""

    text: str
    """Plain text, as the claim's own."""
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    """Range of the draft or, once placed, of the report: within the claim's."""


class Claim(Terse):
    """A statement of a draft that can be true or false.

    The id follows from its words, its evidence and how often both stood before in the same draft: neither other
    numbers nor another place change it, other words or other evidence do.
    """

    id: str
    text: str
    """Plain text: without markers and markup, white space as single blanks."""
    kind: ClaimKind = ClaimKind.GENERAL
    section: str = ""
    """The nearest heading above it; empty where there is none below the title."""
    evidence_ids: list[str] = []
    """What it cites, in order of appearance; empty for an assertion that cites nothing."""
    parts: list[ClaimPart] = []
    """Where it asserts several things; they share its evidence. Empty where it asserts one."""
    start: int = Field(default=0, ge=0)
    end: int = Field(default=0, ge=0)
    """`draft[start:end]` is the sentence with its markers, the row or the quoted passage."""

    @property
    def cited(self) -> bool:
        """Whether it cites anything."""
        return bool(self.evidence_ids)


class ClaimVerdict(Terse):
    """What is said of the claim of that id."""

    claim_id: str
    verdict: Verdict
    method: CheckMethod
    reason: str = ""
    """In words for a reader."""
    evidence_ids: list[str] = []
    """The passages that the verdict rests on."""
    score: float | None = None
    """How sure the judge is, 0 to 1; None where it does not say."""
    importance: float | None = None
    """How much the claim matters to the report, 0 to 1; None where nobody weighed it."""


class VerdictsEntry(Terse):
    """The verdicts of one draft, as an entry of the notebook."""

    draft_hash: str = ""
    """The document that was judged."""
    verdicts: list[ClaimVerdict] = []
