"""A live report: its first text, made of headings, and the changes that are allowed. Pure.

A live report is a title and the headings of an outline, each with its section. A change affects one section, inserts
and removes a limited number of characters, and results in a whole report: headings in order, no citation lost.
Sections are read one by one from the text that `write` made, so that a change only needs to parse its own section.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import zip_longest
from typing import Final

from activities.reporting.drafts import count_words, describe_text, parse_draft, split_sections
from activities.reporting.references import cited_evidence, without_citations, without_markers
from activities.reporting.tree import PARSER, Block, Blocks, Run, heading, one_line, sentences, write
from contracts.addresses import digest
from contracts.evidence import ReportDraft
from contracts.report_updates import SHOWN_SECTION_CHARACTERS, Operation, OperationKind, ReportUpdate, asked_of_limit

CACHED_BLOCKS: Final = 2_000
"""Blocks that a process caches, so that a change of a report parses and writes only the changed ones."""
MAX_REMOVED_SHARE: Final = 0.5
"""Share of a section that one update may remove."""
RAW_HTML: Final = re.compile(r"<(?:/?[a-z][^<>]{0,500}|!--|![a-z]|\?)", re.IGNORECASE)
PIECE: Final = re.compile(r"[^\n.!?]*+(?:\n|[.!?]++(?:\[ev-\w{1,64}\]|[^\s\w])*+|\Z)")
"""Roughly a sentence of a stored draft; at most a line."""
STALE: Final = "the section has changed since this update was written, or it was applied already: write it anew"


class UpdateRefused(ValueError):
    """An update would break the report; the message gives the reason, fit for a repair prompt."""


# --- the text --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class LiveText:
    """The Markdown of a live report in its parts."""

    title: str
    """Plain text of the title."""
    sections: tuple[tuple[str, str], ...] = ()
    """The text of each heading of the outline, and the Markdown below it; empty for a section without text."""

    @property
    def headings(self) -> list[str]:
        """The outline."""
        return [name for name, _ in self.sections]

    @property
    def text(self) -> str:
        """The whole Markdown."""
        parts = [_head(1, self.title)]
        for name, body in self.sections:
            parts.append(_head(2, name))
            if body:
                parts.append(body)
        return "\n\n".join(parts) + "\n"

    def index_of(self, name: str) -> int:
        """Return the number of the section under a heading. Raises `UpdateRefused` if there is none."""
        for index, known in enumerate(self.headings):
            if known.casefold() == one_line(name).casefold():
                return index
        raise UpdateRefused(f"heading: the outline has none of these words; it has: {'; '.join(self.headings)[:400]}")

    def with_body(self, index: int, body: str) -> "LiveText":
        """Return the report with another text under a heading."""
        changed = (self.sections[index][0], body)
        return replace(self, sections=(*self.sections[:index], changed, *self.sections[index + 1 :]))


def empty_report(title: str, outline: Sequence[str]) -> LiveText:
    """Return an empty report: its title and the headings of the outline."""
    return LiveText(one_line(title), tuple((one_line(name), "") for name in outline))


def read_live(text: str) -> LiveText:
    """Read a live report from the text that `LiveText.text` made."""
    title = ""
    sections: list[tuple[str, str]] = []
    for chunk in _chunks(text):
        if chunk.startswith("## "):
            sections.append((_read_block(chunk)[0].words, ""))
        elif sections:
            name, body = sections[-1]
            sections[-1] = (name, f"{body}\n\n{chunk}" if body else chunk)
        else:
            title = title or _read_block(chunk)[0].words
    return LiveText(title, tuple(sections))


def _chunks(text: str) -> Iterator[str]:
    """Split a written text into blocks: each starts after a blank line, unindented and outside of code."""
    lines: list[str] = []
    fence = ""
    for line in text.strip("\n").split("\n"):
        if lines and not fence and not lines[-1] and line[:1] not in ("", " "):
            yield "\n".join(lines[:-1])
            lines = []
        ticks = re.match(r"`{3,}+", line)
        if ticks and (not fence or line == fence):
            fence = "" if fence else ticks[0]
        lines.append(line)
    yield "\n".join(lines)


@lru_cache(maxsize=CACHED_BLOCKS)
def _head(level: int, name: str) -> str:
    return write([heading(level, name)]).text.strip()


@lru_cache(maxsize=CACHED_BLOCKS)
def _read_block(chunk: str) -> Blocks:
    return parse_draft(chunk)


@lru_cache(maxsize=CACHED_BLOCKS)
def _write_block(block: Block) -> str:
    """Return a block as Markdown that survives parsing and writing unchanged. Raises `UpdateRefused`."""
    text = write([block]).text.strip("\n")
    for _ in range(3):
        rewritten = write(_read_block(text)).text.strip("\n")
        if rewritten == text:
            return text
        text = rewritten
    raise UpdateRefused("text: its layout cannot be read again as it was written; use plain sentences and lists")


def read_body(body: str) -> Blocks:
    """Parse the text of a section; cached blocks are not parsed again."""
    return tuple(block for chunk in _chunks(body) for block in _read_block(chunk))


def write_body(blocks: Blocks) -> str:
    """Return a section as Markdown that survives parsing and writing unchanged.

    Raises `UpdateRefused` for blocks that have no such form.
    """
    return "\n\n".join(map(_write_block, _join_parts(_parts_of(blocks))))


def fit_to_outline(markdown: str, outline: LiveText) -> LiveText:
    """Return a draft as a live report of an outline.

    Blocks before the first heading go into the first section; a section of another name is appended to the one before.
    """
    bodies: dict[int, list[Block]] = {index: [] for index in range(len(outline.sections))}
    index = 0
    for name, blocks in split_sections(parse_draft(markdown)):
        body = list(blocks[1:] if name else (block for block in blocks if block.kind != "heading"))
        try:
            index = outline.index_of(name) if name else index
        except UpdateRefused:
            body = list(blocks)
        bodies[index].extend(
            replace(block, level=max(3, block.level)) if block.kind == "heading" else block for block in body
        )
    fitted = outline
    for number in range(len(outline.sections)):
        with suppress(UpdateRefused):
            fitted = fitted.with_body(number, write_body(tuple(bodies[number])))
    return fitted


def describe_live(base: ReportDraft, report: LiveText) -> ReportDraft:
    """Return a draft with the figures of a live report, whose text is not stored yet."""
    bodies = {name: read_body(body) for name, body in report.sections}
    content = (block for name, blocks in bodies.items() for block in (heading(2, name), *blocks))
    draft = describe_text(base, (heading(1, report.title), *content), report.text)
    counts = {name: count_words(blocks) for name, blocks in bodies.items()}
    return draft.with_fields(words_by_section=counts, empty=not draft.evidence_ids)


def cited_by(report: LiveText) -> list[str]:
    """Return the ids of the evidence that a live report cites, each once, in order."""
    return cited_evidence(block for _, body in report.sections for block in read_body(body))


def measure(before: str, after: str) -> tuple[int, int]:
    """Return the characters that a change of a section inserts and removes, without markers of passages.

    Sentences are compared as a whole; of differing ones, the common beginning and end do not count.
    """
    inserted = removed = 0
    # An empty section has no blank line above its text.
    old, new = (PIECE.findall(f"\n\n{without_citations(text)}" if text else "") for text in (before, after))
    start = _common_length(old, new)
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, old[start:], new[start:], autojunk=False).get_opcodes():
        if kind != "equal":
            before = "".join(old[start + i1 : start + i2])
            after = "".join(new[start + j1 : start + j2])
            removed_here, inserted_here = _diff_lengths(before, after)
            removed += removed_here
            inserted += inserted_here
    return inserted, removed


def _common_length(old: Sequence[str], new: Sequence[str]) -> int:
    """Return the length of the common beginning of two sequences."""
    pairs = zip(old, new, strict=False)
    return next((index for index, (first, second) in enumerate(pairs) if first != second), min(len(old), len(new)))


def _diff_lengths(old: str, new: str) -> tuple[int, int]:
    """Return the lengths of both texts without their common beginning and end."""
    start = _common_length(old, new)
    end = _common_length(old[start:][::-1], new[start:][::-1])
    return len(old) - start - end, len(new) - start - end


# --- operations ------------------------------------------------------------------------------------------------------
BREAK: Final = Block("paragraph")
"""Separates the parts of two blocks."""


def _parts_of(blocks: Blocks) -> list[Block]:
    """Take blocks apart: paragraphs into sentences, lists into items, each as a block of its own."""
    parts: list[Block] = []
    for block in blocks:
        if parts:
            parts += [BREAK]
        if block.kind == "paragraph":
            parts += [replace(block, sentences=(sentence,)) for sentence in block.sentences]
        elif block.kind == "list":
            parts += [replace(block, parts=(item,)) for item in block.parts]
        else:
            parts.append(block)
    return parts


def _join_parts(parts: Iterable[Block]) -> Blocks:
    """Join parts to blocks. Neighbouring lists are merged, because they would be parsed as one."""
    blocks: list[Block] = []
    is_open = False
    for part in parts:
        previous = blocks[-1] if blocks else BREAK
        alike = previous.kind == part.kind and (previous.start is None) == (part.start is None)
        if part is BREAK:
            is_open = False
        elif alike and (part.kind == "list" or (is_open and part.kind == "paragraph")):
            sentences_of_both = previous.sentences + part.sentences
            items = previous.parts + part.parts
            blocks[-1] = replace(previous, sentences=sentences_of_both, parts=items)
        else:
            blocks.append(part)
            is_open = True
    return tuple(blocks)


def elements_of(blocks: Blocks) -> list[Block]:
    """Return the parts that operations name by number, from 1: sentences, list items, blocks except headings.

    Each item of a numbered list has its own number.
    """
    parts = list[Block]()
    for part in _parts_of(blocks):
        before = parts[-1] if parts else BREAK
        is_next = part.kind == before.kind == "list" and part.start is not None and before.start is not None
        parts.append(replace(part, start=before.start + 1) if is_next and before.start is not None else part)
    return [part for part in parts if _is_element(part)]


def numbered_parts(blocks: Blocks) -> list[tuple[int, Block]]:
    """Return headings, breaks between blocks, and the parts that operations name, with their numbers; else 0."""
    elements = iter(enumerate(elements_of(blocks), start=1))
    return [next(elements) if _is_element(part) else (0, part) for part in _parts_of(blocks)]


def _is_element(part: Block) -> bool:
    return part is not BREAK and part.kind != "heading"


def write_element(element: Block) -> str:
    """Return the Markdown of one element."""
    return write([element]).text.strip()


def update_body(body: str, operations: Sequence[Operation], most_characters: int) -> str:
    """Return the text of a section after operations.

    Anchors are numbers in the text before any operation. Raises `UpdateRefused` for a change that is not allowed.
    """
    change = _SectionChange(read_body(body))
    for operation in operations:
        change.take(operation)
    updated = write_body(change.result())
    inserted, removed = measure(body, updated)
    if updated == body:
        raise UpdateRefused("operations: they change nothing; report what the section lacks")
    if inserted + removed > most_characters:
        most = asked_of_limit(most_characters)
        counted = f"{inserted} characters inserted and {removed} removed, at most {most} together"
        raise UpdateRefused(f"operations: {counted}: report less, in whole sentences")
    if removed > MAX_REMOVED_SHARE * len(without_citations(body)):
        raise UpdateRefused("operations: more than half of the section would go; replace or remove less")
    if any(_longest_part(block) > most_characters for block in read_body(updated)):
        raise UpdateRefused(f"text: a sentence, item or block of more than {most_characters} characters; divide it")
    return updated


@lru_cache(maxsize=CACHED_BLOCKS)
def _longest_part(block: Block) -> int:
    return max(len(without_citations(write([part]).text)) for part in _parts_of((block,)))


class _SectionChange:
    """Operations on the parts of a section, which are joined again at the end; anchors count its elements."""

    def __init__(self, blocks: Blocks) -> None:
        self._parts = _parts_of(blocks)
        self._elements = [index for index, part in enumerate(self._parts) if _is_element(part)]
        self._replaced: dict[int, list[Block]] = {}
        self._extended: dict[int, Block] = {}
        self._added: defaultdict[int, list[Block]] = defaultdict(list)
        self._below: defaultdict[int, list[Block]] = defaultdict(list)
        self._appended: list[Block] = []

    def take(self, operation: Operation) -> None:
        """Take an operation. Raises `UpdateRefused`."""
        kind = operation.kind
        text: Blocks = ()
        if kind is not OperationKind.REMOVE:
            text = read_operation(operation.text)
        if kind is OperationKind.APPEND or (kind is OperationKind.PUT_AFTER and not self._elements):
            self._appended += [BREAK, *_parts_of(text)]
            return
        last = len(self._elements)
        if not 1 <= operation.anchor <= last:
            raise UpdateRefused(f"anchor: {operation.anchor} is none of the section's numbers, 1 to {last}")
        index = self._elements[operation.anchor - 1]
        if kind is OperationKind.EXTEND and self._parts[index].kind == "list":
            self._extend(index, text)
        elif kind in (OperationKind.PUT_AFTER, OperationKind.EXTEND):
            self._put_after(index, text)
        elif index in self._replaced:
            raise UpdateRefused(f"anchor: {operation.anchor} is replaced or removed twice")
        elif kind is OperationKind.REMOVE:
            self._replaced[index] = []
        else:
            self._replace(index, operation.anchor, text)

    def result(self) -> Blocks:
        """Return the blocks after all operations. Raises `UpdateRefused`."""
        if both := self._extended.keys() & self._replaced.keys():
            numbers = ", ".join(str(self._elements.index(index) + 1) for index in sorted(both))
            raise UpdateRefused(f"anchor: {numbers}: an item that is replaced or removed is not extended as well")
        changed: list[Block] = []
        for index, part in enumerate(self._parts):
            changed += self._replaced.get(index, [self._extended.get(index, part)])
            changed += [*self._added[index], *self._below[index]]
        return _join_parts([*changed, *self._appended])

    def _extend(self, index: int, text: Blocks) -> None:
        if any(block.kind == "heading" for block in text):
            raise UpdateRefused("text: a heading cannot stand within an item")
        self._extended[index] = _extended(self._extended.get(index, self._parts[index]), text)

    def _put_after(self, index: int, text: Blocks) -> None:
        part = self._parts[index]
        if part.kind == "list" and any(block.kind == "paragraph" for block in text):
            # A paragraph never becomes an item, nor does it divide the list and its numbers: it follows the list.
            self._below[_end_of_list(self._parts, index)] += [BREAK, *_parts_of(text), BREAK]
        else:
            self._added[index] += _fit_parts(text, part)

    def _replace(self, index: int, anchor: int, text: Blocks) -> None:
        part = self._parts[index]
        if any(block.kind == "heading" for block in text):
            raise UpdateRefused("text: a heading cannot take the place of a sentence")
        if cited_evidence((part,)) and not cited_evidence(text):
            raise UpdateRefused(f"text: what takes the place of {anchor} must cite a passage, too")
        self._replaced[index] = _fit_parts(text, part)


def _extended(part: Block, text: Blocks) -> Block:
    """Return the part of a list with a text at the end of its item."""
    item = list(part.parts[0])
    for block in text:
        last = item[-1] if item else BREAK
        if last is not BREAK and last.kind == block.kind == "paragraph":
            first, *others = block.sentences
            more = (replace(first, gap=first.gap or " "), *others)
            item[-1] = replace(last, sentences=(*last.sentences, *more))
        else:
            item.append(block)
    return replace(part, parts=(tuple(item),))


def _end_of_list(parts: Sequence[Block], index: int) -> int:
    """Return the index of the last item of the list that has an item at this index."""
    while parts[index + 1 : index + 2] and parts[index + 1].kind == "list":
        index += 1
    return index


def _fit_parts(text: Blocks, neighbour: Block) -> list[Block]:
    """Return the parts of a text to put next to a part of a section; another kind of block splits that part's block."""
    fitted: list[Block] = []
    for block in text:
        parts = _parts_of((block,))
        if neighbour.kind == "list" and block.kind == "paragraph":
            fitted.append(replace(neighbour, parts=((block,),)))
        elif neighbour.kind == block.kind == "list":
            fitted += [replace(part, start=neighbour.start) for part in parts]
        elif neighbour.kind == block.kind == "paragraph":
            first = block.sentences[0]
            fitted += [replace(block, sentences=(replace(first, gap=first.gap or " "),)), *parts[1:]]
        else:
            fitted += [BREAK, *parts, BREAK]
    return fitted


