"""Evidence markers in a draft: brought into one form, and taken out where they name nothing.

Only the names that the writer was given in this very call count. What stands in a quotation is a page's word: it is
escaped, so that Markdown shows it as it stands, and never becomes a citation.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from html import unescape
from typing import Final

from activities.reporting.markdown_layout import Layout, layout

NAME: Final = r"(?:(?:ev|src)-[^\s,;()\\\[\]【】［］（）]{1,80}+|(?:f|gap|sq)-[0-9a-f]{1,80}+)"
ITEM: Final = rf"\^?+(?:{NAME}|\d{{1,3}}+(?!\d)(?:\s?[-–]\s?\d{{1,3}}+)?+)"
BETWEEN: Final = r"(?:\s{0,3}+[,;&]\s{0,3}+(?:and\s{1,3}+)?+|\s{1,3}+(?:and\s{1,3}+)?+)"
GROUP: Final = re.compile(
    rf"(?:\\?+[\[【［(（]){{1,2}}+\s{{0,3}}+(?P<items>{ITEM}(?:{BETWEEN}{ITEM})*+)\s{{0,3}}+(?:\\?+[\]】］)）]){{1,2}}+",
    re.IGNORECASE,
)
"""One pass: every repetition is possessive, and none goes beyond the next bracket."""
ITEMS: Final = re.compile(ITEM, re.IGNORECASE)
MARKER: Final = re.compile(r"\\.|\[(ev-[0-9A-Za-z]{1,64}+)\]", re.DOTALL)
"""The one form that a stored draft has; an escaped bracket is stepped over, without a group."""
OWN_FORM: Final = re.compile(
    rf"\\.|\[{{1,2}}+\s{{0,3}}+(?P<items>{ITEM}(?:{BETWEEN}{ITEM})*+)\s{{0,3}}+\]{{1,2}}+", re.DOTALL | re.IGNORECASE
)
"""What a reader would take for a citation of ours: names or numbers, in brackets that nothing escapes."""
BRACKET_ENTITY: Final = re.compile(
    r"\\.|&(?:#0{0,5}91|#[xX]0{0,5}5[bB]|lbrack|lsqb|#0{0,5}93|#[xX]0{0,5}5[dD]|rbrack|rsqb);", re.DOTALL
)
BRACKETS: Final = re.compile(r"(?<!\\)[\[\]]")
INLINE_QUOTE: Final = re.compile(r"“[^“”]*+”|\"[^\"\n]*+\"|«[^«»]*+»|„[^„“”]*+[“”]|「[^「」]*+」")
WORD: Final = re.compile(r"[^\W_]")
SAME_WORDS: Final = (24, 12, 4, 0)
"""Letters and digits before a group that must stand before it in a source, too: as many as a quotation has."""


class Citable:
    """What a marker may name in this call: evidence of the findings, and sources with their few passages."""

    def __init__(self, names: Mapping[str, str], sources: Mapping[str, Sequence[str]] | None = None) -> None:
        """`names` stand for one passage each, those of `sources` for several."""
        self._by_name = {name.lower(): list(passages) for name, passages in (sources or {}).items()}
        self._by_name |= {name.lower(): [identity] for name, identity in names.items()}

    def evidence_of(self, name: str) -> list[str]:
        """The evidence that a marker's name stands for; none if it names nothing of this call."""
        return self._by_name.get(name.lower(), [])


