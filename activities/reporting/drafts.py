"""Drafts: a writer's text cleaned for storage, its figures, and its sections.

A stored draft is Markdown that `write` made, with citations of passages as `[ev-…]`. A section is a heading of the
second level with its blocks; the blocks before the first section, usually the title, are the head.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from temporalio import activity

from activities.failures import RECORDS, attempt
from activities.reporting.claims import is_lead, is_sentence
from activities.reporting.inputs import unquote_inexact_quotes
from activities.reporting.references import (
    DraftMarks,
    KnownAddresses,
    cited_evidence,
    read_stored_marks,
    with_plain_names,
    without_source_lists,
)
from activities.reporting.tree import Block, Blocks, clean_characters, heading, parse, sentences, write
from contracts import activities
from contracts.evidence import ReportDraft
from contracts.messages import JoinRequest
from contracts.texts import shorten
from providers.interfaces import ContentStore
from providers.text import words

MARKDOWN_TYPE: Final = "text/markdown"
TITLE_CHARACTERS: Final = 120
SUMMARY_CHARACTERS: Final = 500
SUMMARY_SENTENCES: Final = 3


# --- from a writer's text to a draft ---------------------------------------------------------------------------------
@dataclass(frozen=True)
class CleanDraft:
    """A draft fit to be stored, and the parts that were removed from it."""

    blocks: Blocks
    unresolved: list[str]
    copied: list[str]
    """Names and elements of the prompt that were in the text."""
    foreign_urls: list[str]
    unquoted: int
    """Block quotes that became plain text, because they are not verbatim in their cited passages."""


def clean_draft(markdown: str, marks: DraftMarks, registry: KnownAddresses, quotes: Mapping[str, str]) -> CleanDraft:
    """Make a draft of a writer's text, without foreign addresses, unknown citations and lists of sources.

    `quotes` has the text of passages by evidence id.
    """
    foreign: list[str] = []
    text = clean_characters(markdown)
    # Drop a code fence around the whole text that is labelled Markdown or starts with a heading.
    fence = r"\s*(`{3,}|~{3,})[ \t]*(?:(?:markdown|md)[ \t]*\n|\n(?=\s*#))(.*)\n\1\s*"
    wrapped = re.fullmatch(fence, text, re.DOTALL | re.IGNORECASE)
    text = wrapped[2] if wrapped else text
    # Some models escape the brackets of their citations, or write names as code.
    if not marks.exact:
        text = with_plain_names(re.sub(r"\\([\[\]])", r"\1", text), marks.passages)
    blocks = parse(text, marks, registry.filter(foreign))
    blocks, unquoted = unquote_inexact_quotes(without_source_lists(blocks), quotes, registry)
    unresolved = list(dict.fromkeys(marks.unresolved))
    addresses = list(dict.fromkeys(foreign))
    return CleanDraft(blocks, unresolved, list(dict.fromkeys(marks.copied)), addresses, unquoted)


def parse_draft(markdown: str) -> Blocks:
    """Parse a stored draft: each evidence id in brackets is a citation."""
    return parse(markdown, read_stored_marks)


def describe_draft(base: ReportDraft, blocks: Blocks) -> tuple[ReportDraft, str]:
    """Return a draft with the figures of its text, and the text, which is not stored yet."""
    text = write(blocks).text
    return describe_text(base, blocks, text), text


def describe_text(base: ReportDraft, blocks: Blocks, text: str) -> ReportDraft:
    """Return a draft with the figures of its blocks, written as `text`."""
    titles = (block.words for block in blocks if block.kind == "heading" and block.level == 1)
    return base.with_fields(
        title=shorten(next(titles, base.title), TITLE_CHARACTERS),
        summary=summarize(blocks),
        sections=[title for title, _ in split_sections(blocks) if title],
        word_count=count_words(blocks),
        characters=len(text.strip()),
        has_headings=any(block.kind == "heading" and block.level > 1 for block in blocks),
        evidence_ids=cited_evidence(blocks),
    )


def count_words(blocks: Iterable[Block]) -> int:
    """Return the number of words of a text, including headings."""
    return len(words(" ".join(sentence.words for sentence in sentences(blocks))))


def summarize(blocks: Blocks) -> str:
    """Return the first sentences of the first section with prose, else of the head.

    Lines in bold or italics that are no sentences, as the title above a passage, are none of them.
    """
    ordered = sorted(split_sections(blocks), key=lambda section: not section[0])
    for _, section in ordered:
        prose = (block for block in section if block.kind in ("paragraph", "list", "quote"))
        worded = (sentence for sentence in sentences(prose) if not is_lead(sentence) or is_sentence(sentence.words))
        if lines := [sentence.words for sentence in worded if sentence.words]:
            return shorten(" ".join(lines[:SUMMARY_SENTENCES]), SUMMARY_CHARACTERS)
    return ""


# --- sections --------------------------------------------------------------------------------------------------------
def split_sections(blocks: Blocks) -> list[tuple[str, Blocks]]:
    """Split a draft into its head, if any, and its sections, each with its heading; that of the head is empty."""
    starts = [index for index, block in enumerate(blocks) if block.kind == "heading" and block.level == 2]
    sections = [(blocks[start].words, blocks[start:end]) for start, end in pairwise([*starts, len(blocks)])]
    head = blocks[: starts[0]] if starts else blocks
    if head:
        return [("", head), *sections]
    return sections


def join_sections(frame: Blocks, sections: Sequence[Blocks], headings: Sequence[str]) -> Blocks:
    """Insert separately written sections, unchanged, after the head and the first section of their frame."""
    bodies = [_under_heading(blocks, text) for blocks, text in zip(sections, headings, strict=True)]
    parts = [section for _, section in split_sections(frame)]
    return tuple(block for part in [*parts[:2], *bodies, *parts[2:]] for block in part)


def _under_heading(blocks: Blocks, text: str) -> Blocks:
    """Return a section under one heading of the second level, with all other headings below it."""
    first = None
    if blocks and blocks[0].kind == "heading" and blocks[0].level <= 2:
        first = blocks[0]
    top = replace(first, level=2) if first else heading(2, text)
    body = blocks[1:] if first else blocks
    return (top, *(replace(block, level=max(3, block.level)) if block.kind == "heading" else block for block in body))


# --- the activities --------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class RevisionActivities:
    """Joins separately written parts of a report."""

    content: ContentStore

    @activity.defn(name=activities.JOIN_REPORT.name)
    async def join_report(self, request: JoinRequest) -> ReportDraft:
        """Join a frame and separately written sections into one draft."""
        async with attempt(RECORDS):
            documents = (request.frame.document, *request.sections)
            texts = await asyncio.gather(*(self.content.get_text(document) for document in documents))
            draft, text = await asyncio.to_thread(_join, request, texts)
            return await store_draft(self.content, draft, text)


def _join(request: JoinRequest, texts: Sequence[str]) -> tuple[ReportDraft, str]:
    frame, *sections = map(parse_draft, texts)
    return describe_draft(request.frame, without_source_lists(join_sections(frame, sections, request.headings)))


async def store_draft(content: ContentStore, draft: ReportDraft, text: str) -> ReportDraft:
    """Store the text of a draft, and return the draft with its document."""
    return draft.with_fields(document=await content.put_text(text, MARKDOWN_TYPE))
