"""The activity `render_report`: three forms of one report, written into the content store."""

import asyncio
import base64
import hashlib
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any, Final, NamedTuple

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup
from pydantic import BaseModel, TypeAdapter
from pydantic_core import to_json
from temporalio import activity

from activities.failures import RECORDS, attempt
from activities.records import changed_state
from activities.reporting.claims import Claim
from activities.reporting.inputs import RenderMaterial, ReportInputs, gather_inputs
from activities.reporting.references import KnownAddresses, without_markers
from activities.reporting.report_tree import ReportTree, build_report, split_code, write_markdown
from activities.reporting.tree import WrittenText, clean_characters, sentences
from activities.roles.grounding import load_texts
from contracts import activities
from contracts.addresses import digest
from contracts.checking import Correction, CorrectionsEntry, VerificationSummary
from contracts.evidence import ClaimVerdict, DocumentRef, Source, Verdict, VerdictsEntry, list_artifacts
from contracts.messages import RenderedReport, RenderRequest
from contracts.outcome import INLINE_REPORT_CHARACTERS, Citation, ReportFiles
from contracts.plan import PlanContent
from contracts.report import (
    HTML_FILE,
    MARKDOWN_FILE,
    VERDICT_SIGNS,
    Report,
    compare_reports,
    read_report,
    take_messages,
)
from contracts.resolved import SkippedFile
from contracts.sentences import AS_DATA
from contracts.state import ResearchState
from contracts.state_changes import pack_json
from contracts.strategies import usage_by_share
from contracts.tokens import ContentEntry, share_tokens
from contracts.vocabulary import Confidence, NodeStatus, ReportKind
from providers.errors import InvalidCall
from providers.interfaces import ContentStore, SessionStore
from providers.isolation.pool import SubprocessPool
from providers.storage.stored_notebooks import Notebooks

ListSkipped = Callable[[str], Awaitable[list[SkippedFile]]]
"""Returns the files of a corpus, by its name, that could not be used."""

EXEMPT_PARTS: Final = frozenset(("report", "claims", "query", "effective_request"))
"""Parts of the document that are not stripped of addresses: they repeat the text or the request."""
EXEMPT_KEYS: Final = frozenset(("url", "aliases", "source_url", "quote", "prefix", "suffix"))
"""Fields that are not stripped: addresses of sources, or text of them."""


class RenderedForms(NamedTuple):
    """The three forms as text, and their figures for the result of the run."""

    markdown: str
    html: str
    document: str
    summary: str
    citations: list[Citation]
    verification: VerificationSummary
    verdicts: list[Verdict]
    """One per claim, in order."""


def render(material: RenderMaterial) -> RenderedForms:
    """Make the three forms of a report. Pure: equal material gives equal bytes.

    Raises `ContentMissing`, `ContentCorrupt`, `InvalidCall`.
    """
    inputs = gather_inputs(material)
    report = build_report(inputs)
    written = write_markdown(report)
    html = write_html(report)
    draft = material.state.evidence.draft
    return RenderedForms(
        markdown=written.text,
        html=html,
        document=write_document(report, written, html, material.previous),
        summary=inputs.show(without_markers(draft.summary))[:2_000] if draft else "",
        citations=inputs.citations,
        verification=inputs.checked,
        verdicts=[claim.judged.verdict for claim in inputs.claims],
    )


RENDER: Final = f"{__name__}:render_json"
LOAD: Final = f"{__name__}:load_renderer"
FORMS: Final = TypeAdapter(RenderedForms)


def render_json(material: bytes) -> RenderedForms:
    """Render from material as JSON, in a child process. Raises the errors of `render`."""
    return render(RenderMaterial.model_validate_json(material))


def load_renderer() -> None:
    """Load what the first report of a child process needs."""
    _load_template()
    RenderMaterial.model_rebuild()


def evidence_texts(state: ResearchState) -> list[DocumentRef]:
    """Return the stored texts that a run's evidence refers to, each once."""
    sources = (state.evidence.sources.get(item.source_id) for item in state.evidence.passages.values())
    return list({source.text.hash: source.text for source in sources if source and source.text}.values())


