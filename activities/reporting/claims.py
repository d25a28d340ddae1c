"""The claims of a text: which of its statements can be true or false, what they cite, and how verdicts are counted.

A claim is a sentence, a cell of a table, or a piece of a block quote up to its citations. Text with a citation is a
claim in any form; text without one is a claim if it asserts something. The citation at the end of a paragraph or a list
item counts for its sentences back to the citation before, one in a paragraph of its own for the paragraph, quotation or
listing above it, one in a cell of its own for its whole row, one in the first cell for the others up to the next cited
one, and one in the head of a column for its cells. The first cell of a row names what the row is about: without a
citation it is no claim. Bold lead words, and uncited sentences about the research itself under a heading such as *Gaps
and limitations*, are no claims either.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from activities.reporting.tree import Block, Blocks, CitationMark, Run, Sentence, WrittenText, sentences
from contracts.addresses import long_hash
from contracts.checking import ClaimPlace, Correction, CorrectionAction, VerificationSummary
from contracts.evidence import CheckMethod, ClaimVerdict, Verdict
from contracts.outlines import STATE_HEADING
from contracts.texts import shorten, shorten_start
from providers.verification.quantities import find_quantities

MAX_UNSUPPORTED_SHARE: Final = 0.2
"""Share of unsupported among cited statements above which a report is not complete."""
MIN_WORDS: Final = 4
"""Words that an assertion needs; a shorter line is a name, a label or an exclamation."""
HEADING_NUMBER: Final = re.compile(r"\A(?:[^\W\d_]{1,12} )?(\d{1,3})(?![\w%]|[.,]\d)")
"""The number of a heading such as "4. Restore" or "Step 4"."""
ROW_NUMBER: Final = re.compile(r"\A\d{1,3}(?:[.)](?:\s|\Z)|\Z)|\s?\(\d{1,3}\)")
"""The number of a row at its beginning, or in brackets."""
CELL_BREAK: Final = " | "
"""Between the words of cells: the word after it is the first one, whose capital makes no name."""
MAX_BEFORE = 400
MAX_AFTER = 200
"""Characters of the text before and after a claim that its checker is shown."""
SENTENCE_ENDS: Final = (".", "!", "?", "…", "。")
"""A line in bold that ends otherwise is a heading."""
INTRODUCED_KINDS: Final = ("list", "table", "quote")
UNJUDGED: Final = ClaimVerdict(claim_id="", verdict=Verdict.UNVERIFIED, method=CheckMethod.NONE)


@dataclass(frozen=True)
class Claim:
    """A claim of a text: its sentences in the tree, and its verdict once it is judged."""

    id: str
    text: str
    """Plain text."""
    section: str
    """The nearest heading above it, below the title; empty if there is none."""
    evidence_ids: list[str]
    sentences: tuple[Sentence, ...]
    quoted: bool = False
    """True if it is a piece of a block quote."""
    code: bool = False
    """True if it is the text of a listing, whose citation is a paragraph of its own below it."""
    row: bool = False
    """True if it is a whole row of a table."""
    cell: bool = False
    """True if it is a cell of a table."""
    row_head: str = ""
    """Of a cell: the words of the first cell of its row; empty for that cell itself."""
    place: ClaimPlace = field(default_factory=ClaimPlace)
    numbering: frozenset[int] = frozenset()
    """The numbers of list items and sections of its text, to which it may refer."""
    shared: tuple[CitationMark, ...] = ()
    """Citations of other sentences of its paragraph, or of other cells of its row, that count for this one, too."""
    index: int = 0
    """Of a claim of a report: its place in the list, from 1."""
    judged: ClaimVerdict = UNJUDGED

    @property
    def marks(self) -> list[CitationMark]:
        """Its citations in order: its own, else the one that it shares."""
        return [mark for sentence in self.sentences for mark in sentence.marks] or list(self.shared)

    @property
    def stated(self) -> str:
        """Its words in the form that rules compare: those of a cell after the first cell of its row.

        The number of a row, as in "2. Restore" or "FULL (2)", is a label and no figure of a source.
        """
        return CELL_BREAK.join(filter(None, (ROW_NUMBER.sub("", self.row_head), self.text)))

    @property
    def subject(self) -> str:
        """The words that distinguish it from equal words: those of a cell with the heads of row and column."""
        if self.cell:
            return CELL_BREAK.join((self.row_head, self.place.column, self.text))
        return self.text

    @property
    def numbers(self) -> list[int]:
        """The numbers of its citations in a report, each once."""
        return list(dict.fromkeys(mark.number for mark in self.marks))

    @property
    def citations(self) -> int:
        """The count of those numbers."""
        return len(self.numbers)

    def span(self, written: WrittenText) -> tuple[int, int]:
        """Return its start and end in the Markdown of its tree."""
        return written.spans[self.sentences[0]][0], written.spans[self.sentences[-1]][1]


def find_claims(blocks: Blocks, language: str = "en", *, uncited: bool = True, section_level: int = 2) -> list[Claim]:
    """Return the claims of a text in order; without `uncited`, only those with citations.

    `section_level` is that of the headings of sections: 3 below the questions of a thread.

    The extractive engine's own sentences are about the report itself: without a citation, they are no claims.
    """
    seen: Counter[str] = Counter()
    finder = _ClaimFinder(language, section_level)
    claims = []
    found = list(finder.walk(blocks))
    numbering = frozenset(finder.numbering)
    for claim in found:
        if claim.evidence_ids or (uncited and claim.text):
            key = claim_key(claim.text, claim.evidence_ids)
            identity = claim_id(claim.text, claim.evidence_ids, seen[key])
            claims.append(replace(claim, id=identity, place=finder.place_of(claim), numbering=numbering))
            seen[key] += 1
    return claims


def claim_key(text: str, evidence_ids: Sequence[str]) -> str:
    """Return the key of a claim: its words without white space, and its sorted evidence ids."""
    return "".join(text.split()) + "\x1e" + " ".join(sorted(evidence_ids))


def claim_id(text: str, evidence_ids: Sequence[str], occurrence: int = 0) -> str:
    """Return the id of a claim; `occurrence` is the number of earlier claims with the same words and evidence."""
    return "c-" + long_hash(claim_key(text, evidence_ids), occurrence)


@dataclass(frozen=True)
class _Unit:
    """A sentence, a list item's first sentence, a row or a piece of a quotation, in the order of the text."""

    text: str
    section: int
    """The number of headings before it."""
    kind: str = "text"
    """`row` for a row of a table below its header, `header` for that."""


