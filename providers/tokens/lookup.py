"""Passages of pages already read that share the rarest words with each of several subjects. Pure."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import Final

from contracts.evidence import SectionRef
from providers.extractive.blocks import Kind, PassageBlock, blocks_of, is_index
from providers.extractive.ranking import CHARACTER_COST, NEIGHBOUR_CHARACTERS, Question
from providers.text import question_stems, word_keys, words
from providers.tokens.sections import sections_of

MIN_COVERAGE: Final = 0.25
"""Weighted share of a question's words that a passage must have; words that no page has do not count."""


HEADING_WEIGHT: Final = 0.3
"""Of the share of its heading's words that a question has: a section that is named after a question answers it."""
PASSAGES_PER_GAP: Final = 3
"""Of different sections, for a role that looks where an open gap may be answered."""
SECTION_CHARACTERS: Final = 6_000
"""Up to this length, the section around a passage is read whole; of a longer one, what lies around the passage."""
MIN_CHARACTERS: Final = 50
"""Of a passage; shorter ones are entries of indexes, links and labels."""


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """`text[start:end]` of a source, with the headings above it, outermost first."""

    source_id: str
    start: int
    end: int
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A passage with the stems of the questions that it has, and those that its headings or introduction have."""

    passage: FoundPassage
    inside: frozenset[str]
    above: frozenset[str]
    heading: frozenset[str]
    """All stems of its nearest heading, except those of the heading of its page."""


def find_passages(
    texts: Mapping[str, str],
    subjects: Sequence[Sequence[str]],
    language: str,
    limit: int,
    *,
    shortest: int = MIN_CHARACTERS,
    one_per_section: bool = True,
) -> list[list[FoundPassage]]:
    """Return at most `limit` passages on each subject, best first.

    `texts` are stored texts by source id, and `shortest` is in characters. Several passages of one section say the same
    about where an answer may be; a caller that looks for the answer itself needs them all.

    A subject is one question in several forms; a passage counts by the form that it fits best. Each text is cut and its
    words are counted once, however many subjects there are.
    """
    stems = {stem for forms in subjects for form in forms for stem in question_stems(form, language)}
    if not stems:
        return [[] for _ in subjects]
    blocks = [
        (source_id, text, block)
        for source_id, text in texts.items()
        if not is_index(text)
        for block in _joined_lines(text)
        if block.kind is not Kind.CODE and block.end - block.start >= shortest
    ]
    candidates = [_measure(*block, stems, language) for block in blocks]
    candidates = [candidate for candidate in candidates if candidate.inside]
    counts = Counter(key for candidate in candidates for key in candidate.inside | candidate.above)
    found = [_best(forms, candidates, counts, language) for forms in subjects]
    return [(_one_per_section(passages) if one_per_section else passages)[:limit] for passages in found]


def section_around(text: str, source_id: str, start: int, end: int, limit: int = SECTION_CHARACTERS) -> SectionRef:
    """Return the section in which `text[start:end]` begins; of one with more than `limit` characters, the part around
    that passage.
    """
    section = next((one for one in sections_of(text) if one.start <= start < one.end), None)
    first = section.start if section else start
    last = max(section.end if section else end, end)
    if last - first > limit:
        half = limit // 2
        earliest = max(first, start - half)
        latest = min(last, end + half)
        if earliest != first:
            first = text.find("\n", earliest, start) + 1 or start
        if latest != last:
            last = text.rfind("\n", end, latest) + 1 or end
    return SectionRef(source_id=source_id, start=first, end=last)


def _joined_lines(text: str) -> Iterator[PassageBlock]:
    """Yield the blocks of a text; lines without a blank line between them, such as a term and its text, as one."""
    joined: PassageBlock | None = None
    for block in blocks_of(text):
        if joined and block.kind is Kind.LINE is joined.kind and _continues(text, joined, block):
            joined = replace(joined, end=block.end)
            continue
        if joined:
            yield joined
        joined = block
    if joined:
        yield joined


def _continues(text: str, joined: PassageBlock, block: PassageBlock) -> bool:
    is_next = text[joined.end : block.start].strip(" \t") == "\n"
    return is_next and joined.headings == block.headings and block.end - joined.start <= NEIGHBOUR_CHARACTERS


def with_announced(text: str, end: int, limit: int) -> int:
    """Return the end of what a passage that ends with a colon announces, up to the offset `limit`; else its own end."""
    if text[end - 1 : end] != ":":
        return end
    blocks = blocks_of(text)
    first = bisect_left(blocks, end, key=lambda block: block.start)
    headings = blocks[first].headings if first < len(blocks) else ()
    for block in blocks[first:]:
        if block.end > limit or block.headings != headings:
            break
        end = block.end
    return end


def _one_per_section(passages: Sequence[FoundPassage]) -> list[FoundPassage]:
    by_section: dict[tuple[str, tuple[str, ...]], FoundPassage] = {}
    for passage in passages:
        by_section.setdefault((passage.source_id, passage.path), passage)
    return list(by_section.values())


def _measure(source_id: str, text: str, block: PassageBlock, stems: AbstractSet[str], language: str) -> _Candidate:
    lead = text[slice(*block.lead)] if block.lead else ""
    # A list item is shown with its introduction, a table row alone.
    is_led = block.lead is not None and block.kind is Kind.ITEM and block.lead[0] < block.start
    start = block.lead[0] if block.lead is not None and is_led else block.start
    return _Candidate(
        FoundPassage(source_id, start, block.end, block.path),
        _keys(text[block.start : block.end], language) & stems,
        _keys(" ".join([*block.path, lead]), language) & stems,
        _heading_keys(block.path, language),
    )


def _best(
    forms: Sequence[str], candidates: Sequence[_Candidate], counts: Mapping[str, int], language: str
) -> list[FoundPassage]:
    questions = [_question(form, counts, len(candidates), language) for form in forms]
    scored = []
    for candidate in candidates:
        coverage = max(question.coverage(candidate.inside, candidate.above) for question in questions)
        if coverage >= MIN_COVERAGE:
            passage = candidate.passage
            heading = candidate.heading
            asked = max(len(candidate.heading & one.weights.keys()) for one in questions)
            score = coverage + (HEADING_WEIGHT * asked / len(heading) if heading else 0.0)
            scored.append((score - CHARACTER_COST * (passage.end - passage.start), passage))
    scored.sort(key=lambda item: (-round(item[0], 6), item[1].source_id, item[1].start))
    return [passage for _, passage in scored]


def _question(text: str, counts: Mapping[str, int], passages: int, language: str) -> Question:
    # A word that no page has says nothing about which passage fits best.
    known = " ".join(word for word in words(text) if counts.get(word_keys(word, language)[0]))
    return Question.of(known, language, counts, passages)


def _heading_keys(path: Sequence[str], language: str) -> frozenset[str]:
    """Return the stems of the last heading, without numbers and words that carry no meaning."""
    if len(path) < 2:
        return frozenset()
    return frozenset(question_stems(path[-1], language)) - _keys(path[0], language)


def _keys(text: str, language: str) -> frozenset[str]:
    return frozenset(chain.from_iterable(map(word_keys, set(words(text)), repeat(language))))
