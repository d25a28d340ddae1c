"""What the readers of office documents leave out, counted in words by the simplest extraction of every part."""

import re
from collections import Counter
from io import BytesIO
from typing import Any, Final
from zipfile import ZipFile

from lxml import etree  # type: ignore[import-untyped]

from providers.reading.document_kinds import DocumentKind

MIN_SHARE: Final = 0.97
"""Share of the words below which a document says what is missing."""
OTHER: Final = "other text"
PARTS: Final = {
    DocumentKind.DOCX: {
        r"word/(document\d*|header\d*|footer\d*)\.xml": "",
        r"word/footnotes\.xml": "footnotes",
        r"word/endnotes\.xml": "endnotes",
        r"word/comments\.xml": "comments",
        r"word/charts/chart\d*\.xml": "charts",
        r"word/diagrams/data\d*\.xml": "diagrams",
    },
    DocumentKind.PPTX: {
        r"ppt/(slides|notesSlides)/\w+\.xml": "",
        r"ppt/comments/\w+\.xml": "comments",
        r"ppt/charts/chart\d*\.xml": "charts",
        r"ppt/diagrams/data\d*\.xml": "diagrams",
    },
    DocumentKind.XLSX: {
        r"xl/(comments|threadedComments/\w+)\d*\.xml": "comments",
        r"xl/charts/chart\d*\.xml": "charts",
        r"xl/drawings/drawing\d*\.xml": "text boxes",
    },
    DocumentKind.ODT: {r"content\.xml": ""},
}
"""Names of the parts of an archive, and what of them is not read; empty for those that are."""
UNREAD_ELEMENTS: Final = {"note-body": "footnotes", "annotation": "comments"}
"""Elements of OpenDocument within the text that are not read."""
SKIPPED: Final = frozenset(
    "Fallback del moveFrom instrText delText tracked-changes note-citation automatic-styles sequence-decls".split()
)
"""Elements whose words are not those of the document: deleted text, and what another element says again."""
BREAKS: Final = frozenset("p h tab br cr tc table-cell s line-break".split())
WORDS: Final = re.compile(r"[^\W_]+")


def left_out(raw: bytes, kind: DocumentKind, text: str) -> str:
    """Return a warning with the share of words in a text, and the kinds of the others; empty if it has nearly all."""
    if kind not in PARTS:
        return ""
    counts: Counter[str] = Counter()
    with ZipFile(BytesIO(raw)) as archive:
        for part in archive.infolist():
            for pattern, what in PARTS[kind].items():
                if re.fullmatch(pattern, part.filename):
                    for found, words in _count(archive.read(part), is_open=kind is DocumentKind.ODT).items():
                        counts[found or what] += words
    stored, expected = len(WORDS.findall(text)), counts.pop("", 0)
    counts[OTHER] = max(0, expected - stored)
    missing, total = sum(counts.values()), max(stored, expected) + sum(counts.values()) - counts[OTHER]
    if missing <= (1 - MIN_SHARE) * total:
        return ""
    kinds = ", ".join(f"{what} ({count:,})" for what, count in counts.most_common() if count)
    return f"{1 - missing / total:.0%} of the words are read; not read: {kinds}"


def _count(raw: bytes, *, is_open: bool) -> Counter[str]:
    """Return the number of words of a part, by the element that is not read or by the empty name."""
    root = etree.fromstring(raw, etree.XMLParser(resolve_entities=False, no_network=True, recover=True))
    pieces: dict[str, list[str]] = {"": []}
    if root is not None:
        _collect(root, "", pieces, is_open=is_open)
    return Counter({what: len(WORDS.findall("".join(texts))) for what, texts in pieces.items()})


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