class _ClaimFinder:
    """Walks over blocks and yields their claims, without ids and without the text around them."""

    def __init__(self, language: str, section_level: int) -> None:
        self._language = language
        self._section_level = section_level
        self._section = ""
        self._about_research = False
        """True below a heading about the research itself."""
        self._headings: list[tuple[int, str]] = []
        """Levels and words of the headings above the current place."""
        self._leads: list[str] = []
        """The sentences that introduce the current list or table, the outermost first."""
        self._bullet = ""
        """The sign of a list item whose first sentence comes next."""
        self._units: list[_Unit] = []
        self._unit_of: dict[Sentence, int] = {}
        self._heading_count = 0
        self.numbering: set[int] = set()
        """The numbers of the list items and the headings so far."""

    # --- the text around a claim ------------------------------------------------------------------------------------
    def place_of(self, claim: Claim) -> ClaimPlace:
        """Return the place of a claim with the text before and after it in its section; of a cell, the row above it."""
        if claim.row or claim.sentences[0] not in self._unit_of:
            return claim.place
        first, last = (self._unit_of[claim.sentences[edge]] for edge in (0, -1))
        if claim.cell:
            above = self._units[first - 1] if first else None
            is_row = above is not None and above.kind == "row"
            return claim.place.with_fields(before=shorten(above.text, MAX_BEFORE) if above and is_row else "")
        section = self._units[first].section
        before: list[str] = []
        room = MAX_BEFORE
        for unit in reversed(self._units[:first]):
            room -= len(unit.text) + 1
            # The sentence just before is always shown, cut if need be; of a table above its last row.
            if unit.section != section or (before and (room < 0 or unit.kind != "text")):
                break
            before.append(unit.text)
        following = self._units[last + 1] if last + 1 < len(self._units) else None
        return claim.place.with_fields(
            before=shorten_start(" ".join(reversed(before)), MAX_BEFORE),
            after=shorten(following.text, MAX_AFTER) if following and following.section == section else "",
            leads=[lead for lead in claim.place.leads if lead not in before],
        )

    def _add_unit(self, parts: Sequence[Sentence], text: str, kind: str = "text") -> None:
        if text:
            self._unit_of |= dict.fromkeys(parts, len(self._units))
            self._units.append(_Unit(f"{self._bullet}{text}", self._heading_count, kind))
            self._bullet = ""

    def _here(self, **of_cell: str) -> ClaimPlace:
        headings = [words for _, words in self._headings]
        return ClaimPlace(headings=headings, leads=list(filter(None, self._leads)), **of_cell)

    # --- blocks -----------------------------------------------------------------------------------------------------
    def walk(self, blocks: Blocks) -> Iterator[Claim]:
        for index, block in enumerate(blocks):
            previous = blocks[index - 1] if index else None
            following = blocks[index + 1] if index + 1 < len(blocks) else None
            below = _lone_marks(following) if following else ()
            lead = previous.sentences[-1].words if previous and previous.kind == "paragraph" else ""
            match block.kind:
                case "heading":
                    yield from self._heading(block)
                case "paragraph":
                    introduces = following is not None and following.kind in INTRODUCED_KINDS
                    yield from self._paragraph(block.sentences, below, introduces=introduces)
                case "list":
                    self._leads.append(lead)
                    for number, item in enumerate(block.parts):
                        self._bullet = "- "
                        if block.start is not None:
                            self._bullet = f"{block.start + number}. "
                            self.numbering.add(block.start + number)
                        yield from self.walk(item)
                    self._bullet = ""
                    self._leads.pop()
                case "table":
                    self._leads.append(lead)
                    at_end = _cites_at_ends(block.rows[1:])
                    for number, row in enumerate(block.rows):
                        kind = "row" if number else "header"
                        self._add_unit(row, CELL_BREAK.join(cell.words for cell in row), kind)
                        yield from self._row(row, block.rows[0] if number else (), at_end=at_end)
                    self._leads.pop()
                case "quote":
                    yield from self._quote(block, below)
                case "code":
                    self._add_unit((*block.sentences, *below), shorten(block.words, MAX_AFTER))
                    yield from self._claim(below, words=block.words, code=True, only_cited=True)

    def _heading(self, block: Block) -> Iterator[Claim]:
        self._section = block.words if block.level > 1 else ""
        if block.level <= self._section_level:
            self._about_research = STATE_HEADING.fullmatch(block.words.strip(" .:")) is not None
        self._headings = [one for one in self._headings if one[0] < block.level]
        self._heading_count += 1
        self.numbering.update(int(number) for number in HEADING_NUMBER.findall(block.words))
        yield from self._claim(block.sentences, only_cited=True)
        self._headings.append((block.level, block.words))

    def _paragraph(
        self, leaf: tuple[Sentence, ...], below: tuple[Sentence, ...], *, introduces: bool
    ) -> Iterator[Claim]:
        # The last citation counts for the sentences back to the one before; it may be a paragraph of its own below.
        cited = [number for number, sentence in enumerate(leaf[:-1]) if sentence.marks]
        last_marks = [mark for sentence in (*leaf[-1:], *below) for mark in sentence.marks]
        if last_marks:
            first_shared = cited[-1] + 1 if cited else 0
        else:
            first_shared = len(leaf)
        for number, sentence in enumerate(leaf):
            parts = (sentence, *below) if sentence is leaf[-1] else (sentence,)
            self._add_unit(parts, sentence.words)
            if number == 0 and is_lead(sentence) and (len(leaf) > 1 or not is_sentence(sentence.words)):
                continue
            yield from self._claim(
                parts,
                shared=tuple(last_marks) if number >= first_shared else (),
                only_cited=self._about_research,
                introduces=introduces and sentence is leaf[-1],
            )

    def _row(self, row: tuple[Sentence, ...], heads: tuple[Sentence, ...], *, at_end: bool) -> Iterator[Claim]:
        """Yield the cells of a row that state something, each with the citations that count for it.

        A citation in a cell of its own belongs to the cell before. For cells without any count that in the head of
        their column; else one in a cell of its own, or in the first cell, which names what the row is about, and, in a
        table whose rows have theirs `at_end`, that of the last cell; else that in the first head. Other writers cite
        cell by cell: beside a cited cell, "no finding" is a word about the research, and behind one the citation of the
        first cell counts no more. A row without citations and a row
        whose first cell alone has words are one claim each, if any; a header is none.
        """
        if not heads:
            return
        cells = _group_cells(row)
        first = cells[0] if cells and cells[0][0] == 0 else None
        alone = [cell for cell in row if not cell.words]
        at_last = cells[-1][1] if at_end and cells else ()
        behind_cited = _first_marks(alone, at_last, heads[:1])
        shared = _first_marks(dict.fromkeys([*(first[1] if first else ()), *alone]), at_last, heads[:1])
        of_column = {column: tuple(cell.marks) for column, cell in enumerate(heads) if column}
        head = first if first and not any(part.marks for part in first[1]) else None
        stating = [cell for cell in cells if cell is not head]
        is_cited = any(cell.marks for cell in (*row, *heads))
        if not is_cited or not stating:
            yield from self._claim(row, row=True)
            return
        names = [heads[column].words if column < len(heads) else "" for column in range(len(row))]
        labelled = {
            column: f"{names[column]}: {parts[0].words}" if names[column] else parts[0].words for column, parts in cells
        }
        for column, parts in stating:
            others = "; ".join(text for number, text in labelled.items() if number != column)
            yield from self._claim(
                parts,
                shared=of_column.get(column, ()) or shared,
                cell=True,
                row_head=row[0].words if column else "",
                place=self._here(row=others, column=names[column]),
            )
            if column and any(part.words and part.marks for part in parts):
                shared = behind_cited

    def _quote(self, block: Block, below: tuple[Sentence, ...]) -> Iterator[Claim]:
        pieces: list[list[Sentence]] = [[]]
        for sentence in (*sentences(block.parts[0]), *below):
            pieces[-1].append(sentence)
            if sentence.marks:
                pieces.append([])
        # Words after the last citation belong to its piece.
        trailing = pieces.pop()
        if pieces:
            pieces[-1] += trailing
        for piece in pieces or [trailing]:
            self._add_unit(piece, shorten(" ".join(part.words for part in piece), MAX_AFTER))
            yield from self._claim(tuple(piece), quoted=True)

    def _claim(
        self,
        parts: tuple[Sentence, ...],
        *,
        words: str = "",
        quoted: bool = False,
        code: bool = False,
        row: bool = False,
        cell: bool = False,
        row_head: str = "",
        place: ClaimPlace | None = None,
        shared: tuple[CitationMark, ...] = (),
        only_cited: bool = False,
        introduces: bool = False,
    ) -> Iterator[Claim]:
        own = [mark for part in parts for mark in part.marks]
        evidence_ids = list(dict.fromkeys(key for mark in own or shared for key in mark.evidence_ids))
        words = words or (CELL_BREAK if row else " ").join(text for part in parts if (text := part.words))
        words = words.lstrip(".,;:!? ") if quoted else words
        # A short cell with a citation of its row says something below its head.
        states = cell and shared and any(map(str.isalnum, words))
        states = states or _asserts(words, self._language, introduces=introduces)
        # A citation alone states nothing: it counts for the block above it.
        if words and (own or (not only_cited and states)):
            yield Claim(
                id="",
                text=words,
                section=self._section,
                evidence_ids=evidence_ids,
                sentences=parts,
                quoted=quoted,
                code=code,
                row=row,
                cell=cell,
                row_head=row_head,
                place=place or self._here(),
                shared=shared,
            )


