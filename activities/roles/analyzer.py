"""An analysis grounded in stored text: each finding with passages that are there word for word."""

from collections.abc import Iterator, Sequence
from functools import cache

from activities.roles.grounding import Headings, RoleWork, evidence_at, find_quote
from activities.roles.prompt_rendering import shown_sources
from activities.roles.untrusted import label_all, label_key
from contracts import addresses
from contracts.evidence import Evidence, Finding, QualityUpdate, bounded_confidence, supported_confidence, voice_of
from contracts.exclusions import mentions_any
from contracts.lenient import line_of
from contracts.roles import AnalyzeInput, AnalyzerAnswer, AnalyzerResult, ProposedFinding, Quote, SourceExtract
from contracts.texts import plural
from contracts.vocabulary import Confidence, EngineKind

Work = RoleWork[AnalyzeInput, AnalyzerAnswer]


def ground_analysis(work: Work) -> AnalyzerResult:
    """Findings with evidence, every one `text[start:end]` of a stored text; the rest is dropped and counted."""
    grounding = _Grounding(work)
    findings: dict[str, Finding] = {}
    numbered: dict[int, str] = {}
    dropped = 0
    for number, proposed in enumerate(work.answer.findings, start=1):
        if mentions_any(proposed.content, work.request.exclude):
            continue
        finding = grounding.finding(proposed)
        if finding is None:
            dropped += 1
            continue
        numbered[number] = finding.id
        if len(findings) < work.request.max_findings:
            findings.setdefault(finding.id, finding)
        else:
            work.warnings.append(f"findings beyond the limit of {work.request.max_findings} were dropped")
    if dropped:
        work.warnings.append(f"{plural(dropped, 'finding')} dropped: no quote is in the sources")
    used = {key for finding in findings.values() for key in finding.evidence_ids}
    claimed = [
        (numbered.get(number, ""), numbered.get(other, ""))
        for number, proposed in enumerate(work.answer.findings, start=1)
        for other in proposed.contradicts
    ]
    # A model read as many as fit into its prompt.
    read = shown_sources(work.request) if work.account.engine is EngineKind.MODEL else work.request.sources
    return AnalyzerResult(
        findings=_linked(list(findings.values()), claimed),
        evidence=[item for item in grounding.evidence.values() if item.id in used],
        gaps=work.answer.fitted(work.request, work.warnings).gaps,
        quality_updates=list(_quality_updates(work)),
        analyzed_source_ids=[source.id for source in read if source.text and work.documents.get(source.text.hash)],
        dropped_quotes=grounding.dropped,
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


class _Grounding:
    """Quotes of one call against the stored texts of its sources."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._sources = _sources_by_name(work)
        self._headings = cache(Headings)
        self.evidence: dict[str, Evidence] = {}
        self.dropped = 0
        """Number of quotes that are in no stored text."""

    def finding(self, proposed: ProposedFinding) -> Finding | None:
        """The finding with those of its quotes that were found; None if there is none."""
        grounded = [item for quote in proposed.quotes if (item := self._ground(quote))]
        if not grounded or not proposed.content:
            return None
        evidence_ids = list(dict.fromkeys(item.id for item in grounded))
        return Finding(
            id=addresses.finding_id(proposed.content, evidence_ids),
            statement=proposed.content,
            confidence=self._confidence(proposed.confidence, grounded),
            evidence_ids=evidence_ids,
            source_ids=list(dict.fromkeys(item.source_id for item in grounded)),
            sub_query_id=self._work.request.sub_query.id,
            category=proposed.category or None,
            iteration=self._work.request.iteration,
        )

    def _ground(self, quote: Quote) -> Evidence | None:
        source = self._sources.get(quote.source_id.strip())
        text = self._work.documents.get(source.text.hash, "") if source and source.text else ""
        place = find_quote(text, quote.quote, quote.start)
        if source is None:
            self._work.warnings.append("a quote from an unknown source was ignored")
        if source is None or place is None:
            self.dropped += 1
            return None
        item = evidence_at(source.id, text, *place, self._headings(text))
        if not item.heading:
            hinted = (hint.heading for hint in source.sections if hint.start <= item.start < hint.end)
            item = item.model_copy(update={"heading": line_of(next(hinted, ""), 120)})
        item = item.model_copy(update={"sub_query_id": self._work.request.sub_query.id})
        return self.evidence.setdefault(item.id, item)

    def _confidence(self, proposed: Confidence, grounded: list[Evidence]) -> Confidence:
        """At most the confidence that the sources' number and quality allow."""
        cited = {item.source_id for item in grounded}
        given = [source for source in self._work.request.sources if source.id in cited]
        supported = supported_confidence((voice_of(one.url, one.publisher), one.quality) for one in given)
        return bounded_confidence(proposed, supported)


def _sources_by_name(work: Work) -> dict[str, SourceExtract]:
    """The sources of this call by id and by label: a model knows them by the labels of its prompt."""
    sources = {source.id: source for source in work.request.sources}
    labels = label_all(sources, label_key(work.request))
    return sources | {label: sources[identity] for label, identity in labels.items()}


def _quality_updates(work: Work) -> Iterator[QualityUpdate]:
    """Opinions of the sources that were given, the last one of each."""
    given = _sources_by_name(work)
    for name, quality in {item.source_id.strip(): item.quality for item in work.answer.quality_updates}.items():
        if name in given:
            yield QualityUpdate(source_id=given[name].id, quality=quality.value)
        else:
            work.warnings.append("a quality for an unknown source was ignored")