def read_operation(text: str) -> Blocks:
    """Parse the text of an operation. Raises `UpdateRefused` for blocks that a section cannot have."""
    blocks = _read_block(text)
    if not blocks:
        raise UpdateRefused("text: an operation without words")
    check_fences(text)
    nested = (inner for block in blocks for part in block.parts for inner in part)
    if any(block.kind == "heading" for block in nested):
        raise UpdateRefused("text: a heading within a list or a quotation")
    if any(block.kind == "heading" and block.level < 3 for block in blocks):
        raise UpdateRefused("text: a heading of its own at the level of the outline; only `###` and below are allowed")
    # Quotes may show the markup of their source as text.
    unquoted = sentences(block for block in blocks if block.kind != "quote")
    runs = (run for sentence in unquoted for run in sentence.inlines if isinstance(run, Run) and not run.code)
    if any(RAW_HTML.search(run.text) for run in runs):
        raise UpdateRefused("text: raw HTML; write Markdown")
    return blocks


def check_fences(text: str) -> None:
    """Raise `UpdateRefused` for an unclosed code fence."""
    lines = text.split("\n")
    for token in PARSER.parse(text):
        if token.type == "fence" and token.map:
            start, end = token.map
            closed = re.search(re.escape(token.markup) + r"[`~]*\s*\Z", lines[min(end, len(lines)) - 1])
            if end - start < 2 or not closed:
                raise UpdateRefused("text: a code fence is not closed")


