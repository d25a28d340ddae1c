"""The unit in which an answer is quoted: a definition with its term, a list as a whole, a row, or whole sentences."""

from bisect import bisect_left
from typing import Final

from providers.extractive.answer_search import FoundAnswer
from providers.extractive.asked_form import MEASURES, AnswerForm
from providers.extractive.passages import announces, grow, leans, span_of
from providers.extractive.text_structure import Structure, TextBlockKind

LONGEST_ANSWER: Final = 1_000
LONGEST_LEAD: Final = 700
"""Characters of a paragraph that may stand before the sentence that answers."""
SPACIOUS: Final = frozenset(
    {
        AnswerForm.STEPS,
        AnswerForm.REASON,
        AnswerForm.DEFINITION,
        AnswerForm.PURPOSE,
        AnswerForm.MECHANISM,
        AnswerForm.CONSEQUENCE,
        AnswerForm.DIFFERENCE,
        AnswerForm.YES_NO,
        AnswerForm.TOPIC,
    }
)
"""Forms where the sentences after the first one belong to the answer."""
ONE_VALUE: Final = MEASURES | {AnswerForm.VALUE}
"""Forms whose answer is an entry of a reference: what else it says (unit, range) belongs to the value."""
LONGEST_ENTRY: Final = 700
LISTING: Final = frozenset({TextBlockKind.ITEM, TextBlockKind.CODE})
TABLE: Final = frozenset({TextBlockKind.HEAD, TextBlockKind.ROW})
LONGEST_STEPS: Final = 2_000
"""Characters of a numbered list: what is left out of a longer one is whole steps."""
LEAST_STEPS: Final = 2
JOINING_WORDS: Final = 2
LONGEST_REPLY: Final = 600
"""Characters from which on the answer under a heading that asks gets no further paragraph."""


def answer_span(answer: FoundAnswer, form: AnswerForm) -> tuple[int, int] | None:
    """The character range to quote, or None where the sentence cannot stand by itself."""
    document, seed = answer.reading.document, answer.index
    block = document.block_of(seed)
    sentence = document.sentences[seed]
    if answer.reply:
        return _reply_span(document, seed)
    if block.kind in (TextBlockKind.ROW, TextBlockKind.LABEL):
        return sentence.start, sentence.end
    if form is AnswerForm.STEPS and (whole := _numbered_span(document, seed)) is not None:
        return whole
    first = _first_of_block(document, seed)
    if document.of(sentence).rstrip().endswith(":"):
        found = None
        if not leans(document, seed):
            found = _list_span(document, seed)
        elif not leans(document, first) and sentence.end - document.sentences[first].start <= LONGEST_LEAD:
            found = _list_span(document, first)
        if found is not None:
            return found
    stands = not leans(document, first)
    if form is AnswerForm.STEPS and stands and (end := _commands_end(document, seed)) is not None:
        start = span_of(
            document, first if sentence.end - document.sentences[first].start <= LONGEST_LEAD else seed, seed
        )[0]
        if end - start <= LONGEST_ANSWER and (first == seed or not leans(document, seed) or start < sentence.start):
            return start, end
    if stands and block.label is not None and sentence.end - block.label <= LONGEST_ANSWER:
        last = _last_of_block(document, seed) if form in ONE_VALUE else seed
        whole = span_of(document, first, last)
        return whole if whole[1] - whole[0] <= LONGEST_ENTRY else span_of(document, first, seed)
    wanted = [0.0] * len(document.sentences)
    wanted[seed] = 1.0
    if form in SPACIOUS:
        for index in range(seed + 1, min(seed + 4, len(wanted))):
            wanted[index] = 0.6
    grown = grow(document, seed, wanted, spare=form not in SPACIOUS)
    if (
        grown is None
        and stands
        and sentence.end - document.sentences[first].start <= LONGEST_LEAD
        and seed - first <= 3
    ):
        grown = (first, seed)
    return span_of(document, *grown) if grown is not None else None


def _reply_span(document: Structure, index: int) -> tuple[int, int]:
    """The paragraphs, lists and commands under a heading that asks, as many as fit, and the first one always."""
    own = document.sentences[index].block
    section = document.blocks[own].section
    while own and document.blocks[own - 1].section == section and document.blocks[own - 1].start > section:
        own -= 1
    start, end = document.blocks[own].start, document.blocks[own].end
    for block in document.blocks[own + 1 :]:
        if (
            block.section != document.blocks[own].section
            or block.end - start > LONGEST_ANSWER
            or (end - start > LONGEST_REPLY and block.kind not in LISTING)
        ):
            break
        end = block.end
    return start, start + len(document.text[start:end].rstrip())


