"""Whether a piece of text holds the form of answer that is asked for, and where in it."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from providers.extractive.asked_form import AnswerForm, AskedForm
from providers.extractive.question_terms import NOUNS_ARE_CAPITAL
from providers.language_words import WORD, LanguageWords, fold, language_words
from providers.text import stem

FIGURE: Final = re.compile(
    r"(?<![\w.])[-+~]?\d[\d.,]*+(?:\s?[x×^]\s?\d++)?(?![\w])|(?<![\w.])\d[\d.,]*+(?=[A-Za-z%]{1,4}\b)"
)
DIGITS: Final = re.compile(r"\d")
CURRENCY: Final = re.compile(r"[$€£¥]\s?\d|\d\s?[$€£¥]")
SIZE_SIGN: Final = re.compile(r"\d\s?[kKMGTPE]i?[Bb]?\b|\d\s?%")
YEAR: Final = re.compile(
    r"(?<![\w.,])(?:1[5-9]\d\d|20\d\d)(?![\w]|[.,]\d)"
    r"|(?<!\w)(?:in|since|from|until|by|im\s+jahre?|im|seit|um|en|depuis|desde|vers|nel|dal|em|anno|sinds)\s+1[0-4]\d\d(?![\w]|[.,]\d)",
    re.IGNORECASE,
)
DAY: Final = re.compile(r"(?<!\d)\d{4}-\d\d-\d\d(?!\d)|(?<!\d)\d{1,2}[./]\d{1,2}[./]\d{2,4}(?!\d)")
PATH: Final = re.compile(
    r"(?<![\w/])[~.]?/[\w.-]++(?:/[\w.$-]*+)*+|\b[A-Z]:\\\w|(?<![\w-])[\w-]++\.(?:conf|cfg|ini|toml|ya?ml|json|txt|log|xml|db|sqlite|sh|service)\b|\$[A-Z_]{3,}+|%\w++%"
)
PERSON_NAME: Final = re.compile(
    r"(?<![\w.])(?!(?:The|This|These|In|If|For|When|An?|It|On|To|By|As|At)\s)[A-ZÀ-Ý](?:\.|[a-zà-ÿ'’-]+)\s(?:(?:van|von|de|der|den|di|da|du|la|le)\s){0,2}(?:[A-ZÀ-Ý]\.\s){0,2}[A-ZÀ-Ý][\w'’-]*[a-zà-ÿ]"
)
MARKED_NAME: Final = re.compile(
    r"\w_\w|\b[A-Z]{2,}+\b|\w\(\)|--\w|[“\"'`‘«„]\S|[a-z][A-Z]\w|\b[A-Z][a-z]++\b|\w-\w|\.\w{2,4}\b|/\w"
)
MARKED_AMID_CAPITALS: Final = re.compile(
    r"\w_\w|\b[A-Z]{2,}+\b|\w\(\)|--\w|[“\"'`‘«„]\S|[a-z][A-Z]\w|\b[a-z]++-[a-z]|\.\w{2,4}\b|/\w|\b[A-Z]\w++\s[A-Z]"
)
"""The same where every noun has a capital: two of them side by side, or another mark."""
SYMBOL_VALUE: Final = re.compile(r"[“\"'`‘«„]|\b[A-Z_]{2,}+\b|\w_\w|\d|(?<!\w)/\w|\b[A-Z]++-\d|\$\w")
VERSION: Final = re.compile(r"(?<![\w.])v?\d++\.\d++(?:\.\d++)*+(?![\w])")

LONGEST_PREPOSITION: Final = 5
"""Letters; a longer word of place is a noun or a verb."""
LONGEST_VALUE: Final = 6
"""Words of a table's cell that is a value."""
BESIDE: Final = 5
"""Tokens between a name and the word for its kind."""
OPENING: Final = 400
"""Characters in which a definition says what it is of."""
HEAD_LAST: Final = ("en", "de", "nl")
"""Languages in which the head of a compound stands last: `log levels`."""
DONE: Final = 0.3
"""Of a sentence about what is to be remembered while something is done, not how it is done."""
FEW_WORDS: Final = 2
ROLE: Final = 0.55
"""Of a maker without a name."""
WEAK_REASON: Final = 0.7
"""Of a word that also tells what follows, or what is allowed: `thus`, `allows`."""
NEAR: Final = 9
"""Tokens within which two things are said of each other."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A text to look at: its words with their places."""

    text: str
    tokens: tuple[str, ...]
    starts: tuple[int, ...]
    row: bool = False
    label: bool = False
    """Whether it explains a term line of its own."""
    lead: bool = False
    """Whether it opens the section that is about the subject."""
    announces: bool = False
    """Whether a list or a table stands right behind it."""

    @classmethod
    def of(cls, text: str, *, row: bool = False, label: bool = False) -> "Piece":
        """Cut a text into words."""
        found = list(WORD.finditer(text))
        return cls(
            text,
            tuple(match[0].casefold().replace("’", "'") for match in found),
            tuple(match.start() for match in found),
            row,
            label,
        )

    def token_at(self, offset: int) -> int:
        """The number of the last word that begins at or before an offset."""
        place = 0
        for number, start in enumerate(self.starts):
            if start > offset:
                break
            place = number
        return place

    def places_of(self, pattern: re.Pattern[str]) -> list[int]:
        """Numbers of the words where a pattern matches."""
        return [self.token_at(match.start()) for match in pattern.finditer(self.text)]


