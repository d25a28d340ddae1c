"""The table of settings: name, default, unit, range, meaning. Each cell is copied from the passage that it cites."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from providers.extractive.brief_quotations import Quotation
from providers.extractive.brief_text import BriefWords
from providers.extractive.quoted_markdown import one_line
from providers.extractive.text_structure import LABEL_LENGTH, Structure, TextBlockKind

MOST_ROWS: Final = 8
LONGEST_CELL: Final = 240
LONGEST_NAME: Final = 60
COLUMNS: Final = ("default", "unit", "range", "meaning")

_NAME = re.compile(
    r"(?<![\w./-])(?:[a-z][a-z0-9]*(?:_[a-z0-9]+)+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|PRAGMA\s+[\w.]+|--[a-z][a-z0-9-]+"
    r"|[a-z]+(?:\.[a-z]+[A-Z]?\w*)+|[a-z]+[A-Z]\w+)(?![\w/-])"
)
_UNIT: Final = (
    r"(?:%|percent\b|k?B\b|[KMGT]i?B\b|kilobytes?\b|megabytes?\b|gigabytes?\b|terabytes?\b|bytes?\b"
    r"|milliseconds?\b|ms\b|microseconds?\b|seconds?\b|minutes?\b|hours?\b|days?\b|weeks?\b|pages?\b|rows?\b|tuples?\b|blocks?\b"
    r"|transactions?\b|characters?\b|times\b|Sekunden\b|Minuten\b|Stunden\b|Tagen?\b|secondes?\b|heures?\b|jours?\b|segundos\b|minutos\b|días\b)"
)
_NUMBER: Final = (
    rf"[-+]?\d(?:[\d,]{{0,18}}\d)?(?:\.\d{{1,9}})?(?:\^\d{{1,4}})?"
    rf"(?:\s?(?:thousand|million|billion|trillion))?(?:\s?{_UNIT})?"
)
_WORD_VALUE: Final = (
    r"on|off|true|false|zero|none|empty|disabled|enabled|unlimited|yes|no|null|[a-z][a-z_-]{1,20}|[A-Z][A-Z_]{1,20}"
)
_QUOTE: Final = r"[“\"'`«„]?"
_DEFAULTS: Final = (
    re.compile(
        rf"\bdefaults?(?:\s+(?:value|setting|limit|size|mode|is\s+set))?\s*+(?:\([^()]{{0,80}}+\)\s*+)?(?:is|are|of|to|=|:|being)\s+(?:set\s+to\s+|to\s+)?(?:typically\s+|usually\s+)?{_QUOTE}(?P<value>{_NUMBER}|{_WORD_VALUE})(?!\w)"
        rf"|\bdefaults?\s+to\s+{_QUOTE}(?P<second>{_NUMBER}|{_WORD_VALUE})(?!\w)"
        rf"|\bdefaults?:\s+{_QUOTE}(?P<fourth>{_NUMBER}|{_WORD_VALUE})(?!\w)"
        r"|(?<![\d,.])(?P<third>\d(?:[\d,.]{0,18}\d)?)\s+by\s+default\b",
        re.IGNORECASE,
    ),
    re.compile(
        r"\b(?:voreinstellung|voreingestellt|standard(?:wert)?|vorgabe(?:wert)?|par\s+défaut|por\s+defecto|valor\s+predeterminado|predefinito"
        r"|predefinita|valor\s+padrão|por\s+omissão|standaard(?:waarde)?)\s*+(?:ist|est|es|è|é|is|beträgt|sind|auf|de|von|di|van|:|=)\s+"
        rf"(?:de\s+|auf\s+)?{_QUOTE}(?P<value>{_NUMBER}|on|off|true|false|ja|nein|aus|ein|oui|non|sí|sì|não|nee)(?!\w)",
        re.IGNORECASE,
    ),
)
_RANGE: Final = re.compile(
    rf"\bbetween\s+{_NUMBER}\s+and\s+{_NUMBER}(?!\w)|\b(?:from\s+)?{_NUMBER}\s+(?:to|through|up\s+to|bis|à|hasta|fino\s+a|até|tot)\s+{_NUMBER}(?!\w)"
    rf"|\b(?:at\s+(?:least|most)|up\s+to|maximum(?:\s+\w+)?\s+(?:is|of)|minimum(?:\s+\w+)?\s+(?:is|of)|less\s+than|no\s+more\s+than|mindestens|höchstens"
    rf"|au\s+(?:plus|moins)|como\s+máximo|como\s+mínimo)\s+{_NUMBER}(?!\w)"
    r"|\b(?:valid|possible|allowed|supported)\s+(?:values|settings|options)\s+are:?\s+(?P<list>[^.;:()]{2,100})(?=[.;(])",
    re.IGNORECASE,
)
_STATED_UNIT: Final = re.compile(
    r"\b(?:taken\s+as|(?:measured|specified|given|expressed|counted)\s+in(?:\s+units\s+of)?|in\s+units\s+of)\s+(?P<said>[a-z]+(?:\s\([a-zA-Z]{1,4}\))?)"
    rf"|\((?:integer|number|float|floating\s+point|real|duration|size|int|time),\s*(?:in\s+)?(?P<typed>{_UNIT})",
    re.IGNORECASE,
)
_UNIT_AT_END: Final = re.compile(rf"{_UNIT}$", re.IGNORECASE)
_NO_VALUE = frozenset(
    "the a an this that use be not used only also no-op any same its it to as in for and or of usually determined"
    " chosen taken set left done behavior behaviour value typically set always what when if".split()
)


@dataclass(frozen=True, slots=True)
class SettingRow:
    """A setting with what one passage says of it: all copied from there."""

    name: str
    default: str = ""
    unit: str = ""
    range: str = ""
    meaning: str = ""
    marker: str = ""


def rows(quoted: Iterable[Quotation], documents: Mapping[str, Structure]) -> list[SettingRow]:
    """Rows in the order of the quotations, each name once. `documents`: by the id of their source."""
    found: dict[str, SettingRow] = {}
    for one in quoted:
        for row in _rows_of(one, documents[one.source.id]):
            found.setdefault(row.name, row)
    return list(found.values())[:MOST_ROWS]


def settings_lines(found: Sequence[SettingRow], say: BriefWords) -> list[str]:
    """The settings as a table of Markdown, without columns of which nothing is said."""
    columns = [name for name in COLUMNS if any(getattr(row, name) for row in found)]
    head = [say["table_name"], *(say[f"table_{name}"] for name in columns)]
    lines = [head, ["---"] * len(head)]
    for row in found:
        cells = [getattr(row, name) for name in columns]
        lines.append([one_line(row.name), *(f"{one_line(cell)} {row.marker}" if cell else "" for cell in cells)])
    return [*(f"| {' | '.join(cells)} |" for cells in lines), ""]


def _rows_of(one: Quotation, document: Structure) -> Iterator[SettingRow]:
    """A row for each entry with a term that a passage quotes; of other text, for each sentence that names a setting."""
    start, end = one.passage.start, one.passage.end
    first = bisect_left(document.sentences, start, key=lambda sentence: sentence.start)
    last = bisect_right(document.sentences, end, key=lambda sentence: sentence.end)
    inside = [index for index in range(first, last) if document.block_of(index).kind is not TextBlockKind.ROW]
    entries: dict[int, list[int]] = {}
    for index in inside:
        label = document.block_of(index).label
        if label is None or label < start:
            if (row := _sentence_row(document, index, one.marker)) is not None:
                yield row
        else:
            entries.setdefault(label, []).append(index)
    for label, own in entries.items():
        if (made := _entry_row(document, label, own, one.marker)) is not None:
            yield made


def _entry_row(document: Structure, label: int, own: list[int], marker: str) -> SettingRow | None:
    term = document.text[label : label + LABEL_LENGTH].split("\n", 1)[0].strip()
    name = _name_of(term)
    said = [document.of(document.sentences[index]) for index in own]
    default = next((value for text in said if (value := default_in(text))), "")
    allowed = next((value for text in said if (value := _range_in(text))), "")
    if not name or name == default or not (default or (allowed and _NAME.search(name))):
        return None
    unit = next((value for text in [term, *said] if (value := _unit_in(text))), "") or _unit_of(default)
    opens = own[0] == 0 or document.sentences[own[0] - 1].block != document.sentences[own[0]].block
    meaning = said[0] if opens and not default_in(said[0]) else ""
    return SettingRow(name, default, unit, allowed, _cell(meaning), marker)


def _sentence_row(document: Structure, index: int, marker: str) -> SettingRow | None:
    sentence = document.of(document.sentences[index])
    if "\n" in sentence or len(sentence) > 2 * LONGEST_CELL:
        return None
    default, allowed = default_in(sentence), _range_in(sentence)
    names = list(_NAME.finditer(sentence))
    place = sentence.find(default or allowed)
    before = [match for match in names if match.end() <= place]
    if not default or len({match.group() for match in names}) != 1 or not before:
        return None
    return SettingRow(before[-1].group(), default, _unit_in(sentence) or _unit_of(default), "", _cell(sentence), marker)


def _name_of(term: str) -> str:
    """The name at the head of a term line: `work_mem (integer)`, `-w SECONDS`."""
    found = _NAME.match(term.strip("`* "))
    if found:
        return found.group()
    plain = re.split(r"\s[(\[<=]|[;:,]", term, maxsplit=1)[0].strip("`* ")
    return plain if 0 < len(plain) <= LONGEST_NAME and len(plain.split()) <= 3 else ""


def default_in(text: str) -> str:
    """The value that a sentence says is the default; empty where it says none."""
    for pattern in _DEFAULTS:
        for match in pattern.finditer(text):
            value = next((group for group in match.groups() if group is not None), "").strip()
            if value and value.casefold() not in _NO_VALUE:
                return value
    return ""


def _range_in(text: str) -> str:
    found = _RANGE.search(text)
    if found is None:
        return ""
    return (found["list"] or found[0]).strip()


def _unit_in(text: str) -> str:
    found = _STATED_UNIT.search(text)
    return (found["said"] or found["typed"]) if found else ""


def _unit_of(value: str) -> str:
    found = _UNIT_AT_END.search(value)
    return found[0] if found and value[0] in "-+0123456789" else ""


def _cell(text: str) -> str:
    """A sentence as a cell, cut after a word where it is long; the cut is shown."""
    flat = " ".join(text.split())
    if len(flat) <= LONGEST_CELL:
        return flat
    return f"{flat[: flat.rfind(' ', 0, LONGEST_CELL)].rstrip(',;:')} …"
