"""Reports of parallel authors, each with numbers of its own, under one numbering.

Each author counts from 1; what its numbers mean it says itself. Together they get numbers that do not collide: those
given before never change, a document that has one keeps it, and every other one gets the next.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from activities.reporting.markdown_layout import layout
from activities.roles.evidence_markers import GROUP, ITEMS

LONGEST_RANGE = 50


@dataclass(frozen=True)
class LocalReport:
    """A report with the numbers of its author."""

    text: str
    documents: Mapping[int, str]
    """What each number stands for, by the document's id."""


@dataclass(frozen=True)
class CollapsedReports:
    """The reports under one numbering."""

    texts: list[str]
    documents: dict[int, str]
    """What each number stands for: those given, then the new ones."""
    unmapped: list[tuple[int, int]] = field(default_factory=list)
    """Which report, from 0, had which number that stands for nothing; it was taken out."""


def collapse_citations(reports: Sequence[LocalReport], given: Mapping[int, str] | None = None) -> CollapsedReports:
    """Renumber; `given` are numbers that readers have seen already. Code, links and images stay as they are."""
    documents = dict(given or {})
    numbers = {document: number for number, document in reversed(documents.items())}
    unmapped: list[tuple[int, int]] = []
    texts = []
    for index, report in enumerate(reports):
        for _, document in sorted(report.documents.items()):
            if document not in numbers:
                numbers[document] = max(documents, default=0) + 1
                documents[numbers[document]] = document
        shifted = {local: numbers[document] for local, document in report.documents.items()}
        text, unknown = _renumbered(report.text, shifted)
        texts.append(text)
        unmapped += [(index, number) for number in unknown]
    return CollapsedReports(texts, documents, unmapped)


def _renumbered(text: str, numbers: Mapping[int, int]) -> tuple[str, list[int]]:
    pieces: list[str] = []
    unknown: list[int] = []
    last = 0
    for match in GROUP.finditer(layout(text).masked):
        before, behind = text[: match.start()][-1:], text[match.end() : match.end() + 1]
        wanted = _numbers_of(match["items"]) if match[0].lstrip("\\")[0] not in "(（" else []
        if not wanted or before in ("!", "\\") or behind in ("(", ":"):
            continue
        found = dict.fromkeys(numbers[number] for number in wanted if number in numbers)
        unknown += [number for number in wanted if number not in numbers]
        kept = text[last : match.start()]
        pieces += [kept if found else kept.rstrip(" \t"), "".join(f"[{number}]" for number in found)]
        last = match.end()
    return "".join(pieces) + text[last:], list(dict.fromkeys(unknown))


def _numbers_of(items: str) -> list[int]:
    """The numbers of a group, ranges written out; none where a name is among them."""
    numbers: list[int] = []
    for item in ITEMS.findall(items):
        first, _, last = item.lstrip("^").replace("–", "-").partition("-")
        if not first.strip().isdecimal() or (last and not last.strip().isdecimal()):
            return []
        low = int(first)
        numbers += range(low, min(int(last or low), low + LONGEST_RANGE) + 1)
    return numbers