@dataclass(frozen=True, slots=True)
class AnswerEvidence:
    """How well a piece holds the form (0 to 1), and by which words."""

    strength: float
    places: tuple[int, ...] = ()


NONE: Final = AnswerEvidence(0.0)


@dataclass(frozen=True, slots=True)
class _Look:
    """What a form is looked for with."""

    asked: AskedForm
    piece: Piece
    known: LanguageWords
    is_name: Callable[[str], bool]


def evidence(asked: AskedForm, piece: Piece, is_name: Callable[[str], bool] = bool) -> AnswerEvidence:
    """How well a piece of text holds the form of answer; `is_name` tells a capitalised word that is a name."""
    known = language_words(asked.language)
    if not piece.tokens or piece.text.rstrip().endswith("?"):
        return NONE
    found = _FORMS.get(asked.form, _statement)(_Look(asked, piece, known, is_name))
    for bound in asked.bounds:
        if found.strength and asked.form is not AnswerForm.VALUE and not known.tells[bound].found(piece.tokens):
            found = AnswerEvidence(found.strength * (0.8 if piece.row else 0.5), found.places)
    return found


def _near(one: Sequence[int], other: Sequence[int], within: int = NEAR) -> list[int]:
    return [place for place in one if any(abs(place - beside) <= within for beside in other)]


def _figures(look: _Look) -> list[int]:
    """Places of numbers in digits or words; numbers of sections and the parts of names are none."""
    return sorted({*look.piece.places_of(FIGURE), *(p for p in look.known.tells["numbers"].places(look.piece.tokens))})


def _person(look: _Look) -> AnswerEvidence:
    if look.known.code == "en" and _is_of_a_part(look):
        return NONE
    makers = look.known.tells["makers"].places(look.piece.tokens)
    own = set(fold(look.asked.text))
    names = [
        look.piece.token_at(match.start())
        for match in PERSON_NAME.finditer(look.piece.text)
        if all(
            look.is_name(word)
            and word.casefold().removesuffix("'s").removesuffix("’s") not in own
            and not (word.isupper() and len(word) > FEW_WORDS)
            and not _JOINED.search(word)
            for word in WORD.findall(match[0])
            if len(word) > 1
        )
    ]
    near = _near(names, makers, 14)
    if near:
        return AnswerEvidence(1.0, tuple(near))
    if names:
        return AnswerEvidence(0.85 if look.known.code != "de" else 0.7, tuple(names))
    asked = _asked_stems(look)
    roles = [
        p
        for p in makers
        if len(look.piece.tokens[p]) > 3 and stem(look.piece.tokens[p], look.asked.language) not in asked
    ]
    return AnswerEvidence(ROLE, tuple(roles)) if roles else NONE