# --- steps from one text to another ----------------------------------------------------------------------------------
def steps_between(
    before: LiveText, after: LiveText, most_characters: int, *, forced: bool = False
) -> tuple[list[LiveText], int]:
    """Return the steps from one report to another, changed part by part, and the number of missed changes.

    Each differs from the one before it by at most `most_characters`; a part that exceeds them is not inserted or
    removed unless `forced`. Title and headings are those of `before`.
    """
    steps: list[LiveText] = []
    report = before
    unreached = 0
    for index, (_, body) in enumerate(after.sections):
        section = _SectionSteps(report.sections[index][1], most_characters, forced=forced)
        unreached += section.change_to(body)
        for text in section.texts():
            report = report.with_body(index, text)
            steps.append(report)
    return steps, unreached


class _SectionSteps:
    """The steps of one section towards another text."""

    def __init__(self, body: str, most_characters: int, *, forced: bool) -> None:
        self._texts = [body]
        self._newest = body
        self._most_characters = most_characters
        self._forced = forced

    def texts(self) -> list[str]:
        """Return the texts after the original one."""
        if self._newest != self._texts[-1]:
            return [*self._texts[1:], self._newest]
        return self._texts[1:]

    def change_to(self, body: str) -> int:
        """Change the section one part at a time, and return the number of changes that were not made."""
        parts, target = (_parts_of(read_body(text)) for text in (self._newest, body))
        old, new = ([write([part]).text for part in side] for side in (parts, target))
        index = missed = 0
        for kind, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            for removed, inserted in zip_longest(range(i1, i2), target[j1:j2]):
                remaining = parts[:index] + parts[index + (removed is not None) :]
                if kind != "equal" and removed is not None and not self._advance(remaining):
                    index += 1
                    missed += 1
                    continue
                changed = remaining if inserted is None else [*remaining[:index], inserted, *remaining[index:]]
                is_changed = kind == "equal" or inserted is None or self._advance(changed)
                parts = changed if is_changed else remaining
                missed += not is_changed
                index += is_changed and inserted is not None
        return missed + (not missed and not self._advance(parts))

    def _advance(self, parts: Sequence[Block]) -> bool:
        """Make parts the newest text, in a new step if the bound requires it; return false if they exceed it."""
        try:
            text = write_body(_join_parts(parts))
        except UpdateRefused:
            return False
        if sum(measure(self._texts[-1], text)) > self._most_characters:
            if not self._forced and sum(measure(self._newest, text)) > self._most_characters:
                return False
            if self._newest != self._texts[-1]:
                self._texts += [self._newest]
        self._newest = text
        return True


