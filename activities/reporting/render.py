"""The activity `render_report`: three forms of one report, written into the content store."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from temporalio import activity

from activities.failures import RECORDS, attempt
from activities.records import changed_state
from activities.reporting.citations import without_markers
from activities.reporting.document import compose_document, summarize
from activities.reporting.html import compose_html
from activities.reporting.inputs import gather_inputs
from activities.reporting.report_text import compose_text
from activities.roles.grounding import load_texts
from contracts.checking import Correction, CorrectionsEntry, VerificationSummary
from contracts.evidence import ClaimVerdict, DocumentRef, VerdictsEntry
from contracts.messages import RenderedReport, RenderRequest
from contracts.outcome import INLINE_REPORT_CHARACTERS, Citation, ReportFiles
from contracts.state import ResearchState
from contracts.state_changes import pack_json
from providers.errors import ContentMissing
from providers.interfaces import ContentStore, IsolatedCalls, Notebooks, SessionStore, SkippedFile

SkippedOf = Callable[[str, str], Awaitable[list[SkippedFile]]]
"""The files of a corpus, by its name and digest, that could not be used."""

SUMMARY_CHARACTERS: Final = 2_000


@dataclass(frozen=True)
class RenderedForms:
    """The three forms as texts, and what the result of the run tells of them."""

    markdown: str
    html: str
    document: str
    summary: str
    citations: list[Citation]
    verification: VerificationSummary


def render(
    state: ResearchState,
    draft: str | None,
    texts: Mapping[str, str],
    skipped: Sequence[SkippedFile],
    product_version: str,
    verdicts: Sequence[ClaimVerdict] = (),
    corrections: Sequence[Correction] = (),
) -> RenderedForms:
    """Make the three forms of a report. Pure: the same state and texts give the same bytes.

    Raises `ContentMissing`, `ContentCorrupt`, `InvalidCall`.
    """
    inputs = gather_inputs(state, draft, texts, skipped, product_version, verdicts, corrections)
    report = compose_text(inputs)
    html = compose_html(inputs, report)
    summary = inputs.show(without_markers(state.draft.summary))[:SUMMARY_CHARACTERS] if state.draft else ""
    document = compose_document(inputs, report, html)
    return RenderedForms(report.written.text, html, document, summary, inputs.citations, summarize(inputs))


RENDER: Final = f"{__name__}:render_packed"


def render_packed(packed_state: str, *arguments: Any) -> tuple[Any, ...]:
    """Render from a packed state in a child process: the fields of `RenderedForms`. Raises as `render` does."""
    forms = render(ResearchState.unpack(packed_state), *arguments)
    return forms.markdown, forms.html, forms.document, forms.summary, forms.citations, forms.verification


def evidence_texts(state: ResearchState) -> list[DocumentRef]:
    """Return the stored texts that the evidence of a run refers to, each once, in order of its evidence.

    Raises `ContentMissing` if a source of evidence has no stored text.
    """
    references: dict[str, DocumentRef] = {}
    for item in state.evidence.values():
        source = state.sources.get(item.source_id)
        if source is None or source.text is None:
            raise ContentMissing(f"{item.id}: there is no stored text for its source")
        references.setdefault(source.text.hash, source.text)
    return list(references.values())


class ReportingActivities:
    """Renders reports in killable processes, because hostile text can keep a parser busy for long."""

    def __init__(
        self,
        content: ContentStore,
        skipped_of: SkippedOf,
        product_version: str,
        isolated: IsolatedCalls,
        sessions: SessionStore,
        notebooks: Notebooks,
    ) -> None:
        self._content = content
        self._sessions = sessions
        self._notebooks = notebooks
        self._skipped_of = skipped_of
        self._product_version = product_version
        self._isolated = isolated

    @activity.defn(name="render_report")
    async def render_report(self, request: RenderRequest) -> RenderedReport:
        """Number the citations and store `report.md`, `report.html` and `report.json`."""
        async with attempt(RECORDS):
            changed = await changed_state(self._sessions, self._notebooks, request.research_id, request.change)
            state = await self._notebooks.complete_state(ResearchState.model_validate(changed))
            corpus = state.resolved.corpus if state.resolved else None
            skipped = await self._skipped_of(corpus.name, corpus.digest) if corpus else []
            draft = await self._content.get_text(state.draft.document) if state.draft else None
            texts = await load_texts(self._content, evidence_texts(state))
            entry = state.verdicts_entry
            verdicts = (await self._notebooks.read(entry, VerdictsEntry)).verdicts if entry else []
            entry = state.verification.corrections_entry if entry else ""
            corrected = (await self._notebooks.read(entry, CorrectionsEntry)).corrections if entry else []
            packed = await asyncio.to_thread(state.pack)
            rendered = await self._isolated.call(
                RENDER, packed, draft, texts, skipped, self._product_version, verdicts, corrected
            )
            forms = RenderedForms(*rendered)
            return RenderedReport(
                files=await self._store(forms),
                packed=pack_json(forms.markdown[:INLINE_REPORT_CHARACTERS]),
                cut=len(forms.markdown) > INLINE_REPORT_CHARACTERS,
                summary=forms.summary,
                citations=forms.citations,
                verification=forms.verification,
            )

    async def _store(self, forms: RenderedForms) -> ReportFiles:
        text, page, data = await asyncio.gather(
            self._content.put_text(forms.markdown, "text/markdown"),
            self._content.put_text(forms.html, "text/html"),
            self._content.put_text(forms.document, "application/json"),
        )
        return ReportFiles(markdown=text, html=page, json_document=data)
