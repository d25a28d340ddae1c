"""Evidence markers in a draft: brought into one form, and taken out where they name nothing (X-7)."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from activities.reporting.layout import layout
from contracts.evidence import Evidence, Finding

ITEM: Final = r"(?:\^?(?:ev|src|f|gap)-[^\s,;()\\\[\]【】［］]{1,80}|\^?\d{1,3}(?:\s?[-–]\s?\d{1,3})?)"
BETWEEN: Final = r"\s{0,3}(?:[,;&]|\band\b)?\s{0,3}"
GROUP: Final = re.compile(
    r"(?P<blank>[ \t]{0,9})(?:\\?[\[【［]){1,2}\s{0,3}"
    rf"(?P<items>{ITEM}(?:{BETWEEN}{ITEM}){{0,40}})"
    r"\s{0,3}(?:\\?[\]】］]){1,2}",
    re.IGNORECASE,
)
PARENTHESES: Final = re.compile(
    r"\(\s{0,3}((?:ev|src)-[0-9a-f]{10}(?:\s{0,3}[,;]\s{0,3}(?:ev|src)-[0-9a-f]{10}){0,40})\s{0,3}\)"
)
ITEMS: Final = re.compile(ITEM, re.IGNORECASE)
MARKER: Final = re.compile(r"\[(ev-[0-9a-f]{10})\]")
"""The one form that a stored draft has."""


class Citable:
    """What a marker may name: evidence of the findings, a source of theirs, or a finding."""

    def __init__(self, findings: Iterable[Finding], evidence: Mapping[str, Evidence]) -> None:
        self._by_name: dict[str, list[str]] = {}
        for finding in findings:
            known = [key for key in finding.evidence_ids if key in evidence]
            if known:
                self._by_name[finding.id] = known
            for key in known:
                self._by_name[key] = [key]
                # A source stands for its first passage among the findings.
                self._by_name.setdefault(evidence[key].source_id, [key])

    def evidence_of(self, name: str) -> list[str]:
        """The evidence that a marker's name stands for; empty if it names nothing known."""
        return self._by_name.get(name.lower().lstrip("^"), [])


def unified_markers(markdown: str, citable: Citable, *, escapes_are_literal: bool = False) -> tuple[str, list[str]]:
    """The text with every known marker as `[ev-…]`, and the distinct names that were taken out, in order.

    Code is left alone. Numbers in brackets name nothing here, since a report is numbered later; escaped, or inside a
    quoted block, they belong to the words of a source and are left to the renderer. Models escape the brackets of
    markers now and then; with `escapes_are_literal` an escaped bracket is never a marker.
    """
    text = _from_parentheses(markdown, citable)
    masked, unresolved, pieces, last = layout(text).masked, [], [], 0
    for match in GROUP.finditer(masked):
        names = ITEMS.findall(match["items"])
        escaped = "\\" in match[0]
        if escaped and escapes_are_literal:
            continue
        if _numbers_only(names) and (escaped or _quoted(text, match.start())):
            continue
        known = [key for name in names for key in citable.evidence_of(name)]
        unresolved += [name for name in names if not citable.evidence_of(name)]
        marks = "".join(f"[{key}]" for key in dict.fromkeys(known))
        at_line_start = match.start() == 0 or text[match.start() - 1] == "\n"
        pieces += [text[last : match.start()], match["blank"] if known or at_line_start else "", marks]
        last = match.end()
    return "".join(pieces) + text[last:], list(dict.fromkeys(unresolved))


def cited_evidence(markdown: str) -> list[str]:
    """Evidence ids in a unified text, in order of first appearance; code does not count."""
    return list(dict.fromkeys(MARKER.findall(layout(markdown).masked)))


def without_markers(text: str) -> str:
    """The text as a reader would see it without citations."""
    return re.sub(r"[ \t]*" + MARKER.pattern, "", text)


def _from_parentheses(text: str, citable: Citable) -> str:
    if not PARENTHESES.search(text):
        return text
    masked, pieces, last = layout(text).masked, [], 0
    for match in PARENTHESES.finditer(masked):
        if any(citable.evidence_of(name) for name in ITEMS.findall(match[1])):
            pieces += [text[last : match.start()], f"[{match[1]}]"]
            last = match.end()
    return "".join(pieces) + text[last:]


def _numbers_only(names: list[str]) -> bool:
    return all(name.lstrip("^")[:1].isdigit() for name in names)


def _quoted(text: str, place: int) -> bool:
    return text[text.rfind("\n", 0, place) + 1 : place + 1].lstrip(" \t-*0123456789.)").startswith(">")