def withdraw(report: LiveText, evidence_ids: Collection[str], most_characters: int) -> list[LiveText]:
    """Return the steps to a report without the sentences, items and blocks that cite any of these passages.

    Each differs from the one before it by at most `most_characters`, or by a single part that exceeds them.
    """
    result = report
    for index, (_, body) in enumerate(report.sections):
        parts = _parts_of(read_body(body))
        remaining = [part for part in parts if set(cited_evidence((part,))).isdisjoint(evidence_ids)]
        if len(remaining) < len(parts):
            result = result.with_body(index, write_body(_join_parts(remaining)))
    return steps_between(report, result, most_characters, forced=True)[0]


def change_outline(report: LiveText, outline: Sequence[str], most_characters: int) -> list[LiveText]:
    """Return the steps to a report with other headings, in their order.

    A section keeps its text if its heading stays; the text of any other section is removed first, in steps that differ
    by at most `most_characters`, or by a single part that exceeds them. The last step changes only headings.
    """
    names = empty_report(report.title, outline).headings
    kept = {name.casefold() for name in names}
    remaining = tuple((name, body if name.casefold() in kept else "") for name, body in report.sections)
    steps, _ = steps_between(report, replace(report, sections=remaining), most_characters, forced=True)
    bodies = {name.casefold(): body for name, body in remaining}
    changed = replace(report, sections=tuple((name, bodies.get(name.casefold(), "")) for name in names))
    if changed != (steps[-1] if steps else report):
        return [*steps, changed]
    return steps


