"""The table of settings: a row exists only if name and value stand in the same sentence; cells are copied from it."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from providers.extractive.brief_quotations import Quotation
from providers.extractive.brief_text import BriefWords
from providers.extractive.passages import shorten
from providers.extractive.quoted_markdown import one_line
from providers.sentences import sentence_spans

MOST_ROWS = 8
LONGEST_CELL = 220

_NAME = re.compile(
    r"(?<![\w./-])(?:[a-z][a-z0-9]*(?:_[a-z0-9]+)+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|PRAGMA\s+\w+|--[a-z][a-z0-9-]+"
    r"|[a-z]+(?:\.[a-z]+[A-Z]?\w*)+|[a-z]+[A-Z]\w+)(?![\w/-])"
)
_NUMBER = (
    r"[-+]?\d[\d,]*(?:\.\d+)?(?:\^\d+)?(?:\s?(?:%|percent|k?B\b|[KMGT]i?B\b|kilobytes?|megabytes?|gigabytes?"
    r"|terabytes?|bytes?"
    r"|milliseconds?|ms\b|microseconds?|seconds?|minutes?|hours?|days?|pages?|thousand|million|billion|trillion)"
    r"(?:\s(?:transactions|pages|rows|bytes))?)?"
)
_WORD_VALUE = (
    r"on|off|true|false|zero|none|empty|disabled|enabled|unlimited|yes|no|[a-z][a-z_-]{1,20}|[A-Z][A-Z_]{1,20}"
)
_DEFAULT = re.compile(
    rf"\bdefaults?(?:\s+(?:value|setting|limit|size|mode|is\s+set))?\s*+(?:\([^)]*\)\s*+)?(?:is|are|of|to|=|:|being)\s+(?:set\s+to\s+|to\s+)?[“\"'`]?(?P<value>{_NUMBER}|{_WORD_VALUE})(?!\w)"
    rf"|\bdefaults?\s+to\s+[“\"'`]?(?P<second>{_NUMBER}|{_WORD_VALUE})(?!\w)"
    rf"|(?P<third>\d[\d,.]*\d|\d+)\s+by\s+default\b",
)
_BOUND = re.compile(
    rf"\b(?:at\s+(?:least|most)|up\s+to|maximum(?:\s+\w+)?\s+(?:is|of)|minimum(?:\s+\w+)?\s+(?:is|of)|limit(?:ed)?\s+(?:is|of|to)|set\s+to|less\s+than"
    rf"|more\s+than|exceeds?|larger\s+than|greater\s+than)\s+(?P<value>{_NUMBER})(?!\w)"
)
_NO_VALUE = frozenset(
    "the a an this that use be not used only also no-op any same its to it as in for and or of usually".split()
)


@dataclass(frozen=True, slots=True)
class SettingRow:
    """A setting, its value and the sentence, all copied from one passage."""

    name: str
    value: str
    said: str
    marker: str


def rows(quoted: Iterable[Quotation]) -> list[SettingRow]:
    """Rows in the order of the quotations, each name with each value once."""
    found: dict[tuple[str, str], SettingRow] = {}
    for one in quoted:
        for start, end in sentence_spans(one.text):
            row = _row(one.text[start:end].strip(), one)
            if row is not None:
                found.setdefault((row.name, row.value), row)
    return list(found.values())[:MOST_ROWS]


def settings_lines(found: Sequence[SettingRow], say: BriefWords) -> list[str]:
    """The settings as a table of Markdown."""
    return [table_head(say), *(table_line(row) for row in found), ""]


def table_head(say: BriefWords) -> str:
    """The head of the table as Markdown."""
    names = (say[name] for name in ("table_name", "table_value", "table_said", "table_source"))
    return f"| {' | '.join(names)} |\n| --- | --- | --- | --- |"


def table_line(row: SettingRow) -> str:
    """A row as Markdown."""
    return f"| {one_line(row.name)} | {one_line(row.value)} | {one_line(row.said)} | {row.marker} |"


def _row(sentence: str, one: Quotation) -> SettingRow | None:
    if "|" in sentence or "\n" in sentence or len(sentence) > LONGEST_CELL * 2:
        return None
    match = _DEFAULT.search(sentence) or _BOUND.search(sentence)
    if match is None:
        return None
    value = next(group for group in match.groups() if group is not None).strip()
    name = _nearest_name(sentence, match.start()) or _term_line(one.text)
    if name is None or value.casefold() in _NO_VALUE or name == value:
        return None
    said = shorten(sentence, LONGEST_CELL)
    return SettingRow(name, value, said.removesuffix("…").rstrip() if said.endswith("…") else said, one.marker)


def _nearest_name(sentence: str, position: int) -> str | None:
    names = list(_NAME.finditer(sentence))
    before = [match for match in names if match.end() <= position]
    if before:
        return before[-1].group()
    after = [match for match in names if match.start() >= position]
    return after[0].group() if after and len(names) == 1 else None


def _term_line(text: str) -> str | None:
    """The name at the head of a definition that the passage begins with."""
    head = text.split("\n", 1)[0] if "\n" in text else ""
    match = _NAME.match(head.strip()) if len(head) < 120 else None
    return match.group() if match else None