def _numbered_span(document: Structure, index: int) -> tuple[int, int] | None:
    """The whole numbered list that a sentence belongs to or announces, with its code; None where there is none."""
    own = document.sentences[index].block
    blocks, section = document.blocks, document.blocks[own].section
    first = own
    if blocks[own].kind is TextBlockKind.PROSE and _number(document, own + 1, section) == 1:
        first = own + 1
    while first > 0 and blocks[first - 1].section == section and _number(document, first, section) != 1:
        first -= 1
    if _number(document, first, section) != 1:
        return None
    last, reached, number = first, 1, first
    while number + 1 < len(blocks) and blocks[number + 1].section == section:
        number += 1
        step = _number(document, number, section)
        if step == reached + 1:
            last, reached = number, step
        elif blocks[number].kind is TextBlockKind.CODE and number == last + 1:
            last = number
        elif step is not None:
            break
    if reached < LEAST_STEPS or not first - 1 <= own <= last:
        return None
    start = blocks[first].start
    above = document.blocks[first - 1] if first else None
    if above is not None and above.section == section and above.kind is TextBlockKind.PROSE:
        until = bisect_left(document.sentences, first, key=lambda one: one.block)
        told = [until - 1] if until and document.sentences[until - 1].block == first - 1 else []
        if told and announces(document, told[-1]) and not leans(document, told[-1]):
            start = document.sentences[told[-1]].start
    while last > first and blocks[last].end - start > LONGEST_STEPS:
        last -= 1
    if last == first:
        return None
    return start, start + len(document.text[start : blocks[last].end].rstrip())


def _number(document: Structure, block: int, section: int) -> int | None:
    """The number of an item of a section; None for what is none."""
    if block >= len(document.blocks) or document.blocks[block].section != section:
        return None
    if document.blocks[block].kind is not TextBlockKind.ITEM:
        return None
    mark = document.mark_of(document.blocks[block]).rstrip(".)")
    return int(mark) if mark.isdigit() else None


def _first_of_block(document: Structure, index: int) -> int:
    while index > 0 and document.sentences[index - 1].block == document.sentences[index].block:
        index -= 1
    return index


def _last_of_block(document: Structure, index: int) -> int:
    sentences = document.sentences
    while index + 1 < len(sentences) and sentences[index + 1].block == sentences[index].block:
        index += 1
    return index


def _commands_end(document: Structure, index: int) -> int | None:
    """Where the commands end that stand right behind the paragraph of a sentence, or None if there are none."""
    own = document.sentences[index].block
    following = document.blocks[own + 1 : own + 2]
    if (
        not following
        or following[0].kind is not TextBlockKind.CODE
        or following[0].section != document.blocks[own].section
    ):
        return None
    start, end = following[0].start, document.blocks[_last_code(document, own + 1)].end
    return start + len(document.text[start:end].rstrip())


def _last_code(document: Structure, number: int) -> int:
    """The last of several pieces of code with no more than a word such as `or` between them."""
    blocks, section = document.blocks, document.blocks[number].section
    while number + 1 < len(blocks) and blocks[number + 1].section == section:
        between = document.text[blocks[number + 1].start : blocks[number + 1].end].split()
        joined = len(between) <= JOINING_WORDS and blocks[number + 1].kind in (TextBlockKind.PROSE, TextBlockKind.LABEL)
        following = blocks[number + 2 : number + 3]
        if (
            not joined
            or not following
            or following[0].kind is not TextBlockKind.CODE
            or following[0].section != section
        ):
            break
        number += 2
    return number


def _list_span(document: Structure, index: int) -> tuple[int, int] | None:
    """From a sentence of the paragraph that announces a list, or code, to the end of it; as many whole items as fit."""
    own = document.sentences[index].block
    start, end = document.sentences[index].start, document.blocks[own].end
    section = document.blocks[own].section
    last = None
    if document.blocks[own + 1 : own + 2] and document.blocks[own + 1].kind is TextBlockKind.CODE:
        last = document.blocks[_last_code(document, own + 1)]
        fits = last.section == section and last.end - start <= LONGEST_ANSWER
        return (start, start + len(document.text[start : last.end].rstrip())) if fits else None
    kinds = TABLE if document.blocks[own + 1 : own + 2] and document.blocks[own + 1].kind in TABLE else LISTING
    for block in document.blocks[own + 1 :]:
        if block.kind not in kinds or block.section != section or block.end - start > LONGEST_ANSWER:
            break
        last = block
    if last is None or last.end <= end:
        return None
    return start, start + len(document.text[start : last.end].rstrip())
