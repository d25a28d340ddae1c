"""Conclusions: the verdict on every claim of a draft, what they come to, and which draft is the better one. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from contracts.checking import ClaimAnswer, Correction, VerificationSummary, WeighedClaim
from contracts.evidence import CheckMethod, ClaimVerdict, Verdict

MOST_UNSUPPORTED: Final = 0.2
MOST_CONTRADICTED: Final = 0.05
"""Shares of the judged claims above which a report warns of itself."""
NOT_REACHED: Final = "The check did not get to this sentence."
WORTH: Final[Mapping[Verdict, float]] = {
    Verdict.SUPPORTED: 1.0,
    Verdict.PARTIAL: 0.4,
    Verdict.NOT_ENOUGH_INFORMATION: 0.2,
    Verdict.UNVERIFIED: 0.2,
    Verdict.UNSUPPORTED: 0.0,
    Verdict.CONTRADICTED: -1.0,
}
"""What a claim adds to the score of a draft."""


def conclude(claims: Sequence[WeighedClaim], answers: Mapping[str, ClaimAnswer]) -> list[ClaimVerdict]:
    """The verdict on each claim: what needed no model, else the checker's, else none."""
    return [_verdict(each, answers.get(each.fingerprint)) for each in claims]


def _verdict(each: WeighedClaim, answer: ClaimAnswer | None) -> ClaimVerdict:
    if each.decided is not None:
        given = each.decided
    elif answer is None:
        given = ClaimVerdict(claim_id="", verdict=Verdict.UNVERIFIED, method=CheckMethod.NONE, reason=NOT_REACHED)
    else:
        judged = answer.verdict is not Verdict.UNVERIFIED
        given = ClaimVerdict(
            claim_id="",
            verdict=answer.verdict,
            method=CheckMethod.MODEL if judged else CheckMethod.NONE,
            reason=answer.reason or (f"The passages say: “{answer.quote}”" if answer.quote else ""),
            evidence_ids=each.claim.evidence_ids if judged else [],
        )
    return given.model_copy(update={"claim_id": each.claim.id, "importance": each.importance})


def score(verdicts: Sequence[ClaimVerdict]) -> float:
    """What the claims of a draft are worth on average, from -1 to 1; 0 without claims."""
    return round(sum(WORTH[one.verdict] for one in verdicts) / len(verdicts), 6) if verdicts else 0.0


def shares(verdicts: Mapping[str, int]) -> tuple[float, float]:
    """The shares of unsupported and of contradicted claims among those that were judged."""
    judged = sum(verdicts.values())
    judged -= verdicts.get(Verdict.UNVERIFIED, 0) + verdicts.get(Verdict.NOT_ENOUGH_INFORMATION, 0)
    if not judged:
        return 0.0, 0.0
    return (
        round(verdicts.get(Verdict.UNSUPPORTED, 0) / judged, 4),
        round(verdicts.get(Verdict.CONTRADICTED, 0) / judged, 4),
    )


def needs_warning(verdicts: Mapping[str, int]) -> bool:
    """Whether so much is not borne out that a report warns of itself."""
    unsupported, contradicted = shares(verdicts)
    return unsupported > MOST_UNSUPPORTED or contradicted > MOST_CONTRADICTED


def summarize(
    claims: Sequence[WeighedClaim],
    verdicts: Sequence[ClaimVerdict],
    corrections: Sequence[Correction],
    *,
    mode: str,
    strict: bool,
    not_reached: int,
) -> VerificationSummary:
    """The figures of a verification."""
    counts = Counter(one.verdict.value for one in verdicts)
    unsupported, contradicted = shares(counts)
    cited = {each.claim.id: len(each.claim.evidence_ids) for each in claims}
    return VerificationSummary(
        mode=mode,
        claims=len(claims),
        uncited_claims=sum(not each.claim.cited for each in claims),
        verdicts=dict(sorted(counts.items())),
        methods=dict(sorted(Counter(one.method.value for one in verdicts).items())),
        unsupported_share=unsupported,
        contradicted_share=contradicted,
        effective_citations=sum(cited[one.claim_id] for one in verdicts if one.verdict is Verdict.SUPPORTED),
        corrections=dict(sorted(Counter(one.action.value for one in corrections).items())),
        not_reached=not_reached,
        warning=needs_warning(counts),
        strict=strict,
    )