def _first_marks(*places: Iterable[Sentence]) -> tuple[CitationMark, ...]:
    """Return the citations of the first of some places that has any."""
    return next(filter(None, (tuple(mark for part in parts for mark in part.marks) for parts in places)), ())


def _cites_at_ends(rows: Sequence[tuple[Sentence, ...]]) -> bool:
    """Return whether the rows of a table that cite anything, at least two, do so behind their last words alone."""
    cited = [(row, cells) for row in rows if any(cell.marks for cell in row) and (cells := _group_cells(row))]
    return len(cited) > 1 and all(
        not any(cell.marks for cell in row if cell not in cells[-1][1]) for row, cells in cited
    )


def _group_cells(row: tuple[Sentence, ...]) -> list[tuple[int, tuple[Sentence, ...]]]:
    """Return the cells with words by their columns, each with the cells of mere citations that follow it.

    Such cells before the first one with words belong to that one.
    """
    groups: list[tuple[int, tuple[Sentence, ...]]] = []
    waiting: tuple[Sentence, ...] = ()
    for column, cell in enumerate(row):
        if cell.words:
            groups.append((column, (*waiting, cell)))
            waiting = ()
        elif cell.marks and groups:
            groups[-1] = (groups[-1][0], (*groups[-1][1], cell))
        elif cell.marks:
            waiting = (*waiting, cell)
    return groups