# --- an update of a whole report -------------------------------------------------------------------------------------
def apply_update(report: LiveText, update: ReportUpdate, most_characters: int) -> LiveText:
    """Return the report after an update.

    Raises `UpdateRefused` for an update of another version of its section, or one that would break the report.
    """
    index = report.index_of(update.heading)
    body = report.sections[index][1]
    if digest(body) != update.base:
        raise UpdateRefused(STALE)
    updated = report.with_body(index, update_body(body, update.operations, most_characters))
    if read_live(updated.text) != updated:
        raise UpdateRefused("text: it changes the headings of the outline; write none at their level")
    return updated


def shown_section(report: LiveText, heading: str) -> str:
    """Return the text of a section without citations; of a long one the beginning and the last lines, whole."""
    text = without_markers(report.sections[report.index_of(heading)][1])
    if len(text) <= SHOWN_SECTION_CHARACTERS:
        return text
    room = SHOWN_SECTION_CHARACTERS // 2
    first = text[:room].rpartition("\n")[0] or text[:room].rpartition(" ")[0]
    last = text[-room:].partition("\n")[2] or text[-room:].partition(" ")[2]
    return f"{first}\n[{len(text) - len(first) - len(last)} characters that are not shown]\n{last}"


def measure_reports(before: LiveText, after: LiveText) -> tuple[int, int]:
    """Return the total of characters inserted and removed in all sections; headings do not count."""
    old, new = ({name.casefold(): body for name, body in report.sections} for report in (before, after))
    pairs = [(old.get(name, ""), new.get(name, "")) for name in {**old, **new}]
    counts = [measure(earlier, later) for earlier, later in pairs if earlier != later]
    return sum(inserted for inserted, _ in counts), sum(removed for _, removed in counts)
