"""What a report is made of: its title, sections, summary and length, read from the Markdown itself (S0-074)."""

import re
from dataclasses import dataclass
from typing import Final

from activities.markers import without_markers
from activities.reporting.layout import layout, plain_text
from activities.wording import bounded
from providers.text import words

SUMMARY_CHARACTERS: Final = 500
SUMMARY_SENTENCES: Final = 3
TITLE_CHARACTERS: Final = 300
SOURCE_HEADING: Final = re.compile(
    r"(?:\d+[.)]?\s*)?(?:list of )?(?:sources|references|bibliography|works cited|citations|further reading"
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


def headings(markdown: str) -> list[Heading]:
    """The headings of a text outside of code."""
    tokens = layout(markdown).tokens
    found = [
        (int(token.tag[1:]), plain_text(without_markers(tokens[place + 1].content)), token.map[0])
        for place, token in enumerate(tokens)
        if token.type == "heading_open" and token.map and token.level == 0
    ]
    end = markdown.count("\n") + 1
    return [
        Heading(level, text, first, next((line for other, _, line in found[place + 1 :] if other <= level), end))
        for place, (level, text, first) in enumerate(found)
    ]


def without_source_lists(markdown: str) -> str:
    """The text without sections that list sources: the renderer adds the one that is true."""
    lines = markdown.split("\n")
    for heading in reversed(headings(markdown)):
        if heading.level > 1 and SOURCE_HEADING.fullmatch(heading.text.strip()):
            del lines[heading.first_line : heading.last_line]
    return "\n".join(lines).strip() + "\n"


def title_of(markdown: str) -> str:
    """The first heading of level one; empty if there is none."""
    return next((bounded(item.text, TITLE_CHARACTERS) for item in headings(markdown) if item.level == 1), "")


def sections_of(markdown: str) -> list[str]:
    """The headings of level two."""
    return [item.text for item in headings(markdown) if item.level == 2]


def word_count(markdown: str) -> int:
    """Words of the report, markers apart."""
    return len(words(without_markers(markdown)))


def summary_of(markdown: str) -> str:
    """The first two or three sentences of the summary, else of the first section with prose; at most 500 characters."""
    page, found = layout(markdown), headings(markdown)
    lines = [markdown.count("\n", 0, block.start) for block in page.blocks]
    heading_lines = {item.first_line for item in found}

    def prose(first: int, last: int) -> str:
        blocks = [
            block
            for block, line in zip(page.blocks, lines, strict=True)
            if first <= line < last and line not in heading_lines and not block.row
        ]
        return " ".join(plain_text(without_markers(_unquoted(markdown[block.start : block.end]))) for block in blocks)

    ranked = [item for item in found if SUMMARY_HEADING.search(item.text)] + [item for item in found if item.level > 1]
    for item in ranked:
        if text := prose(item.first_line, item.last_line):
            return _first_sentences(text)
    return _first_sentences(prose(0, markdown.count("\n") + 1))


def _unquoted(text: str) -> str:
    return re.sub(r"^[ \t]*>[ \t]?", "", text, flags=re.MULTILINE)


def _first_sentences(text: str) -> str:
    taken = ""
    for sentence in SENTENCE_BREAK.split(text.strip())[:SUMMARY_SENTENCES]:
        longer = f"{taken} {sentence}".strip()
        if len(longer) > SUMMARY_CHARACTERS:
            break
        taken = longer
    return taken or bounded(text.strip(), SUMMARY_CHARACTERS)
