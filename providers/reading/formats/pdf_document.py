"""PDF by pypdfium2: the text of each page, unwrapped; outline entries become headings."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import pypdfium2 as pdfium  # type: ignore[import-untyped]

from providers.errors import SourceUnreadable
from providers.reading.canonical_text import BlockKind, Extraction, TextBuilder
from providers.reading.cleaning import clean, escape_markup, is_name, one_line
from providers.reading.formats.pdf_unseen import UnseenWords

PAGE_LIMIT: Final = 5_000
OUTLINE_LIMIT: Final = 2_000
OUTLINE_DEPTH: Final = 5
SENTENCE_END: Final = re.compile(r"[.!?:;…。！？][\"'”’)\]]*$")
BULLET: Final = re.compile(r"^(?:[•▪◦‣●–-]|\d{1,2}[.)]|\([a-z0-9]{1,2}\))\s+")
SHORT_LINE_SHARE: Final = 0.75
PDF_DATE: Final = re.compile(r"D:(\d{4})(\d{2})?(\d{2})?")
NOT_LOOKED_AT: Final = (
    "on {pages} pages words of unusual looks are left out: looking at all of them would take too long"
)
PASSWORD_ERROR: Final = 4
"""PDFium's code for a document that asks for a password."""


def extract_pdf(raw: bytes) -> Extraction:
    """The canonical text of a PDF. Raises `SourceUnreadable` encrypted, malformed, too_large or no_text."""
    document = _open(raw)
    try:
        if len(document) > PAGE_LIMIT:
            raise SourceUnreadable("too_large", f"the document has more than {PAGE_LIMIT} pages")
        outline = _outline(document)
        builder, pages, unseen = TextBuilder(), [], UnseenWords()
        for number in range(len(document)):
            pages.append(builder.length + 2 if builder.blocks else 0)
            _write_page(builder, _page_text(document, number, unseen), outline.get(number, {}))
            if builder.cut:
                break
        if not builder.blocks:
            raise SourceUnreadable("no_text", "the document holds no text, perhaps only scanned pages")
        found = _extraction(document, builder, pages)
        return replace(found, warnings=[NOT_LOOKED_AT.format(pages=unseen.unchecked)]) if unseen.unchecked else found
    except pdfium.PdfiumError as error:
        raise SourceUnreadable("malformed", "a damaged PDF") from error
    finally:
        document.close()


def _open(raw: bytes) -> Any:
    try:
        return pdfium.PdfDocument(raw)
    except pdfium.PdfiumError as error:
        if getattr(error, "err_code", None) == PASSWORD_ERROR or "password" in str(error).lower():
            raise SourceUnreadable("encrypted", "the document is protected by a password") from error
        raise SourceUnreadable("malformed", "a damaged PDF") from error


def _extraction(document: Any, builder: TextBuilder, pages: list[int]) -> Extraction:
    metadata = document.get_metadata_dict(skip_empty=True)
    date = PDF_DATE.match(metadata.get("CreationDate", ""))
    text = builder.text()
    first = text[builder.blocks[0].start : builder.blocks[0].end]
    author = one_line(clean(metadata.get("Author", "")))
    return Extraction(
        title=one_line(clean(metadata.get("Title", "")))[:300] or first[:120],
        text=text,
        media_type="application/pdf",
        blocks=builder.blocks,
        authors=[author] if is_name(author) else [],
        published_at="-".join(part for part in date.groups() if part) if date else None,
        pages=pages,
        cut=builder.cut,
    )


def _page_text(document: Any, number: int, unseen: UnseenWords) -> str:
    page = document[number]
    try:
        return unseen.seen_text(page)
    finally:
        page.close()


def _outline(document: Any) -> dict[int, dict[str, int]]:
    """Page number → normalized title of an outline entry → heading level."""
    found: dict[int, dict[str, int]] = {}
    for count, entry in enumerate(document.get_toc(max_depth=OUTLINE_DEPTH)):
        if count >= OUTLINE_LIMIT:
            break
        target = entry.get_dest()
        page = target.get_index() if target else None
        title = _normalize(entry.get_title())
        if page is not None and title:
            found.setdefault(page, {})[title] = entry.level + 1
    return found


def _normalize(title: str) -> str:
    return re.sub(r"^[\dIVXA-Z.]{1,8}\.?\s+", "", one_line(clean(title))).casefold()


def _write_page(builder: TextBuilder, raw: str, headings: dict[str, int]) -> None:
    lines = [one_line(line) for line in clean_page(raw).split("\n")]
    for paragraph in _paragraphs(lines, headings):
        level = headings.get(_normalize(paragraph))
        item = BULLET.match(paragraph)
        if level is not None:
            builder.add(BlockKind.HEADING, paragraph, before="#" * level + " ", level=level)
        elif item:
            builder.add(BlockKind.ITEM, paragraph[item.end() :], before="- ")
        else:
            builder.add(BlockKind.PARAGRAPH, escape_markup(paragraph))


def clean_page(raw: str) -> str:
    """The text of a page; words that were parted at line ends are joined."""
    joined = re.sub("(?<=\\w)[\ufffe\u0002\u00ad]\r?\n?", "", raw)
    return clean(re.sub(r"(?<=[a-zà-ÿ])-\r?\n(?=[a-zà-ÿ])", "", joined))


def _paragraphs(lines: list[str], headings: dict[str, int]) -> Iterator[str]:
    """Lines put together: a paragraph ends at a blank line, a heading, a bullet, or a short last line."""
    widths = sorted(len(line) for line in lines if line)
    usual = widths[int(len(widths) * 0.8)] if widths else 0
    current: list[str] = []
    for line in lines:
        alone = _normalize(line) in headings
        if current and (not line or alone or BULLET.match(line)):
            yield " ".join(current)
            current = []
        if not line:
            continue
        current.append(line)
        short = len(line) < SHORT_LINE_SHARE * usual
        if alone or (short and (SENTENCE_END.search(line) or len(current) == 1)):
            yield " ".join(current)
            current = []
    if current:
        yield " ".join(current)