def _is_of_a_part(look: _Look) -> bool:
    """Whether the name stands only before a noun that is something else: who wrote a Postfix patch wrote no Postfix."""
    names = {token for name in look.asked.names for token in fold(name)}
    told, piece = [place for place, token in enumerate(look.piece.tokens) if token in names], look.piece
    asked = set(fold(look.asked.text))
    small = look.known.stop | look.known.tells["makers"].first_words() | _SAME_THING | asked
    for place in told:
        after = piece.starts[place] + len(piece.tokens[place])
        following = piece.tokens[place + 1] if place + 1 < len(piece.tokens) else ""
        gap = piece.text[after : piece.starts[place + 1]] if following else "."
        if gap.strip(" -/") or following in small or not following[:1].isalpha() or following.endswith(("ed", "'s")):
            return False
    return bool(told)


def _asked_stems(look: _Look) -> set[str]:
    """The stems of the question: what it says itself is no answer to it."""
    return {stem(token, look.asked.language) for token in fold(look.asked.text)}


def _time(look: _Look) -> AnswerEvidence:
    if look.known.tells["version"].found(fold(look.asked.text)) and (found := look.piece.places_of(VERSION)):
        return AnswerEvidence(1.0, tuple(found))
    months = look.known.tells["months"].places(look.piece.tokens)
    dates = [*look.piece.places_of(YEAR), *look.piece.places_of(DAY)]
    if dates:
        return AnswerEvidence(1.0, tuple(dates))
    figures = _figures(look)
    if _near(months, figures, 2):
        return AnswerEvidence(0.9, tuple(months))
    tokens = fold(look.asked.text)
    past = any(word in _PAST for word in tokens)
    conditions = look.known.tells["condition"].places(look.piece.tokens)
    return AnswerEvidence(0.7, tuple(conditions)) if conditions and not past else NONE


def _place(look: _Look) -> AnswerEvidence:
    asked, tokens = _asked_stems(look), look.piece.tokens
    whole = look.asked.text.casefold()
    paths = [
        look.piece.token_at(match.start() + 1)
        for match in PATH.finditer(look.piece.text)
        if match[0].casefold() not in whole
    ]
    told = [p for p in look.known.tells["place"].places(tokens) if stem(tokens[p], look.asked.language) not in asked]
    if paths:
        return AnswerEvidence(1.0, tuple(paths))
    named = [
        place
        for match in _CAPITAL.finditer(look.piece.text)
        if (place := look.piece.token_at(match.start()))
        and stem(tokens[place], look.asked.language) not in asked
        and (look.known.code == "de" or look.is_name(match[0]))
    ]
    if near := _near(named, [place for place in told if len(tokens[place]) <= LONGEST_PREPOSITION], 3):
        return AnswerEvidence(0.85, tuple(near))
    strong = [place for place in told if len(tokens[place]) > LONGEST_PREPOSITION]
    if strong:
        return AnswerEvidence(0.5, tuple(strong))
    return AnswerEvidence(0.5, tuple(told)) if told else NONE


def _count(look: _Look) -> AnswerEvidence:
    tokens = look.piece.tokens
    few, units = look.known.tells["few"].first_words(), look.known.tells["duration_units"]
    if any(word.casefold() in units.first_words() for word in look.asked.counted):
        return _duration(look)
    counted = {stem(word, look.asked.language) for word in look.asked.counted}
    sizes = look.known.tells["size_units"]
    other = {place for kind in (YEAR, _SHARE, _IN_A_FORMULA) for place in look.piece.places_of(kind)}
    figures = [
        place
        for place in (*_figures(look), *look.known.tells["unlimited"].places(tokens))
        if tokens[place] not in few
        and place not in other
        and not (
            place + 1 < len(tokens)
            and (units.at(tokens, place + 1) or sizes.at(tokens, place + 1))
            and stem(tokens[place + 1], look.asked.language) not in counted
        )
    ]
    if look.piece.row:
        figures = [place for place in figures if _in_short_cell(look.piece, place)]
    if not figures:
        return NONE
    if look.piece.row:
        return AnswerEvidence(1.0, tuple(figures))
    nouns = [place for place, token in enumerate(tokens) if stem(token, look.asked.language) in counted]
    if close := [place for place in figures if any(0 < beside - place <= 4 for beside in nouns)]:
        held = {stem(token, look.asked.language) for token in tokens[min(close) : max(close) + NEAR]}
        whole = len(counted - held) <= len(counted) // 2
        return AnswerEvidence(1.0 if whole else 0.5, tuple(close))
    if close := [place for place in figures if any(0 < place - beside <= 3 for beside in nouns)]:
        return AnswerEvidence(0.85, tuple(close))
    if not nouns and (
        alone := [
            place
            for place in figures
            if _CLAUSE_END.match(look.piece.text, look.piece.starts[place] + len(tokens[place]))
        ]
    ):
        return AnswerEvidence(0.75 if look.piece.label else 0.6, tuple(alone))
    return (
        AnswerEvidence(0.6, tuple(figures))
        if not nouns and (look.known.tells["maximum"].found(tokens) or look.piece.label)
        else AnswerEvidence(0.3, tuple(figures))
    )


