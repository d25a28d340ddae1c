"""The activity `join_report`: a draft made of sections, in a killable process."""

import asyncio
from collections.abc import Sequence
from typing import Final

from temporalio import activity

from activities.attempts import MOST_FAILURES_OF_STORES, count_attempts
from activities.failure_translation import RECORDS
from activities.reporting.report_sections import join_report, section_texts
from activities.roles.evidence_markers import cited_evidence
from activities.roles.report_shape import shape_of, without_source_lists
from contracts.evidence import ReportDraft
from contracts.messages import JoinRequest
from providers.interfaces import ContentStore, IsolatedCalls

JOINED: Final = f"{__name__}:join_plainly"
MARKDOWN: Final = "text/markdown"

Made = tuple[str, list[str]]
"""A `ReportDraft` as JSON whose documents are not stored yet, and the texts of its parts."""


def redraft(base: ReportDraft, text: str) -> Made:
    """What a draft says of itself, for another text."""
    shape = shape_of(text)
    draft = base.model_copy(
        update={
            "title": shape.title or base.title,
            "summary": shape.summary,
            "sections": shape.sections,
            "word_count": shape.word_count,
            "characters": len(text.strip()),
            "has_headings": "##" in text,
            "evidence_ids": cited_evidence(text),
        }
    )
    return draft.model_dump_json(), section_texts(text)


def join_plainly(frame: ReportDraft, text: str, sections: Sequence[str], headings: Sequence[str]) -> Made:
    """`join_report` for a child process."""
    return redraft(frame, without_source_lists(join_report(text, sections, headings)))


class RevisionActivities:
    """Puts drafts together."""

    def __init__(self, content: ContentStore, isolated: IsolatedCalls) -> None:
        self._content = content
        self._isolated = isolated

    @activity.defn(name="join_report")
    async def join_report(self, request: JoinRequest) -> ReportDraft:
        """One draft of a frame and sections that were written apart."""
        async with count_attempts(RECORDS, most_failures=MOST_FAILURES_OF_STORES):
            frame, *sections = await asyncio.gather(
                *(self._content.get_text(each) for each in (request.frame.document, *request.sections))
            )
            made: Made = await self._isolated.call(JOINED, request.frame, frame, sections, request.headings)
            return await self._store(made)

    async def _store(self, made: Made) -> ReportDraft:
        packed, parts = made
        return await store_draft(self._content, ReportDraft.model_validate_json(packed), parts)


async def store_draft(content: ContentStore, draft: ReportDraft, parts: Sequence[str]) -> ReportDraft:
    """The draft with its text stored as a whole and part by part."""
    whole, *documents = await asyncio.gather(*(content.put_text(text, MARKDOWN) for text in ("".join(parts), *parts)))
    return draft.model_copy(update={"document": whole, "section_documents": documents})
