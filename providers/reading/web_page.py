"""A document of the web, from its bytes to what is kept of it: the entry that runs in a child process."""

from dataclasses import replace
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import unquote, urlsplit

from contracts.vocabulary import PageAccess
from providers.errors import SourceUnreadable
from providers.reading.canonical_text import Block, BlockKind, Extraction
from providers.reading.charsets import decode_with_warning
from providers.reading.cleaning import clean, escape_markup
from providers.reading.extraction import FROM_BYTES, extractor_of
from providers.reading.html.metadata import language_code, metadata_of
from providers.reading.html.page import extraction_of, parse
from providers.reading.html.pregate import check_html
from providers.reading.page_access import judge_access
from providers.reading.page_dates import date_in_url
from providers.reading.page_language import page_language
from providers.reading.page_signals import PageSignals, signals_of
from providers.reading.second_opinion import with_second_opinion
from providers.reading.sniffing import HTML, XML, DocumentKind, kind_of_body

KEPT_BYTES: Final = 200_000
"""Of the text of one page, as UTF-8."""
BEGINNING_ONLY: Final = "the text is long: only its first {kept:,} characters are kept"


def read_page(body: bytes, kind: str, charset: str | None, url: str) -> Extraction:
    """What is kept of a document, without its blocks; `kind` is provisional, `charset` from the server's answer.

    Of its pages those remain that begin in what is kept. Raises `SourceUnreadable` with one of its kinds.
    """
    name = PurePosixPath(unquote(urlsplit(url).path)).name
    found = shorten(_extract(body, kind_of_body(kind, body, name), charset, url))
    return replace(
        found,
        language=page_language(found.text, language_code(found.language)),
        published_at=found.published_at or date_in_url(url),
        blocks=[],
        pages=[start for start in found.pages if start < len(found.text)],
    )


def shorten(found: Extraction, most_bytes: int = KEPT_BYTES) -> Extraction:
    """The extraction with whole blocks up to a size, and a line that says what was left out."""
    if len(found.text) <= most_bytes // 4 or len(data := found.text.encode("utf-8")) <= most_bytes:
        return _warn_of_cut(found) if found.cut else found
    most = len(data[:most_bytes].decode("utf-8", "ignore"))
    ends = (_end(found.text, block) for block in found.blocks)
    kept = max((end for end in ends if end <= most), default=0) or max(found.text.rfind(" ", 0, most), 1)
    return _warn_of_cut(replace(found, text=found.text[:kept].rstrip(), cut=True))


def _warn_of_cut(found: Extraction) -> Extraction:
    return replace(found, warnings=[*found.warnings, BEGINNING_ONLY.format(kept=len(found.text))])


def _end(text: str, block: Block) -> int:
    """Where a block ends, with the fence that closes it."""
    if block.kind is not BlockKind.CODE:
        return block.end
    end = text.find("\n", block.end + 1)
    return end if end >= 0 else len(text)


def _extract(body: bytes, kind: DocumentKind, charset: str | None, url: str) -> Extraction:
    if kind in FROM_BYTES:
        return extractor_of(kind)(body)
    readable = decode_with_warning(body, markup=kind in {HTML, XML}, charset=charset)
    found = extract_web_html(readable.text, url) if kind == HTML else extractor_of(kind)(readable.text)
    return replace(found, warnings=[readable.warning, *found.warnings]) if readable.warning else found


def extract_web_html(markup: str, url: str) -> Extraction:
    """A page with what it says of itself, a second opinion where there is need, and whether it shows its content.

    Raises `SourceUnreadable` too_large, malformed, no_text.
    """
    check_html(markup)
    root = parse(markup)
    metadata = metadata_of(root)
    found = extraction_of(root, metadata, KEPT_BYTES)
    signals = signals_of(root, found, metadata.free, url)
    found = replace(found, access=judge_access(found, signals))
    found = with_second_opinion(found, root, markup, url)
    return found if found.text.strip() else _notice(found, signals)


def _notice(found: Extraction, signals: PageSignals) -> Extraction:
    """A page without any text: what it tells browsers without scripts. Raises `SourceUnreadable` no_text."""
    words = escape_markup(clean(signals.noscript))
    if found.access is PageAccess.OPEN or not words:
        raise SourceUnreadable("no_text", "the page holds no text")
    return replace(found, text=words, blocks=[Block(BlockKind.PARAGRAPH, 0, len(words))])
