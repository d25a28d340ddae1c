"""The parts that readers of office documents omit, counted in words by the simplest extraction of every part."""

import re
from collections import Counter
from collections.abc import Mapping
from io import BytesIO
from typing import Any, Final
from zipfile import ZipFile

from lxml import etree  # type: ignore[import-untyped]

from contracts.sentences import Message
from providers.reading.canonical_text import count_words
from providers.reading.document_kinds import OPEN_DOCUMENTS, DocumentKind

MIN_SHARE: Final = 0.97
"""Share of the words below which a document says what is missing."""
UNCALCULATED: Final = Message("part_formulas")
OTHER: Final = Message("part_other")
FOOTNOTES: Final = Message("part_footnotes")
COMMENTS: Final = Message("part_comments")
CHARTS: Final = Message("part_charts")
PARTS: Final[Mapping[DocumentKind, Mapping[str, str]]] = {
    DocumentKind.DOCX: {
        r"word/(document\d*|header\d*|footer\d*|diagrams/data\d*)\.xml": "",
        r"word/footnotes\.xml": FOOTNOTES,
        r"word/endnotes\.xml": Message("part_endnotes"),
        r"word/comments\.xml": COMMENTS,
        r"word/charts/chartEx\d*\.xml": CHARTS,
    },
    DocumentKind.PPTX: {
        r"ppt/(slides/\w+|notesSlides/\w+|diagrams/data\d*)\.xml": "",
        r"ppt/comments/\w+\.xml": COMMENTS,
        r"ppt/charts/chartEx\d*\.xml": CHARTS,
    },
    DocumentKind.XLSX: {
        r"xl/(comments|threadedComments/\w+)\d*\.xml": COMMENTS,
        r"xl/charts/chartEx\d*\.xml": CHARTS,
        r"xl/worksheets/\w+\.xml": UNCALCULATED,
    },
    **{kind: {r"content\.xml": "", r"Object[^/]*/content\.xml": CHARTS} for kind in OPEN_DOCUMENTS},
}
"""Names of the parts of an archive, and what of them is not read; empty for those that are."""
UNREAD_ELEMENTS: Final = {"note-body": FOOTNOTES, "annotation": COMMENTS}
"""Elements of OpenDocument within the text that are not read."""
SKIPPED: Final = frozenset(
    "Fallback del moveFrom instrText delText tracked-changes note-citation automatic-styles sequence-decls".split()
)
"""Elements whose words are not those of the document: deleted text, and what another element says again."""
BREAKS: Final = frozenset("p h tab br cr tc table-cell s line-break".split())
FORMULA: Final = re.compile(rb"<(?:\w+:)?f[\s>/]")


def left_out(raw: bytes, kind: DocumentKind, text: str) -> str:
    """Return a warning with the share of words in a text, and the kinds of the others; empty if it has nearly all."""
    if kind not in PARTS:
        return ""
    counts: Counter[str] = Counter()
    with ZipFile(BytesIO(raw)) as archive:
        for part in archive.infolist():
            for pattern, what in PARTS[kind].items():
                if not re.fullmatch(pattern, part.filename):
                    continue
                if what == UNCALCULATED:
                    counts[what] += _uncalculated(archive.read(part))
                else:
                    for found, words in _count(archive.read(part), is_open=kind in OPEN_DOCUMENTS).items():
                        counts[found or what] += words
    expected = counts.pop("", 0)
    return words_left_out(text, expected + sum(counts.values()), counts)


def words_left_out(text: str, visible: int, counts: Counter[str]) -> str:
    """Return a warning as `left_out` does; `visible`: words of the original, among them those of `counts`."""
    stored = count_words(text)
    named = sum(counts.values())
    other = max(0, visible - named - stored)
    missing = named + other
    total = max(stored, visible - named) + named
    counts = counts + Counter({OTHER: other})
    if missing <= (1 - MIN_SHARE) * total:
        return ""
    return words_read(1 - missing / total, counts)


def words_read(share: float, counts: Counter[str]) -> Message:
    """Return a warning with the share of words that are read, and how many of each other kind are not."""
    parts = [Message("part_words", part=what, count=count) for what, count in counts.most_common() if count]
    listed: str = parts.pop() if parts else ""
    for part in reversed(parts):
        listed = Message("listed", first=part, rest=listed)
    return Message("words_read", share=f"{share:.0%}", parts=listed)


def _uncalculated(raw: bytes) -> int:
    """Return the number of cells of a sheet that have a formula and no saved value."""
    if not FORMULA.search(raw):
        return 0
    count = 0
    formula = False
    value = False
    for _, element in etree.iterparse(
        BytesIO(raw), resolve_entities=False, no_network=True, recover=True, huge_tree=True
    ):
        match etree.QName(element).localname if isinstance(element.tag, str) else "":
            case "f":
                formula = True
            case "v" | "t":
                value = value or bool(element.text)
            case "c":
                count += formula and not value
                formula = value = False
            case "row":
                element.clear()
    return count


def _count(raw: bytes, *, is_open: bool) -> Counter[str]:
    """Return the number of words of a part, by the element that is not read or by the empty name."""
    root = etree.fromstring(raw, etree.XMLParser(resolve_entities=False, no_network=True, recover=True))
    pieces: dict[str, list[str]] = {"": []}
    is_read = root is not None and (etree.QName(root).localname == "math" or root.find("{*}body/{*}chart") is not None)
    if root is not None and not is_read:  # formulas and charts are, and say some words again
        _collect(root, "", pieces, is_open=is_open)
    return Counter({what: count_words("".join(texts)) for what, texts in pieces.items()})


def _collect(root: Any, what: str, pieces: dict[str, list[str]], *, is_open: bool) -> None:
    """Collect all text: of OpenDocument in every element, of Office Open XML in those named `t` and `v`."""
    kinds = [what]
    walk = etree.iterwalk(root, events=("start", "end"))
    for event, element in walk:
        name = ""
        if isinstance(element.tag, str):
            name = etree.QName(element).localname
        if event == "start":
            if name in SKIPPED or not name:
                if is_open:
                    pieces[kinds[-1]].append(element.tail or "")
                walk.skip_subtree()
                kinds.append(kinds[-1])
                continue
            kinds.append(UNREAD_ELEMENTS.get(name, kinds[-1]) if is_open else kinds[-1])
            if is_open or name in {"t", "v"}:
                pieces.setdefault(kinds[-1], []).append(element.text or "")
        else:
            kinds.pop()
            if name in BREAKS or name == "v":
                pieces[kinds[-1]].append(" ")
            if is_open and name not in SKIPPED and name:
                pieces[kinds[-1]].append(element.tail or "")
