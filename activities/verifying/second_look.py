"""A second look at the statements that would be marked: with whole sections of the pages that they cite.

Passages are cut out of pages, and a mark was often wrong by what stands around them. All statements are asked about
in one call, in which each section stands once; words that the checker quotes from a section become evidence.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from activities.reporting.passages import listing_above, table_start, term_place
from activities.roles.grounding import evidence_at, heading_offsets
from activities.verifying.material import Material
from contracts import checking
from contracts.addresses import long_hash
from providers.verification.rules import find_code_names, find_differences

LOOK_CHARACTERS: Final = 60_000
"""Of the sections of a second look, all together: about 15,000 tokens."""
CLAIM_CHARACTERS: Final = 10_000
"""Of sections for each statement, where there are few: with 8,000 fourteen statements of three runs keep all that their
checkers quoted, with 7,000 not."""
WHOLE_CHARACTERS: Final = 14_000
"""A page, or else a section, up to this length is shown whole, if there is room."""
CHARACTERS_BEFORE: Final = 2_500
CHARACTERS_AFTER: Final = 1_500
"""Around a passage in a longer section, or if there is no room for all of it; to the ends of paragraphs."""
FEW_BEFORE: Final = 600
FEW_AFTER: Final = 400
"""Around a passage that the statement does not cite."""
TELLING_SHARE: Final = 0.2
"""Share of what a statement lacks from which a passage is shown even if others before it have the same words."""
AGAIN: Final = "again"


@dataclass(frozen=True, order=True)
class Stretch:
    """`text[start:end]` of a source."""

    source_id: str
    start: int
    end: int

    def holds(self, other: "Stretch") -> bool:
        """Return whether another stretch lies within this one."""
        return self.source_id == other.source_id and self.start <= other.start and other.end <= self.end

    def touches(self, other: "Stretch") -> bool:
        """Return whether both overlap or are neighbours."""
        return self.source_id == other.source_id and self.start <= other.end and other.start <= self.end


def second_fingerprint(claim_fingerprint: str) -> str:
    """Return the fingerprint under which a statement is asked about in a second look."""
    return f"c-{long_hash(AGAIN, claim_fingerprint)}"


def ask_again(doubtful: Sequence[checking.AskedClaim], material: Material) -> checking.AskedEntry:
    """Return the statements of a second look with sections of their pages, each once; empty if no text is loaded.

    First the further passages that have what it lacks; then what surrounds those that it cites, and their whole
    sections. A statement is judged by all that is shown of the pages that it cites.
    """
    found = material.with_found(item for claim in doubtful for item in claim.found)
    cited = [_places([passage.evidence_id for passage in claim.passages], found) for claim in doubtful]
    others = [_places([passage.evidence_id for passage in claim.others], found) for claim in doubtful]
    texts = {key: found.text_of(key) for key in {place.source_id for row in (*cited, *others) for place in row}}
    room = min(LOOK_CHARACTERS, max(WHOLE_CHARACTERS, CLAIM_CHARACTERS * len(doubtful)))
    nearest = [
        _telling(claim, [_beside(place, texts[place.source_id]) for place in row], found, texts)
        for claim, row in zip(doubtful, others, strict=True)
    ]
    wanted = [
        *_in_turn(nearest),
        *(_around(place, texts[place.source_id]) for place in _in_turn(cited)),
        *(_section(place, texts[place.source_id]) for place in _in_turn(cited)),
    ]
    shown: list[Stretch] = []
    for stretch in wanted:
        shown = _with(shown, stretch, room)
    # The decisive ones come first: in the order in which something of them was wanted.
    shown.sort(key=lambda stretch: next(rank for rank, one in enumerate(wanted) if stretch.holds(one)))
    sections = {stretch: _show(stretch, found) for stretch in shown}
    items = []
    for claim, *rows in zip(doubtful, cited, others, strict=True):
        own = [place for row in rows for place in row]
        pages = {place.source_id for place in rows[0]}
        names = [
            section.id
            for stretch, section in sections.items()
            if stretch.source_id in pages or any(map(stretch.holds, own))
        ]
        again = second_fingerprint(claim.fingerprint)
        near = [section for section in sections.values() if section.id in names]
        # What the first look found is no concern of the second one.
        items.append(
            checking.AskedClaim(
                fingerprint=again,
                text=claim.text,
                place=claim.place,
                passages=claim.passages,
                sections=names,
                remarks=_remaining_remarks(claim, near, material),
            )
        )
    if not sections:
        return checking.AskedEntry()
    # A statement that several sections of the report make is asked about once.
    distinct = {item.fingerprint: item for item in items}
    return checking.AskedEntry(items=list(distinct.values()), sections=list(sections.values()))


def _telling(
    claim: checking.AskedClaim, stretches: Sequence[Stretch], material: Material, texts: Mapping[str, str]
) -> list[Stretch]:
    """Return the stretches that have what a statement lacks, by words, figures and names in code; the most first.

    Each adds something that those before it do not have, or has a good part of it. Looked for is what a checker named
    as missing, else the whole statement: of either, what the passages cited do not have, if anything. Of stretches that
    add as much, those of pages that the statement cites come first.
    """
    whole = f"{claim.text} {claim.place.row} {claim.place.column}"  # a cell says it of its row
    stated = material.words_of(" ".join(claim.lacking) or whole)
    own = material.words_of(" ".join(f"{passage.title} {passage.text}" for passage in claim.passages))
    missing = set(stated - own or stated)
    words = {one: material.words_of(texts[one.source_id][one.start : one.end]) for one in stretches}
    chosen: list[Stretch] = []
    shares = {one: material.weight_of(missing & words[one]) for one in words}
    least = TELLING_SHARE * material.weight_of(missing)
    telling = {one for one, share in shares.items() if share and share >= least}
    pages = {material.passages[passage.evidence_id][0].source_id for passage in claim.passages}
    while words:
        best = max(
            words,
            key=lambda one: (material.weight_of(missing & words[one]), one in telling, one.source_id in pages, one),
        )
        if missing.isdisjoint(words[best]) and best not in telling:
            break
        chosen.append(best)
        missing -= words.pop(best)
    return chosen


def _remaining_remarks(
    asked: checking.AskedClaim, sections: Sequence[checking.ShownSection], material: Material
) -> list[str]:
    """Return the remarks of a first look about figures and names that the sections do not have either."""
    texts = [passage.text for passage in asked.passages] + [section.text for section in sections]
    titles = [passage.title for passage in asked.passages] + [section.title for section in sections]
    about = [*titles, material.entry.query]
    found = find_differences(asked.text, texts, about, material.entry.language)
    found += find_code_names(asked.text, [*texts, *about])
    reasons = {difference.reason for difference in found}
    return [remark for remark in asked.remarks if remark in reasons]


def _in_turn(rows: Sequence[Sequence[Stretch]]) -> Iterator[Stretch]:
    """Yield the first place of each row, then the second of each, and so on."""
    for number in range(max(map(len, rows), default=0)):
        yield from (row[number] for row in rows if number < len(row))


def _places(identities: Iterable[str], material: Material) -> list[Stretch]:
    known = (material.passages[key][0] for key in dict.fromkeys(identities) if key in material.passages)
    return [Stretch(item.source_id, item.start, item.end) for item in known]


def _with(shown: Sequence[Stretch], added: Stretch, room: int) -> list[Stretch]:
    """Return the stretches with another one, joined with those that it touches; unchanged without room for it."""
    # Those shown never touch each other, so that what touches the new one is all that becomes one with it.
    near = [stretch for stretch in shown if stretch.touches(added)]
    joined = replace(
        added,
        start=min(stretch.start for stretch in [*near, added]),
        end=max(stretch.end for stretch in [*near, added]),
    )
    more = [*(stretch for stretch in shown if stretch not in near), joined]
    if sum(stretch.end - stretch.start for stretch in more) > room:
        return list(shown)
    return more


def _bounds(place: Stretch, text: str) -> tuple[int, int]:
    """Return the page where it is short, else the part between two headings in which a place lies."""
    if len(text) <= WHOLE_CHARACTERS:
        return 0, len(text)
    offsets = [0, *heading_offsets(text), len(text)]
    index = bisect_right(offsets, place.start) - 1
    end = next((offset for offset in offsets[index + 1 :] if offset >= place.end), len(text))
    return offsets[index], end


def _section(place: Stretch, text: str) -> Stretch:
    """Return the page or section of a place, with its parts if there is room, or else what surrounds the place."""
    start, end = _bounds(place, text)
    depth = _depth(text, start)
    if depth:
        below = [offset for offset in heading_offsets(text) if offset > start]
        whole = next((offset for offset in below if _depth(text, offset) <= depth), len(text))
        end = whole if end < whole and whole - start <= WHOLE_CHARACTERS else end
    if end - start > WHOLE_CHARACTERS:
        return _around(place, text)
    return _trimmed(place.source_id, text, start, end)


def _depth(text: str, offset: int) -> int:
    """Return the level of the heading that begins at an offset; 0 if none does."""
    line = text[offset : offset + 12].lstrip()
    return len(line) - len(line.lstrip("#"))


def _beside(place: Stretch, text: str) -> Stretch:
    """Return what stands beside a place in its section: less than around one that a statement cites."""
    return _around(place, text, FEW_BEFORE, FEW_AFTER)


def _around(place: Stretch, text: str, before: int = CHARACTERS_BEFORE, after: int = CHARACTERS_AFTER) -> Stretch:
    """Return what surrounds a place in its section, from the beginning of a paragraph to the end of one.

    It begins no later than the term of its definition, the head of its table and the beginning of its listing.
    """
    first, last = _bounds(place, text)
    start = max(first, text.rfind("\n\n", 0, max(0, place.start - before)) + 1)
    above = (term_place(text, place.start), table_start(text, place.start), listing_above(text, place.start))
    start = max(first, min([start, *(offset for offset in above if offset is not None)]))
    paragraph = text.find("\n\n", min(len(text), place.end + after))
    end = min(last, paragraph if paragraph >= 0 else last)
    return _trimmed(place.source_id, text, start, max(end, place.end))


def _trimmed(source_id: str, text: str, start: int, end: int) -> Stretch:
    part = text[start:end]
    return Stretch(source_id, start + len(part) - len(part.lstrip()), start + len(part.rstrip()))


def _show(stretch: Stretch, material: Material) -> checking.ShownSection:
    source = material.sources[stretch.source_id]
    text = material.text_of(stretch.source_id)
    heading = evidence_at(stretch.source_id, text, stretch.start, stretch.end).heading
    return checking.ShownSection(
        id=f"s-{long_hash(stretch.source_id, stretch.start, stretch.end)}",
        source_id=stretch.source_id,
        start=stretch.start,
        title=" § ".join(dict.fromkeys(part for part in (source.title, heading) if part)),
        text=text[stretch.start : stretch.end],
        abstract_only=source.abstract_only,
    )
