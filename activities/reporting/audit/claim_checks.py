"""Claims: their place, their passages, and the verdict, which is given again."""

from bisect import bisect_left

from activities.reporting.audit.audit_result import AuditResult
from activities.reporting.audit.audited_report import AuditedClaim, AuditedReport, marks_of, registry_of
from activities.reporting.judged_claims import CitedWords, judge
from activities.reporting.links import Registry
from activities.reporting.quotations import Stretch, words_of
from contracts.claims import CheckMethod, Verdict
from contracts.request import Verify


def check_claims(report: AuditedReport, result: AuditResult) -> None:
    """Each claim must stand at its place, cite what it names, and have the verdict that follows."""
    evidence = {item.id: item for item in report.evidence}
    numbers = {citation.source_id: citation.number for citation in report.citations}
    titles = {source.id: source.title for source in report.sources}
    registry = registry_of(report)
    written_numbers = marks_of(report)
    places = [mark.start for mark in written_numbers]
    for claim in report.claims:
        result.count("claims")
        if report.report.markdown[claim.start : claim.end] != claim.text:
            result.problem("claim_moved", claim.id, "the report has other words at this place")
        missing = [identity for identity in claim.evidence_ids if identity not in evidence]
        for identity in missing:
            result.problem("claim_without_evidence", claim.id, f"the passage {identity} is not listed")
        if not claim.evidence_ids:
            _check_uncited(claim, result)
        if missing or not claim.evidence_ids:
            continue
        expected = {numbers.get(evidence[identity].source_id) for identity in claim.evidence_ids}
        own = written_numbers[bisect_left(places, claim.start) : bisect_left(places, claim.end)]
        written = {mark.number for mark in own}
        if not expected == set(claim.citation_numbers) == written:
            result.problem("claim_numbers_differ", claim.id, "its numbers, its text and its passages disagree")
        words = words_of(report.report.markdown, Stretch(claim.start, claim.end, own))
        cited = [evidence[identity] for identity in claim.evidence_ids]
        compared = [CitedWords(item.quote, item.heading, titles.get(item.source_id, "")) for item in cited]
        _check_verdict(claim, words, compared, registry, report.language, result)


def _check_uncited(claim: AuditedClaim, result: AuditResult) -> None:
    """A claim that cites nothing says so, and nothing calls it supported."""
    if claim.citation_numbers:
        result.problem("claim_without_evidence", claim.id, "it has a number and names no passage")
    elif claim.verdict != Verdict.UNVERIFIED:
        result.problem("claim_without_evidence", claim.id, f"it is called {claim.verdict}, yet it names no passage")
    else:
        result.count("claims without a citation")


def _check_verdict(
    claim: AuditedClaim,
    words: str,
    cited: list[CitedWords],
    registry: Registry,
    language: str,
    result: AuditResult,
) -> None:
    """Judge the claim again: the same rules on the same words must give the verdict that the report states."""
    if claim.method == CheckMethod.NONE:
        result.skip("claims that no comparison of words can check")
        if claim.verdict == Verdict.SUPPORTED:
            result.problem("verdict_without_method", claim.id, "it is called supported, yet nothing was compared")
        return
    if claim.method not in (CheckMethod.VERBATIM, CheckMethod.RULES):
        result.skip("verdicts of a model, which no rule gives again")
        return
    result.count("word for word claims" if claim.method == CheckMethod.VERBATIM else "claims judged by rules")
    judged = judge(words, cited, registry, language, quoted=False, verify=Verify.LIGHT)
    if claim.method == CheckMethod.VERBATIM and judged.method != CheckMethod.VERBATIM:
        result.problem("claim_not_the_quote", claim.id, "it is not word for word a passage that it cites")
    elif judged.verdict != claim.verdict:
        message = f"it is called {claim.verdict}; its words and passages give {judged.verdict}: {judged.reason}"
        result.problem("verdict_differs", claim.id, message)
