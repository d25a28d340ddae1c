"""PDF as blocks: the words of one engine, in the layout of another, checked by a third.

`pdfium` knows the letters and the direction of writing, and reads across columns. `liteparse` finds columns, headings,
lists and tables, and changes words: it joins them at hyphens and writes formulas in signs of its own. So each word of
the first is put into the block of the second that surrounds it. `pdf_oxide` reads the page again: where their words
differ, the source says so.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Final

import liteparse
import pdf_oxide
import pypdfium2  # type: ignore[import-untyped]

from contracts.sentences import Message, counted
from providers.errors import SourceUnreadable
from providers.reading.canonical_text import Block, DocumentFacts, Page, Paragraph, stated_facts
from providers.reading.left_out import MIN_SHARE, words_read
from providers.reading.pdf_blocks import HYPHENS, Heights, Hyphens, RunningHeads, page_blocks
from providers.reading.pdf_words import PageWords, Word, read_words, typed_words

MAX_PAGES: Final = 5_000
PAGES_AT_ONCE: Final = 20
DIFFERENCE: Final = 0.02
"""Share of the words of a page that two engines read differently, above which the page is uncertain."""
BETTER_BY: Final = 0.4
"""How much more of its own words must be known for the second engine's reading of a page to replace the first one's."""
KNOWN_LENGTH: Final = 3  # letters of a word that tells words from parts of them
REPEATED: Final = Message("part_repeated")
OUTSIDE: Final = Message("part_outside")
INVISIBLE_LETTERS: Final = Message("part_invisible")
SHOWN_PAGES: Final = 12  # in a warning
MIN_WORDS: Final = 20  # of a page; with fewer one odd word is more than the share
WORDS: Final = re.compile(r"[^\W_]+")
NO_SPACES: Final = re.compile("[\u0590-\u1cff\u2e80-\ud7ff\uf900-\ufaff\ufb1d-\ufdff\ufe70-\ufefc]")
"""Writing of which the engines find words by spaces that they guess, or in shapes: letters are compared instead."""


@dataclass(slots=True)
class Doubts:
    """What a second engine reads otherwise, filled while the blocks are read."""

    words: defaultdict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Words that only one of two engines reads, by the number of the page."""
    unread: list[int] = field(default_factory=list)
    """Pages that could not be opened."""
    pictures: list[int] = field(default_factory=list)
    """Pages with a picture and without a word."""
    unnamed: list[int] = field(default_factory=list)
    """Pages with many words of signs of which the file does not say which letters they are."""
    shown: int = 0
    """Words that the pages show."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Other words of the file by what they are."""


def read_pdf(raw: bytes) -> tuple[Iterable[Block], DocumentFacts, Doubts]:
    """Return the blocks of a document, page by page, and its facts. Raises `SourceUnreadable`."""
    try:
        document = pypdfium2.PdfDocument(raw)
        if len(document) > MAX_PAGES:
            raise SourceUnreadable("too_large", Message("skip_pages", count=MAX_PAGES))
        stated = document.get_metadata_dict()
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise SourceUnreadable("encrypted", Message("skip_password")) from error
        raise SourceUnreadable("malformed", Message("skip_pdf")) from error
    date = (stated.get("CreationDate") or stated.get("ModDate") or "").removeprefix("D:")[:8]
    doubts = Doubts()
    return _blocks(raw, document, doubts), stated_facts(stated.get("Title"), [stated.get("Author")], date), doubts


def _blocks(raw: bytes, document: Any, doubts: Doubts) -> Iterator[Block]:
    heads = RunningHeads()
    second = _SecondOpinion(raw)
    with closing(document):
        for batch in _layout(raw):
            pages = [(number, layout, _read_page(document, number, doubts)) for number, layout in batch]
            hyphens = Hyphens([word.text for *_, page in pages for word in page.shown])
            heights = Heights([word for *_, page in pages for word in page.shown])
            for number, layout, page in pages:
                yield Page(number)
                words = [*page.shown, *typed_words(layout, page.shown)]
                other = second.text_of(number - 1)
                ours, theirs = differing(words, other, Counter(word.text for word in (*page.hidden, *page.outside)))
                if is_better(theirs, ours, hyphens.is_word):
                    doubts.words[number] |= set(theirs)
                    yield from map(Paragraph, re.split(r"\n\s*\n", other))
                    continue
                doubts.words[number] |= set(ours)
                areas = None if page.is_turned else layout  # it has the places of the page that is not turned
                yield from page_blocks(heads.removed(number, words, heights), areas, hyphens, heights)
        doubts.left_out[REPEATED] += heads.words