def _in_short_cell(piece: Piece, place: int) -> bool:
    """Whether a word stands in a cell that holds hardly more: a value, no sentence and no formula."""
    offset = piece.starts[place]
    start, end = piece.text.rfind("|", 0, offset) + 1, piece.text.find("|", offset)
    return len(piece.text[start : end if end > 0 else None].split()) <= LONGEST_VALUE


def _size(look: _Look) -> AnswerEvidence:
    figures = _figures(look)
    sizes = [place for place in look.known.tells["size_units"].places(look.piece.tokens) if _near([place], figures, 3)]
    signs = look.piece.places_of(SIZE_SIGN)
    if sizes or signs:
        return AnswerEvidence(1.0, (*sizes, *signs))
    free = look.known.tells["unlimited"].places(look.piece.tokens)
    if free:
        return AnswerEvidence(0.9, tuple(free))
    if figures:
        return AnswerEvidence(
            0.7 if look.piece.row or look.known.tells["maximum"].found(look.piece.tokens) else 0.4, tuple(figures)
        )
    return NONE


def _money(look: _Look) -> AnswerEvidence:
    found = [*look.piece.places_of(CURRENCY), *look.known.tells["money"].places(look.piece.tokens)]
    if found:
        return AnswerEvidence(1.0, tuple(found))
    paid = _near(_figures(look), look.known.tells["pay"].places(look.piece.tokens), 4)
    return AnswerEvidence(0.9, tuple(paid)) if paid else NONE


def _amount(look: _Look) -> AnswerEvidence:
    if look.known.tells["pay"].found(fold(look.asked.text)):
        return _money(look)
    size = _size(look)
    figures = _figures(look)
    return size if size.strength > 0.6 else AnswerEvidence(0.7, tuple(figures)) if figures else NONE


def _duration(look: _Look) -> AnswerEvidence:
    figures = [*_figures(look), *(p for p, t in enumerate(look.piece.tokens) if t in ("a", "an"))]
    units = look.known.tells["duration_units"].places(look.piece.tokens)
    near = _near(units, figures, 2)
    years = look.piece.places_of(YEAR)
    signs = look.piece.places_of(_TIME_SIGN)
    if near or signs:
        return AnswerEvidence(1.0, (*near, *signs))
    if len(years) > 1:
        return AnswerEvidence(0.8, tuple(years))
    size = _size(look)
    return replace(size, strength=0.8 * size.strength)


def _frequency(look: _Look) -> AnswerEvidence:
    told = look.known.tells["frequency"].places(look.piece.tokens)
    units = look.known.tells["duration_units"].places(look.piece.tokens)
    if _near(told, units, 8) or (told and _figures(look)):
        return AnswerEvidence(1.0, tuple(told))
    return AnswerEvidence(0.7, tuple(told)) if told else NONE


def _number(look: _Look) -> AnswerEvidence:
    figures = [*_figures(look), *look.known.tells["unlimited"].places(look.piece.tokens)]
    return AnswerEvidence(1.0, tuple(figures)) if figures else NONE


def _value(look: _Look) -> AnswerEvidence:
    """A default with what it is: after `default is`, or before `is the default`."""
    told = look.known.tells["default"].places(look.piece.tokens)
    if not told:
        return NONE
    asked = {stem(token, look.asked.language) for word in look.asked.content for token in fold(word)}
    said = {place for place, token in enumerate(look.piece.tokens) if stem(token, look.asked.language) in asked}
    values = sorted({*look.piece.places_of(SYMBOL_VALUE), *_figures(look)} - said)
    near = [place for place in values if any(0 <= place - at <= 6 or 0 < at - place <= 5 for at in told)]
    near += _near(look.piece.places_of(_SETTING_WORD), told, 3)
    return AnswerEvidence(1.0 if near else 0.6, tuple(told))


