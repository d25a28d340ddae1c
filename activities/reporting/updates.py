"""A live report: its headings as a first text, and the changes that it may undergo. Pure, but for the activities.

A live report is a title and the headings of an outline, each with its section. One change concerns one section, inserts
and removes at most so many characters, and leaves a whole report: headings in their order, every citation there.
Sections are read one by one from the text that `write` made, so that a change costs the reading of its section alone.
"""

import asyncio
import re
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import zip_longest
from typing import Final

from temporalio import activity

from activities.failures import RECORDS, attempt
from activities.reporting.citations import cited_evidence
from activities.reporting.drafts import (
    TITLE_CHARACTERS,
    parse_draft,
    split_sections,
    store_draft,
    summarize,
)
from activities.reporting.markdown import write
from activities.reporting.tree import (
    PARSER,
    Block,
    Blocks,
    Run,
    heading,
    one_line,
    sentences,
)
from contracts.addresses import digest
from contracts.evidence import DocumentRef, ReportDraft
from contracts.report_updates import (
    LONGER_FIGURES,
    AppliedUpdate,
    AppliedUpdates,
    DraftStep,
    DraftSteps,
    LiveReportRequest,
    Operation,
    OperationKind,
    ReportUpdate,
    SplitRequest,
    UpdatesRequest,
    WithdrawRequest,
)
from contracts.texts import shorten
from contracts.vocabulary import ReportKind
from providers.interfaces import ContentStore
from providers.text import words as words_of

CACHED: Final = 2_000
"""Blocks that a process remembers: a change of a report parses and writes what it changes alone."""
MOST_REMOVED: Final = 0.5
"""Share of a section that one update may remove."""
RAW_HTML: Final = re.compile(r"<(?:/?[a-z][^<>]{0,500}|!--|![a-z]|\?)", re.IGNORECASE)
PIECE: Final = re.compile(r"[^\n.!?]*+(?:\n|[.!?]++(?:\[ev-\w{1,64}\]|[^\s\w])*+|\Z)")
"""About a sentence of a stored draft; a line at most."""
STALE: Final = "the section has changed since this update was written, or it was applied already: write it anew"


class UpdateRefused(ValueError):
    """An update would break the report; the message is the reason, fit for a repair prompt."""


# --- the text --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class LiveText:
    """The Markdown of a live report in its parts."""

    title: str
    """Words of the title."""
    sections: tuple[tuple[str, str], ...] = ()
    """The words of each heading of the outline, and the Markdown under it; empty for a section without text."""

    @property
    def headings(self) -> list[str]:
        """The outline."""
        return [name for name, _ in self.sections]

    @property
    def text(self) -> str:
        """The whole Markdown."""
        parts = [_head(1, self.title)]
        for name, body in self.sections:
            parts += [_head(2, name), body] if body else [_head(2, name)]
        return "\n\n".join(parts) + "\n"

    def place_of(self, name: str) -> int:
        """Return the number of the section under a heading. Raises `UpdateRefused` where there is none."""
        for place, known in enumerate(self.headings):
            if known.casefold() == one_line(name).casefold():
                return place
        raise UpdateRefused(f"heading: the outline has none of these words; it has: {'; '.join(self.headings)[:400]}")

    def with_body(self, place: int, body: str) -> "LiveText":
        """Return the report with another text under a heading."""
        changed = (self.sections[place][0], body)
        return replace(self, sections=(*self.sections[:place], changed, *self.sections[place + 1 :]))


def first_text(title: str, outline: Sequence[str]) -> LiveText:
    """Return the report before anything is known: its title and the headings of the outline."""
    return LiveText(one_line(title), tuple((one_line(name), "") for name in outline))


def read_live(text: str) -> LiveText:
    """Read a live report from the text that `LiveText.text` made."""
    title, sections = "", list[tuple[str, str]]()
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
    """Split a written text into its blocks: each starts behind a blank line, without a blank and in no code."""
    lines, fence = list[str](), ""
    for line in text.strip("\n").split("\n"):
        if lines and not fence and not lines[-1] and line[:1] not in ("", " "):
            yield "\n".join(lines[:-1])
            lines = []
        ticks = re.match(r"`{3,}+", line)
        if ticks and (not fence or line == fence):
            fence = "" if fence else ticks[0]
        lines.append(line)
    yield "\n".join(lines)