@dataclass(frozen=True, eq=False)
class ReportingActivities:
    """Renders reports in killable processes, because hostile text can occupy a parser for long."""

    content: ContentStore
    list_skipped: ListSkipped
    product_version: str
    isolated: SubprocessPool
    sessions: SessionStore
    notebooks: Notebooks

    @activity.defn(name=activities.RENDER_REPORT.name)
    async def render_report(self, request: RenderRequest) -> RenderedReport:
        """Number the citations and store `report.md`, `report.html` and `report.json`."""
        async with attempt(RECORDS):
            changed = await changed_state(self.sessions, self.notebooks, request.research_id, request.change)
            state = await self.notebooks.complete_state(ResearchState.model_validate(changed))
            corpus = state.work.resolved.corpus if state.work.resolved else None
            skipped = await self.list_skipped(corpus.name) if corpus else []
            material = await self._gather_material(state, skipped)
            material_json = await asyncio.to_thread(material.to_json)
            forms = await self.isolated.call(RENDER, material_json, returns=FORMS)
            markdown, html, json_document = await asyncio.gather(
                self.content.put_text(forms.markdown, "text/markdown"),
                self.content.put_text(forms.html, "text/html"),
                self.content.put_text(forms.document, "application/json"),
            )
            return RenderedReport(
                files=ReportFiles(markdown=markdown, html=html, json_document=json_document),
                packed=pack_json(forms.markdown[:INLINE_REPORT_CHARACTERS]),
                cut=len(forms.markdown) > INLINE_REPORT_CHARACTERS,
                summary=forms.summary,
                citations=forms.citations,
                verification=forms.verification,
                verdicts=forms.verdicts,
            )

    async def _gather_material(self, state: ResearchState, skipped: list[SkippedFile]) -> RenderMaterial:
        """Read what the report of a state is made of."""
        checked = state.evidence.verification
        verdicts: list[ClaimVerdict] = []
        if checked.verdicts_entry:
            verdicts = (await self.notebooks.read(checked.verdicts_entry, VerdictsEntry)).items
        corrections: list[Correction] = []
        if checked.corrections_entry:
            corrections = (await self.notebooks.read(checked.corrections_entry, CorrectionsEntry)).items
        draft = None
        if state.evidence.draft is not None:
            draft = await self.content.get_text(state.evidence.draft.document)
        previous = None
        if state.work.refresh is not None:
            previous = await self.content.get_text(state.work.refresh.before)
        return RenderMaterial(
            state=state,
            draft=draft,
            texts=await load_texts(self.content, evidence_texts(state)),
            skipped=skipped,
            product_version=self.product_version,
            verdicts=verdicts,
            corrections=corrections,
            shortened=await self.notebooks.read_all(state.accounts.shortened_calls, ContentEntry),
            previous=previous,
        )


# --- report.html ------------------------------------------------------------------------------------------------------
def write_html(report: ReportTree) -> str:
    """Write a report as `report.html`."""
    language = report.inputs.messages.language
    template, style, style_hash = _load_template()
    page: str = template.render(
        report=report,
        inputs=report.inputs,
        say=report.inputs.messages,
        corpus=report.inputs.resolved.corpus,
        language=language if re.fullmatch(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8}){0,3}", language) else "en",
        counts=Counter(claim.judged.verdict.value for claim in report.inputs.claims),
        signs=VERDICT_SIGNS,
        rel="noopener noreferrer nofollow ugc",
        style=style,
        style_hash=style_hash,
    )
    return page + "\n"


