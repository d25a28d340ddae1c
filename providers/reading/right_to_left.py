"""Lines with writing from right to left, put into the order in which they are spoken.

Programs draw such lines from the left, from the right, or word by word, and a PDF says only where each letter is. So
the letters of a line are taken from the left, as an eye sees them, and turned round by the rules of Unicode's
bidirectional algorithm (UAX #9), read backwards: numbers and words of other writing keep their direction.
"""

import unicodedata
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

GAP: Final = 0.09  # of the height of a line, from which a gap between two letters is a space
GAP_OF_WORDS: Final = 0.04  # the same, between two letters that an engine has in different words
RIGHT: Final = frozenset(("R", "AL"))
NUMBER: Final = frozenset(("EN", "AN"))
BETWEEN_DIGITS: Final = frozenset(("ES", "CS"))
BESIDE_DIGITS: Final = frozenset(("ET",))
ALEFS: Final = frozenset("\u0622\u0623\u0625\u0627\u0671")
LAM: Final = "\u0644"
BRACKETS: Final = {"(": ")", "[": "]", "{": "}", "<": ">", "«": "»", "‹": "›"}
MIRRORED: Final = BRACKETS | {closing: opening for opening, closing in BRACKETS.items()}
NEAR: Final = 3  # letters on each side of a mark of which one may carry it
OFTEN: Final = 0.6
"""Share of the marks of a line that point to the letter drawn before them, or after them, where that is its rule."""
SPACE: Final = " "


@dataclass(slots=True)
class Glyph:
    """A sign on the page with its letters, in points; a space that is only a gap has no place of its own."""

    text: str
    left: float
    right: float
    word: float = -1
    """Number of the word to which an engine counts it."""
    place: int = -1
    """Its place in the order of drawing."""

    @property
    def middle(self) -> float:
        """Where a mark points to."""
        return (self.left + self.right) / 2

    @property
    def kind(self) -> str:
        """The bidirectional class of its first letter."""
        return unicodedata.bidirectional(self.text[0])


def parted(glyphs: Iterable[Glyph], gap: float) -> Iterator[list[Glyph]]:
    """Yield the letters of a line from the left, divided at gaps wider than `gap`, as between columns."""
    part: list[Glyph] = []
    right = 0.0
    for glyph in sorted(glyphs, key=lambda each: each.left):
        if part and glyph.left - right > gap:
            yield part
            part = []
        right = max(right, glyph.right) if part else glyph.right
        part.append(glyph)
    if part:
        yield part


def spoken_words(glyphs: Iterable[Glyph], height: float) -> list[list[Glyph]]:
    """Return the words of a line, each with its letters, in the order in which they are spoken."""
    signs = _with_gaps(_clusters(glyphs), height)
    kinds = [sign.kind for sign in signs]
    right = sum(kind in RIGHT for kind in kinds)
    units = list(_units(signs, kinds))
    if right >= kinds.count("L"):
        ordered = _turned(units)
    else:
        ordered = list(_turned_parts(units))
    return [list(word) for is_space, word in groupby(ordered, key=lambda sign: sign.text == SPACE) if not is_space]


def _clusters(glyphs: Iterable[Glyph]) -> list[Glyph]:
    """Join letters that one sign of the page shows, and marks with the letter that carries them; from the left."""
    found: list[list[Glyph]] = []
    for letter in sorted(_with_marks(list(glyphs)), key=lambda each: (each.left, each.right)):
        last = found[-1][-1] if found else None
        if last and letter.left == last.left and letter.right == last.right and letter.kind in RIGHT:
            found[-1].append(letter)
        else:
            found.append([letter])
    signs = []
    for letters in found:
        if [letter.text[0] for letter in letters[1:]] == [LAM] and letters[0].text[0] in ALEFS:  # as an engine turns it
            letters.reverse()
        signs.append(replace(letters[0], text="".join(letter.text for letter in letters)))
    return signs


def _with_marks(glyphs: list[Glyph]) -> list[Glyph]:
    """Return the letters, each with its marks; forms of letters are the letters of which they are forms.

    A mark may reach over the next letter. Most programs draw each one right after its letter, or right before it.
    """
    drawn = sorted(glyphs, key=lambda each: each.place)
    letters = sorted((glyph for glyph in glyphs if not _is_mark(glyph)), key=lambda each: each.left)
    marks = [glyph for glyph in drawn if _is_mark(glyph)]
    by_rule = max(_carried(drawn), _carried(drawn[::-1]), key=len)
    rule = {}
    if len(by_rule) >= OFTEN * len(marks):
        rule = {id(mark): letter for mark, letter in by_rule}
    sides = [letter.left for letter in letters]
    carried: defaultdict[int, list[Glyph]] = defaultdict(list)
    for mark in marks:
        letter = rule.get(id(mark)) or _nearest(mark, letters, sides)
        if letter is not None:
            carried[id(letter)].append(mark)
    return [replace(letter, text=_marked(letter, carried[id(letter)])) for letter in letters]


def _is_mark(glyph: Glyph) -> bool:
    return unicodedata.category(glyph.text[0]) == "Mn"


