"""Claims: their place, their passages, and the verdict, which is given again."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from activities.reporting.audit.audit_result import AuditResult
from activities.reporting.audit.audited_report import (
    AuditedClaim,
    AuditedEvidence,
    AuditedReport,
    marks_of,
    registry_of,
)
from activities.reporting.claim_finder import claim_id, find_claims, key_of
from activities.reporting.judged_claims import CitedWords, judge
from activities.reporting.links import Registry
from activities.reporting.markdown_layout import plain_text
from activities.reporting.quotations import Stretch, words_of
from activities.reporting.report_words import ReportWords
from activities.roles.claim_checking import objections
from contracts.checking import AskedClaim, ShownPassage
from contracts.evidence import CheckMethod, Verdict
from contracts.request import Verify

WINDOW_CHARACTERS: Final = 100
"""Of the stored text on each side of a passage, as a checker saw it."""


def check_claims(report: AuditedReport, texts: Mapping[str, str | None], result: AuditResult) -> None:
    """Each claim must stand at its place, cite what it names, be the one that was judged, and have its verdict.

    `texts` are the stored texts by the id of their source.
    """
    _check_listing(report, result)
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
        if claim.method == CheckMethod.MODEL:
            asked = _as_asked(claim, words, cited, texts, titles)
            _check_support(claim, asked, report.language, result)
        else:
            _check_verdict(claim, words, compared, registry, report.language, result)


def _check_listing(report: AuditedReport, result: AuditResult) -> None:
    """Every sentence with a citation is listed, and each claim has the id that follows from its words and passages."""
    listed = {(claim.start, claim.end): claim for claim in report.claims}
    seen: Counter[str] = Counter()
    body = report.report.markdown[: _end_of_text(report)]
    marks = [mark for mark in marks_of(report) if mark.end <= len(body)]
    for found in find_claims(body, marks, language=report.language):
        claim = listed.get((found.claim.start, found.claim.end))
        if claim is None:
            if found.marks:
                place = f"{found.claim.start}-{found.claim.end}"
                result.problem("claim_unlisted", place, f"nothing is said of “{found.claim.text[:80]}”")
            continue
        key = key_of(found.claim.text, claim.evidence_ids)
        if claim.id != claim_id(key, seen[key]):
            result.problem("claim_altered", claim.id, "its words or its passages are not those that were judged")
        seen[key] += 1


def _end_of_text(report: AuditedReport) -> int:
    """Where the list of sources begins, or what the report says of itself: nothing there is a claim."""
    say = ReportWords(report.language)
    places = [report.report.markdown.rfind(f"\n## {say[name]}\n") for name in ("sources", "method")]
    return next((place for place in places if place >= 0), len(report.report.markdown))


def _as_asked(
    claim: AuditedClaim,
    words: str,
    cited: Sequence[AuditedEvidence],
    texts: Mapping[str, str | None],
    titles: Mapping[str, str],
) -> AskedClaim:
    """The claim as a checker was shown it."""
    passages = []
    for item in cited:
        text = texts.get(item.source_id) or ""
        before, after = text[max(0, item.start - WINDOW_CHARACTERS) : item.start], text[item.end :][:WINDOW_CHARACTERS]
        title = titles.get(item.source_id, "")
        passages.append(ShownPassage(evidence_id=item.id, title=title, before=before, quote=item.quote, after=after))
    return AskedClaim(fingerprint=claim.id, text=plain_text(words), passages=passages)


def _check_support(claim: AuditedClaim, asked: AskedClaim, language: str, result: AuditResult) -> None:
    """What a model called supported may not stand against the rules: it would not have been believed then."""
    result.skip("verdicts of a model, which no rule gives again")
    if claim.verdict != Verdict.SUPPORTED:
        return
    result.count("supported by a model, held against the rules")
    if objection := next(objections(asked, language), None):
        result.problem("verdict_differs", claim.id, f"a model called it supported, and the rules object: {objection}")


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
    result.count("word for word claims" if claim.method == CheckMethod.VERBATIM else "claims judged by rules")
    judged = judge(words, cited, registry, language, quoted=False, verify=Verify.LIGHT)
    if claim.method == CheckMethod.VERBATIM and judged.method != CheckMethod.VERBATIM:
        result.problem("claim_not_the_quote", claim.id, "it is not word for word a passage that it cites")
    elif judged.verdict != claim.verdict:
        message = f"it is called {claim.verdict}; its words and passages give {judged.verdict}: {judged.reason}"
        result.problem("verdict_differs", claim.id, message)