def _lone_marks(block: Block) -> tuple[Sentence, ...]:
    """Return the sentences of a paragraph or a quote that has citations alone; none of any other block."""
    found: tuple[Sentence, ...] = ()
    if block.kind == "paragraph":
        found = block.sentences
    elif block.kind == "quote" and all(part.kind == "paragraph" for part in block.parts[0]):
        found = tuple(sentences(block.parts[0]))
    return found if any(one.marks for one in found) and not any(one.words for one in found) else ()


def is_lead(sentence: Sentence) -> bool:
    """Return whether a first sentence is a lead word in bold or italics, without a citation."""
    runs = [inline for inline in sentence.inlines if isinstance(inline, Run) and inline.text.strip()]
    return not sentence.marks and bool(runs) and all(run.bold or run.italic for run in runs)


def is_sentence(line: str) -> bool:
    """Return whether a line in bold or italics ends as a sentence does; any other is a heading."""
    return line.endswith(SENTENCE_ENDS)


def _asserts(sentence: str, language: str, *, introduces: bool) -> bool:
    """Return whether an uncited sentence is a claim about the world; in doubt, it is.

    Questions, lines that introduce a list or a quotation (`introduces`), and labels are not.
    """
    text = sentence.strip().rstrip("\"'”’»“)]*_`").rstrip()
    if text.endswith(("?", "？", "؟")) or (introduces and text.endswith((":", "："))):
        return False
    return len(re.findall(r"[^\W_]+(?:['’.-][^\W_]+)*", text)) >= MIN_WORDS or bool(find_quantities(text, language))