def _steps(look: _Look) -> AnswerEvidence:
    if _is_done_already(look):
        return AnswerEvidence(DONE)
    if look.known.asks_inside["find_out"].found(fold(look.asked.text)) and not look.known.tells["showing"].found(
        look.piece.tokens
    ):
        return AnswerEvidence(DONE)
    told = look.known.tells["steps"].places(look.piece.tokens)
    marked = look.piece.places_of(_COMMAND)
    if (told and marked) or _OPTION.match(look.piece.text):
        return AnswerEvidence(1.0, tuple(told or marked))
    if told:
        return AnswerEvidence(0.75, tuple(told))
    return AnswerEvidence(0.4, tuple(marked)) if marked else NONE


def _is_done_already(look: _Look) -> bool:
    """Whether the doing stands in a condition at the head, as something that is done anyway: `When you start it, …`."""
    tokens, comma = look.piece.tokens, look.piece.text.find(",")
    if comma < 0 or not look.known.tells["condition"].at(tokens, 0) or not look.asked.content:
        return False
    last = look.piece.token_at(comma) + 1
    doing = stem(fold(look.asked.content[0])[0], look.asked.language)
    places = [place for place, token in enumerate(tokens) if stem(token, look.asked.language) == doing]
    return bool(places) and max(places) < last and not look.known.tells["wish"].found(tokens[:last])


def _reason(look: _Look) -> AnswerEvidence:
    told = look.known.tells["reason"].places(look.piece.tokens)
    if not told:
        return AnswerEvidence(0.25)
    denied = look.known.tells["negation"]
    strength = 1.0 if any(look.known.tells["cause"].at(look.piece.tokens, place) for place in told) else WEAK_REASON
    if denied.found(fold(look.asked.text)) and not denied.found(look.piece.tokens):
        strength = min(strength, 0.6)
    return AnswerEvidence(strength, tuple(told))


def _definition(look: _Look) -> AnswerEvidence:
    """The term at the head of the sentence, then a word that says what it is; or the text of a term line."""
    if look.piece.label:
        return AnswerEvidence(1.0)
    wanted = [stem(token, look.asked.language) for word in look.asked.content for token in fold(word)]
    if wanted and _is_given_the_name(look, wanted):
        return AnswerEvidence(0.85)
    piece = Piece.of(_BRACKETS.sub("", look.piece.text[:OPENING]))
    stems = [stem(token, look.asked.language) for token in piece.tokens[:24]]
    ends = [place for place, key in enumerate(stems) if key in wanted]
    if not wanted or not ends:
        return NONE
    copulas = look.known.tells["copula"].places(piece.tokens[:30])
    dash = _GLOSS.search(look.piece.text[:140])
    copulas = [place for place in copulas if place < len(stems) and stems[place] not in wanted]
    head = stems[: copulas[0]] if copulas else []
    share = sum(key in head for key in wanted) / len(wanted)
    if copulas and share == 1.0:
        small = look.known.tells["definition_head"].first_words()
        extra = sum(key not in wanted and piece.tokens[place] not in small for place, key in enumerate(head))
        first = sum(piece.tokens[place] not in small for place in range(min(ends)))
        article = (
            copulas[0] + 1 < len(piece.tokens)
            and piece.tokens[copulas[0] + 1] in look.known.tells["definition_head"].first_words()
        )
        strength = 0.75 + (0.25 if article else 0.1) - 0.12 * min(extra, 6) - (0.25 if first else 0.0)
        return AnswerEvidence(max(0.2, 0.9 if look.piece.lead else 0.0, min(1.0, strength)), (copulas[0],))
    if dash:
        head = fold(dash[0].removeprefix("NAME "))
        extra = sum(stem(token, look.asked.language) not in wanted for token in head)
        return AnswerEvidence(max(0.2, 0.95 - 0.45 * extra))
    if look.piece.lead and ends[0] <= 4:
        return AnswerEvidence(0.85)
    return AnswerEvidence(0.2)