@lru_cache(maxsize=CACHED)
def _head(level: int, name: str) -> str:
    return write([heading(level, name)]).text.strip()


@lru_cache(maxsize=CACHED)
def _read_block(chunk: str) -> Blocks:
    return parse_draft(chunk)


@lru_cache(maxsize=CACHED)
def _write_block(block: Block) -> str:
    """Return a block as Markdown that is the same when it is read and written again. Raises `UpdateRefused`."""
    text = write([block]).text.strip("\n")
    for _ in range(3):
        again = write(_read_block(text)).text.strip("\n")
        if again == text:
            return text
        text = again
    raise UpdateRefused("text: its layout cannot be read again as it was written; use plain sentences and lists")


def read_body(body: str) -> Blocks:
    """Parse the text of a section; a block of it that is known already is not parsed again."""
    return tuple(block for chunk in _chunks(body) for block in _read_block(chunk))


def write_body(blocks: Blocks) -> str:
    """Return a section as Markdown that is the same when it is read and written again.

    Raises `UpdateRefused` for blocks that have no such form.
    """
    merged: list[Block] = []
    for block in blocks:
        if merged and block.kind == "list" and _is_alike(merged[-1], block):
            merged[-1] = _join_blocks([merged[-1], block])  # two lists would be read as one
        else:
            merged.append(block)
    return "\n\n".join(map(_write_block, merged))


def fit_to_outline(markdown: str, outline: LiveText) -> LiveText:
    """Return a draft as a live report of an outline.

    What stands before the first heading comes first; a section of another name is put below the one before it.
    """
    bodies: dict[int, list[Block]] = {place: [] for place in range(len(outline.sections))}
    place = 0
    for name, blocks in split_sections(parse_draft(markdown)):
        rest = list(blocks[1:] if name else (block for block in blocks if block.kind != "heading"))
        try:
            place = outline.place_of(name) if name else place
        except UpdateRefused:
            rest = list(blocks)
        bodies[place].extend(
            replace(block, level=max(3, block.level)) if block.kind == "heading" else block for block in rest
        )
    fitted = outline
    for number in range(len(outline.sections)):
        with suppress(UpdateRefused):
            fitted = fitted.with_body(number, write_body(tuple(bodies[number])))
    return fitted


def describe_live(base: ReportDraft, report: LiveText) -> ReportDraft:
    """Return a draft with the figures of a live report, whose text is not stored yet."""
    words = {name: sum(_figures_of(chunk)[0] for chunk in _chunks(body)) for name, body in report.sections}
    cited = cited_by(report)
    return base.model_copy(
        update={
            "title": shorten(report.title, TITLE_CHARACTERS),
            "summary": next((summarize(read_body(body)) for _, body in report.sections if body), ""),
            "sections": report.headings,
            "word_count": sum(words.values()),
            "words_by_section": words,
            "characters": len(report.text.strip()),
            "has_headings": bool(report.sections),
            "evidence_ids": cited,
            "empty": not cited,
        }
    )


def cited_by(report: LiveText) -> list[str]:
    """Return the ids of the evidence that a live report cites, each once, in its order."""
    chunks = (chunk for _, body in report.sections for chunk in _chunks(body))
    return list(dict.fromkeys(key for chunk in chunks for key in _figures_of(chunk)[1]))


@lru_cache(maxsize=CACHED)
def _figures_of(chunk: str) -> tuple[int, list[str]]:
    """Return the number of words of a block, and the evidence that it cites."""
    blocks = _read_block(chunk)
    return len(words_of(" ".join(sentence.words for sentence in sentences(blocks)))), cited_evidence(blocks)


def measure(before: str, after: str) -> tuple[int, int]:
    """Return the characters that a change of a section inserts and removes.

    Sentences are compared as wholes, and those that differ without their common beginning and end.
    """
    inserted = removed = 0
    # An empty section has no blank line above its text.
    old, new = (PIECE.findall(f"\n\n{text}" if text else "") for text in (before, after))
    start = _common(old, new)
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, old[start:], new[start:], autojunk=False).get_opcodes():
        if kind != "equal":
            gone, come = _differing("".join(old[start + i1 : start + i2]), "".join(new[start + j1 : start + j2]))
            removed, inserted = removed + gone, inserted + come
    return inserted, removed


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    """Return how far two sequences begin alike."""
    pairs = zip(old, new, strict=False)
    return next((place for place, (one, other) in enumerate(pairs) if one != other), min(len(old), len(new)))


