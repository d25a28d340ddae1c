r"""Text from outside is scanned by linear code: no page, answer or question can hang a worker.

What to do about a pattern that fails here: make repeats possessive (`*+`, `++`) or groups atomic (`(?>…)`) where what
follows cannot begin with what is repeated; leave what a repeat may take to one of two neighbours; let a match begin
only where a run begins (`(?<!\\s)\\s++`); keep the opening sign out of what stands between two signs (`<[^<>]*>`); match
the whole line and strip its ends by hand. Cut the text to a length and say so in `BOUNDED` only where the text is short
by nature. See docs/decisions/0024-text-from-outside-is-scanned-by-linear-code.md.
"""

import ast
import re
from typing import Any

import pytest

from tests.architecture.repository import PACKAGES, python_files, relative, syntax
from tests.architecture.scanning.children import collected, measured
from tests.architecture.scanning.entry_points import ENTRY_POINTS

BOUNDED = {
    "contracts/doi.py": (6_200, "an address of at most 2,048 characters, each written as three"),
    "providers/extractive/question.py": (600, "the sentence of a question that asks, cut to 600 characters"),
    "providers/reading/page_language.py": (4_000, "the sample of a page"),
    "activities/roles/prompt_files.py": (0, "the prompt files of the product: no text from outside"),
}
"""The most characters that the patterns of a file can meet, and why; all others meet texts of any length."""

MADE_WHILE_RUNNING = {
    "providers/reading/page_access.py": "the phrases of the product, side by side, each with at most 40 characters between",
    "workflows/rules/guidance_reading.py": "the wordings of the product; guidance has at most 2,000 characters",
}
"""Files with patterns that are not known when they are imported; nothing from outside is a part of them."""

BAD = {
    "alternatives that overlap": (r"(?:a|a)*b", 0, "match"),
    "a repeat in a repeat": (r"(?:a+)+$", 0, "search"),
    "blanks at the end": (r"\s+$", 0, "search"),
    "a tag that is not closed": (r"<[^>]*>", 0, "finditer"),
    "two repeats of the same": (r"^a*[ab]*$", 0, "match"),
    "a lazy comment": (r"<!--.*?-->", re.DOTALL, "finditer"),
    "what opens a page": (
        r"(?:\s|<\?xml[^>]{0,200}>|<!--.{0,500}?-->)*(?:<!doctype\s+html|<html[\s>]|<head[\s>]|<body[\s>])",
        re.IGNORECASE | re.DOTALL,
        "match",
    ),
    "headings and fences": (
        r"^ {0,3}(?:(?P<fence>`{3,}|~{3,})|#{1,6}[ \t]+(?P<heading>[^\n]*?)[ \t]*#*[ \t]*\r?$)",
        re.MULTILINE,
        "finditer",
    ),
    "tags of ours": (r"[<＜](?=\s*[/／]?\s*(?:source|question)\b)", re.IGNORECASE, "finditer"),
    "groups of markers": (
        r"(?P<blank>[ \t]{0,9})\[\s{0,3}(?P<items>(?:ev|src)-[^\s\]]{1,80}(?:\s{0,3}[,;]?\s{0,3}(?:ev|src)-[^\s\]]{1,80})*)\]",
        0,
        "finditer",
    ),
    "the heading of a report": (r"\A\s*#[ \t]+(.+?)[ \t]*#*[ \t]*(?:\n|\Z)", 0, "match"),
}
"""Patterns that are known to be slow, with their flags and the way in which they scan."""

GOOD = {
    "a word": (r"[^\W_]+(?:[._'’-][^\W_]+)*", 0, "finditer"),
    "blanks at the end": (r"(?<!\s)\s++$", 0, "search"),
    "a tag": (r"<[^<>]*>", 0, "finditer"),
    "a text in JSON": (r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL, "finditer"),
    "a long class": (r"[\w\s,.;:!?-]{1,200}", 0, "finditer"),
    "the beginning of a line": (r"^[ \t]*>[ \t]?", re.MULTILINE, "finditer"),
    "many words": (r"\b(?:one|two|three|four)\b", re.IGNORECASE, "finditer"),
    "a fixed length": (r"[0-9]{4}-[0-9]{2}", 0, "search"),
}
"""Patterns that are known to be quick."""


@pytest.fixture(scope="module")
def patterns() -> dict[str, Any]:
    """What the product scans with."""
    return collected()


@pytest.fixture(scope="module")
def slow_entry_points() -> dict[str, list[str]]:
    """What was found, by the name of the entry point."""
    found: dict[str, list[str]] = {}
    names = list(ENTRY_POINTS)
    for finding in measured("entry_child", ({"name": name} for name in names), limit=10.0):
        found.setdefault(names[finding.number], []).append(str(finding))
    return found


def test_the_patterns_of_the_product_are_linear(patterns: dict[str, Any]) -> None:
    """No pattern takes more than proportionally longer for a longer text, whatever the text is made of."""
    subjects = [{**pattern, "most": most} for pattern in patterns["patterns"] if (most := _most(pattern)) != 0]
    slow = [
        f"{', '.join(subjects[finding.number]['places'])} {finding}" for finding in measured("pattern_child", subjects)
    ]
    assert not slow, "these patterns are not linear; the head of this file says what to do:\n" + "\n".join(slow)


def test_every_pattern_can_be_looked_at(patterns: dict[str, Any]) -> None:
    """Patterns are made when a module is imported or written where they are used, so that none escapes the test."""
    hidden = {place.partition(":")[0] for place in patterns["of_run_time"]}
    assert hidden == set(MADE_WHILE_RUNNING)
    files = {place.partition(":")[0] for pattern in patterns["patterns"] for place in pattern["places"]}
    assert files >= set(BOUNDED)
    assert len(patterns["patterns"]) > 200


def test_forms_of_unicode_are_made_in_one_place() -> None:
    """Only what cuts runs of combining marks first makes a form of Unicode: putting a long run in order is quadratic."""
    places = {
        relative(path)
        for path in python_files(*PACKAGES)
        if any(isinstance(node, ast.Attribute) and node.attr == "normalize" for node in ast.walk(syntax(path)))
    }
    assert places == {"contracts/unicode_forms.py"}


@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_what_reads_from_outside_is_linear(name: str, slow_entry_points: dict[str, list[str]]) -> None:
    """No entry point takes more than proportionally longer for a longer text."""
    assert not slow_entry_points.get(name)


def test_slow_patterns_are_found() -> None:
    """The measurement finds every pattern that is known to be slow, and goes on behind one that never ends."""
    found = measured("pattern_child", map(_subject, BAD.values()), limit=0.5)
    assert {list(BAD)[finding.number] for finding in found} == set(BAD)


def test_quick_patterns_are_not_found() -> None:
    """The measurement says nothing against patterns that are known to be quick."""
    assert not list(map(str, measured("pattern_child", map(_subject, GOOD.values()))))


def _most(pattern: dict[str, Any]) -> int | None:
    """The most characters that a pattern can meet wherever it stands; null if there is no such limit."""
    limits = [BOUNDED.get(place.partition(":")[0], (None,))[0] for place in pattern["places"]]
    return None if None in limits else max(limits)


def _subject(known: tuple[str, int, str]) -> dict[str, Any]:
    pattern, flags, scan = known
    return {"pattern": pattern, "bytes": False, "flags": int(flags), "scans": [scan]}
