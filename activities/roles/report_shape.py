"""What a report is made of: its title, sections, summary and length, read from the Markdown itself."""

import re
from bisect import bisect_left
from dataclasses import dataclass
from typing import Final

from activities.reporting.markdown_layout import Layout, layout, plain_text
from activities.roles.evidence_markers import without_markers
from contracts.texts import shorten
from providers.text import words

SUMMARY_CHARACTERS: Final = 500
SUMMARY_SENTENCES: Final = 3
TITLE_CHARACTERS: Final = 120
SOURCE_HEADING: Final = re.compile(
    r"(?:\d{1,9}+[.)]?\s{0,9}+)?(?:list of )?(?:sources|references|bibliography|works cited|citations|further reading"
    r"|quellen|quellenverzeichnis|literatur|références|bibliographie|fuentes|referencias|fonti|bronnen)"
    r"(?: cited| used)?:?",
    re.IGNORECASE,
)
SUMMARY_HEADING: Final = re.compile(
    r"summary|short answer|abstract|overview|zusammenfassung|kurzantwort|résumé|resumen|sommario|samenvatting",
    re.IGNORECASE,
)
SENTENCE_BREAK: Final = re.compile(r"(?<=[.!?。！？])(?<!\b[A-Z]\.)(?<!e\.g\.)(?<!i\.e\.)\s+")


@dataclass(frozen=True)
class Heading:
    """A heading and the lines that it stands over, its own line included; deeper headings lie within."""

    level: int
    text: str
    first_line: int
    last_line: int
    """Exclusive."""


@dataclass(frozen=True)
class ReportShape:
    """Figures of a report."""

    title: str
    """The first heading of level one; empty if there is none."""
    summary: str
    """The first two or three sentences of the summary, else of the first section with prose; 500 characters at most."""
    sections: list[str]
    """The headings of level two."""
    word_count: int
    """Markers apart."""


def shape_of(markdown: str) -> ReportShape:
    """Read a cleaned report."""
    page = layout(markdown)
    found = _headings(page)
    return ReportShape(
        title=next((shorten(item.text, TITLE_CHARACTERS) for item in found if item.level == 1), ""),
        summary=_summary(page, found),
        sections=[item.text for item in found if item.level == 2],
        word_count=len(words(without_markers(markdown))),
    )


def without_source_lists(markdown: str) -> str:
    """The text without sections that list sources: the renderer adds the one that is true."""
    lines, kept, place = markdown.split("\n"), [], 0
    for heading in _headings(layout(markdown)):
        if heading.level > 1 and heading.first_line >= place and SOURCE_HEADING.fullmatch(heading.text.strip()):
            kept += lines[place : heading.first_line]
            place = heading.last_line
    return "\n".join(kept + lines[place:]).strip() + "\n"


def _headings(page: Layout) -> list[Heading]:
    """The headings of a text outside of code and quotes."""
    found = [
        (int(token.tag[1:]), plain_text(without_markers(page.tokens[place + 1].content)), token.map[0])
        for place, token in enumerate(page.tokens)
        if token.type == "heading_open" and token.map and token.level == 0
    ]
    ends: list[int] = []
    below: list[tuple[int, int]] = []
    last = page.text.count("\n") + 1
    for level, _, line in reversed(found):
        while below and below[-1][0] > level:
            below.pop()
        ends.append(below[-1][1] if below else last)
        below.append((level, line))
    return [Heading(level, text, line, end) for (level, text, line), end in zip(found, reversed(ends), strict=True)]


def _summary(page: Layout, found: list[Heading]) -> str:
    heading_lines = {item.first_line for item in found}
    line_feeds = [match.start() for match in re.finditer("\n", page.text)]
    lines = [bisect_left(line_feeds, block.start) for block in page.blocks]
    prose = [(line, block) for line, block in zip(lines, page.blocks, strict=True)
             if not block.row and line not in heading_lines]  # fmt: skip
    starts = [line for line, _ in prose]

    def within(first: int, last: int) -> str:
        texts: list[str] = []
        for _, block in prose[bisect_left(starts, first) : bisect_left(starts, last)]:
            if shown := plain_text(without_markers(_remove_quote_signs(page.text[block.start : block.end]))):
                texts.append(shown)
            # The rest of a long section cannot change its first sentences.
            if len(_first_sentences(" ".join(texts))) < sum(map(len, texts)):
                break
        return " ".join(texts)

    ranked = [item for item in found if SUMMARY_HEADING.search(item.text)] + [item for item in found if item.level > 1]
    for item in ranked:
        if text := within(item.first_line, item.last_line):
            return _first_sentences(text)
    return _first_sentences(within(0, len(line_feeds) + 1))


def _remove_quote_signs(text: str) -> str:
    return re.sub(r"^[ \t]*>[ \t]?", "", text, flags=re.MULTILINE)


def _first_sentences(text: str) -> str:
    taken = ""
    for sentence in SENTENCE_BREAK.split(text.strip())[:SUMMARY_SENTENCES]:
        longer = f"{taken} {sentence}".strip()
        if len(longer) > SUMMARY_CHARACTERS:
            break
        taken = longer
    return taken or shorten(text.strip(), SUMMARY_CHARACTERS)
