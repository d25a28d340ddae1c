"""The activity `render_report`: three forms of one report, written into the content store."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from temporalio import activity

from activities.attempts import FULL_DISK_SECONDS, MOST_FAILURES_OF_STORES, count_attempts
from activities.failure_translation import RECORDS
from activities.records import changed_state
from activities.reporting.html_report import compose_html
from activities.reporting.json_report import compose_document, document_text
from activities.reporting.markdown_report import compose_markdown
from activities.reporting.report_inputs import ReportInputs, gather_matter
from activities.reporting.verification import count_verdicts
from activities.roles.evidence_markers import without_markers
from contracts.checking import Correction, CorrectionsEntry, VerificationSummary
from contracts.evidence import ClaimVerdict, DocumentRef, VerdictsEntry
from contracts.messages import RenderedReport, RenderRequest
from contracts.outcome import INLINE_REPORT_CHARACTERS, ReportFiles
from contracts.state import ResearchState
from contracts.state_changes import pack_json
from providers.errors import ContentMissing
from providers.interfaces import ContentStore, IsolatedCalls, Notebooks, SessionStore, SkippedFile

SkippedOf = Callable[[str, str], Awaitable[list[SkippedFile]]]

PARALLEL_LOADS = 8
SUMMARY_CHARACTERS = 2_000
NO_FILE = DocumentRef(hash="sha256:" + "0" * 64)
"""Until the files are stored."""
RENDERED: Final = f"{__name__}:render_plainly"


@dataclass(frozen=True)
class RenderedForms:
    """The three forms as texts, and what they are made of."""

    matter: ReportInputs
    markdown: str
    html: str
    document: str
    verification: VerificationSummary
    """What was checked of its claims."""


def render(
    state: ResearchState,
    draft: str | None,
    texts: Mapping[str, str],
    skipped: list[SkippedFile],
    product_version: str,
    verdicts: Sequence[ClaimVerdict] = (),
    corrections: Sequence[Correction] = (),
) -> RenderedForms:
    """Make the three forms of a report. Pure: the same state and texts give the same bytes.

    Raises `ContentMissing`, `ContentCorrupt`, `InvalidCall`.
    """
    matter = gather_matter(state, draft, texts, skipped, product_version, verdicts, corrections)
    text = compose_markdown(matter)
    html = compose_html(matter, text)
    document = document_text(compose_document(matter, text, html))
    return RenderedForms(matter, text.markdown, html, document, count_verdicts(text.claims, matter))


Rendered = tuple[str, str, str, str]
"""Markdown, HTML, JSON, and what is told of them: a `RenderedReport` as JSON whose files are not stored yet."""


def render_plainly(
    packed_state: str,
    draft: str | None,
    texts: Mapping[str, str],
    skipped: list[SkippedFile],
    product_version: str,
    verdicts: Sequence[ClaimVerdict] = (),
    corrections: Sequence[Correction] = (),
) -> Rendered:
    """`render` for a child process. Raises as `render` does."""
    made = render(ResearchState.unpack(packed_state), draft, texts, skipped, product_version, verdicts, corrections)
    matter = made.matter
    told = RenderedReport(
        files=ReportFiles(markdown=NO_FILE, html=NO_FILE, json_document=NO_FILE),
        markdown=made.markdown[:INLINE_REPORT_CHARACTERS],
        cut=len(made.markdown) > INLINE_REPORT_CHARACTERS,
        summary=summarize(matter),
        citations=matter.numbered.citations,
        verification=made.verification,
    )
    return made.markdown, made.html, made.document, told.model_dump_json()


def summarize(matter: ReportInputs) -> str:
    """The draft's summary, which is plain text and cites nothing."""
    draft = matter.state.draft
    return matter.show(without_markers(draft.summary))[:SUMMARY_CHARACTERS] if draft else ""


def evidence_texts(state: ResearchState) -> list[DocumentRef]:
    """The stored texts that the evidence of a run refers to, each once, in order of its evidence.

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
    """Renders reports in killable processes. `skipped_of` tells a corpus's files that could not be used."""

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
        async with count_attempts(RECORDS, most_failures=MOST_FAILURES_OF_STORES, full_disk_seconds=FULL_DISK_SECONDS):
            changed = await changed_state(self._sessions, self._notebooks, request.research_id, request.change)
            state = await self._notebooks.complete_state(ResearchState.model_validate(changed))
            corpus = state.resolved.corpus if state.resolved else None
            skipped = await self._skipped_of(corpus.name, corpus.digest) if corpus else []
            draft = await self._content.get_text(state.draft.document) if state.draft else None
            texts = await self._load(evidence_texts(state))
            entry = state.verdicts_entry
            verdicts = (await self._notebooks.read(entry, VerdictsEntry)).verdicts if entry else []
            entry = state.verification.corrections_entry if entry else ""
            corrected = (await self._notebooks.read(entry, CorrectionsEntry)).corrections if entry else []
            packed = await asyncio.to_thread(state.pack)
            markdown, html, document, told = await self._isolated.call(
                RENDERED, packed, draft, texts, skipped, self._product_version, verdicts, corrected
            )
            files = await self._store(markdown, html, document)
            report = RenderedReport.model_validate_json(told)
            return report.model_copy(update={"files": files, "markdown": "", "packed": pack_json(report.markdown)})

    async def _load(self, references: list[DocumentRef]) -> dict[str, str]:
        limit = asyncio.Semaphore(PARALLEL_LOADS)

        async def load(reference: DocumentRef) -> str:
            async with limit:
                return await self._content.get_text(reference)

        texts = await asyncio.gather(*(load(reference) for reference in references))
        return {reference.hash: text for reference, text in zip(references, texts, strict=True)}

    async def _store(self, markdown: str, html: str, document: str) -> ReportFiles:
        text, page, data = await asyncio.gather(
            self._content.put_text(markdown, "text/markdown"),
            self._content.put_text(html, "text/html"),
            self._content.put_text(document, "application/json"),
        )
        return ReportFiles(markdown=text, html=page, json_document=data)