class PageWords:
    """Whether a group in brackets, with the words before it, stands in one of the texts that a writer was shown."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._texts = list(texts)

    @cached_property
    def _read_groups(self) -> frozenset[tuple[str, str]]:
        known: set[tuple[str, str]] = set()
        for text in self._texts:
            for match in GROUP.finditer(text):
                before, items = _words(text, 0, match.start()), _fold(match["items"])
                known.update((before[len(before) - count :], items) for count in SAME_WORDS if count <= len(before))
        return frozenset(known)

    def hold(self, text: str, start: int, place: int, items: str) -> bool:
        """Whether a source has these items behind the words from `start` to `place`."""
        before = _words(text, start, place)
        count = next(count for count in SAME_WORDS if count <= len(before))
        return (before[len(before) - count :], _fold(items)) in self._read_groups


NO_WORDS: Final = PageWords()


def unify_markers(
    markdown: str, citable: Citable, *, exact: bool = False, pages: PageWords = NO_WORDS, gap: str = ""
) -> tuple[str, list[str]]:
    """The text with every known marker as `[ev-…]`, and the distinct names that were taken out, in order.

    Code is left alone, and so is the text of quotations: brackets in it are escaped. Elsewhere a name that is not known
    and a number in brackets give way to `gap`, for a report is numbered later. Models vary the form: several names in
    one pair of brackets, doubled, escaped, full-width or round ones are repaired. With `exact` only square brackets
    that nothing escapes count: the text is a program's, and all others in it belong to pages.
    """
    text = markdown if exact else _with_plain_brackets(markdown)
    page = layout(text)
    unresolved: list[str] = []
    block_quotes = _Spans([(block.start, block.end) for block in page.blocks if block.quoted])
    inline_quotes = _Spans([match.span() for match in INLINE_QUOTE.finditer(page.masked)])

    def replacement(match: re.Match[str]) -> str | None:
        if match["items"] is None:
            return None
        names = [name.lstrip("^") for name in ITEMS.findall(match["items"])]
        known = [key for name in names for key in citable.evidence_of(name)]
        if known and all(map(citable.evidence_of, names)):
            return _marks(known)
        if match[0].lstrip("\\")[0] in "(（":
            return None
        quotation = inline_quotes.start_around(match.start())
        if block_quotes.start_around(match.start()) is not None or (
            quotation is not None and pages.hold(text, quotation, match.start(), match["items"])
        ):
            return _escape(match[0])
        unresolved.extend(name for name in names if not citable.evidence_of(name))
        return _marks(known) or gap

    return _replace(page, OWN_FORM if exact else GROUP, replacement), list(dict.fromkeys(unresolved))


def cited_evidence(markdown: str) -> list[str]:
    """Evidence ids in a unified text, in order of first appearance; code does not count."""
    return list(dict.fromkeys(key for key in MARKER.findall(layout(markdown).masked) if key))


def without_markers(text: str) -> str:
    """The text as a reader would see it without citations."""
    pieces, last = [], 0
    for match in MARKER.finditer(text):
        if match[1]:
            pieces.append(text[last : match.start()].rstrip(" \t"))
            last = match.end()
    return "".join(pieces) + text[last:]


def with_escaped_markers(text: str) -> str:
    """Words of a page in which nothing can be taken for a citation of ours: Markdown shows them as they stand."""
    return OWN_FORM.sub(lambda match: match[0] if match["items"] is None else _escape(match[0]), text)


def _escape(group: str) -> str:
    return BRACKETS.sub(r"\\\g<0>", group)


def _marks(known: list[str]) -> str:
    return "".join(f"[{key}]" for key in dict.fromkeys(known))


def _replace(page: Layout, pattern: re.Pattern[str], replacement: Callable[[re.Match[str]], str | None]) -> str:
    """The text with every match replaced; where nothing comes in its place, a blank before or behind it goes, too."""
    text, pieces, last, begun = page.text, [], 0, False
    for match in pattern.finditer(page.masked):
        new = replacement(match)
        if new is None:
            continue
        kept, last = text[last : match.start()], match.end()
        _, line_feed, line = kept.rpartition("\n")
        begun = bool(line.strip()) or (begun and not line_feed)
        if not new and begun:
            kept = kept.rstrip(" \t")
        elif not new and not line:
            last += text[last : last + 1] == " "
        pieces += [kept, new]
        begun = begun or bool(new)
    return "".join(pieces) + text[last:]


def _with_plain_brackets(text: str) -> str:
    """Brackets that are written as entities become escaped ones, which show the same."""
    if "&" not in text:
        return text
    return _replace(
        layout(text), BRACKET_ENTITY, lambda match: None if match[0][0] == "\\" else "\\" + unescape(match[0])
    )


class _Spans:
    """Stretches of a text, in order."""

    def __init__(self, spans: list[tuple[int, int]]) -> None:
        self._spans = spans
        self._starts = [start for start, _ in spans]

    def start_around(self, place: int) -> int | None:
        """Where the stretch begins that holds a place; None if none does."""
        index = bisect_right(self._starts, place) - 1
        return self._starts[index] if index >= 0 and place < self._spans[index][1] else None


def _words(text: str, start: int, place: int) -> str:
    """The last letters and digits before a place."""
    first = max(start, place - 4 * SAME_WORDS[0])
    return "".join(WORD.findall(text[first:place]))[-SAME_WORDS[0] :].lower()


def _fold(items: str) -> str:
    return "".join(items.lower().split())
