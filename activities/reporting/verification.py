"""What was checked of a report's claims: the block `verification` of `report.json`, and the same in words."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from activities.reporting.fixed_sentences import (
    ALL_QUOTED,
    EMPTY_CITES_NOTHING,
    LEADS,
    SOME_JUDGED,
    SOME_QUOTED,
    UNCITED,
    count_noun,
)
from activities.reporting.judged_claims import PlacedClaim
from activities.reporting.markdown_layout import plain_text
from activities.reporting.method_section import Fact
from activities.reporting.report_inputs import ReportInputs
from contracts.claims import CheckMethod, Verdict
from contracts.request import Verify

MOST_UNSUPPORTED: Final = 0.2
MOST_CONTRADICTED: Final = 0.05
"""Shares of the judged claims above which a report warns of itself."""
LISTED: Final = 10
CLAIM_CHARACTERS: Final = 200
CARE: Final = "Read this report with care: many of its statements are not borne out. "
DOUBTFUL: Final = (Verdict.CONTRADICTED, Verdict.UNSUPPORTED, Verdict.PARTIAL)


def summarize_verification(claims: Sequence[PlacedClaim], matter: ReportInputs) -> dict[str, Any]:
    """Counts per method and verdict; the shares are of the claims that were judged."""
    verdicts = Counter(claim.verdict for claim in claims)
    return {
        "mode": matter.resolved.verify.value,
        "claims": len(claims),
        "uncited_claims": sum(not claim.evidence_ids for claim in claims),
        "method_counts": dict(sorted(Counter(claim.method for claim in claims).items())),
        "verdict_counts": dict(sorted(verdicts.items())),
        "unsupported_share": _share(verdicts, Verdict.UNSUPPORTED),
        "contradicted_share": _share(verdicts, Verdict.CONTRADICTED),
        "effective_citations": sum(len(claim.citation_numbers) for claim in claims
                                   if claim.verdict == Verdict.SUPPORTED),
        "passages_matched": len(matter.passages),
        "markers_removed": matter.numbered.unresolved,
        "addresses_removed": len(matter.numbered.foreign_urls),
    }  # fmt: skip


def _share(verdicts: Counter[str], verdict: Verdict) -> float:
    """Of the judged claims; 0 where none was."""
    judged = verdicts.total() - verdicts[Verdict.UNVERIFIED] - verdicts[Verdict.NOT_ENOUGH_INFORMATION]
    return round(verdicts[verdict] / judged, 4) if judged else 0.0


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
    return f"{LEADS} " + SOME_JUDGED.format(
        all=len(claims),
        same=same,
        supported=verdicts[Verdict.SUPPORTED],
        partial=verdicts[Verdict.PARTIAL],
        unsupported=verdicts[Verdict.UNSUPPORTED],
        contradicted=verdicts[Verdict.CONTRADICTED],
        undecided=verdicts[Verdict.NOT_ENOUGH_INFORMATION] + verdicts[Verdict.UNVERIFIED],
    )


def verification_facts(claims: Sequence[PlacedClaim]) -> list[Fact]:
    """The statements that their passages do not bear out, each with the reason, and those that cite nothing."""
    return [*_doubtful(claims), *_uncited(claims)]


def _doubtful(claims: Sequence[PlacedClaim]) -> list[Fact]:
    """With a warning if there are many."""
    doubtful = [claim for verdict in DOUBTFUL for claim in claims if claim.verdict == verdict]
    if not doubtful:
        return []
    verdicts = Counter(claim.verdict for claim in claims)
    unsupported = _share(verdicts, Verdict.UNSUPPORTED) > MOST_UNSUPPORTED
    contradicted = _share(verdicts, Verdict.CONTRADICTED) > MOST_CONTRADICTED
    warning = CARE if unsupported or contradicted else ""
    items = [
        f"{claim.verdict}: {plain_text(claim.text)[:CLAIM_CHARACTERS]} ({claim.reason})" for claim in doubtful[:LISTED]
    ]
    more = f" The first {LISTED} of {len(doubtful)}:" if len(doubtful) > LISTED else ""
    words = f"{warning}Rules compared these statements with their passages and found differences.{more}"
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
