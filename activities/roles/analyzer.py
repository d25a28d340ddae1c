"""The analyzer's draft as findings with evidence: what cannot be grounded is dropped and counted."""

from collections.abc import Iterator, Mapping, Sequence

from activities.roles.finishers import RoleWork
from activities.roles.grounding import HEADING_CHARACTERS, Headings, find_quote
from activities.roles.labels import label_all, label_key
from activities.roles.lenient_values import one_line
from activities.roles.prompt_blocks import shown_sources
from contracts import addresses
from contracts.evidence import Evidence, Finding, QualityUpdate, bounded_confidence, supported_confidence, voice_of
from contracts.exclusions import mentions_any
from contracts.roles import (
    AnalyzeInput,
    AnalyzerAnswer,
    AnalyzerResult,
    ProposedFinding,
    Quote,
    SourceExtract,
)
from contracts.texts import plural, shorten
from contracts.vocabulary import Confidence, EngineKind
from providers.verification.contradictions import find_contradictions

Work = RoleWork[AnalyzeInput, AnalyzerAnswer]


def finish_analysis(work: Work) -> AnalyzerResult:
    """What the workflow gets of an analysis: every evidence is `text[start:end]` of a stored text."""
    grounding = _Grounding(work)
    findings: dict[str, Finding] = {}
    numbered: dict[int, str] = {}
    dropped = 0
    for number, draft in enumerate(work.answer.findings, start=1):
        if mentions_any(draft.content, work.request.exclude):
            continue
        finding = grounding.finding(draft)
        if finding is not None:
            numbered[number] = finding.id
        if finding is None:
            dropped += 1
        elif len(findings) < work.request.max_findings:
            findings.setdefault(finding.id, finding)
        else:
            work.warnings.append(f"findings beyond the limit of {work.request.max_findings} were dropped")
    if dropped:
        work.warnings.append(f"{plural(dropped, 'finding')} dropped: no quote of theirs stands in the sources")
    used = {key for finding in findings.values() for key in finding.evidence_ids}
    return AnalyzerResult(
        findings=_linked(findings, work.answer.findings, numbered, work.request.language),
        evidence=[item for item in grounding.evidence.values() if item.id in used],
        gaps=work.answer.fitted(work.request, work.warnings).gaps,
        quality_updates=list(_quality_updates(work)),
        analyzed_source_ids=_list_analyzed(work),
        dropped_quotes=grounding.dropped,
        account=work.account_with_warnings(),
    )


def _linked(
    findings: Mapping[str, Finding], drafts: Sequence[ProposedFinding], numbered: Mapping[int, str], language: str
) -> list[Finding]:
    """The findings, each with those that it contradicts: what the analyzer says, and what rules find."""
    kept = list(findings.values())
    pairs = {
        (numbered.get(number), numbered.get(other))
        for number, draft in enumerate(drafts, start=1)
        for other in draft.contradicts
    }
    pairs |= {
        (kept[one].id, kept[other].id)
        for one, other in find_contradictions(
            [finding.statement for finding in kept], [finding.source_ids for finding in kept], language
        )
    }
    linked: dict[str, set[str]] = {}
    for one, other in (pair for pair in pairs if None not in pair):
        if one != other and one in findings and other in findings:
            linked.setdefault(str(one), set()).add(str(other))
            linked.setdefault(str(other), set()).add(str(one))
    order = list(findings)
    return [
        finding.model_copy(update={"contradicts": sorted(linked[finding.id], key=order.index)})
        if finding.id in linked
        else finding
        for finding in kept
    ]


class _Grounding:
    """Quotes of one call against the stored texts of its sources."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._sources = _sources_by_name(work)
        self._headings: dict[str, Headings] = {}
        self.evidence: dict[str, Evidence] = {}
        self.dropped = 0

    def finding(self, draft: ProposedFinding) -> Finding | None:
        """The finding with what is left of its quotes; None if nothing is left."""
        statement = draft.content
        quotes = [quote for quote in draft.quotes if not mentions_any(quote.quote, self._work.request.exclude)]
        grounded = [item for quote in quotes if (item := self._ground(quote))]
        if not grounded or not statement:
            return None
        evidence_ids = list(dict.fromkeys(item.id for item in grounded))
        return Finding(
            id=addresses.finding_id(statement, evidence_ids),
            statement=statement,
            confidence=self._confidence(draft.confidence, grounded),
            evidence_ids=evidence_ids,
            source_ids=list(dict.fromkeys(item.source_id for item in grounded)),
            sub_query_id=self._work.request.sub_query.id,
            category=draft.category or None,
            iteration=self._work.request.iteration,
        )

    def _ground(self, quote: Quote) -> Evidence | None:
        source = self._sources.get(quote.source_id.strip())
        if source is None:
            self.dropped += 1
            self._work.warnings.append("a quote from an unknown source was ignored")
            return None
        text = self._work.documents.get(source.text.hash, "") if source.text else ""
        place = find_quote(text, quote.quote, quote.start)
        if place is None:
            self.dropped += 1
            return None
        return self._keep(source, text, *place)

    def _keep(self, source: SourceExtract, text: str, start: int, end: int) -> Evidence:
        key = addresses.evidence_id(source.id, start, end)
        if key not in self.evidence:
            self.evidence[key] = Evidence(
                id=key,
                source_id=source.id,
                start=start,
                end=end,
                quote_hash=addresses.digest(text[start:end]),
                heading=self._heading(source, text, start),
                sub_query_id=self._work.request.sub_query.id,
            )
        return self.evidence[key]

    def _heading(self, source: SourceExtract, text: str, start: int) -> str:
        if source.id not in self._headings:
            self._headings[source.id] = Headings(text)
        hinted = (hint.heading for hint in source.sections if hint.start <= start < hint.end)
        return self._headings[source.id].above(start) or shorten(one_line(next(hinted, "")), HEADING_CHARACTERS)

    def _confidence(self, proposed: Confidence, grounded: list[Evidence]) -> Confidence:
        """At most what the voices of the sources bear out."""
        cited = {item.source_id for item in grounded}
        given = [source for source in self._work.request.sources if source.id in cited]
        supported = supported_confidence((voice_of(one.url, one.publisher), one.quality) for one in given)
        return bounded_confidence(proposed, supported)


def _sources_by_name(work: Work) -> dict[str, SourceExtract]:
    """The sources of this call by what an answer may call them: a model knows them by the labels of its prompt."""
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


def _list_analyzed(work: Work) -> list[str]:
    """Sources that the engine saw: a model sees as many as fit into its prompt."""
    seen = shown_sources(work.request) if work.account.engine is EngineKind.MODEL else work.request.sources
    return [source.id for source in seen if source.text and work.documents.get(source.text.hash)]
