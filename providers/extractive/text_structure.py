"""The blocks and sentences of a stored text, with offsets: what may be quoted, and under which headings it stands."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, lru_cache

from providers.extractive.question_terms import text_keys, text_pairs
from providers.language_words import language_words
from providers.sentences import sentence_spans
from providers.text import STOP_WORDS, words

HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]++(.*)$")
ASIDE = re.compile(
    r"^(?:(?:note|tip|caution|warning|important|hint|attention|remark)s?"
    r"|(?:question|answer|frage|antwort|réponse|pregunta|respuesta|domanda|risposta|pergunta|resposta|vraag|antwoord|[qa])"
    r"\s?\d{0,3})[:.]?$",
    re.IGNORECASE,
)
"""Headings of boxes, and those that only number: they open no section, what follows belongs to the one around them."""
FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
ITEM = re.compile(r"^[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+")
OPEN_END = re.compile(r"\s(?:\.\.\.|…)$")
"""Dots that stand for what is left out of a command: no end of a sentence."""
RULE_ROW = re.compile(r"^[\s:|+-]++$")
BULLETS = " \t\n-*+•.)0123456789"
UNITS = re.compile(
    r"[(\[]?(?:in )?(?:%|°[CF]?|[€$£]|[kMGT]?i?B|bytes?|[mµn]?s|sec|min|h|hours?|days?|years?"
    r"|[kmcµn]?m[²³]?|km²|m/s|[kmµ]?g|t|[kMG]?Hz|[kMm]?[VWA]|kWh|l|hPa|mm/h|-)[)\]]?|[(\[][^()\[\]]{1,15}[)\]]"
)
TERMINAL = re.compile(r"[.!?…:;][\"'”’)\]*_`^\d]*$")
LABEL_LENGTH = 120
SHORTEST_WRAPPED = 50
"""Characters: programs that wrap text fill at least so much of a line."""
DAYS_HAVE_POINTS = ("de",)
DAY_AT_END = re.compile(r"\b\d{1,2}\.\s?$")
GLOSS = re.compile(r"^\S[^\n.;:—–]{0,60}\s(?:[—–]|--?)\s")
URL = re.compile(r"\b[a-z][a-z0-9+.-]{1,9}://|\bwww\.", re.IGNORECASE)
MARKER_LIKE = re.compile(r"\[\s*(?:ev|src|sq)-|【|［", re.IGNORECASE)


class TextBlockKind(StrEnum):
    """What a block of text is; code is never quoted by itself."""

    PROSE = "prose"
    ITEM = "item"
    ROW = "row"
    HEAD = "head"
    """The header of a table, and the row of units below it: shown with each row, no evidence by itself."""
    CODE = "code"
    LABEL = "label"
    """A line of its own that is no sentence: the term of a definition, a caption, a crumb of navigation."""


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A run of text under its headings; offsets into the text."""

    kind: TextBlockKind
    start: int
    end: int
    path: tuple[str, ...]
    """Headings above it, outermost first."""
    section: int
    """Offset where its section begins."""
    label: int | None = None
    """Offset of the term line that this block explains."""
    header: int | None = None
    """Of a row: where the header of its table begins."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, or a row of a table; offsets into the text, and the number of its block."""

    start: int
    end: int
    block: int


@dataclass(frozen=True, slots=True)
class Traits:
    """What a sentence holds, whatever the question."""

    keys: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    """Neighbouring stems."""
    opening: frozenset[str]
    """Stems of the first six words: what it speaks of."""
    quotable: bool
    """Whether it may be the core of a quote."""