def _differing(old: str, new: str) -> tuple[int, int]:
    """Return the lengths of both texts without their common beginning and end."""
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    return len(old) - start - end, len(new) - start - end


# --- operations ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Element:
    """A sentence of a paragraph, an item of a list, or another block that is no heading."""

    block: int
    part: int
    content: Block
    """The block with this sentence or this item alone."""


def elements_of(blocks: Blocks) -> list[Element]:
    """Return what operations may name, by numbers from 1."""
    return [
        Element(place, part, content)
        for place, block in enumerate(blocks)
        if block.kind != "heading"
        for part, content in enumerate(_split_block(block))
    ]


def write_element(element: Element) -> str:
    """Return the Markdown of one element."""
    return write([element.content]).text.strip()


def _split_block(block: Block) -> list[Block]:
    """Return a paragraph by sentences, a list by items, another block as it is."""
    if block.kind == "paragraph":  # a gap before the first sentence of a paragraph has no effect
        return [replace(block, sentences=(replace(each, gap=each.gap or " " * (not place)),))
                for place, each in enumerate(block.sentences)]  # fmt: skip
    if block.kind == "list":
        return [replace(block, parts=(item,)) for item in block.parts]
    return [block]


def _join_blocks(parts: Sequence[Block]) -> Block:
    """Join what `_split_block` split, all of one kind."""
    joined = (each for part in parts for each in part.sentences)
    items = (item for part in parts for item in part.parts)
    return replace(parts[0], sentences=tuple(joined), parts=tuple(items)) if len(parts) > 1 else parts[0]


def update_body(body: str, operations: Sequence[Operation], most_characters: int) -> tuple[str, int, int]:
    """Return the text of a section after operations, and the characters inserted and removed.

    Anchors are numbers of the text before all of them. Raises `UpdateRefused` for a change that is not allowed.
    """
    blocks = read_body(body)
    after = write_body(_change(blocks, operations))
    inserted, removed = measure(body, after)
    if after == body:
        raise UpdateRefused("operations: they change nothing; report what the section lacks")
    if inserted + removed > most_characters:
        counted = f"{inserted} characters inserted and {removed} removed, at most {most_characters} together"
        raise UpdateRefused(f"operations: {counted}: report less, in whole sentences")
    if removed > MOST_REMOVED * len(body):
        raise UpdateRefused("operations: more than half of the section would go; replace less")
    if any(_longest_part(block) > most_characters for block in read_body(after)):
        raise UpdateRefused(f"text: a sentence, item or block of more than {most_characters} characters; divide it")
    return after, inserted, removed


@lru_cache(maxsize=CACHED)
def _longest_part(block: Block) -> int:
    return max(len(write([part]).text) for part in _split_block(block))


def _change(blocks: Blocks, operations: Sequence[Operation]) -> Blocks:
    """Return the blocks of a section after operations."""
    elements = elements_of(blocks)
    replaced: dict[tuple[int, int], Blocks] = {}
    added: dict[tuple[int, int], list[Block]] = {}
    appended: list[Block] = []
    for operation in operations:
        text = read_operation(operation.text)
        if operation.kind is OperationKind.APPEND or (operation.kind is OperationKind.PUT_AFTER and not elements):
            appended += text
            continue
        if not 1 <= operation.anchor <= len(elements):
            raise UpdateRefused(f"anchor: {operation.anchor} is none of the section's numbers, 1 to {len(elements)}")
        element = elements[operation.anchor - 1]
        place = element.block, element.part
        if operation.kind is OperationKind.PUT_AFTER:
            added.setdefault(place, []).extend(text)
            continue
        if place in replaced:
            raise UpdateRefused(f"anchor: {operation.anchor} is replaced twice")
        if any(block.kind == "heading" for block in text):
            raise UpdateRefused("text: a heading cannot take the place of a sentence")
        if cited_evidence((element.content,)) and not cited_evidence(text):
            raise UpdateRefused(f"text: what takes the place of {operation.anchor} must cite a passage, too")
        replaced[place] = text
    changed: list[Block] = []
    for number, block in enumerate(blocks):
        is_changed = any(place == number for place, _ in (*replaced, *added))
        changed += _change_block(number, block, replaced, added) if is_changed else (block,)
    return (*changed, *appended)