class CitingClaim(Protocol):
    """A claim in the form of a tree or of a stored draft, as the figures of a verification need it."""

    @property
    def text(self) -> str:
        """Plain text."""

    @property
    def section(self) -> str:
        """The nearest heading above it."""

    @property
    def citations(self) -> int:
        """The count of its citations."""


def split_off_by(corrections: Iterable[Correction]) -> frozenset[str]:
    """Return the words of the statements that corrections split off."""
    return frozenset(words for correction in corrections for words in correction.split_off)


def count_verdicts(
    summary: VerificationSummary,
    judged: Sequence[tuple[CitingClaim, ClaimVerdict]],
    split_off: Collection[str] = frozenset(),
) -> VerificationSummary:
    """Return a summary with the figures of these claims and their verdicts; its counts of corrections stay.

    `split_off` are the texts of the parts without support of statements whose other parts are supported.
    """
    removed = summary.correction_counts.get(CorrectionAction.REMOVE, 0)
    verdicts = Counter(found.verdict for _, found in judged)
    undecided = verdicts[Verdict.UNVERIFIED] + verdicts[Verdict.NOT_ENOUGH_INFORMATION]
    decided = max(1, len(judged) - undecided)
    cited = [(claim, found.verdict) for claim, found in judged if claim.citations]
    return summary.with_fields(
        claims=len(judged),
        uncited_claims=len(judged) - len(cited),
        verdict_counts=dict(sorted(verdicts.items())),
        method_counts=dict(sorted(Counter(found.method for _, found in judged).items())),
        unsupported_share=round(verdicts[Verdict.UNSUPPORTED] / decided, 4),
        contradicted_share=round(verdicts[Verdict.CONTRADICTED] / decided, 4),
        effective_citations=sum(claim.citations for claim, verdict in cited if verdict == Verdict.SUPPORTED),
        warning=not is_well_supported(cited, split_off) or (removed > 0 and not cited),
    )


def is_well_supported(cited: Sequence[tuple[CitingClaim, Verdict]], split_off: Collection[str] = frozenset()) -> bool:
    """Return whether a report's cited statements are supported well enough for a completed run.

    None of them is contradicted, none in the answer itself (the first section) is unsupported, and at most a fifth are
    unsupported overall. A part that was split off makes the answer no worse than the statement supported in part that
    it was: it is marked, and counts overall.
    """
    unsupported = [claim for claim, verdict in cited if verdict == Verdict.UNSUPPORTED]
    return (
        all(verdict != Verdict.CONTRADICTED for _, verdict in cited)
        and all(claim.text in split_off or claim.section != cited[0][0].section for claim in unsupported)
        and len(unsupported) <= MAX_UNSUPPORTED_SHARE * len(cited)
    )