@dataclass
class Structure:
    """A text cut into blocks and sentences."""

    text: str
    language: str
    blocks: list[TextBlock] = field(default_factory=list)
    sentences: list[Sentence] = field(default_factory=list)
    table_heads: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """Header of a table by its offset, and the row of units where there is one."""

    def blocks_within(self, start: int, end: int) -> list[TextBlock]:
        """The blocks that a range touches, in order."""
        first = bisect_right(self.blocks, start, key=lambda block: block.start)
        while first and self.blocks[first - 1].end > start:
            first -= 1
        last = bisect_left(self.blocks, end, key=lambda block: block.start)
        return [block for block in self.blocks[first:last] if block.end > start]

    def mark_of(self, item: TextBlock) -> str:
        """The bullet or the number of a list item."""
        line = self.text.rfind("\n", 0, item.start) + 1
        found = ITEM.match(self.text[line : item.start])
        mark = found[0].strip() if found else "-"
        return "-" if mark in "*+•" else mark

    def list_goes_on(self, first: TextBlock, end: int) -> bool:
        """Whether the list that a quote announces or begins has more items behind its end."""
        inside = self.blocks_within(first.start, end)
        following = bisect_left(self.blocks, end, key=lambda block: block.start)
        if sum(block.kind is TextBlockKind.ITEM for block in inside) < 2 or following >= len(self.blocks):
            return False
        after, last = self.blocks[following], inside[-1]
        return (
            last.kind is TextBlockKind.ITEM
            and after.kind is TextBlockKind.ITEM
            and after.section == last.section
            and not self.text[last.end : after.start].strip(BULLETS)
        )

    @cached_property
    def _traits(self) -> dict[int, "Traits"]:
        return {}

    def traits(self, index: int) -> "Traits":
        """What ranking needs to know of a sentence; worked out once, and only for sentences that are looked at."""
        found = self._traits.get(index)
        if found is None:
            sentence = self.sentences[index]
            text = self.of(sentence)
            row = self.blocks[sentence.block].kind is TextBlockKind.ROW
            found = Traits(
                keys=text_keys(text, self.language),
                pairs=text_pairs(text, self.language),
                opening=text_keys(" ".join(text.split()[:6]), self.language),
                quotable=not is_foreign(text) if row else is_statement(text, self.language),
            )
            self._traits[index] = found
        return found

    @cached_property
    def all_keys(self) -> frozenset[str]:
        """Stems of the whole text."""
        return text_keys(self.text, self.language)

    @cached_property
    def context_keys(self) -> dict[tuple[str, ...], frozenset[str]]:
        """Stems of each heading path."""
        return {path: text_keys(" ".join(path), self.language) for path in {block.path for block in self.blocks}}

    def keys_of(self, line: str) -> frozenset[str]:
        """Stems of a heading or a title."""
        return _line_keys(line, self.language)

    def block_keys(self, number: int) -> frozenset[str]:
        """Stems of all sentences of a block."""
        if number not in self._block_keys:
            inside = [index for index, one in enumerate(self.sentences) if one.block == number]
            self._block_keys[number] = frozenset().union(*(self.traits(index).keys for index in inside))
        return self._block_keys[number]

    def table_keys(self, header: int) -> frozenset[str]:
        """Stems of all rows of the table whose header begins at an offset."""
        if header not in self._table_keys:
            rows = [index for index, one in enumerate(self.sentences) if self.blocks[one.block].header == header]
            self._table_keys[header] = frozenset().union(*(self.traits(index).keys for index in rows))
        return self._table_keys[header]

    @cached_property
    def _table_keys(self) -> dict[int, frozenset[str]]:
        return {}

    @cached_property
    def _block_keys(self) -> dict[int, frozenset[str]]:
        return {}

    def mentions(self, name: str) -> bool:
        """Whether a name occurs anywhere in the text."""
        if name not in self._mentions:
            self._mentions[name] = name.casefold() in self.text.casefold()
        return self._mentions[name]

    @cached_property
    def _mentions(self) -> dict[str, bool]:
        return {}

    @cached_property
    def small_words(self) -> frozenset[str]:
        """The words that the text writes in small letters as a rule: a name does so in an address at most."""
        counted = Counter(words(self.text))
        return frozenset(
            word for word, count in counted.items() if word.islower() and 2 * count > counted[word.title()]
        )

    def of(self, sentence: Sentence) -> str:
        """The words of a sentence."""
        return self.text[sentence.start : sentence.end]

    def block_of(self, index: int) -> TextBlock:
        """The block of the sentence with this index."""
        return self.blocks[self.sentences[index].block]

    def headers_over(self, start: int, end: int) -> str:
        """What is shown above the rows of tables that stand in a range; empty without rows."""
        inside = (block for block in self.blocks if block.start < end and start < block.end)
        headers = sorted({block.header for block in inside if block.header is not None})
        return "\n".join(self.text[first:last] for header in headers for first, last in self.table_heads[header])


