"""The roles that work on the report of every strategy: checker, corrector, reviewer."""

from typing import Any, Final

from pydantic import Field, model_validator

from contracts.base import Contract
from contracts.checking import AskedClaim, ClaimAnswer, CorrectionAction, DoubtfulClaim, Proposal, ReviewScores
from contracts.evidence import DocumentRef, Verdict
from contracts.roles import RoleInput, RoleOutput, RoleSpec, words_of
from contracts.texts import plural
from contracts.vocabulary import Tier


# --- checker -------------------------------------------------------------------------------------------------------
class CheckInput(RoleInput):
    """Hand-off to the checker: claims with their passages, and nothing of the report or the question."""

    entry: str = ""
    """Hash of the stored entry that holds the claims."""
    numbers: list[int] = []
    """Which of its claims, from 0."""
    bytes_shown: int = 0
    """Of these claims with their passages, for the ledger."""
    claims: list[AskedClaim] = []
    """Filled in from the entry where the role is done."""

    def subject(self) -> str:
        """How many claims."""
        return plural(len(self.numbers) or len(self.claims), "statement")


JUDGEMENTS: Final = tuple(verdict.value for verdict in Verdict if verdict is not Verdict.UNVERIFIED)
"""The words for what a checker may say of a claim."""


class VerdictDraft(Contract):
    """A verdict as a checker gives it."""

    claim: str
    verdict: str = Field(json_schema_extra={"enum": list(JUDGEMENTS)})
    quote: str = Field(default="", description="the words of its passages that decide, copied exactly")
    missing_parts: list[int] = Field(default=[], description="numbers of the parts that the passages do not say")
    reason: str = Field(default="", description="why it is not supported; empty if it is")


class CheckDraft(Contract):
    """What a checker returns."""

    verdicts: list[VerdictDraft]

    @model_validator(mode="before")
    @classmethod
    def read_leniently(cls, value: Any) -> Any:
        """One item that cannot be read must not make the others worthless; what is left out is not judged."""
        items = _items(value, "verdicts")
        return value if items is None else {"verdicts": [_readable(item) for item in items]}


def _items(value: Any, name: str) -> list[dict[str, Any]] | None:
    """The objects of a list in an answer; None where there is no such list."""
    items = value.get(name) if isinstance(value, dict) else None
    if not isinstance(items, list):
        return None
    known = [item.model_dump() if isinstance(item, Contract) else item for item in items]
    return [item for item in known if isinstance(item, dict)]


def _texts(item: dict[str, Any], *names: str) -> dict[str, Any]:
    """The texts of an object; what is no text says nothing."""
    return {name: value if isinstance(value := item.get(name), str) else "" for name in names}


def _readable(item: dict[str, Any]) -> dict[str, Any]:
    texts = _texts(item, "claim", "verdict", "quote", "reason")
    missing = item.get("missing_parts") or []
    # What names a part in a way that cannot be read still says that one is missing.
    parts = [one if isinstance(one, int) else 0 for one in missing] if isinstance(missing, list) else [0]
    return texts | {"missing_parts": parts}


class CheckOutput(RoleOutput):
    """Verdicts as the workflow gets them."""

    entry: str | None = None
    """Hash of the stored entry that holds the answers; None: they are here."""
    answers: list[ClaimAnswer] = []
    verdicts: list[Verdict] = []
    """Of each claim in order."""


# --- corrector -----------------------------------------------------------------------------------------------------
class CorrectInput(RoleInput):
    """Hand-off to the corrector: claims that their passages do not bear out, with other passages that may."""

    entry: str = ""
    """Hash of the stored entry that holds the claims."""
    numbers: list[int] = []
    """Which of its claims, from 0."""
    bytes_shown: int = 0
    """Of these claims with their passages, for the ledger."""
    claims: list[DoubtfulClaim] = []
    """Filled in from the entry where the role is done."""

    def subject(self) -> str:
        """How many claims."""
        return plural(len(self.numbers) or len(self.claims), "statement")


class ProposalDraft(Contract):
    """A correction as a corrector proposes it."""

    claim: str
    action: str = Field(json_schema_extra=words_of(CorrectionAction))
    text: str = Field(default="", description="the new sentence, without citations")
    passages: list[str] = Field(default=[], description="ids of the passages that it cites")
    reason: str = ""


class CorrectDraft(Contract):
    """What a corrector returns."""

    proposals: list[ProposalDraft]

    @model_validator(mode="before")
    @classmethod
    def read_leniently(cls, value: Any) -> Any:
        """One item that cannot be read must not make the others worthless; what is left out stays as it is."""
        items = _items(value, "proposals")
        return value if items is None else {"proposals": [_readable_proposal(item) for item in items]}


def _readable_proposal(item: dict[str, Any]) -> dict[str, Any]:
    named = item.get("passages")
    passages = [one for one in named if isinstance(one, str)] if isinstance(named, list) else []
    return _texts(item, "claim", "action", "text", "reason") | {"passages": passages}


class CorrectOutput(RoleOutput):
    """Proposals as the workflow gets them."""

    entry: str | None = None
    """Hash of the stored entry that holds them; None: they are here."""
    proposals: list[Proposal] = []


# --- reviewer ------------------------------------------------------------------------------------------------------
class ReviewInput(RoleInput):
    """Hand-off to the reviewer: the draft beside the question and the plan."""

    brief: str = ""
    draft: DocumentRef
    sub_queries: list[str] = []
    unanswered: list[str] = []
    """Sub-queries without a finding."""
    sources_cited: int = 0
    findings: int = 0


def _score() -> Any:
    return Field(default=5, json_schema_extra={"minimum": 0, "maximum": 10})


class ReviewDraft(Contract):
    """What a reviewer returns."""

    coverage: float = _score()
    support: float = _score()
    depth: float = _score()
    readability: float = _score()
    reasons: list[str] = Field(default=[], description="why, one line for each score")
    missing: list[str] = Field(default=[], description="what the question asks for and the draft lacks")
    notes: list[str] = Field(default=[], description="what a revision should do, most important first")


class ReviewOutput(RoleOutput):
    """A review as the workflow gets it: scores in bounds."""

    scores: ReviewScores = ReviewScores()
    reasons: list[str] = []
    missing: list[str] = []
    notes: list[str] = []


CHECKER: Final = RoleSpec(
    "checker",
    "check_claims",
    Tier.ANALYTICAL,
    "checker",
    CheckInput,
    CheckDraft,
    CheckOutput,
    3_000,
    sees_question=False,
    has_fallback=False,
    whole_answers=True,
    expected_output_tokens=700,
    work="verification",
)
CORRECTOR: Final = RoleSpec(
    "corrector",
    "correct_claims",
    Tier.ANALYTICAL,
    "corrector",
    CorrectInput,
    CorrectDraft,
    CorrectOutput,
    3_000,
    sees_question=False,
    has_fallback=False,
    whole_answers=True,
    expected_output_tokens=700,
    work="verification",
)
REVIEWER: Final = RoleSpec(
    "reviewer",
    "review_report",
    Tier.ANALYTICAL,
    "reviewer",
    ReviewInput,
    ReviewDraft,
    ReviewOutput,
    1_500,
    expected_output_tokens=500,
    work="verification",
)
