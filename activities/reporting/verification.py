"""What was checked of a report's claims: the block `verification` of `report.json`, and the same in words."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from activities.reporting.fixed_sentences import (
    ALL_QUOTED,
    CORRECTED,
    EMPTY_CITES_NOTHING,
    JUDGES_MODEL,
    JUDGES_RULES,
    LEADS,
    REVIEWED,
    SOME_CHECKED,
    SOME_JUDGED,
    SOME_QUOTED,
    UNCITED,
    UNREACHED,
    count_noun,
)
from activities.reporting.judged_claims import PlacedClaim
from activities.reporting.markdown_layout import plain_text
from activities.reporting.method_section import Fact
from activities.reporting.report_inputs import ReportInputs
from activities.verifying.claim_conclusions import needs_warning, shares
from contracts.base import WHOLE
from contracts.checking import Correction, CorrectionAction, VerificationSummary
from contracts.claims import CheckMethod, Verdict
from contracts.request import Verify

LISTED: Final = 10
CLAIM_CHARACTERS: Final = 200
CARE: Final = "Read this report with care: many of its statements are not borne out. "
DOUBTFUL: Final = (Verdict.CONTRADICTED, Verdict.UNSUPPORTED, Verdict.PARTIAL)


def count_verdicts(claims: Sequence[PlacedClaim], matter: ReportInputs) -> VerificationSummary:
    """The figures of the claims as they stand in the report; shares are of those that were judged."""
    verdicts = Counter(str(claim.verdict) for claim in claims)
    unsupported, contradicted = shares(verdicts)
    supported = (claim for claim in claims if claim.verdict == Verdict.SUPPORTED)
    return matter.state.verification.summary.model_copy(
        update={
            "mode": matter.resolved.verify.value,
            "claims": len(claims),
            "uncited_claims": sum(not claim.evidence_ids for claim in claims),
            "methods": dict(sorted(Counter(str(claim.method) for claim in claims).items())),
            "verdicts": dict(sorted(verdicts.items())),
            "unsupported_share": unsupported,
            "contradicted_share": contradicted,
            "effective_citations": sum(len(claim.citation_numbers) for claim in supported),
            "warning": needs_warning(verdicts),
        }
    )


def summarize_verification(claims: Sequence[PlacedClaim], matter: ReportInputs) -> dict[str, Any]:
    """The figures, with what was corrected, reviewed and taken out."""
    figures = count_verdicts(claims, matter)
    review = matter.state.verification.review
    return {
        "mode": figures.mode,
        "claims": figures.claims,
        "uncited_claims": figures.uncited_claims,
        "method_counts": figures.methods,
        "verdict_counts": figures.verdicts,
        "unsupported_share": figures.unsupported_share,
        "contradicted_share": figures.contradicted_share,
        "effective_citations": figures.effective_citations,
        "warning": figures.warning,
        "strict": figures.strict,
        "not_reached": figures.not_reached,
        "correction_counts": figures.corrections,
        "corrections": [_told(correction, matter) for correction in matter.corrections],
        "review": review.model_dump(mode="json") if review else None,
        "passages_matched": len(matter.passages),
        "uncited_removed": matter.uncited_removed,
        "markers_removed": matter.numbered.unresolved,
        "addresses_removed": len(matter.numbered.foreign_urls),
    }


def _told(correction: Correction, matter: ReportInputs) -> dict[str, Any]:
    told = correction.model_dump(mode="json", context=WHOLE)
    return told | {name: matter.without_links(told[name]) for name in ("before", "after", "reason")}


def describe_checking(claims: Sequence[PlacedClaim], verify: Verify) -> str:
    """What the citations of this report were checked for, and what not."""
    claims = [claim for claim in claims if claim.evidence_ids]
    if not claims:
        return EMPTY_CITES_NOTHING
    same = sum(claim.method == CheckMethod.VERBATIM for claim in claims)
    if same == len(claims):
        return f"{LEADS} {ALL_QUOTED.format(all=same)}"
    others = len(claims) - same
    if verify is Verify.OFF or all(claim.method in (CheckMethod.VERBATIM, CheckMethod.NONE) for claim in claims):
        return f"{LEADS} {SOME_QUOTED.format(all=len(claims), same=same, others=others)}"
    verdicts = Counter(claim.verdict for claim in claims if claim.method != CheckMethod.VERBATIM)
    methods = Counter(str(claim.method) for claim in claims)
    sentence = SOME_CHECKED if methods[CheckMethod.MODEL] else SOME_JUDGED
    return f"{LEADS} " + sentence.format(
        rules=methods[CheckMethod.RULES],
        model=methods[CheckMethod.MODEL],
        all=len(claims),
        same=same,
        supported=verdicts[Verdict.SUPPORTED],
        partial=verdicts[Verdict.PARTIAL],
        unsupported=verdicts[Verdict.UNSUPPORTED],
        contradicted=verdicts[Verdict.CONTRADICTED],
        undecided=verdicts[Verdict.NOT_ENOUGH_INFORMATION] + verdicts[Verdict.UNVERIFIED],
    )


def verification_facts(claims: Sequence[PlacedClaim], matter: ReportInputs) -> list[Fact]:
    """What is not borne out, what cites nothing, what was corrected, what was not reached, and the review."""
    return [*_doubtful(claims), *_uncited(claims), *_corrected(matter), *_unreached(matter), *_reviewed(matter)]


def _corrected(matter: ReportInputs) -> list[Fact]:
    """What stands otherwise than it was written first, with the words that went."""
    made = [one for one in matter.corrections if one.action is not CorrectionAction.KEEP]
    if not made:
        return []
    items = [f"{one.action.value}: {_cut(one.before)}" + (f" → {_cut(one.after)}" if one.after != one.before else "")
             for one in made[:LISTED]]  # fmt: skip
    more = f" The first {LISTED} of {len(made):,}:" if len(made) > LISTED else ""
    return [Fact("Corrections", CORRECTED.format(count=count_noun(len(made), "statement")) + more, items)]


def _cut(text: str) -> str:
    return text if len(text) <= CLAIM_CHARACTERS else text[:CLAIM_CHARACTERS] + "…"


def _unreached(matter: ReportInputs) -> list[Fact]:
    count = matter.state.verification.summary.not_reached
    return [Fact("Not checked", UNREACHED.format(count=count_noun(count, "statement")))] if count else []


def _reviewed(matter: ReportInputs) -> list[Fact]:
    found = matter.state.verification.review
    if found is None:
        return []
    scores = found.scores
    words = REVIEWED.format(
        overall=found.overall,
        coverage=scores.coverage,
        support=scores.support,
        depth=scores.depth,
        readability=scores.readability,
        method=found.method,
    )
    return [Fact("Review", words, [*found.reasons, *(f"missing: {text}" for text in found.missing)])]


def _doubtful(claims: Sequence[PlacedClaim]) -> list[Fact]:
    """With a warning if there are many."""
    doubtful = [claim for verdict in DOUBTFUL for claim in claims if claim.verdict == verdict]
    if not doubtful:
        return []
    verdicts = Counter(str(claim.verdict) for claim in claims)
    warning = CARE if needs_warning(verdicts) else ""
    items = [
        f"{claim.verdict}: {plain_text(claim.text)[:CLAIM_CHARACTERS]} ({claim.reason})" for claim in doubtful[:LISTED]
    ]
    more = f" The first {LISTED} of {len(doubtful)}:" if len(doubtful) > LISTED else ""
    judges = JUDGES_MODEL if any(claim.method == CheckMethod.MODEL for claim in doubtful) else JUDGES_RULES
    words = f"{warning}{judges}{more}"
    return [Fact("Doubtful statements", words, items)]


def _uncited(claims: Sequence[PlacedClaim]) -> list[Fact]:
    """What the writer asserts without a passage: its own inference, until somebody shows a source."""
    found = [claim for claim in claims if not claim.evidence_ids]
    if not found:
        return []
    more = f" The first {LISTED} of {len(found):,}:" if len(found) > LISTED else ""
    words = UNCITED.format(count=count_noun(len(found), "statement"))
    return [
        Fact(
            "Without a citation",
            f"{words}{more}",
            [plain_text(claim.text)[:CLAIM_CHARACTERS] for claim in found[:LISTED]],
        )
    ]
