"""What was checked of a report's claims: the block `verification` of `report.json`, and the same in words."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from activities.reporting.judged_claims import PlacedClaim
from activities.reporting.markdown_layout import plain_text
from activities.reporting.method_section import Fact
from activities.reporting.report_inputs import ReportInputs
from activities.reporting.report_words import ReportWords
from contracts.claims import CheckMethod, Verdict
from contracts.request import Verify

MOST_UNSUPPORTED: Final = 0.2
MOST_CONTRADICTED: Final = 0.05
"""Shares of the judged claims above which a report warns of itself."""
LISTED: Final = 10
CLAIM_CHARACTERS: Final = 200
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
        "uncited_removed": matter.uncited_removed,
        "markers_removed": matter.numbered.unresolved,
        "addresses_removed": len(matter.numbered.foreign_urls),
    }  # fmt: skip


def _share(verdicts: Counter[str], verdict: Verdict) -> float:
    """Of the judged claims; 0 where none was."""
    judged = verdicts.total() - verdicts[Verdict.UNVERIFIED] - verdicts[Verdict.NOT_ENOUGH_INFORMATION]
    return round(verdicts[verdict] / judged, 4) if judged else 0.0


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
    judged = say.say(
        "some_judged",
        all=len(claims),
        same=same,
        supported=verdicts[Verdict.SUPPORTED],
        partial=verdicts[Verdict.PARTIAL],
        unsupported=verdicts[Verdict.UNSUPPORTED],
        contradicted=verdicts[Verdict.CONTRADICTED],
        undecided=verdicts[Verdict.NOT_ENOUGH_INFORMATION] + verdicts[Verdict.UNVERIFIED],
    )
    return f"{say['leads']} {judged}"


def verification_facts(claims: Sequence[PlacedClaim], say: ReportWords) -> list[Fact]:
    """The statements that their passages do not bear out, each with the reason, and those that cite nothing."""
    return [*_doubtful(claims, say), *_uncited(claims, say)]


def _doubtful(claims: Sequence[PlacedClaim], say: ReportWords) -> list[Fact]:
    """With a warning if there are many."""
    doubtful = [claim for verdict in DOUBTFUL for claim in claims if claim.verdict == verdict]
    if not doubtful:
        return []
    verdicts = Counter(claim.verdict for claim in claims)
    unsupported = _share(verdicts, Verdict.UNSUPPORTED) > MOST_UNSUPPORTED
    contradicted = _share(verdicts, Verdict.CONTRADICTED) > MOST_CONTRADICTED
    warning = f"{say['care']} " if unsupported or contradicted else ""
    items = [
        f"{say[f'verdict_{claim.verdict}']}: {plain_text(claim.text)[:CLAIM_CHARACTERS]} ({say.told(claim.reason)})"
        for claim in doubtful[:LISTED]
    ]
    return [Fact(say["fact_doubtful"], f"{warning}{say['doubtful']}{_first_of(len(doubtful), say)}", items)]


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
