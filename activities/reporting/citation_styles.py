"""Citation labels: a number, or a link with the title of its source.

Numbers are given first, whatever the style: they stay what a citation is known by. Then each is written in its style,
and whatever else in the text looks like one of these labels is made to look otherwise.
"""

import re
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from activities.reporting.citations import CitationMark, NumberedText
from activities.reporting.links import Registry, strip_addresses_shown, write_target
from activities.reporting.markdown_layout import escape_markdown, layout, one_line, plain_text
from contracts.evidence import Source
from contracts.outcome import Citation
from contracts.request import CitationStyle
from contracts.texts import shorten

BRACKETS = re.compile(r"[\[\]]")
OPENING = re.compile(r"(?<!\\)\[")
"""What every label begins with; an escaped one begins none."""
TITLE_CHARACTERS = 80


@dataclass(frozen=True)
class CitationLabel:
    """How one source is cited."""

    markdown: str
    """As it stands in the text."""
    shown: str
    """Its words, for a page that makes its own link: without brackets."""


def citation_labels(
    style: CitationStyle, citations: Sequence[Citation], sources: Mapping[str, Source], registry: Registry
) -> dict[int, CitationLabel]:
    """The label of each number."""
    labels: dict[int, CitationLabel] = {}
    for citation in sorted(citations, key=lambda one: one.number):
        source = sources.get(citation.source_id)
        shown = str(citation.number)
        address = registry.registered(source.url) if source and style is CitationStyle.LINK else None
        if source and address:
            title = shorten(one_line(strip_addresses_shown(source.title, registry)), TITLE_CHARACTERS)
            words = escape_markdown(title.replace("[", "(").replace("]", ")")) or shown
            labels[citation.number] = CitationLabel(f"[{words}]{write_target(address)}", plain_text(words))
        else:
            labels[citation.number] = CitationLabel(f"[{shown}]", shown)
    return labels


def with_labels(numbered: NumberedText, labels: Mapping[int, CitationLabel]) -> NumberedText:
    """The text with each number as its label. What looks like a label and is none keeps its words, not its look."""
    if all(label.markdown == f"[{number}]" for number, label in labels.items()):
        return numbered
    pieces: list[str] = []
    marks: list[CitationMark] = []
    length = last = 0

    def add(piece: str) -> None:
        nonlocal length
        pieces.append(piece)
        length += len(piece)

    masked = layout(numbered.text).masked
    places = deque(label_places(masked, [label.markdown for label in labels.values()]))
    for mark in [*numbered.marks, None]:
        end = mark.start if mark else len(numbered.text)
        while places and places[0][0] < end:
            start, found = places.popleft()
            if start < last:
                continue
            add(numbered.text[last:start])
            add(BRACKETS.sub(r"\\\g<0>", found.partition("](")[0].rstrip("]") + "]"))
            last = start + len(found)
        add(numbered.text[last:end])
        if mark is None:
            break
        label = labels[mark.number]
        before = "".join(pieces[-2:])[-1:]
        if label.markdown.endswith(")") and (before in ("!", ")") or (marks and marks[-1].end == length)):
            add(" ")
        marks.append(replace(mark, start=length, end=length + len(label.markdown), shown=label.shown))
        add(label.markdown)
        last = mark.end
    return replace(numbered, text="".join(pieces), marks=marks)


def label_places(masked: str, labels: Collection[str]) -> Iterator[tuple[int, str]]:
    """Where labels stand in a text whose code is masked, each with the label: the longest one of those that fit."""
    longest_first = sorted(labels, key=len, reverse=True)
    for match in OPENING.finditer(masked):
        label = next((one for one in longest_first if masked.startswith(one, match.start())), None)
        if label is not None:
            yield match.start(), label