def _carried(drawn: list[Glyph]) -> list[tuple[Glyph, Glyph]]:
    """Return the marks that point to the letter that comes before them, with that letter."""
    pairs: list[tuple[Glyph, Glyph]] = []
    letter: Glyph | None = None
    for glyph in drawn:
        if glyph.text.isalpha():
            letter = glyph
        elif letter is not None and _is_mark(glyph) and letter.left <= glyph.middle <= letter.right:
            pairs.append((glyph, letter))
    return pairs


def _nearest(mark: Glyph, letters: list[Glyph], sides: list[float]) -> Glyph | None:
    """Return the letter of which a mark points most to the middle; `sides`: the left sides of all letters."""
    place = bisect_right(sides, mark.middle)
    near = letters[max(0, place - NEAR) : place + NEAR]
    return min(near, key=lambda each: max(each.left - mark.middle, mark.middle - each.right), default=None)


def _marked(letter: Glyph, marks: list[Glyph]) -> str:
    """Return a letter with its marks; of a ligature each mark belongs to the part below it, the first at the right."""
    text = letter.text
    if "\ufb1d" <= text[0] <= "\ufefc":  # a form of a letter, or a ligature
        text = unicodedata.normalize("NFKC", text)
    parts = list(text)
    width = (letter.right - letter.left) / len(parts)
    for mark in marks:
        part = int((letter.right - mark.middle) / width) if width > 0 else 0
        parts[min(max(part, 0), len(parts) - 1)] += mark.text
    return "".join(parts)


def _with_gaps(signs: list[Glyph], height: float) -> list[Glyph]:
    """Put a space where there is a gap between two signs."""
    spaced: list[Glyph] = []
    for sign in signs:
        share = GAP if spaced and spaced[-1].word == sign.word else GAP_OF_WORDS
        if spaced and sign.left - spaced[-1].right > share * height:
            spaced.append(Glyph(SPACE, spaced[-1].right, sign.left))
        spaced.append(sign)
    return spaced


def _units(signs: list[Glyph], kinds: list[str]) -> Iterator[list[Glyph]]:
    """Yield what is turned as a whole: numbers, words of other writing with what is between them, and single signs."""
    place = 0
    while place < len(signs):
        end = place + 1
        if kinds[place] == "L":
            end = _end_of_left(signs, kinds, place)
        elif kinds[place] in NUMBER | BESIDE_DIGITS:
            end = _end_of_number(kinds, place)
        yield signs[place:end]
        place = end


def _end_of_left(signs: list[Glyph], kinds: list[str], start: int) -> int:
    """Return the end of a run from left to right: its last letter or digit, and a bracket that it opened."""
    end = start + 1
    for place in range(start + 1, len(signs)):
        if kinds[place] in RIGHT:
            break
        if kinds[place] == "L" or kinds[place] in NUMBER:
            end = place + 1
    opened = [MIRRORED.get(sign.text) for sign in signs[start:end] if sign.text in BRACKETS]
    closed = sum(sign.text in MIRRORED and sign.text not in BRACKETS for sign in signs[start:end])
    while closed < len(opened) and end < len(signs) and signs[end].text in opened:
        end += 1
        closed += 1
    return end


def _end_of_number(kinds: list[str], start: int) -> int:
    """Return the end of a number with its separators and signs of currency; a sign without digits is by itself."""
    end = start
    while end < len(kinds):
        is_between = kinds[end] in BETWEEN_DIGITS and end + 1 < len(kinds) and kinds[end + 1] in NUMBER and end > start
        if not (is_between or kinds[end] in NUMBER | BESIDE_DIGITS):
            break
        end += 1
    if NUMBER.intersection(kinds[start:end]):
        return end
    return start + 1


def _turned(units: list[list[Glyph]]) -> list[Glyph]:
    """Return units from the right. Some programs name brackets as they look: what is beside one says what it is."""
    signs = [sign for unit in reversed(units) for sign in unit]
    single = {id(unit[0]) for unit in units if len(unit) == 1}
    for place, sign in enumerate(signs):
        if sign.text in MIRRORED and id(sign) in single:
            after_word = place > 0 and signs[place - 1].text != SPACE
            before_word = place + 1 < len(signs) and signs[place + 1].text != SPACE
            opening, closing = sorted((sign.text, MIRRORED[sign.text]), key=BRACKETS.__contains__, reverse=True)
            if before_word != after_word:
                sign.text = opening if before_word else closing
            else:
                sign.text = MIRRORED[sign.text]
    return signs


def _turned_parts(units: list[list[Glyph]]) -> Iterator[Glyph]:
    """Yield a line from left to right; what is between its first and last letter of another run is turned."""
    place = 0
    while place < len(units):
        end = place + 1
        if units[place][0].kind in RIGHT:
            for later in range(place + 1, len(units)):
                if units[later][0].kind == "L":
                    break
                if units[later][0].kind in RIGHT:
                    end = later + 1
            yield from _turned(units[place:end])
        else:
            yield from units[place]
        place = end