@lru_cache(maxsize=4_096)
def _line_keys(line: str, language: str) -> frozenset[str]:
    return text_keys(line, language)


@lru_cache(maxsize=96)
def structure_of(text: str, language: str) -> Structure:
    """Cut a text of light Markdown into blocks and sentences."""
    found = Structure(text, language)
    _cut_blocks(found)
    for number, block in enumerate(found.blocks):
        if block.kind in (TextBlockKind.PROSE, TextBlockKind.ITEM):
            for start, end in _whole_sentences(text[block.start : block.end], language):
                _add(found, block.start + start, block.start + end, number)
        elif block.kind is TextBlockKind.ROW or _is_gloss(text, block):
            _add(found, block.start, block.end, number)
    return found


def _whole_sentences(text: str, language: str) -> list[tuple[int, int]]:
    """The sentences of a text; neither the point after a day of the month (`am 1. Oktober`) nor dots in a command end
    one.
    """
    found: list[tuple[int, int]] = []
    months = language_words(language).tells["months"].first_words() if language in DAYS_HAVE_POINTS else frozenset()
    for start, end in sentence_spans(text):
        opening = words(text[start : start + 20])
        dated = bool(opening) and opening[0].casefold() in months and DAY_AT_END.search(text[max(0, start - 5) : start])
        if found and (dated or OPEN_END.search(text[found[-1][0] : found[-1][1]].rstrip())):
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def _add(found: Structure, start: int, end: int, block: int) -> None:
    piece = found.text[start:end]
    start += len(piece) - len(piece.lstrip())
    end -= len(piece) - len(piece.rstrip())
    if end > start:
        found.sentences.append(Sentence(start, end, block))


def _cut_blocks(found: Structure) -> None:
    path: list[tuple[int, str]] = []
    section, fence, start, offset = 0, "", 0, 0
    lines: list[tuple[int, str]] = []

    def close() -> None:
        if lines:
            _add_blocks(found, lines, tuple(title for _, title in path), section)
            lines.clear()

    for raw in found.text.splitlines(keepends=True):
        line, here = raw.rstrip("\r\n"), offset
        offset += len(raw)
        mark = FENCE.match(line)
        if fence:
            if mark and line.strip().startswith(fence):
                found.blocks.append(TextBlock(TextBlockKind.CODE, start, offset, tuple(t for _, t in path), section))
                fence = ""
        elif mark:
            close()
            fence, start = mark.group(1), here
        elif heading := HEADING.match(line):
            close()
            level, title = len(heading.group(1)), heading.group(2).rstrip("#").rstrip(" \t")
            if ASIDE.match(title):
                continue
            path = [*(entry for entry in path if entry[0] < level), (level, title)]
            section = here
        elif line.strip():
            lines.append((here, line))
        else:
            close()
    close()
    if fence:
        found.blocks.append(TextBlock(TextBlockKind.CODE, start, offset, tuple(t for _, t in path), section))


