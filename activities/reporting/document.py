"""The report as JSON: the whole graph of evidence (`contracts.report`)."""

import json
from collections import Counter
from typing import Any, Final

from activities.reporting.claims import count_verdicts
from activities.reporting.inputs import ReportInputs
from activities.reporting.method import usage_document
from activities.reporting.passages import QuotedPassage
from activities.reporting.report_text import RenderedText
from activities.reporting.tree import sentences
from contracts.addresses import digest
from contracts.base import WHOLE
from contracts.checking import VerificationSummary
from contracts.evidence import Finding, Source
from contracts.report import HTML_FILE, MARKDOWN_FILE, Report, ReportClaim
from contracts.vocabulary import Confidence, NodeStatus, ReportKind

FOREIGN: Final = ("findings", "gaps", "decisions", "plan", "queries", "degraded", "failed_branches", "limitations")
"""Parts of the document that have words of models and pages."""


def compose_document(inputs: ReportInputs, report: RenderedText, html: str) -> str:
    """Return `report.json` as it is stored: indented UTF-8; `html` is the page that is rendered with it."""
    fields = {**_about_run(inputs), **_content(inputs), **_work(inputs)}
    fields |= {name: _without_addresses(fields[name], inputs) for name in FOREIGN}
    markdown = report.written.text
    fields["forms"] = {MARKDOWN_FILE: digest(markdown), HTML_FILE: digest(html)}
    fields["report"] = {
        "markdown": markdown,
        "sections": [block.words for block in report.body if block.kind == "heading" and block.level == 2]
        + [inputs.words("sources")] * bool(inputs.cited)
        + [inputs.words("method")],
        "word_count": len(" ".join(sentence.words for sentence in sentences(report.body)).split()),
    }
    fields["claims"] = _claims(inputs, report)
    document = Report.model_validate(fields).model_dump(mode="json", context=WHOLE)
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _about_run(inputs: ReportInputs) -> dict[str, Any]:
    state, resolved, ending = inputs.state, inputs.resolved, inputs.ending
    return {
        "product_version": inputs.product_version,
        "research_id": resolved.research_id,
        "kind": state.draft.kind if state.draft else ReportKind.REPORT,
        "query": resolved.query,
        "effective_request": resolved.model_dump(mode="json", exclude={"canary"}),
        "strategy": resolved.strategy,
        "engine_by_role": state.engine_by_role,
        "models": state.models_used,
        "prompt_versions": state.prompt_versions,
        "language": resolved.language,
        "corpus": resolved.corpus.model_dump(mode="json") if resolved.corpus else None,
        "outcome": ending.outcome.value,
        "stop_reason": ending.stop_reason.value,
        "completeness": ending.completeness.value,
        "iterations": state.iteration,
        "started_at": state.started_at,
        "ended_at": ending.ended_at,
    }


def _content(inputs: ReportInputs) -> dict[str, Any]:
    cited = {item.source.id for item in inputs.cited}
    findings = inputs.state.findings
    confidences = Counter(finding.confidence for finding in findings)
    return {
        "sources": [_source(source, inputs, cited=source.id in cited) for source in inputs.state.sources.values()],
        "evidence": [_evidence(passage, inputs) for passage in inputs.passages.values()],
        "findings": [
            finding.model_dump(mode="json") | {"contradicts": _opposed(finding, inputs)} for finding in findings
        ],
        "gaps": [gap.model_dump(mode="json") for gap in inputs.state.gaps],
        "citations": [
            {"number": item.mark.number, "source_id": item.source.id, "label": item.mark.label} for item in inputs.cited
        ],
        "citations_count": len(inputs.cited),
        "confidence_summary": {degree.value: confidences[degree] for degree in Confidence},
    }


