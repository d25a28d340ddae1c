"""The archive: stored documents against their hashes, passages and block quotes against the stored texts."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from activities.reporting.audit.audit_result import AuditResult
from activities.reporting.audit.audited_report import (
    AuditedEvidence,
    AuditedReport,
    AuditedSource,
    marks_of,
    registry_of,
)
from activities.reporting.quotations import Page, quotations, words_of
from contracts.addresses import digest
from providers.errors import ContentCorrupt, ContentMissing

TextOf = Callable[[str], Awaitable[str]]
BytesOf = Callable[[str], Awaitable[bytes]]

SHOWN: Final = 80
"""Characters of a quotation that a problem names it by."""


async def load_text(source: AuditedSource, get_text: TextOf | None, result: AuditResult) -> str | None:
    """The stored text of a source, if it is what its hash says; anything else is a difference."""
    if source.text_hash is None:
        result.skip("sources without a stored text")
        return None
    if get_text is None:
        result.skip("stored texts that are left out")
        return None
    try:
        text = await get_text(source.text_hash)
    except ContentCorrupt:
        result.problem("text_differs", source.id, "the stored text is not what its hash says")
    except ContentMissing:
        result.problem("text_missing", source.id, "the stored text is gone")
    else:
        result.count("stored texts")
        if digest(text) == source.text_hash:
            return text
        result.problem("text_differs", source.id, "the stored text is not what its hash says")
    return None


async def check_original(source: AuditedSource, get_bytes: BytesOf | None, result: AuditResult) -> None:
    """The bytes as they were fetched must be what their hash says."""
    if source.content_hash is None:
        result.skip("sources without a stored original")
        return
    if get_bytes is None:
        result.skip("stored originals that are left out")
        return
    try:
        data = await get_bytes(source.content_hash)
    except ContentCorrupt:
        result.problem("original_differs", source.id, "the stored original is not what its hash says")
    except ContentMissing:
        result.problem("original_missing", source.id, "the stored original is gone")
    else:
        result.count("stored originals")
        if "sha256:" + hashlib.sha256(data).hexdigest() != source.content_hash:
            result.problem("original_differs", source.id, "the stored original is not what its hash says")


def check_passages(report: AuditedReport, texts: Mapping[str, str | None], result: AuditResult) -> None:
    """Each passage must stand at its place in the stored text of its source, with the words around it."""
    stored = {source.id for source in report.sources if source.text_hash is not None}
    for evidence in report.evidence:
        if evidence.source_id not in texts:
            message = f"the source {evidence.source_id} is not listed"
            result.problem("evidence_without_source", evidence.id, message)
            continue
        if digest(evidence.quote) != evidence.quote_hash:
            result.problem("quote_differs", evidence.id, "the quote is not what its hash says")
        text = texts[evidence.source_id]
        if text is not None:
            result.count("passages")
            _check_place(evidence, text, result)
        else:
            result.skip("passages without their text")
            if evidence.source_id not in stored:
                result.problem("evidence_without_text", evidence.id, "its source has no stored text")


def _check_place(evidence: AuditedEvidence, text: str, result: AuditResult) -> None:
    before, after = text[: evidence.start], text[evidence.end :]
    if text[evidence.start : evidence.end] == evidence.quote:
        if not before.endswith(evidence.prefix) or not after.startswith(evidence.suffix):
            result.problem("context_differs", evidence.id, "the stored text has other words around this place")
        return
    found = text.find(evidence.quote)
    if found < 0:
        result.problem("quote_differs", evidence.id, "the stored text does not have these words")
        return
    places = f"{evidence.start} to {evidence.end}; the words stand at {found} to {found + len(evidence.quote)}"
    result.problem("offset_differs", evidence.id, f"the report says characters {places}")


def check_quotations(report: AuditedReport, texts: Mapping[str, str | None], result: AuditResult) -> None:
    """What a block quote cites must hold its words: each passage of it, in every source that it names."""
    markdown, registry = report.report.markdown, registry_of(report)
    pages = {}
    for citation in report.citations:
        text = texts.get(citation.source_id)
        if text is not None:
            pages[citation.number] = Page(text, registry)
    for _, found in quotations(markdown, marks_of(report)):
        for stretch in found:
            words = words_of(markdown, stretch)
            for number in sorted({mark.number for mark in stretch.marks}):
                if number not in pages:
                    result.skip("quotations without the text of their source")
                    continue
                result.count("quotations")
                if not pages[number].has(words):
                    line = markdown.count("\n", 0, stretch.start) + 1
                    message = (
                        f"line {line}, “{' '.join(words.split())[:SHOWN]}”: these words do not stand in its source"
                    )
                    result.problem("quotation_differs", f"[{number}]", message)
