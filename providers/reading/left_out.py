"""What the readers of office documents leave out, counted in words by the simplest extraction of every part."""

import re
from collections import Counter
from io import BytesIO
from typing import Any, Final
from zipfile import ZipFile

from lxml import etree  # type: ignore[import-untyped]

from providers.reading.canonical_text import count_words
from providers.reading.document_kinds import OPEN_DOCUMENTS, DocumentKind

MIN_SHARE: Final = 0.97
"""Share of the words below which a document says what is missing."""
UNCALCULATED: Final = "formulas that no program has calculated"
OTHER: Final = "other text"
PARTS: Final = {
    DocumentKind.DOCX: {
        r"word/(document\d*|header\d*|footer\d*|diagrams/data\d*)\.xml": "",
        r"word/footnotes\.xml": "footnotes",
        r"word/endnotes\.xml": "endnotes",
        r"word/comments\.xml": "comments",
        r"word/charts/chart\d*\.xml": "charts",
    },
    DocumentKind.PPTX: {
        r"ppt/(slides/\w+|notesSlides/\w+|diagrams/data\d*)\.xml": "",
        r"ppt/comments/\w+\.xml": "comments",
        r"ppt/charts/chart\d*\.xml": "charts",
    },
    DocumentKind.XLSX: {
        r"xl/(comments|threadedComments/\w+)\d*\.xml": "comments",
        r"xl/charts/chart\d*\.xml": "charts",
        r"xl/drawings/drawing\d*\.xml": "text boxes",
        r"xl/worksheets/\w+\.xml": UNCALCULATED,
    },
    **{kind: {r"content\.xml": "", r"Object[^/]*/content\.xml": "charts"} for kind in OPEN_DOCUMENTS},
}
"""Names of the parts of an archive, and what of them is not read; empty for those that are."""
UNREAD_ELEMENTS: Final = {"note-body": "footnotes", "annotation": "comments"}
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
    stored, named = count_words(text), sum(counts.values())
    other = max(0, visible - named - stored)
    missing, total = named + other, max(stored, visible - named) + named
    counts = counts + Counter({OTHER: other})
    if missing <= (1 - MIN_SHARE) * total:
        return ""
    kinds = ", ".join(f"{what} ({count:,})" for what, count in counts.most_common() if count)
    return f"{1 - missing / total:.0%} of the words are read; not read: {kinds}"


def _uncalculated(raw: bytes) -> int:
    """Return the number of cells of a sheet that have a formula and no saved value."""
    if not FORMULA.search(raw):
        return 0
    count, formula, value = 0, False, False
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
    if root is not None and etree.QName(root).localname != "math":  # formulas are read
        _collect(root, "", pieces, is_open=is_open)
    return Counter({what: count_words("".join(texts)) for what, texts in pieces.items()})


def _collect(root: Any, what: str, pieces: dict[str, list[str]], *, is_open: bool) -> None:
    """Collect all text: of OpenDocument in every element, of Office Open XML in those named `t` and `v`."""
    kinds = [what]
    walk = etree.iterwalk(root, events=("start", "end"))
    for event, element in walk:
        name = etree.QName(element).localname if isinstance(element.tag, str) else ""
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