def _work(inputs: ReportInputs) -> dict[str, Any]:
    state = inputs.state
    queries = state.plan.sub_queries
    return {
        "decisions": [decision.model_dump(mode="json") for decision in state.decisions],
        "decisions_dropped": state.decisions_dropped,
        "plan": {"brief": state.plan.brief, "nodes": [node.model_dump(mode="json") for node in state.plan.nodes]},
        "queries": [query.model_dump(mode="json") for query in queries],
        "queries_failed": sum(query.status is NodeStatus.FAILED for query in queries),
        "usage": usage_document(state),
        "verification": _verification(inputs),
        "degraded": state.degraded,
        "failed_branches": state.failed_branches,
        "limitations": state.limitations,
    }


def _without_addresses(value: Any, inputs: ReportInputs) -> Any:
    """Return a value without foreign addresses in its texts: a reader of the JSON may make links of them."""
    if isinstance(value, str):
        return inputs.registry.strip(value)
    if isinstance(value, list):
        return [_without_addresses(item, inputs) for item in value]
    if isinstance(value, dict):
        return {key: _without_addresses(item, inputs) for key, item in value.items()}
    return value


def _source(source: Source, inputs: ReportInputs, *, cited: bool) -> dict[str, Any]:
    data: dict[str, Any] = _without_addresses(source.model_dump(mode="json"), inputs)
    return data | {
        "url": source.url,
        "content_hash": source.raw.hash if source.raw else source.content_hash,
        "text_hash": source.text.hash if source.text else None,
        "cited": cited,
        "query_ids": source.sub_query_ids,
    }


def _evidence(passage: QuotedPassage, inputs: ReportInputs) -> dict[str, Any]:
    item = passage.evidence
    return item.model_dump(mode="json") | {
        "quote": passage.quote,
        "prefix": passage.prefix,
        "suffix": passage.suffix,
        "heading": inputs.registry.strip(item.heading),
    }


def _opposed(finding: Finding, inputs: ReportInputs) -> list[str]:
    """Return the findings that cannot be true beside this one."""
    pairs = [*inputs.contradictions, *((other, one) for one, other in inputs.contradictions)]
    return [other.id for one, other in pairs if one.id == finding.id]


def _claims(inputs: ReportInputs, report: RenderedText) -> list[ReportClaim]:
    claims = []
    for item in inputs.claims:
        start, end = item.claim.place(report.written)
        claims.append(
            ReportClaim(
                id=item.claim.id,
                text=report.written.text[start:end],
                start=start,
                end=end,
                kind=item.claim.kind.value,
                section=item.claim.section,
                citation_numbers=item.claim.numbers,
                evidence_ids=item.claim.evidence_ids,
                verdict=item.judged.verdict.value,
                method=item.judged.method.value,
                reason=item.judged.reason,
                rests_on=item.rests_on,
            )
        )
    return claims


def summarize(inputs: ReportInputs) -> VerificationSummary:
    """Return the figures of the claims as they are in the report."""
    judged = [(each.judged.verdict, each.judged.method, len(each.claim.numbers)) for each in inputs.claims]
    figures = count_verdicts(judged) | {"mode": inputs.resolved.verify.value}
    return inputs.state.verification.summary.model_copy(update=figures)


def _verification(inputs: ReportInputs) -> dict[str, Any]:
    """Return the figures, with what was corrected, reviewed and taken out."""
    figures, review = summarize(inputs), inputs.state.verification.review
    strip = inputs.registry.strip
    return figures.model_dump() | {
        "method_counts": figures.methods,
        "verdict_counts": figures.verdicts,
        "correction_counts": figures.corrections,
        "corrections": [
            each.model_copy(
                update={"before": strip(each.before), "after": strip(each.after), "reason": strip(each.reason)}
            )
            for each in inputs.corrections
        ],
        "review": review,
        "passages_matched": len(inputs.passages),
        "uncited_removed": inputs.uncited_removed,
        "markers_removed": inputs.unresolved,
        "addresses_removed": len(inputs.foreign_urls),
    }