def _change_block(
    number: int, block: Block, replaced: dict[tuple[int, int], Blocks], added: dict[tuple[int, int], list[Block]]
) -> Iterator[Block]:
    """Give a block with its replaced and added parts; text of another kind divides it."""
    run: list[Block] = []
    for part, content in enumerate(_split_block(block)):
        for new in (*replaced.get((number, part), (content,)), *added.get((number, part), ())):
            fitting = _as_part_of(block, new)
            if fitting is not None:
                run += fitting
                continue
            if run:
                yield _join_blocks(run)
            run = []
            yield new
    if run:
        yield _join_blocks(run)


def _as_part_of(block: Block, new: Block) -> list[Block] | None:
    """Return the parts that a new block adds to a paragraph or a list; None for one that cannot be a part of it."""
    if block.kind == "list" and new.kind == "paragraph":
        return [replace(block, parts=((new,),))]
    if block.kind == new.kind and block.kind in ("paragraph", "list"):
        return [replace(part, start=block.start) for part in _split_block(new)]
    return [new] if new is block else None


def read_operation(text: str) -> Blocks:
    """Parse the text of an operation. Raises `UpdateRefused` for what a section cannot take."""
    blocks = _read_block(text)
    if not blocks:
        raise UpdateRefused("text: an operation without words")
    check_fences(text)
    nested = (inner for block in blocks for part in block.parts for inner in part)
    if any(block.kind == "heading" for block in nested):
        raise UpdateRefused("text: a heading within a list or a quotation")
    if any(block.kind == "heading" and block.level < 3 for block in blocks):
        raise UpdateRefused("text: a heading of its own at the level of the outline; only `###` and below are allowed")
    # What is quoted shows the markup of its source as words.
    own = sentences(block for block in blocks if block.kind != "quote")
    runs = (run for each in own for run in each.inlines if isinstance(run, Run) and not run.code)
    if any(RAW_HTML.search(run.text) for run in runs):
        raise UpdateRefused("text: raw HTML; write Markdown")
    return blocks


def check_fences(text: str) -> None:
    """Raise `UpdateRefused` for a code fence without its end."""
    lines = text.split("\n")
    for token in PARSER.parse(text):
        if token.type == "fence" and token.map:
            start, end = token.map
            closed = re.search(re.escape(token.markup) + r"[`~]*\s*\Z", lines[min(end, len(lines)) - 1])
            if end - start < 2 or not closed:
                raise UpdateRefused("text: a code fence is not closed")


# --- steps from one text to another ----------------------------------------------------------------------------------
def steps_between(before: LiveText, after: LiveText, most_characters: int) -> tuple[list[LiveText], int]:
    """Return the reports on the way from one text to another, sentence by sentence, and how many changes it lacks.

    Each differs from the one before it by at most `most_characters`; a sentence, an item or a block that exceeds them
    is not inserted. Title and headings are those of `before`.
    """
    steps: list[LiveText] = []
    report, unreached = before, 0
    for place, (_, body) in enumerate(after.sections):
        current, candidate = report.sections[place][1], None
        edits = _edits(read_body(current), read_body(body))
        try:
            state = next(edits)
            while True:
                text, fits = _try_body(state), False
                if text is not None:
                    fits = sum(measure(current, text)) <= most_characters
                    if not fits and candidate is not None and candidate != current:
                        report = report.with_body(place, candidate)
                        steps.append(report)
                        current, candidate = candidate, None
                        fits = sum(measure(current, text)) <= most_characters
                candidate = text if fits else candidate
                unreached += not fits
                state = edits.send(fits)
        except StopIteration:
            pass
        if candidate is not None and candidate != current:
            report = report.with_body(place, candidate)
            steps.append(report)
    return steps, unreached


def _try_body(blocks: Blocks) -> str | None:
    try:
        return write_body(blocks)
    except UpdateRefused:
        return None


Edits = Generator[Blocks, bool, None]
"""Gives a section after each small change, and takes whether the change stays."""


def _edits(before: Blocks, after: Blocks) -> Edits:
    """Change a section into another one, by one sentence, item or block at a time."""
    cells = [_split_block(block) for block in before]
    for place, (old, new) in enumerate(_pair(before, after)):
        if old is None:
            cells.insert(place, [])
        if old is not new:
            yield from _edit_parts(cells, place, _split_block(new) if new else [])