def _is_given_the_name(look: _Look, wanted: Sequence[str]) -> bool:
    """Whether the term stands in brackets behind its long form, or before it, or where a thing is called so."""
    for match in _IN_BRACKETS.finditer(look.piece.text):
        inside = [stem(token, look.asked.language) for token in fold(match[1])]
        letters = "".join(word[0] for word in inside if word)
        before = fold(look.piece.text[: match.start()])
        if inside == list(wanted) and len(before) >= FEW_WORDS:
            return "".join(word[0] for word in before[-len(inside[0]) :]) == inside[0] or match[1].isupper()
        last = [stem(token, look.asked.language) for token in before[-len(wanted) :]]
        if last == list(wanted) and len(inside) >= FEW_WORDS and letters == "".join(before[-1:]):
            return True
    tokens = look.piece.tokens
    for place in look.known.tells["called"].places(tokens):
        behind = place + look.known.tells["called"].at(tokens, place)
        following = [stem(token, look.asked.language) for token in tokens[behind : behind + len(wanted) + 1]]
        small = tokens[behind : behind + 1]
        if following[: len(wanted)] == list(wanted) or (
            following[1:] == list(wanted) and small and small[0] in look.known.tells["definition_head"].first_words()
        ):
            return True
    return False


def _purpose(look: _Look) -> AnswerEvidence:
    return max(_definition(look), _reason(look), key=lambda one: one.strength)


def _items(look: _Look) -> AnswerEvidence:
    told = look.known.tells["items"].places(look.piece.tokens)
    kinds = [place for place, token in enumerate(look.piece.tokens) if stem(token, look.asked.language) in _kind(look)]
    if look.piece.announces:
        following = [place for place in told if look.piece.tokens[place] in look.known.tells["following"].first_words()]
        behind = any(0 < place - at <= BESIDE for at in following for place in kinds)
        return AnswerEvidence(1.0 if behind or (kinds and not following) else 0.5, tuple(told))
    small = look.known.stop - look.known.tells["definition_head"].first_words()
    row = [
        look.piece.token_at(match.start())
        for match in _ENUMERATION.finditer(look.piece.text)
        if small.isdisjoint(word for member in _MEMBER_END.split(match[0]) for word in fold(member)[:1])
    ]
    if near := _near(row, kinds, BESIDE):
        return AnswerEvidence(0.9 if told else 0.75, tuple(near))
    return AnswerEvidence(0.5, tuple(told)) if told else AnswerEvidence(0.2)


def _choice(look: _Look) -> AnswerEvidence:
    """A name of the kind that is asked for: written so that it stands out, and no word of the question."""
    own = set(fold(look.asked.text))
    marks = MARKED_NAME if look.known.code not in NOUNS_ARE_CAPITAL else MARKED_AMID_CAPITALS
    found = [place for place in look.piece.places_of(marks) if look.piece.tokens[place] not in own and place > 0]
    if look.piece.label or _GLOSS.search(look.piece.text[:140]):
        return AnswerEvidence(0.95)
    figures = [place for place in _figures(look) if place not in found]
    kinds = [place for place, token in enumerate(look.piece.tokens) if stem(token, look.asked.language) in _kind(look)]
    if near := _near(found, kinds, BESIDE):
        return AnswerEvidence(0.95, tuple(near))
    return AnswerEvidence(0.65, tuple(found)) if found else AnswerEvidence(0.6 if figures else 0.4, tuple(figures))


def _kind(look: _Look) -> set[str]:
    """The stem of what is to be chosen from: the word of meaning that stands first, of a list its head."""
    last = look.asked.form is AnswerForm.ITEMS and look.known.code in HEAD_LAST
    return {stem(word, look.asked.language) for word in (look.asked.counted[-1:] if last else look.asked.counted[:1])}


def _replacement(look: _Look) -> AnswerEvidence:
    told = look.known.tells["replacement"].places(look.piece.tokens)
    return AnswerEvidence(1.0, tuple(told)) if told else NONE


def _difference(look: _Look) -> AnswerEvidence:
    if contrast := look.known.tells["contrast"].places(look.piece.tokens):
        return AnswerEvidence(1.0, tuple(contrast))
    told = look.known.tells["difference"].places(look.piece.tokens)
    return AnswerEvidence(0.7, tuple(told)) if told else AnswerEvidence(0.3)


