"""The report as JSON: the whole evidence graph, so that any program can check it."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from activities.reporting.markdown_layout import layout, plain_text
from activities.reporting.markdown_report import ReportText
from activities.reporting.method_section import usage_document
from activities.reporting.quoted_passages import QuotedPassage, digest_form
from activities.reporting.report_inputs import ReportInputs
from activities.reporting.verification import summarize_verification
from contracts.addresses import digest
from contracts.evidence import Finding, Source
from contracts.vocabulary import Confidence, NodeStatus, ReportKind

SCHEMA_VERSION = 1
QUERY_FIELDS = {"id", "text", "origin", "status", "status_reason", "error", "provider", "result_count"}
NODE_FIELDS = {"id", "parent", "depth", "kind", "needs_search", "text", "status", "status_reason"}
TOLD = ("findings", "gaps", "decisions", "plan", "queries", "degraded", "failed_branches", "limitations")
"""Parts of the document in which models and pages have their say."""


def _without_links(value: Any, matter: ReportInputs) -> Any:
    """The value with every text in it as a report may print it: a reader of the JSON may make links of addresses."""
    if isinstance(value, str):
        return matter.without_links(value)
    if isinstance(value, list):
        return [_without_links(item, matter) for item in value]
    if isinstance(value, dict):
        return {key: _without_links(item, matter) for key, item in value.items()}
    return value


def _source(source: Source, matter: ReportInputs, *, cited: bool) -> dict[str, Any]:
    kept = {"id", "url", "title", "authors", "publisher", "venue", "doi", "published_at", "source_type", "quality",
            "quality_reason", "content_hash", "retrieved_at", "status", "status_reason", "provider"}  # fmt: skip
    data: dict[str, Any] = _without_links(source.model_dump(mode="json", include=kept), matter)
    data["url"] = source.url
    raw = source.raw.hash if source.raw else source.content_hash
    text = source.text.hash if source.text else None
    return data | {"content_hash": raw, "text_hash": text, "cited": cited, "query_ids": source.sub_query_ids}


def _evidence(passage: QuotedPassage, matter: ReportInputs) -> dict[str, Any]:
    item = passage.evidence
    return {
        "id": item.id,
        "source_id": item.source_id,
        "quote": passage.quote,
        "quote_hash": digest_form(item.quote_hash),
        "prefix": passage.prefix,
        "suffix": passage.suffix,
        "heading": matter.without_links(item.heading),
        "start": item.start,
        "end": item.end,
        "page": item.page,
    }


def _confidences(findings: Sequence[Finding]) -> dict[str, int]:
    """How many findings are how well supported, every degree named."""
    given = Counter(finding.confidence for finding in findings)
    return {degree.value: given[degree] for degree in Confidence}


def _opposed(finding: Finding, matter: ReportInputs) -> list[str]:
    """The findings that cannot be true beside this one."""
    pairs = [*matter.contradictions, *((other, one) for one, other in matter.contradictions)]
    return [other.id for one, other in pairs if one.id == finding.id]


def section_titles(markdown: str) -> list[str]:
    """Titles of the second level, in order."""
    tokens = layout(markdown).tokens
    places = [place for place, token in enumerate(tokens) if token.type == "heading_open" and token.tag == "h2"]
    return [plain_text(tokens[place + 1].content) for place in places]


def compose_document(matter: ReportInputs, text: ReportText, html: str) -> dict[str, Any]:
    """The content of `report.json`; `html` is the page that is rendered with it, of which it has the hash."""
    state, resolved, ending = matter.state, matter.resolved, matter.ending
    corpus = resolved.corpus
    cited = {item.source.id for item in matter.cited}
    document = {
        "schema_version": SCHEMA_VERSION,
        "product_version": matter.product_version,
        "research_id": resolved.research_id,
        "query": resolved.query,
        "effective_request": resolved.model_dump(mode="json", exclude={"canary"}),
        "strategy": resolved.strategy,
        "engine_by_role": state.engine_by_role,
        "models": state.models_used,
        "prompt_versions": state.prompt_versions,
        "language": resolved.language,
        "corpus": corpus.model_dump(mode="json", include={"name", "digest", "files", "skipped", "indexed_at"})
        if corpus
        else None,
        "kind": state.draft.kind.value if state.draft else ReportKind.REPORT.value,
        "outcome": ending.outcome.value,
        "stop_reason": ending.stop_reason.value,
        "completeness": ending.completeness.value,
        "iterations": state.iteration,
        "started_at": state.started_at,
        "ended_at": ending.ended_at,
        "forms": {"report.md": digest(text.markdown), "report.html": digest(html)},
        "report": {
            "markdown": text.markdown,
            "sections": section_titles(text.markdown),
            "word_count": len(text.body.split()),
        },
        "sources": [_source(source, matter, cited=source.id in cited) for source in state.sources.values()],
        "evidence": [_evidence(passage, matter) for passage in matter.passages.values()],
        "findings": [
            finding.model_dump(
                mode="json",
                include={"id", "statement", "confidence", "evidence_ids", "source_ids", "category"},
            )
            | {"contradicts": _opposed(finding, matter)}
            for finding in state.findings
        ],
        "gaps": [
            gap.model_dump(mode="json", include={"id", "description", "kind", "status", "severity", "priority"})
            for gap in state.gaps
        ],
        "claims": [asdict(claim) for claim in text.claims],
        "citations": [
            {"number": item.number, "source_id": item.source.id, "label": item.label.markdown} for item in matter.cited
        ],
        "citations_count": len(matter.cited),
        "confidence_summary": _confidences(state.findings),
        "decisions": [decision.model_dump(mode="json") for decision in state.decisions],
        "decisions_dropped": state.decisions_dropped,
        "plan": {
            "brief": state.plan.brief,
            "nodes": [node.model_dump(mode="json", include=NODE_FIELDS) for node in state.plan.nodes],
        },
        "queries": [query.model_dump(mode="json", include=QUERY_FIELDS) for query in state.plan.sub_queries],
        "queries_failed": sum(query.status is NodeStatus.FAILED for query in state.plan.sub_queries),
        "usage": usage_document(state),
        "verification": summarize_verification(text.claims, matter),
        "degraded": state.degraded,
        "failed_branches": state.failed_branches,
        "limitations": state.limitations,
    }
    return document | {key: _without_links(document[key], matter) for key in TOLD}


def document_text(document: dict[str, Any]) -> str:
    """The JSON as it is stored: UTF-8, indented, without NaN. A lone surrogate is written as an escape."""
    text = json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(document, ensure_ascii=True, indent=1, allow_nan=False)
    return text + "\n"
