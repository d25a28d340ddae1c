"""A report as sections: taken apart and put together.

A section is what stands under a heading of the second level; what comes before the first one, the title above all, is
the head. One after the other they are the report, to the character.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from activities.reporting.markdown_layout import layout, plain_text
from activities.roles.evidence_markers import cited_evidence, without_markers
from providers.text import sentence_spans
from providers.verification.quantities import find_quantities

PLACE = re.compile(r"^[ \t>*_-]*\{\{?[ \t]*section[ \t]+(\d{1,3})[ \t]*\}\}?[ \t*_]*$", re.IGNORECASE | re.MULTILINE)
"""Where a section belongs, as the writer of the frame marks it."""
HEADING_SIGNS = re.compile(r"[ \t]{0,3}(#{1,6})(?=[ \t])")
MOST_LEADING = 2
"""Sentences that lead from one section to the next."""
LONGEST_LEAD = 14
"""Words; a longer sentence asserts more than where to read on."""


@dataclass(frozen=True)
class Section:
    """A part of a report: `text[start:end]`; the head has no heading."""

    heading: str
    start: int
    end: int


def split_sections(text: str) -> list[Section]:
    """The head and the sections, in order."""
    page = layout(text)
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    found = [
        (starts[token.map[0]], plain_text(without_markers(page.tokens[place + 1].content)))
        for place, token in enumerate(page.tokens)
        if token.type == "heading_open" and token.tag == "h2" and token.level == 0 and token.map
    ]
    ends = [start for start, _ in found] + [len(text)]
    head = [Section("", 0, ends[0])] if ends[0] else []
    return head + [Section(heading, start, end) for (start, heading), end in zip(found, ends[1:], strict=True)]


def section_texts(text: str) -> list[str]:
    """The texts of the head and the sections: joined, they are the report."""
    return [text[section.start : section.end] for section in split_sections(text)]


def join_report(frame: str, sections: Sequence[str], headings: Sequence[str]) -> str:
    """One report of a frame and sections that were written apart; the sections stay word for word.

    The frame marks with `{{section N}}` where each belongs, and may lead over to it; a lead that asserts something is
    left out, for it would be a claim without a source. Without marks the sections follow the frame's first section.
    """
    bodies = [_under_heading(text, heading) for text, heading in zip(sections, headings, strict=True)]
    places = [match for match in PLACE.finditer(layout(frame).masked) if 0 < int(match[1]) <= len(bodies)]
    pieces: list[str] = []
    used: set[int] = set()
    last = 0
    for match in places:
        number = int(match[1]) - 1
        between = frame[last : match.start()]
        lead = _lead(between) if used else ""
        pieces.append(between if not used else "")
        if number not in used:
            pieces.append(_with_lead(bodies[number], lead))
            used.add(number)
        last = match.end()
    rest = [body for number, body in enumerate(bodies) if number not in used]
    tail = frame[last:]
    if not places:
        parts = section_texts(frame)
        pieces, tail = ["".join(parts[:2])], "".join(parts[2:])
    joined = "\n\n".join(piece.strip() for piece in [*pieces, *rest, tail] if piece.strip())
    return joined + "\n"


def _lead(between: str) -> str:
    """What stands between two sections, if it only leads over."""
    words = between.strip()
    if not words or cited_evidence(words) or any(block.heading for block in layout(words).blocks):
        return ""
    spans = sentence_spans(words)
    said = [plain_text(words[start:end]) for start, end in spans]
    return (
        words
        if len(spans) <= MOST_LEADING
        and not any(find_quantities(one) or len(one.split()) > LONGEST_LEAD for one in said)
        else ""
    )


def _with_lead(body: str, lead: str) -> str:
    heading, _, rest = body.partition("\n")
    return f"{heading}\n\n{lead}\n\n{rest.lstrip()}" if lead else body


def _under_heading(text: str, heading: str) -> str:
    """A section under one heading of the second level; deeper ones below it."""
    page = layout(text.strip())
    lines = page.text.split("\n")
    places = [token.map[0] for token in page.tokens if token.type == "heading_open" and token.level == 0 and token.map]
    levels = [HEADING_SIGNS.match(lines[place]) for place in places]
    tops = [(place, found) for place, found in zip(places, levels, strict=True) if found and len(found[1]) <= 2]
    first = tops[0][0] if tops and not "".join(lines[: tops[0][0]]).strip() else None
    for place, found in tops:
        own = "##" if place == first else "###"
        lines[place] = own + lines[place][found.end() :]
    body = "\n".join(lines).strip()
    return body if first is not None else f"## {heading}\n\n{body}"