def _yes_no(look: _Look) -> AnswerEvidence:
    """A statement, above all one that allows, forbids, demands or denies."""
    if told := look.known.tells["settles"].places(look.piece.tokens):
        return AnswerEvidence(0.9, tuple(told))
    return _statement(look)


def _statement(look: _Look) -> AnswerEvidence:
    return AnswerEvidence(0.6 if len(look.piece.tokens) >= 5 else 0.2)


_SAME_THING: Final = frozenset(
    """project software program programme system server client library language tool package engine kernel application
    app database daemon suite framework editor shell community has itself today now first originally""".split()
)
"""Nouns behind a name that still mean what has the name: `the Git project`."""
_CAPITAL: Final = re.compile(r"\b[A-ZÀ-Ý][\w'’-]{0,40}[a-zà-ÿ]")
_JOINED: Final = re.compile(r"[a-z](?<!Mc)(?<!Mac)(?<!De)(?<!Le)(?<!La)(?<!Van)(?<!Fitz)[A-Z]")
"""A name of a program amid names of people: `ForeignKey`."""
_BRACKETS: Final = re.compile(r"\s?\([^()]{0,80}\)")
_IN_BRACKETS: Final = re.compile(r"\(([^()]{2,80})\)")
_SHARE: Final = re.compile(
    r"(?<![\d.,])\d[\d.,]*+\s?(?:%|percent|per\s+cent|prozent|pour\s+cent|por\s+ciento|per\s+cento|por\s+cento|procent)"
)
_IN_A_FORMULA: Final = re.compile(r"(?:(?<=[+*])|(?<=[+*]\s)|(?<=\s/\s))\d")
_CLAUSE_END: Final = re.compile(r"\s*(?:$|[.;)](?:\s|$))")
_PAST: Final = frozenset("was were did wurde wurden war ist été fue foi è werd is".split())
_TIME_SIGN: Final = re.compile(r"\d\s?(?:ms|s|min|h|d)\b")
_SETTING_WORD: Final = re.compile(r"\b(?:on|off|true|false|none|empty|zero|enabled|disabled|yes|no)\b", re.IGNORECASE)
_COMMAND: Final = re.compile(
    r"\b[A-Z]{3,}+\b|\w_\w|--\w|\s-\w\b|\w=\w|`|\w\(\)|(?<![\w-])[\w-]++\.\w{2,4}\b|/\w|[“\"„«]\w"
)
_OPTION: Final = re.compile(r"-{1,2}\w")
_GLOSS: Final = re.compile(r"^\w[^\n.;:]{0,60}\s[—–-]\s")
_ENUMERATION: Final = re.compile(
    r"(?<!\S)(?:[^\s,;:]++(?:\s[^\s,;:]++){0,2},\s){1,6}[^\s,;:]++(?:\s[^\s,;:]++){0,2}?,?\s(?:and|or|und|oder|sowie|et|ou|y|e|o|en|of)\s"
)
"""Short members side by side."""
_MEMBER_END: Final = re.compile(r",|\s(?:and|or|und|oder|sowie|et|ou|y|e|o|en|of)\s")

_FORMS: Final = {
    AnswerForm.PERSON: _person,
    AnswerForm.TIME: _time,
    AnswerForm.PLACE: _place,
    AnswerForm.COUNT: _count,
    AnswerForm.AMOUNT: _amount,
    AnswerForm.SIZE: _size,
    AnswerForm.MONEY: _money,
    AnswerForm.DURATION: _duration,
    AnswerForm.FREQUENCY: _frequency,
    AnswerForm.NUMBER: _number,
    AnswerForm.VALUE: _value,
    AnswerForm.STEPS: _steps,
    AnswerForm.REASON: _reason,
    AnswerForm.DEFINITION: _definition,
    AnswerForm.PURPOSE: _purpose,
    AnswerForm.ITEMS: _items,
    AnswerForm.CHOICE: _choice,
    AnswerForm.DIFFERENCE: _difference,
    AnswerForm.REPLACEMENT: _replacement,
    AnswerForm.YES_NO: _yes_no,
}
