"""Grounding of an analysis in stored text: every finding has verbatim passages."""

from collections.abc import Mapping, Sequence
from typing import Final

from activities.roles.claim_checking import find_objection
from activities.roles.grounding import RoleWork, evidence_at, find_quote
from contracts.addresses import canonical_url, finding_id
from contracts.checking import AskedClaim, ShownPassage
from contracts.evidence import Evidence, Finding, Verdict, bounded_confidence, source_voice, supported_confidence
from contracts.exclusions import mentions_any
from contracts.lenient import to_line
from contracts.recursive_roles import ExtractorAnswer, ExtractorResult, MentionedWork
from contracts.roles import AnalyzeInput, AnalyzerAnswer, AnalyzerResult, ProposedFinding, Quote, SourceExtract
from contracts.texts import plural
from contracts.vocabulary import EngineKind

STATEMENT_CHARACTERS: Final = 320  # longest text of a passage that replaces a statement
Work = RoleWork[AnalyzeInput, AnalyzerAnswer]


def ground_analysis(work: Work) -> AnalyzerResult:
    """Return findings with evidence, each a `text[start:end]` of a stored text; others are dropped and counted."""
    request, answer = work.request, work.answer
    sources = {source.id: source for source in request.sources}
    findings: dict[str, Finding] = {}
    evidence: dict[str, Evidence] = {}
    numbered: dict[int, str] = {}
    dropped = dropped_quotes = 0
    for number, proposed in enumerate(answer.findings, start=1):
        grounded = [item for quote in proposed.quotes if (item := _ground(work, sources, quote))]
        dropped_quotes += len(proposed.quotes) - len(grounded)
        statement, grounded = _keep_supporting(work, proposed.content, grounded)
        if mentions_any(statement, request.exclude):
            continue
        if not grounded or not statement:
            dropped += 1
            continue
        finding = _finding(work, proposed, statement, grounded)
        numbered[number] = finding.id
        if len(findings) < request.max_findings:
            findings.setdefault(finding.id, finding)
            evidence |= {item.id: item for item in grounded}
        else:
            work.warnings.append(f"findings beyond the limit of {request.max_findings} were dropped")
    if dropped:
        work.warnings.append(f"{plural(dropped, 'finding')} dropped: no quote is in the sources")
    contradictions = [
        (numbered.get(number, ""), numbered.get(opposed, ""))
        for number, proposed in enumerate(answer.findings, start=1)
        for opposed in proposed.contradicts
    ]
    opinions = {item.source_id: item for item in answer.quality_updates}
    if opinions.keys() - sources.keys():
        work.warnings.append("a quality for an unknown source was ignored")
    return AnalyzerResult(
        findings=_link_contradictions(list(findings.values()), contradictions),
        evidence=list(evidence.values()),
        gaps=answer.fitted(request, work.warnings).gaps,
        quality_updates=[item for name, item in opinions.items() if name in sources],
        analyzed_source_ids=[
            source.id for source in request.sources if source.text and work.documents.get(source.text.hash)
        ],
        dropped_quotes=dropped_quotes,
    )


def ground_extraction(work: Work) -> ExtractorResult:
    """Return the analysis of one source, with the other works that it verifiably mentions."""
    assert isinstance(work.answer, ExtractorAnswer)
    texts = [work.documents.get(source.text.hash, "") for source in work.request.sources if source.text]
    links = {canonical_url(link) for source in work.request.sources for link in source.links}
    works = list[MentionedWork]()
    for named in work.answer.fitted(work.request, []).mentioned_works:
        words = named.words if any(find_quote(text, named.words) for text in texts) else ""
        address = named.address if canonical_url(named.address) in links else ""
        if words or address:
            works.append(MentionedWork(words=words, address=address))
    if len(works) < len(work.answer.mentioned_works):
        work.warnings.append("works that the source does not mention were dropped")
    analysis = ground_analysis(work)
    return ExtractorResult.model_validate({**dict(analysis), "mentioned_works": works})


def _ground(work: Work, sources: Mapping[str, SourceExtract], quote: Quote) -> Evidence | None:
    """Return the passage of a quote; None if it is not in the stored text of its source."""
    source = sources.get(quote.source_id)
    if source is None:
        work.warnings.append("a quote from an unknown source was ignored")
        return None
    text = work.documents.get(source.text.hash, "") if source.text else ""
    span = find_quote(text, quote.quote, quote.start)
    if span is None:
        return None
    item = evidence_at(source.id, text, *span)
    hinted = (hint.heading for hint in source.sections if hint.start <= item.start < hint.end)
    heading = item.heading or to_line(next(hinted, ""), 120)
    return item.model_copy(update={"heading": heading})


def _keep_supporting(work: Work, statement: str, evidence: list[Evidence]) -> tuple[str, list[Evidence]]:
    """Return a model's statement with the passages that support it, as far as rules can tell.

    If none does, alone or with the others, the text of the first passage becomes the statement.
    """
    if work.engine is not EngineKind.MODEL or not evidence:
        return statement, evidence
    sources = {source.id: source for source in work.request.sources}
    passages = []
    for item in evidence:
        source = sources[item.source_id]
        text = work.documents[source.text.hash] if source.text else ""
        title = f"{source.title}: {item.heading}"
        passages.append(ShownPassage(evidence_id=item.id, quote=text[item.start : item.end], title=title))

    def is_supported(shown: list[ShownPassage]) -> bool:
        objection = find_objection(AskedClaim(fingerprint="", text=statement, passages=shown), work.request.language)
        return objection is None or objection[0] is not Verdict.PARTIAL  # `PARTIAL`: the rules are certain

    supporting = [item for item, passage in zip(evidence, passages, strict=True) if is_supported([passage])]
    if supporting:
        return statement, supporting
    if is_supported(passages):
        return statement, evidence
    work.warnings.append("a finding that its quotes do not support was replaced by their words")
    return to_line(passages[0].quote, STATEMENT_CHARACTERS), evidence[:1]


def _finding(work: Work, proposed: ProposedFinding, statement: str, evidence: Sequence[Evidence]) -> Finding:
    """Return the finding with its passages; number and quality of its sources cap its confidence."""
    evidence_ids = list(dict.fromkeys(item.id for item in evidence))
    source_ids = list(dict.fromkeys(item.source_id for item in evidence))
    cited = [source for source in work.request.sources if source.id in source_ids]
    supported = supported_confidence((source_voice(source.url, source.publisher), source.quality) for source in cited)
    return Finding(
        id=finding_id(statement, evidence_ids),
        statement=statement,
        confidence=bounded_confidence(proposed.confidence, supported),
        evidence_ids=evidence_ids,
        source_ids=source_ids,
        sub_query_id=work.request.sub_query.id,
        category=proposed.category or None,
        iteration=work.request.iteration,
    )


def _link_contradictions(findings: Sequence[Finding], pairs: Sequence[tuple[str, str]]) -> list[Finding]:
    """Return the findings, with contradictions claimed by the analyzer recorded on both sides."""
    opposed = {*pairs, *((second, first) for first, second in pairs)}
    return [
        item.model_copy(
            update={
                "contradicts": [other.id for other in findings if other is not item and (item.id, other.id) in opposed]
            }
        )
        for item in findings
    ]
