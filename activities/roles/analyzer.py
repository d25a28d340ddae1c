"""An analysis grounded in stored text: each finding with passages that are there word for word."""

from collections.abc import Mapping, Sequence

from activities.roles.grounding import RoleWork, evidence_at, find_quote
from activities.roles.untrusted import label_all
from contracts.addresses import finding_id
from contracts.evidence import Evidence, Finding, bounded_confidence, supported_confidence, voice_of
from contracts.exclusions import mentions_any
from contracts.lenient import line_of
from contracts.roles import AnalyzeInput, AnalyzerAnswer, AnalyzerResult, ProposedFinding, Quote, SourceExtract
from contracts.texts import plural

Work = RoleWork[AnalyzeInput, AnalyzerAnswer]


def ground_analysis(work: Work) -> AnalyzerResult:
    """Findings with evidence, every one `text[start:end]` of a stored text; the rest is dropped and counted."""
    request, answer = work.request, work.answer
    by_id = {source.id: source for source in request.sources}
    # A program knows the sources by their ids, a model by the labels of its prompt.
    sources = by_id | {label: by_id[identity] for label, identity in label_all(by_id, request).items()}
    findings: dict[str, Finding] = {}
    evidence: dict[str, Evidence] = {}
    numbered: dict[int, str] = {}
    dropped = dropped_quotes = 0
    for number, proposed in enumerate(answer.findings, start=1):
        if mentions_any(proposed.content, request.exclude):
            continue
        found = [item for quote in proposed.quotes if (item := _ground(work, sources, quote))]
        dropped_quotes += len(proposed.quotes) - len(found)
        if not found or not proposed.content:
            dropped += 1
            continue
        finding = _finding(work, proposed, found)
        numbered[number] = finding.id
        if len(findings) < request.max_findings:
            findings.setdefault(finding.id, finding)
            evidence |= {item.id: item for item in found}
        else:
            work.warnings.append(f"findings beyond the limit of {request.max_findings} were dropped")
    if dropped:
        work.warnings.append(f"{plural(dropped, 'finding')} dropped: no quote is in the sources")
    claimed = [
        (numbered.get(number, ""), numbered.get(other, ""))
        for number, proposed in enumerate(answer.findings, start=1)
        for other in proposed.contradicts
    ]
    opinions = {item.source_id.strip(): item for item in answer.quality_updates}
    if opinions.keys() - sources.keys():
        work.warnings.append("a quality for an unknown source was ignored")
    return AnalyzerResult(
        findings=_linked(list(findings.values()), claimed),
        evidence=list(evidence.values()),
        gaps=answer.fitted(request, work.warnings).gaps,
        quality_updates=[
            item.model_copy(update={"source_id": sources[name].id})
            for name, item in opinions.items()
            if name in sources
        ],
        analyzed_source_ids=[
            source.id for source in request.sources if source.text and work.documents.get(source.text.hash)
        ],
        dropped_quotes=dropped_quotes,
    )


def _ground(work: Work, sources: Mapping[str, SourceExtract], quote: Quote) -> Evidence | None:
    """The passage of a quote; None if it is not in the stored text of its source."""
    source = sources.get(quote.source_id.strip())
    if source is None:
        work.warnings.append("a quote from an unknown source was ignored")
        return None
    text = work.documents.get(source.text.hash, "") if source.text else ""
    place = find_quote(text, quote.quote, quote.start)
    if place is None:
        return None
    item = evidence_at(source.id, text, *place)
    hinted = (hint.heading for hint in source.sections if hint.start <= item.start < hint.end)
    heading = item.heading or line_of(next(hinted, ""), 120)
    return item.model_copy(update={"heading": heading, "sub_query_id": work.request.sub_query.id})


def _finding(work: Work, proposed: ProposedFinding, found: Sequence[Evidence]) -> Finding:
    """The finding with its passages; its confidence is at most what number and quality of the sources allow."""
    evidence_ids = list(dict.fromkeys(item.id for item in found))
    source_ids = list(dict.fromkeys(item.source_id for item in found))
    cited = [source for source in work.request.sources if source.id in source_ids]
    supported = supported_confidence((voice_of(one.url, one.publisher), one.quality) for one in cited)
    return Finding(
        id=finding_id(proposed.content, evidence_ids),
        statement=proposed.content,
        confidence=bounded_confidence(proposed.confidence, supported),
        evidence_ids=evidence_ids,
        source_ids=source_ids,
        sub_query_id=work.request.sub_query.id,
        category=proposed.category or None,
        iteration=work.request.iteration,
    )


def _linked(findings: Sequence[Finding], pairs: Sequence[tuple[str, str]]) -> list[Finding]:
    """The findings, each with those that contradict it, or that it contradicts, by the analyzer's word."""
    opposed = {*pairs, *((other, one) for one, other in pairs)}
    return [
        one.model_copy(
            update={
                "contradicts": [other.id for other in findings if other is not one and (one.id, other.id) in opposed]
            }
        )
        for one in findings
    ]