def _pair(before: Blocks, after: Blocks) -> Iterator[tuple[Block | None, Block | None]]:
    """Give the blocks of both sections in order: the same twice, those that become one another, and others alone."""
    for kind, i1, i2, j1, j2 in _compare(before, after):
        for old, new in zip_longest(before[i1:i2], after[j1:j2]):
            if kind == "equal":
                yield old, old
            elif old and new and not _is_alike(old, new):
                yield old, None
                yield None, new
            else:
                yield old, new


def _is_alike(old: Block, new: Block) -> bool:
    """Return true for blocks whose parts may be mixed."""
    return old.kind == new.kind and old.kind in ("paragraph", "list") and (old.start is None) == (new.start is None)


def _edit_parts(cells: list[list[Block]], place: int, target: Sequence[Block]) -> Edits:
    """Change the parts of one block; without any left it goes. What takes the place of a part that stays is dropped."""
    old, parts, at = list(cells[place]), cells[place], 0
    for kind, i1, i2, j1, j2 in _compare(old, target):
        for gone, come in () if kind == "equal" else zip_longest(old[i1:i2], target[j1:j2]):
            if gone:
                del parts[at]
                if not (yield _whole(cells)):
                    parts.insert(at, gone)
                    at += 1
                    continue
            if come:
                parts.insert(at, come)
                if (yield _whole(cells)):
                    at += 1
                else:
                    del parts[at]
        at += (i2 - i1) * (kind == "equal")


def _whole(cells: Sequence[Sequence[Block]]) -> Blocks:
    return tuple(_join_blocks(parts) for parts in cells if parts)


def _compare(old: Sequence[Block], new: Sequence[Block]) -> list[tuple[str, int, int, int, int]]:
    """Compare blocks by their Markdown."""
    before, after = ([write([block]).text for block in side] for side in (old, new))
    return list(SequenceMatcher(None, before, after, autojunk=False).get_opcodes())


# --- the activities --------------------------------------------------------------------------------------------------
def apply_update(report: LiveText, update: ReportUpdate, most_characters: int) -> tuple[LiveText, int, int]:
    """Return the report after an update, and the characters inserted and removed.

    Raises `UpdateRefused` for one that was written for another text of its section, or would break the report.
    """
    place = report.place_of(update.heading)
    body = report.sections[place][1]
    if digest(body) != update.base:
        raise UpdateRefused(STALE)
    changed, inserted, removed = update_body(body, update.operations, most_characters)
    after = report.with_body(place, changed)
    if read_live(after.text) != after:
        raise UpdateRefused("text: it changes the headings of the outline; write none at their level")
    return after, inserted, removed


def withdraw(report: LiveText, evidence_ids: Collection[str], most_characters: int) -> list[LiveText]:
    """Return the reports on the way to one without the sentences, items and blocks that cite any of these passages.

    Each differs from the one before it by at most `most_characters`, or by a single part that exceeds them.
    """
    steps: list[LiveText] = []
    for place, (_, body) in enumerate(report.sections):
        done = current = body
        while (shorter := _without_first(current, evidence_ids)) is not None:
            if current != done and sum(measure(done, shorter)) > most_characters:
                report, done = report.with_body(place, current), current
                steps.append(report)
            current = shorter
        if current != done:
            report = report.with_body(place, current)
            steps.append(report)
    return steps


def _without_first(body: str, evidence_ids: Collection[str]) -> str | None:
    """Return a section without its first part that cites one of these passages; None where none does."""
    cells = [_split_block(block) for block in read_body(body)]
    for parts in cells:
        for place, part in enumerate(parts):
            if not set(cited_evidence((part,))).isdisjoint(evidence_ids):
                del parts[place]
                return write_body(_whole(cells))
    return None


def kind_after(draft: ReportDraft, update: ReportUpdate) -> ReportKind:
    """Return `report` once a model has written a part of it."""
    written = ReportKind.REPORT in (update.kind, draft.kind if not draft.empty else update.kind)
    return ReportKind.REPORT if written else ReportKind.PASSAGES


