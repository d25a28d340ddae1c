"""From the bytes of a document of any kind to its canonical text, in a child process.

`kreuzberg` turns every kind into Markdown, without optical character recognition or models; `canonical_text`
rewrites it. All functions raise `SourceUnreadable`.
"""

import csv
import json
import os
import re
import warnings
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from html import escape
from importlib import import_module
from io import StringIO
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import unquote, urljoin, urlsplit
from zipfile import BadZipFile

import kreuzberg
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from contracts.addresses import canonical_url, url_host
from contracts.evidence import MAX_LINKS
from contracts.sentences import Message
from providers.errors import SourceUnreadable
from providers.reading.books import read_book
from providers.reading.canonical_text import (
    TEXT_LIMIT,
    Block,
    DocumentFacts,
    Extraction,
    TableRow,
    canonical_text,
    clean,
    clean_marked,
    cut_warning,
    stated_facts,
    text_of_blocks,
)
from providers.reading.character_sets import decode
from providers.reading.document_kinds import (
    ARCHIVES,
    HTML,
    OPEN_DOCUMENTS,
    PDF,
    TEXT,
    DocumentKind,
    checked_archive,
    kind_of_page,
    sniff,
)
from providers.reading.html_page import HtmlContent, read_html
from providers.reading.left_out import left_out, words_left_out
from providers.reading.mail import read_mail
from providers.text import KNOWN_LANGUAGES, detect_language, is_wrapped

PAGE_BYTES: Final = 3_000_000  # limit of a page of HTML or Markdown; other documents have 20 MB
WEB_TEXT_CHARACTERS: Final = 200_000  # of one web page: about 30,000 words
NESTING: Final = {"maxNesting": 100}  # levels of lists and quotations; the parser skips deeper ones
RENDERED: Final = 3  # multiple of the text limit that is rendered: a plain text of 20 MB would take too long
MARKDOWN: Final = MarkdownIt("commonmark", NESTING).enable(["table", "strikethrough"])
PLAIN_TEXT: Final = MarkdownIt("commonmark", {**NESTING, "html": False})
"""Paragraphs, underlined headings, lists and code of a plain text; characters within its words are not markup."""


CLAUSE: Final = re.compile(r"\n\d{1,3}\.\d")
"""A line that begins with the number of a clause: `2.1`."""


def _keep_lines(state: StateCore) -> None:
    """Keep the line breaks of a paragraph whose lines their author ended: prices, a rota, a chat."""
    items = 0
    for opening, token in pairwise(state.tokens):
        items += (opening.type == "list_item_open") - (opening.type == "list_item_close")
        breaks = [child for child in token.children or () if child.type == "softbreak"]
        is_paragraph = opening.type == "paragraph_open" and (not items or CLAUSE.search(token.content) is not None)
        if breaks and is_paragraph and not is_wrapped(token.content.split("\n")):
            for child in breaks:
                child.type = "hardbreak"
                child.tag = "br"


def _lines_as_they_are(state: StateCore) -> None:
    """Put each line of a plain text into its paragraph: there is no markup in it that the parser could look for."""
    for token in state.tokens:
        if token.type != "inline":
            continue
        token.children = []
        before = ""
        for number, line in enumerate(token.content.split("\n")):
            if number:
                is_hard = before.endswith("  ")  # as in Markdown
                token.children.append(Token("hardbreak" if is_hard else "softbreak", "br", 0))
            token.children.append(Token("text", "", 0, content=line.strip(" ")))
            before = line


PLAIN_TEXT.core.ruler.at("inline", _lines_as_they_are)
for parser in (MARKDOWN, PLAIN_TEXT):
    parser.core.ruler.push("keep_lines", _keep_lines)

