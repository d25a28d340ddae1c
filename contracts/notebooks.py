"""The notebook of a run: the results of its activities, in immutable entries.

An entry is a document in the content store, addressed by its hash. The workflow has ids, labels and hashes; an
activity that needs the details gets the hashes and loads the entries (`providers.storage.stored_notebooks`).
"""

from typing import Any, Final, TypeVar

from contracts.addresses import evidence_id, finding_id
from contracts.base import CompactModel
from contracts.evidence import Evidence, Finding, ReadDetails, SearchHit, Validators, join_hits, keys_of
from contracts.roles import (
    AnalyzeInput,
    AnalyzerResult,
    ChosenFindingsInput,
    FindingsInput,
    GapsInput,
    RoleInput,
    RoleSpec,
    SourceExtract,
    WriteInput,
    resolved_fields,
)
from contracts.state import ResearchState
from contracts.vocabulary import Quality

I = TypeVar("I", bound=RoleInput)
R = TypeVar("R", bound=AnalyzerResult)

ENTRY_TYPE: Final = "application/json"


class HitsEntry(CompactModel):
    """Hits of one search."""

    questions: list[str] = []
    """The sub-queries searched at the same time; web pages are assessed against them."""
    date: str = ""
    resolved_entry: str = ""
    """Hash of the stored resolution."""
    hits: list[SearchHit] = []


class SourceEntry(ReadDetails):
    """A source as read, with the details from the search that found it."""

    source_id: str = ""
    validators: Validators | None = None
    """None if the site sent none, and for documents of a corpus."""
    links: list[str] = []
    """Web links of the page, at most `MAX_LINKS`; being listed here does not get a link fetched."""


class AnalysisEntry(CompactModel):
    """Results of one analysis, with their sources."""

    findings: list[Finding] = []
    evidence: list[Evidence] = []
    sources: list[SourceExtract] = []


def find_hit(entries: list[HitsEntry], url: str, doi: str | None = None) -> SearchHit | None:
    """Return the hit of a URL, merged with all hits of the same work; None if there is none."""
    wanted = set(keys_of(SearchHit(url=url, doi=doi)))
    merged: SearchHit | None = None
    for hit in (hit for entry in entries for hit in entry.hits):
        if wanted.intersection(keys_of(hit)):
            wanted.update(keys_of(hit))
            merged = hit if merged is None else join_hits(merged, hit)
    return merged


def strip_details(output: AnalyzerResult, request: AnalyzeInput) -> AnalyzerResult:
    """Return a stored analysis for the workflow, without what the entry has or what can be derived.

    `add_derived_fields` restores the derived parts.
    """
    labels = {source.id: source.quality for source in request.sources}
    seen_all = set(labels) == set(output.analyzed_source_ids or ())
    findings = [
        Finding(
            id="",
            statement=finding.statement,
            confidence=finding.confidence,
            evidence_ids=finding.evidence_ids,
            priority=finding.priority,
        )
        for finding in output.findings
    ]
    evidence = [Evidence(id="", source_id=item.source_id, start=item.start, end=item.end) for item in output.evidence]
    return output.with_fields(
        findings=findings,
        evidence=evidence,
        # An unchanged quality is no update.
        quality_updates=[item for item in output.quality_updates if labels.get(item.source_id) != item.quality],
        analyzed_source_ids=None if seen_all else output.analyzed_source_ids,
    )


def add_derived_fields(output: R, source_ids: list[str]) -> R:
    """Add ids, the entry hash and the sources of findings; `source_ids` are those of the request."""
    if output.entry is None:
        return output
    evidence = dict[str, Evidence]()
    findings = list[Finding]()
    for item in output.evidence:
        key = evidence_id(item.source_id, item.start, item.end)
        evidence[key] = item.with_fields(id=key, entry=output.entry)
    for finding in output.findings:
        sources = list(dict.fromkeys(evidence[key].source_id for key in finding.evidence_ids))
        findings.append(
            finding.with_fields(
                id=finding_id(finding.statement, finding.evidence_ids), source_ids=sources, entry=output.entry
            )
        )
    analyzed = source_ids if output.analyzed_source_ids is None else output.analyzed_source_ids
    return output.with_fields(findings=findings, evidence=list(evidence.values()), analyzed_source_ids=analyzed)


def replace_by_references(role: RoleSpec[Any, Any], request: I, state: ResearchState, *, resolution: bool = True) -> I:
    """Return a role's input with entry hashes in place of details; unchanged for a run without entries.

    Without `resolution`, which is not stored yet, it has the fields that follow from that itself.
    """
    if not state.work.resolved_entry:
        return request
    update: dict[str, Any] = {}
    if resolution:
        fields = type(request).model_fields
        names = resolved_fields(role, request, state.resolution)
        update = {name: fields[name].get_default() for name in names}
        update["resolved_entry"] = state.work.resolved_entry
    if isinstance(request, GapsInput):
        update["read_sources"] = [SourceExtract(entry=source.entry) for source in request.read_sources]
    if isinstance(request, AnalyzeInput):
        update["sources"] = [
            SourceExtract(
                quality=source.quality if source.changed else Quality.UNKNOWN,
                entry=source.entry,
                hit_entries=source.hit_entries,
                again=source.again,
            )
            for source in request.sources
        ]
    if isinstance(request, FindingsInput):
        entries = dict.fromkeys(
            [*(one.entry for one in request.findings), *(evidence.entry for evidence in request.evidence)]
        )
        changed = [SourceExtract(id=source.id, quality=source.quality) for source in request.sources if source.changed]
        update |= {"entries": list(entries), "findings": [], "evidence": [], "sources": changed}
    is_section = isinstance(request, WriteInput) and request.part is not None and request.part.number > 0
    if isinstance(request, FindingsInput) and (is_section or isinstance(request, ChosenFindingsInput)):
        update["finding_ids"] = [finding.id for finding in request.findings]
    return request.model_copy(update=update)


ENTRY_SOURCE_FIELDS: Final = ("url", "title", "text", "content_hash", "media_type")
ENTRY_FINDING_FIELDS: Final = ("statement", "confidence", "evidence_ids", "source_ids")
"""Fields of a source or finding that are in its entry, so checkpoints omit them.

Checkpoints also omit evidence whose entry a finding names, and the aliases of sources.
"""


def strip_entry_texts(state: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON state without the details that are in entries (inverse: `Notebooks.with_entry_texts`)."""
    sources = {key: _strip(source, ENTRY_SOURCE_FIELDS) for key, source in state.get("sources", {}).items()}
    findings = [_strip(finding, ENTRY_FINDING_FIELDS) for finding in state.get("findings", [])]
    # Passages selected for a report are in entries that no finding names.
    entries = {finding.get("entry") for finding in state.get("findings", [])} - {None}
    evidence = {key: item for key, item in state.get("evidence", {}).items() if item.get("entry") not in entries}
    lean: dict[str, Any] = {"sources": sources, "findings": findings, "evidence": evidence, "aliases": {}}
    others = {name: value for name, value in state.items() if name not in lean}
    return others | {name: value for name, value in lean.items() if value}


def _strip(item: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    if item.get("entry"):
        return {name: value for name, value in item.items() if name not in names}
    return item