@dataclass(frozen=True, eq=False)
class LiveReportActivities:
    """Changes live reports; their texts are in the content store."""

    content: ContentStore

    @activity.defn(name="apply_report_updates")
    async def apply_report_updates(self, request: UpdatesRequest) -> AppliedUpdates:
        """Apply updates in order; one that is refused leaves the text unchanged, and says why."""
        async with attempt(RECORDS):
            base, report = await self._base(request)
            outcomes, draft = list[AppliedUpdate](), base
            for update in request.updates:
                try:
                    after, *_ = await asyncio.to_thread(apply_update, report, update, request.most_characters)
                except UpdateRefused as refusal:
                    outcomes.append(AppliedUpdate(refusal=str(refusal)))
                    continue
                draft = draft.model_copy(update={"kind": kind_after(draft, update)})
                (step,) = await self._steps(draft, report, [after])
                report, draft = after, step.draft
                outcomes.append(AppliedUpdate(step=step))
            followed = [
                AppliedUpdate(step=_without_figures(each.step)) if each.step and each.step.draft is not draft else each
                for each in outcomes
            ]
            return AppliedUpdates(base=None if request.base else base, outcomes=followed)

    @activity.defn(name="split_draft")
    async def split_draft(self, request: SplitRequest) -> DraftSteps:
        """Store each text on the way to another one; figures that do not follow from a text are those of the last."""
        async with attempt(RECORDS):
            target = await self.content.get_text(request.after.document)
            names = (name for name, _ in split_sections(parse_draft(target)) if name)
            outline = request.outline or list(dict.fromkeys(names)) or [request.title]
            base, before = await self._base(request.model_copy(update={"outline": outline}))
            after = await asyncio.to_thread(fit_to_outline, target, before)
            reports, unreached = await asyncio.to_thread(steps_between, before, after, request.most_characters)
            first = [] if request.base else [DraftStep(draft=base)]
            steps = [*first, *await self._steps(request.after, before, reports)]
            return DraftSteps(steps=[*map(_without_figures, steps[:-1]), *steps[-1:]], unreached=unreached)

    @activity.defn(name="withdraw_evidence")
    async def withdraw_evidence(self, request: WithdrawRequest) -> DraftSteps:
        """Store each text on the way to one that cites none of the passages."""
        async with attempt(RECORDS):
            base, before = await self._base(request)
            keys = frozenset(request.evidence_ids)
            reports = await asyncio.to_thread(withdraw, before, keys, request.most_characters)
            steps = await self._steps(base, before, reports)
            return DraftSteps(steps=[*map(_without_figures, steps[:-1]), *steps[-1:]])

    async def _base(self, request: LiveReportRequest) -> tuple[ReportDraft, LiveText]:
        """Return the text to be changed; the headings of the outline where there is none."""
        if request.base is not None:
            return request.base, read_live(await self.content.get_text(request.base.document))
        report = first_text(request.title, request.outline)
        empty = ReportDraft(document=DocumentRef(hash=digest("")), kind=ReportKind.PASSAGES, empty=True)
        (step,) = await self._steps(empty, report, [report])
        return step.draft, report

    async def _steps(self, base: ReportDraft, before: LiveText, reports: Sequence[LiveText]) -> list[DraftStep]:
        """Store texts that follow each other; each has the figures of `base` that do not follow from it."""
        steps = list[DraftStep]()
        for report in reports:
            draft, step = await asyncio.to_thread(_describe_step, base, before, report)
            steps.append(step.model_copy(update={"draft": await store_draft(self.content, draft, report.text)}))
            before = report
        return steps


def _describe_step(base: ReportDraft, before: LiveText, after: LiveText) -> tuple[ReportDraft, DraftStep]:
    """Return the draft of a text that is not stored yet, and what differs from the text before it."""
    draft, (inserted, removed), known = describe_live(base, after), measure_reports(before, after), cited_by(before)
    cited = [key for key in draft.evidence_ids if key not in known]
    withdrawn = [key for key in known if key not in draft.evidence_ids]
    draft = draft.model_copy(update={"evidence_ids": []})
    return draft, DraftStep(draft=draft, inserted=inserted, removed=removed, cited=cited, withdrawn=withdrawn)


def _without_figures(step: DraftStep) -> DraftStep:
    """Return a step that the next one follows at once, without the longer figures of its text."""
    return step.model_copy(update={"draft": step.draft.model_copy(update=LONGER_FIGURES)})


def measure_reports(before: LiveText, after: LiveText) -> tuple[int, int]:
    """Return the characters inserted and removed in all sections together."""
    pairs = zip(before.sections, after.sections, strict=True)
    counts = [measure(old, new) for (_, old), (_, new) in pairs if old != new]
    return sum(inserted for inserted, _ in counts), sum(removed for _, removed in counts)