def _read_page(document: Any, number: int, doubts: Doubts) -> PageWords:
    """Return the words of a page, and note what it does not show and what it does not name."""
    try:
        with closing(document[number - 1]) as page:
            words = read_words(page)
    except pypdfium2.PdfiumError:
        doubts.unread.append(number)
        return PageWords()
    doubts.shown += len(words.shown)
    doubts.left_out[OUTSIDE] += len(words.outside)
    doubts.left_out[INVISIBLE_LETTERS] += len(words.hidden)
    if words.is_picture:
        doubts.pictures.append(number)
    if len(words.unnamed) > max(1, DIFFERENCE * len(words.shown)):
        doubts.unnamed.append(number)
        doubts.words[number].update(*map(compared_words, words.unnamed))
    return words


def _layout(raw: bytes) -> Iterator[list[tuple[int, Any]]]:
    """Yield the number and layout of each page, some pages at a time."""
    parser = liteparse.LiteParse(
        ocr_enabled=False, quiet=True, num_workers=1, max_pages=MAX_PAGES, image_mode="off", extract_links=False,
        keep_headers_footers=True, extract_blocks=True, extract_form_fields=True, extract_annotations=True,
        output_format="markdown", continue_on_page_error=True,
    )  # fmt: skip
    try:
        for batch in parser.parse_batches(raw, PAGES_AT_ONCE):
            found = {page.page_num: page for page in batch.result.pages}
            yield [(number, found.get(number)) for number in range(batch.start_page, batch.end_page + 1)]
    except liteparse.ParseError as error:
        raise SourceUnreadable("malformed", Message("skip_pdf")) from error


# --- the second opinion ----------------------------------------------------------------------------------------------
class _SecondOpinion:
    """Another engine's words of a page."""

    def __init__(self, raw: bytes) -> None:
        try:
            self._document: Any = pdf_oxide.PdfDocument.from_bytes(raw)
        except (OSError, RuntimeError, ValueError):
            self._document = None

    def text_of(self, index: int) -> str:
        """Return the text of a page; empty if this engine cannot read it."""
        if self._document is None:
            return ""
        try:
            return str(self._document.extract_text(index))
        except (OSError, RuntimeError, ValueError):
            return ""


def differing(words: list[Word], other: str, hidden: Counter[str]) -> tuple[Counter[str], Counter[str]]:
    """Return the words that only the first and only the second engine reads, if they are more than `DIFFERENCE`."""
    text = " ".join(word.text for word in words)
    if len(words) < MIN_WORDS or not other.strip() or NO_SPACES.search(text):
        return Counter(), Counter()
    ours = compared_words(text)
    theirs = compared_words(other) - compared_words(" ".join(hidden.elements()))
    common = sum((ours & theirs).values())
    if common >= (1 - DIFFERENCE) * max(sum(ours.values()), sum(theirs.values())):
        return Counter(), Counter()
    return ours - theirs, theirs - ours


def is_better(theirs: Counter[str], ours: Counter[str], known: Callable[[str], bool]) -> bool:
    """Return whether the second engine reads words where the first reads none: by far more of its own are known."""
    if sum(ours.values()) < MIN_WORDS or sum(theirs.values()) < MIN_WORDS:
        return False
    return _known_share(theirs, known) >= _known_share(ours, known) + BETTER_BY


def _known_share(words: Counter[str], known: Callable[[str], bool]) -> float:
    long = {word: count for word, count in words.items() if len(word) >= KNOWN_LENGTH and word.isalpha()}
    return sum(count for word, count in long.items() if known(word)) / max(1, sum(words.values()))


def compared_words(text: str) -> Counter[str]:
    """Return the words of a text as two engines are compared: in small letters, without hyphens and marks."""
    return Counter(WORDS.findall(re.sub(f"[{HYPHENS}]\\s*|\\^", "", text).lower()))


def page_warnings(doubts: Doubts) -> list[str]:
    """Return the warnings: pages that are not read or read with doubt, and words that are left out, by kind."""
    differing_pages = [number for number, words in doubts.words.items() if words and number not in doubts.unnamed]
    pages = {
        "pages_unread": doubts.unread,
        "pages_without_words": doubts.pictures,
        "pages_unnamed_letters": doubts.unnamed,
        "pages_uncertain": differing_pages,
    }
    warnings: list[str] = [
        Message(name, pages=counted("page", len(numbers)), numbers=_numbers(numbers))
        for name, numbers in pages.items()
        if numbers
    ]
    missing = doubts.left_out.total()
    read = doubts.shown - doubts.left_out[REPEATED]
    if missing > (1 - MIN_SHARE) * (read + missing):
        warnings.append(words_read(read / (read + missing), doubts.left_out))
    return warnings


def _numbers(pages: list[int]) -> str:
    shown = ", ".join(map(str, pages[:SHOWN_PAGES]))
    return shown + (" …" if len(pages) > SHOWN_PAGES else "")