SEPARATORS: Final = ("\t", ";", ",", "|")
SEPARATOR_SAMPLE: Final = 10_000  # characters used to detect the separator
FRONT_MATTER: Final = re.compile(r"\A---[ \t]*\n(?:[^\n]*\n){0,200}?(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
ADORNMENT: Final = re.compile(r"([=\-~^#*+])\1{2,}")
"""A line of signs below a title, or above and below it, or between two parts of a text."""
EQUAL_SIGNS: Final = re.compile(r"(={1,6}) ([^=\s](?:[^=]*[^=\s])?)(?: \1)?")
"""A heading of AsciiDoc or of a wiki."""
TITLE_MARGIN: Final = 4  # signs that such a line may be shorter or longer than its title
LANGUAGE_SAMPLE: Final = 4_000  # characters used to detect the language
MIN_LANGUAGE_CHARACTERS: Final = 200  # below that the page's own statement is more reliable


BLOCK_READERS: Final = {
    DocumentKind.DOCX: "word:read_word",
    **dict.fromkeys(OPEN_DOCUMENTS, "opendocument:read_opendocument"),
    DocumentKind.PPTX: "office:read_presentation",
    DocumentKind.XLSX: "office:read_workbook",
    DocumentKind.RTF: "rich_text:read_rich_text",
}
"""Readers that return blocks and facts, loaded when they are needed: most children read none of these kinds."""
DAMAGE: Final = (AttributeError, BadZipFile, KeyError, OSError, SyntaxError, TypeError, ValueError, zlib.error)
"""Errors that the libraries of these readers raise for damaged documents; those of XML are `SyntaxError`."""


def extract(raw: bytes, name: str) -> Extraction:
    """Extract a file; `name` decides between kinds of text that look alike, and is the fallback for the title."""
    extraction = _extract(raw, sniff(raw, name))
    if not extraction.text:
        raise SourceUnreadable("no_text", Message("skip_scanned"))
    stem = os.fsencode(PurePosixPath(name).stem).decode("utf-8", "replace")  # a name may be of another encoding
    return replace(extraction, title=extraction.title or stem)


def read_page(body: bytes, declared: str | None, charset: str | None, url: str) -> Extraction:
    """Extract a web document, perhaps without text, up to `WEB_TEXT_CHARACTERS`."""
    kind = kind_of_page(body, declared, PurePosixPath(unquote(urlsplit(url).path)).name)
    extraction = _extract(body, kind, charset=charset, limit=WEB_TEXT_CHARACTERS)
    pages = [start for start in extraction.pages if start < len(extraction.text)]
    return replace(extraction, blocks=[], pages=pages, links=web_addresses(extraction.links, url))


def web_addresses(links: list[str], url: str) -> list[str]:
    """Return the first web addresses to which a page links, each once, without the page itself."""
    page = canonical_url(url)
    addresses: dict[str, None] = {}
    for link in links:
        with suppress(ValueError):
            address = canonical_url(urljoin(url, link.strip()))
            if url_host(address) and address != page:
                addresses[address] = None
        if len(addresses) == MAX_LINKS:
            break
    return list(addresses)


def _extract(raw: bytes, kind: DocumentKind, *, charset: str | None = None, limit: int = TEXT_LIMIT) -> Extraction:
    if kind in {HTML, DocumentKind.MARKDOWN} and len(raw) > PAGE_BYTES:
        raise SourceUnreadable("too_large", Message("skip_large", size=PAGE_BYTES))
    if kind is DocumentKind.MAIL:
        html, facts = read_mail(raw, PLAIN_TEXT)
        extraction = _from_clean_html(html, kind, limit, facts)
    elif kind in BLOCK_READERS:
        extraction = _read_blocks(raw, kind, limit)
    elif kind is DocumentKind.EPUB:
        extraction = _read_book(raw, limit)
    elif kind is PDF:
        extraction = _read_pages(raw, limit)
    else:
        extraction = _extract_text(decode(raw, charset=charset), kind, limit)
    return replace(extraction, language=_language(extraction.text, extraction.language))


def _read_blocks(raw: bytes, kind: DocumentKind, limit: int) -> Extraction:
    try:
        with warnings.catch_warnings(action="ignore"):  # of the libraries, about parts that they do not know
            module, _, name = BLOCK_READERS[kind].partition(":")
            reader = getattr(import_module(f".{module}", __package__), name)
            checked = checked_archive(raw) if kind in ARCHIVES else raw
            blocks, facts = reader(checked)
            read = text_of_blocks(blocks, kind, limit=limit, facts=facts)
            missing = "" if read.warnings else left_out(checked, kind, read.text)
    except DAMAGE as error:
        raise SourceUnreadable("malformed", Message("skip_damaged")) from error
    if missing:
        return replace(read, warnings=[missing])
    return read


def _read_book(raw: bytes, limit: int) -> Extraction:
    try:
        page = read_book(checked_archive(raw), RENDERED * limit)
    except DAMAGE as error:
        raise SourceUnreadable("malformed", Message("skip_book")) from error
    return _written(page, DocumentKind.EPUB, limit, page.facts)


def _extract_text(text: str, kind: DocumentKind, limit: int) -> Extraction:
    if kind is HTML:
        return _read_html(text, kind, limit)
    if kind in {DocumentKind.MARKDOWN, TEXT}:
        # The library's Markdown reader loses words of lists and joins their paragraphs; its HTML reader does not.
        text = clean(text)
        parser = PLAIN_TEXT if kind is TEXT else MARKDOWN
        text = _with_headings(text) if kind is TEXT else text
        most_characters = RENDERED * limit
        length = len(text)
        if length > most_characters:  # at a line end, except within a line longer than half of it
            text = text[: text.rfind("\n", most_characters // 2, most_characters) + 1 or most_characters]
        head = None
        if kind is DocumentKind.MARKDOWN:
            head = FRONT_MATTER.match(text)
        if head:
            stated = _facts_of(_markdown(head[0].encode(), kind))
        else:
            stated = DocumentFacts()
        extraction = _read_html(parser.render(text[head.end() if head else 0 :]), kind, limit, stated)
        if length <= most_characters:
            return extraction
        return replace(extraction, warnings=[cut_warning(extraction.text)])
    if kind is DocumentKind.LOG:
        fence = "`" * 40
        return canonical_text(f"{fence}\n{clean(text)}\n{fence}", kind, escaped=True, limit=limit)
    if kind is DocumentKind.CSV:
        return text_of_blocks(_rows(clean(text)), kind, limit=limit)
    if kind is DocumentKind.NOTEBOOK:
        return _read_html(_notebook(text), kind, limit)
    return _convert(clean(text).encode("utf-8"), kind, limit)


def _with_headings(text: str) -> str:
    """Return a plain text whose headings are as Markdown has them: a title with a line of signs below it, or around it.

    A line of signs that is shorter or longer than the line above it only divides the text.
    """
    lines = text.split("\n")
    written = list[str]()
    for number, line in enumerate(lines):
        above = written[-1].rstrip() if written else ""
        is_rule = ADORNMENT.fullmatch(line.rstrip()) is not None
        if not is_rule or not above:
            title = EQUAL_SIGNS.fullmatch(line.rstrip()) if not above else None
            written.append(f"{'#' * len(title[1])} {title[2]}" if title else line)
            continue
        is_alone = len(written) < 2 or not written[-2].strip() or ADORNMENT.fullmatch(written[-2].rstrip()) is not None
        if is_alone and abs(len(above.strip()) - len(line.rstrip())) <= TITLE_MARGIN and not ADORNMENT.fullmatch(above):
            if len(written) > 1 and written[-2].rstrip() == line.rstrip():  # the same line above the title
                written[-2] = ""
            written[-1] = f"{'#' if line.startswith('=') else '##'} {above.strip()}"
            written.append("")
        else:
            written += ["", line] if number + 1 < len(lines) else [""]
    return "\n".join(written)


def _rows(text: str) -> Iterator[Block]:
    """Yield the rows of a table of separated values; the separator is the one that its first lines have most alike."""
    lines = [line for line in text[:SEPARATOR_SAMPLE].split("\n") if line.strip()][:20]
    counts = {separator: sorted(line.count(separator) for line in lines) for separator in SEPARATORS}
    separator = max(SEPARATORS, key=lambda each: (counts[each][len(lines) // 4] if lines else 0, sum(counts[each])))
    csv.field_size_limit(max(len(text), 1))
    yield from map(TableRow, csv.reader(StringIO(text), delimiter=separator))


def _notebook(text: str) -> str:
    """Return a notebook as HTML: text cells, and code with its output. Raises `SourceUnreadable` malformed."""
    try:
        notebook = json.loads(text)
        sheets = [notebook, *notebook.get("worksheets", ())]  # format 3 has its cells in sheets
        cells = (cell for sheet in sheets for cell in sheet.get("cells", ()))
        return "\n".join(part for cell in cells for part in _cell(cell))
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise SourceUnreadable("malformed", Message("skip_notebook")) from error


def _cell(cell: dict[str, Any]) -> Iterator[str]:
    source = _joined(cell.get("source") or cell.get("input") or "")
    kind = cell.get("cell_type")
    if kind == "markdown":
        yield MARKDOWN.render(clean(source))
    elif kind == "heading":
        yield f"<h{cell['level']:d}>{escape(source)}</h{cell['level']:d}>"
    else:
        yield f"<pre>{escape(source)}</pre>"
    for output in cell.get("outputs") or ():
        failure = ": ".join(filter(None, (output.get("ename"), output.get("evalue"))))
        shown = output.get("text") or (output.get("data") or {}).get("text/plain") or failure
        yield f"<pre>{escape(_joined(shown))}</pre>"


def _joined(lines: str | list[str]) -> str:
    """Return a text that a notebook may write as lines, with or without their ends."""
    if isinstance(lines, str):
        return lines
    return "\n".join(line.removesuffix("\n") for line in lines)


def _convert(raw: bytes, kind: DocumentKind, limit: int) -> Extraction:
    document = _markdown(raw, kind)
    return canonical_text(clean_marked(document.content), kind, escaped=True, limit=limit, facts=_facts_of(document))


def _read_pages(raw: bytes, limit: int) -> Extraction:
    """Read a PDF, and note where its engines differ."""
    from providers.reading.pdf import compared_words, page_warnings, read_pdf  # noqa: PLC0415  three engines

    blocks, facts, doubts = read_pdf(raw)
    read = text_of_blocks(blocks, PDF, limit=limit, facts=facts)
    ends = [*read.pages[1:], len(read.text)]
    uncertain = [
        (block.start, block.end)
        for number, (start, end) in enumerate(zip(read.pages, ends, strict=True), 1)
        if (words := doubts.words.get(number))
        for block in read.blocks
        if start <= block.start < end and not words.isdisjoint(compared_words(read.text[block.start : block.end]))
    ]
    notes = [*read.warnings, *page_warnings(doubts)]
    return replace(read, uncertain=uncertain, warnings=notes)


def _read_html(markup: str, kind: DocumentKind, limit: int, stated: DocumentFacts | None = None) -> Extraction:
    page = read_html(markup, is_xml=kind is HTML and markup.lstrip().startswith("<?xml"))
    return _written(page, kind, limit, page.facts if stated is None else replace(stated, links=page.facts.links))


def _written(page: HtmlContent, kind: DocumentKind, limit: int, facts: DocumentFacts) -> Extraction:
    """Return the text of a page, with a warning about the words that it lacks."""
    read = _from_clean_html(page.html, kind, limit, facts)
    missing = ""
    if not read.warnings:
        missing = words_left_out(read.text, page.visible, page.left_out)
    if missing:
        return replace(read, warnings=[missing])
    return read


def _from_clean_html(html: str, kind: DocumentKind, limit: int, facts: DocumentFacts) -> Extraction:
    markdown = ""
    if html:
        markdown = _markdown(html.encode("utf-8"), HTML).content
    return canonical_text(markdown, kind, escaped=False, limit=limit, facts=facts)


def _facts_of(document: Any) -> DocumentFacts:
    """Return the statements of a converted document about itself."""
    metadata = document.metadata
    date = metadata.get("created_at") or metadata.get("modified_at")
    return stated_facts(metadata.get("title"), metadata.get("authors") or (), date, metadata.get("language"))


def _markdown(raw: bytes, media_type: str) -> Any:
    """Convert a document with the library to Markdown."""
    config = kreuzberg.ExtractionConfig(
        output_format="markdown",
        use_cache=False,
        enable_quality_processing=False,
        ocr=None,
        concurrency=kreuzberg.ConcurrencyConfig(max_threads=1),
    )
    try:
        return kreuzberg.extract_bytes_sync(raw, str(media_type), config)
    except kreuzberg.KreuzbergError as error:
        message = str(error).lower()
        if "password" in message or "encrypted" in message:
            raise SourceUnreadable("encrypted", Message("skip_password")) from error
        if "limit" in message or "too large" in message or "exceed" in message:
            raise SourceUnreadable("too_large", Message("skip_reader_limit")) from error
        raise SourceUnreadable("malformed", Message("skip_damaged")) from error


def _language(text: str, declared: str | None) -> str | None:
    """Return the language of a text, detected because templates often declare a wrong one."""
    if declared is not None and (len(text) < MIN_LANGUAGE_CHARACTERS or declared not in KNOWN_LANGUAGES):
        return declared
    detected = detect_language(text[:LANGUAGE_SAMPLE])
    if detected == "und":
        return declared
    return detected