@lru_cache(maxsize=1)
def _load_template() -> tuple[Template, Markup, str]:
    """Load the template, the style sheet, and the style's hash for the Content-Security-Policy."""
    folder = resources.files(__package__ or "")
    style = (folder / "report_style.css").read_text("utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, finalize=_finalize)
    environment.filters["heading"] = _show_heading
    template = environment.from_string((folder / "report.html.j2").read_text("utf-8"))
    return template, Markup(style), base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()  # noqa: S704


def _show_heading(text: str) -> Markup:
    """Return a heading of a stored text as HTML, with its code."""
    code = Markup("<code>{}</code>")
    parts = ((clean_characters(part), is_code) for part, is_code in split_code(text))
    return Markup("").join(code.format(part) if is_code else part for part, is_code in parts)


def _finalize(value: object) -> object:
    """Clean the characters of each printed text, which the template then escapes."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return clean_characters(value)
    return value


# --- report.json ------------------------------------------------------------------------------------------------------
def write_document(report: ReportTree, written: WrittenText, html: str, previous: str | None = None) -> str:
    """Return `report.json` as stored (`contracts.report`): indented UTF-8, with the digest of the page `html`.

    Raises `InvalidCall` for an unreadable report `previous`.
    """
    inputs = report.inputs
    full_report = Report.model_validate(
        _run_fields(inputs)
        | _evidence_fields(inputs)
        | {
            "forms": {MARKDOWN_FILE: digest(written.text), HTML_FILE: digest(html)},
            "report": {
                "markdown": written.text,
                "draft": inputs.draft,
                "sections": _section_titles(report),
                "word_count": len(" ".join(sentence.words for sentence in sentences(report.body)).split()),
            },
            "claims": [_claim(claim, written) for claim in inputs.claims],
        },
        from_attributes=True,
    )
    if previous is not None:
        refresh = inputs.state.work.refresh
        lost = refresh.lost if refresh else None
        full_report = _with_changes(full_report, previous, lost)
    fields = full_report.model_dump(mode="json", context=AS_DATA)
    fields |= {key: _without_addresses(fields[key], inputs.registry) for key in fields.keys() - EXEMPT_PARTS}
    document, messages = take_messages(fields)
    document["messages"] = messages
    return to_json(document, indent=1).decode() + "\n"


def _run_fields(inputs: ReportInputs) -> dict[str, Any]:
    """Return what `report.json` says of the run: its request, how it ended, what was asked and used."""
    state = inputs.state
    searches = state.searches()
    return {
        **_fields(inputs.resolved, "research_id", "query", "strategy", "language", "corpus"),
        **_fields(inputs.ending, "outcome", "stop_reason", "completeness", "unanswered", "ended_at"),
        **_fields(state.work, "agents", "degraded", "failed_branches", "limitations"),
        **_fields(state.accounts, "engine_by_role", "prompt_versions", "fallbacks", "rule_answers", "calls"),
        **_fields(state.people, "decisions", "decisions_dropped", "guidance"),
        "started_at": state.clock.started_at,
        "outcome_before_check": state.work.ending.outcome if state.work.ending else "",
        "product_version": inputs.product_version,
        "kind": state.evidence.draft.kind if state.evidence.draft else ReportKind.REPORT,
        "effective_request": inputs.resolved.model_dump(mode="json", exclude={"canary"}, context=AS_DATA),
        "models": state.accounts.models_used,
        "iterations": state.work.iteration,
        "plan": _fields(state.work.plan, *PlanContent.model_fields),
        "queries": searches,
        "queries_failed": sum(query.status is NodeStatus.FAILED for query in searches),
        "usage": _usage(state),
        "fidelity": inputs.fidelity,
        "answers": inputs.answers,
    }


def _evidence_fields(inputs: ReportInputs) -> dict[str, Any]:
    """Return what `report.json` says of sources, passages, findings and their check."""
    state = inputs.state
    confidences = Counter(finding.confidence for finding in state.evidence.findings)
    opposed = _opposed_findings(inputs)
    verification = _dump(inputs.checked) | {
        "corrections": inputs.corrections,
        "review": state.evidence.verification.review,
        "passages_matched": len(inputs.passages),
        "markers_removed": inputs.unresolved,
        "addresses_removed": len(inputs.foreign_urls),
    }
    return {
        **_fields(state.evidence, "gaps", "query_ledger", "documents_searched"),
        "skipped_files": inputs.skipped,
        "sources": [_source(source, inputs) for source in state.evidence.sources.values()],
        "artifacts": [file for source in state.evidence.sources.values() for file in list_artifacts(source)],
        "evidence": [
            _dump(passage.evidence) | _fields(passage, "quote", "prefix", "suffix")
            for passage in inputs.passages.values()
        ],
        "findings": [
            _dump(finding) | {"contradicts": opposed.get(finding.id, [])} for finding in state.evidence.findings
        ],
        "citations": [
            {"number": item.mark.number, "source_id": item.source.id, "label": item.mark.label} for item in inputs.cited
        ],
        "citations_count": len(inputs.cited),
        "confidence_summary": {degree.value: confidences[degree] for degree in Confidence},
        "verification": verification,
    }


def _section_titles(report: ReportTree) -> list[str]:
    """Return the titles of the report's sections: the writer's, then those of the product."""
    titles = [block.words for block in report.body if block.kind == "heading" and block.level == 2]
    titles += [section.label for section in report.sections]
    if report.inputs.cited:
        titles.append(report.inputs.messages("sources"))
    return [*titles, report.inputs.messages("method")]


def _opposed_findings(inputs: ReportInputs) -> dict[str, list[str]]:
    """Return the ids of the findings that contradict each finding, in both directions."""
    opposed: dict[str, list[str]] = {}
    for first, second in inputs.contradictions:
        opposed.setdefault(first.id, []).append(second.id)
        opposed.setdefault(second.id, []).append(first.id)
    return opposed


def _with_changes(report: Report, previous: str, lost: Mapping[str, str] | None) -> Report:
    """Return a refreshed report with its changes since the previous one. Raises `InvalidCall` for an unreadable one."""
    earlier = read_report(previous.encode())
    if not isinstance(earlier, Report):
        raise InvalidCall("the stored report before the refresh is malformed")
    return report.with_fields(changes=compare_reports(earlier, report, lost))


def _fields(part: object, *names: str) -> dict[str, Any]:
    return {name: getattr(part, name) for name in names}


def _dump(value: BaseModel) -> dict[str, Any]:
    return value.model_dump(mode="json", context=AS_DATA)


def _without_addresses(value: Any, registry: KnownAddresses) -> Any:
    """Return a value without foreign addresses in its texts, as viewers of JSON may make links of them."""
    if isinstance(value, str):
        return registry.strip(value)
    if isinstance(value, list):
        return [_without_addresses(item, registry) for item in value]
    if isinstance(value, dict):
        return {key: item if key in EXEMPT_KEYS else _without_addresses(item, registry) for key, item in value.items()}
    return value


def _source(source: Source, inputs: ReportInputs) -> dict[str, Any]:
    files = list_artifacts(source)
    return _dump(source) | {
        "content_hash": source.raw.hash if source.raw else source.content_hash,
        "file_id": files[0].file_id if files else None,
        "notes": [finding.id for finding in inputs.state.evidence.findings if source.id in finding.source_ids],
        "media_type": source.raw.media_type if source.raw else "",
        "text_hash": source.text.hash if source.text else None,
        "pages_hash": source.pages.hash if source.pages else None,
        "cited": any(item.source.id == source.id for item in inputs.cited),
        "query_ids": source.sub_query_ids,
    }


def _claim(claim: Claim, written: WrittenText) -> dict[str, Any]:
    start, end = claim.span(written)
    return {
        "id": claim.id,
        "text": written.text[start:end],
        "start": start,
        "end": end,
        "citation_numbers": claim.numbers,
        **_fields(claim, "section", "evidence_ids"),
        **_fields(claim.judged, "verdict", "method", "reason", "lacking"),
    }


def _usage(state: ResearchState) -> dict[str, Any]:
    """Return the total and, if known, `by_role` and `by_phase`, each of which adds up to it.

    For a run with a token limit, `by_share` has limit and use of each share.
    """
    # Roles run concurrently, so their order is arbitrary.
    known = {"by_role": dict(sorted(state.accounts.usage_by_role.items())), "by_phase": state.accounts.usage_by_phase}
    tables = {
        name: {key: part.model_dump(mode="json", exclude={"active_seconds"}) for key, part in parts.items()}
        for name, parts in known.items()
    }
    if state.resolution.limits.max_tokens is not None:
        limit = state.resolution.limits.max_tokens
        used = usage_by_share(state.accounts.usage_by_role)
        tables["by_share"] = {
            share.value: {"limit": share_tokens(share, limit), "tokens": tokens} for share, tokens in used.items()
        }
    return _dump(state.accounts.usage) | {name: table for name, table in tables.items() if table}
