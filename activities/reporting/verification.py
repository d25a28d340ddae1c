"""What was checked of a report's claims: the block `verification` of `report.json`, and the same in words."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from activities.reporting.judged_claims import PlacedClaim
from activities.reporting.markdown_layout import plain_text
from activities.reporting.method_section import Fact
from activities.reporting.report_inputs import ReportInputs
from activities.reporting.report_words import ReportWords
from activities.verifying.claim_conclusions import needs_warning, shares
from contracts.base import WHOLE
from contracts.checking import Correction, CorrectionAction, ReviewSummary, VerificationSummary
from contracts.evidence import CheckMethod, Verdict
from contracts.request import Verify

LISTED: Final = 10
CLAIM_CHARACTERS: Final = 200
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


def describe_checking(claims: Sequence[PlacedClaim], verify: Verify, say: ReportWords) -> str:
    """What the citations of this report were checked for, and what not."""
    claims = [claim for claim in claims if claim.evidence_ids]
    if not claims:
        return say["cites_nothing"]
    same = sum(claim.method == CheckMethod.VERBATIM for claim in claims)
    if same == len(claims):
        return f"{say['leads']} {say.say('all_quoted', all=same)}"
    others = len(claims) - same
    if verify is Verify.OFF or all(claim.method in (CheckMethod.VERBATIM, CheckMethod.NONE) for claim in claims):
        return f"{say['leads']} {say.say('some_quoted', all=len(claims), same=same, others=others)}"
    verdicts = Counter(claim.verdict for claim in claims if claim.method != CheckMethod.VERBATIM)
    methods = Counter(str(claim.method) for claim in claims)
    judged = say.say(
        "some_checked" if methods[CheckMethod.MODEL] else "some_judged",
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
    return f"{say['leads']} {judged}"


def verification_facts(claims: Sequence[PlacedClaim], matter: ReportInputs) -> list[Fact]:
    """What is not borne out, what cites nothing, what was corrected, what was not reached, and the review."""
    say = matter.words
    return [
        *_doubtful(claims, say),
        *_uncited(claims, say),
        *_corrected(matter.corrections, say),
        *_unreached(matter.state.verification.summary.not_reached, say),
        *_reviewed(matter.state.verification.review, say),
    ]


def _corrected(corrections: Sequence[Correction], say: ReportWords) -> list[Fact]:
    """What stands otherwise than it was written first, with the words that went."""
    made = [one for one in corrections if one.action is not CorrectionAction.KEEP]
    if not made:
        return []
    items = [
        f"{say[f'correction_{one.action.value}']}: {_cut(one.before)}"
        + (f" → {_cut(one.after)}" if one.after != one.before else "")
        for one in made[:LISTED]
    ]
    words = say.say("corrected_words", statements=say.count("statement", len(made)))
    return [Fact(say["fact_corrected"], f"{words}{_first_of(len(made), say)}", items)]


def _cut(text: str) -> str:
    return text if len(text) <= CLAIM_CHARACTERS else text[:CLAIM_CHARACTERS] + "…"


def _unreached(count: int, say: ReportWords) -> list[Fact]:
    if not count:
        return []
    return [Fact(say["judged_unverified"], say.say("unreached_words", statements=say.count("statement", count)))]


def _reviewed(found: ReviewSummary | None, say: ReportWords) -> list[Fact]:
    if found is None:
        return []
    scores = found.scores
    words = say.say(
        "reviewed_words",
        overall=f"{found.overall:g}",
        coverage=f"{scores.coverage:g}",
        support=f"{scores.support:g}",
        depth=f"{scores.depth:g}",
        readability=f"{scores.readability:g}",
        method=say.name("reviewer", found.method),
    )
    missing = [say.say("review_missing", text=text) for text in found.missing]
    return [Fact(say["fact_reviewed"], words, [*(say.told(reason) for reason in found.reasons), *missing])]


def _doubtful(claims: Sequence[PlacedClaim], say: ReportWords) -> list[Fact]:
    """With a warning if there are many."""
    doubtful = [claim for verdict in DOUBTFUL for claim in claims if claim.verdict == verdict]
    if not doubtful:
        return []
    verdicts = Counter(str(claim.verdict) for claim in claims)
    warning = f"{say['care']} " if needs_warning(verdicts) else ""
    items = [
        f"{say[f'verdict_{claim.verdict}']}: {plain_text(claim.text)[:CLAIM_CHARACTERS]} ({say.told(claim.reason)})"
        for claim in doubtful[:LISTED]
    ]
    by_model = any(claim.method == CheckMethod.MODEL for claim in doubtful)
    words = f"{warning}{say['doubtful_model' if by_model else 'doubtful']}{_first_of(len(doubtful), say)}"
    return [Fact(say["fact_doubtful"], words, items)]


def _uncited(claims: Sequence[PlacedClaim], say: ReportWords) -> list[Fact]:
    """What the writer asserts without a passage: its own inference, until somebody shows a source."""
    found = [claim for claim in claims if not claim.evidence_ids]
    if not found:
        return []
    words = say.say("uncited_words", statements=say.count("statement", len(found)))
    items = [plain_text(claim.text)[:CLAIM_CHARACTERS] for claim in found[:LISTED]]
    return [Fact(say["fact_uncited"], f"{words}{_first_of(len(found), say)}", items)]


def _first_of(count: int, say: ReportWords) -> str:
    return f" {say.say('first_of', shown=LISTED, all=count)}" if count > LISTED else ""