def _add_blocks(found: Structure, lines: list[tuple[int, str]], path: tuple[str, ...], section: int) -> None:
    """One run of lines without a blank between them: rows, list items, a term with its text, or prose."""
    label: int | None = None
    pending: list[tuple[int, str]] = []

    def flush() -> None:
        nonlocal label
        if not pending:
            return
        first, last = pending[0], pending[-1]
        mark = ITEM.match(first[1])
        start, end = first[0] + (mark.end() if mark else 0), last[0] + len(last[1])
        kind = TextBlockKind.ITEM if mark else TextBlockKind.PROSE
        if not mark and (_is_label(found.text[start:end]) or _is_syntax(found.text[start:end])):
            kind = TextBlockKind.LABEL
        previous = found.blocks[-1] if found.blocks else None
        inherited = label
        if inherited is None and previous and previous.kind is TextBlockKind.LABEL and previous.section == section:
            inherited = previous.start
        found.blocks.append(
            TextBlock(kind, start, end, path, section, None if kind is TextBlockKind.LABEL else inherited)
        )
        pending.clear()
        label = None

    header: int | None = None
    for position, (offset, line) in enumerate(lines):
        if line.lstrip().startswith("|"):
            flush()
            if RULE_ROW.match(line):
                continue
            place, kind = (offset, offset + len(line)), TextBlockKind.ROW
            if position + 1 < len(lines) and RULE_ROW.match(lines[position + 1][1]):
                header, kind = offset, TextBlockKind.HEAD
                found.table_heads[offset] = [place]
            elif header is not None and RULE_ROW.match(lines[position - 1][1]) and _says_units(line):
                kind = TextBlockKind.HEAD
                found.table_heads[header].append(place)
            if kind is TextBlockKind.HEAD or len([cell for cell in line.split("|") if cell.strip()]) > 1:
                found.blocks.append(TextBlock(kind, *place, path, section, header=header))
            continue
        header = None
        if ITEM.match(line):
            flush()
        elif position == 0 and len(lines) > 1 and _is_label(line) and not _goes_on(line, lines[1][1]):
            found.blocks.append(TextBlock(TextBlockKind.LABEL, offset, offset + len(line), path, section))
            label = offset
            continue
        pending.append((offset, line))
    flush()


def _says_units(row: str) -> bool:
    """Whether a row below a header says in what its columns count: `| | (ms) | MB |`."""
    cells = [cell.strip() for cell in row.split("|") if cell.strip()]
    return bool(cells) and all(UNITS.fullmatch(cell) for cell in cells)


def _is_label(text: str) -> bool:
    return len(text) <= LABEL_LENGTH and not TERMINAL.search(text.strip())


def _goes_on(line: str, following: str) -> bool:
    """Whether a program wrapped a line: it is long, and the next one begins in the middle of a sentence."""
    return len(line) >= SHORTEST_WRAPPED and following.lstrip()[:1].islower()


def _is_gloss(text: str, block: TextBlock) -> bool:
    """Whether a line of its own says what something is: `EXPLAIN — show the execution plan of a statement`."""
    if block.kind is not TextBlockKind.LABEL:
        return False
    line = text[block.start : block.end]
    return GLOSS.match(line) is not None and len(words(line)) >= 4


def _is_syntax(text: str) -> bool:
    """Whether a short paragraph is the form of a command, of which the next paragraph speaks."""
    return len(text) <= 2 * LABEL_LENGTH and text.rstrip().endswith(";") and not re.search(r"\b(?:the|is|are)\b", text)


def is_foreign(text: str) -> bool:
    """Whether a piece of text holds what no quote may hold: addresses, what looks like our markers, code."""
    return (
        bool(URL.search(text) or MARKER_LIKE.search(text))
        or "```" in text
        or ">>> " in text
        or text.count("# ") > 1
        or _like_code(text)
    )


def is_statement(text: str, language: str = "en") -> bool:
    """Whether a piece of text reads as a sentence that can be quoted: words in a row, an end, no code, no link list."""
    stripped = text.strip()
    if is_foreign(stripped) or not TERMINAL.search(stripped):
        return False
    found = words(stripped)
    if not 5 <= len(found) <= 110:
        return False
    common = STOP_WORDS if language == "en" else language_words(language).stop | STOP_WORDS
    plain = sum(word.casefold() in common for word in found)
    letters = sum(character.isalpha() or character.isspace() for character in stripped)
    return plain >= max(1, len(found) // 12) and letters >= 0.72 * len(stripped)


def _like_code(text: str) -> bool:
    signs = len(re.findall(r"[{};=<>$\\|@]|\(\)|->|::", text))
    return (text.endswith(";") and signs > 1) or signs > 6 + len(text) // 80
