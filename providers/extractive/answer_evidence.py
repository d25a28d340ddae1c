"""Whether a piece of text holds the form of answer that is asked for, and where in it."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from providers.extractive.asked_form import Asked, AnswerForm
from providers.language_words import LanguageWords, Phrases, fold, language_words
from providers.text import WORD, stem

FIGURE: Final = re.compile(r"(?<![\w.])[-+~]?\d[\d.,]*+(?:\s?[x×^]\s?\d++)?(?![\w])|(?<![\w.])\d[\d.,]*+(?=[A-Za-z%]{1,4}\b)")
DIGITS: Final = re.compile(r"\d")
CURRENCY: Final = re.compile(r"[$€£¥]\s?\d|\d\s?[$€£¥]")
SIZE_SIGN: Final = re.compile(r"\d\s?[kKMGTPE]i?[Bb]?\b|\d\s?%")
YEAR: Final = re.compile(r"(?<![\w.,])(?:1[5-9]\d\d|20\d\d)(?![\w]|[.,]\d)")
DAY: Final = re.compile(r"(?<!\d)\d{4}-\d\d-\d\d(?!\d)|(?<!\d)\d{1,2}[./]\d{1,2}[./]\d{2,4}(?!\d)")
PATH: Final = re.compile(r"(?<![\w/])[~.]?/[\w.-]+(?:/[\w.$-]*+)*+|\b[A-Z]:\\\w|\b[\w-]+\.(?:conf|cfg|ini|toml|ya?ml|json|txt|log|xml|db|sqlite|sh|service)\b|\$[A-Z_]{3,}|%\w+%")
PERSON_NAME: Final = re.compile(
    r"(?<![\w.])(?!(?:The|This|These|In|If|For|When|An?|It|On|To|By|As|At)\s)[A-ZÀ-Ý](?:\.|[a-zà-ÿ'’-]+)\s(?:(?:van|von|de|der|den|di|da|du|la|le)\s){0,2}(?:[A-ZÀ-Ý]\.\s){0,2}[A-ZÀ-Ý][\w'’-]*[a-zà-ÿ]"
)
MARKED_NAME: Final = re.compile(r"\b\w+_\w+|\b[A-Z][A-Z]+\b|\w\(\)|--\w|[“\"'`‘«„]\S|\b[a-z]+[A-Z]\w|\b[A-Z][a-z]+\b|\w-\w|\.\w{2,4}\b|/\w")
SYMBOL_VALUE: Final = re.compile(r"[“\"'`‘«„]|\b[A-Z_]{2,}\b|\w_\w|\d|/")

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
class Evidence:
    """How well a piece holds the form (0 to 1), and by which words."""

    strength: float
    places: tuple[int, ...] = ()


NONE: Final = Evidence(0.0)


def evidence(asked: Asked, piece: Piece, is_name: Callable[[str], bool] = bool) -> Evidence:
    """How well a piece of text holds the form of answer; `is_name` tells a capitalised word that is a name."""
    known = language_words(asked.language)
    if not piece.tokens or piece.text.rstrip().endswith("?"):
        return NONE
    if asked.form is AnswerForm.PERSON:
        found = _person(asked, piece, known, is_name)
    else:
        found = _FORMS.get(asked.form, _statement)(asked, piece, known)
    for bound in asked.bounds:
        if found.strength and asked.form is not AnswerForm.VALUE and not known.tells[bound].found(piece.tokens):
            found = Evidence(found.strength * (0.8 if piece.row else 0.55), found.places)
    return found


def _near(one: Sequence[int], other: Sequence[int], within: int = NEAR) -> list[int]:
    return [place for place in one if any(abs(place - beside) <= within for beside in other)]


def _figures(piece: Piece, known: LanguageWords) -> list[int]:
    """Places of numbers in digits or words; numbers of sections and the parts of names are none."""
    found = [place for place in piece.places_of(FIGURE)]
    return sorted({*found, *(p for p in known.tells["numbers"].places(piece.tokens))})


def _person(asked: Asked, piece: Piece, known: LanguageWords, is_name: Callable[[str], bool]) -> Evidence:
    makers = known.tells["makers"].places(piece.tokens)
    own = set(fold(asked.text))
    names = [
        piece.token_at(match.start())
        for match in PERSON_NAME.finditer(piece.text)
        if all(is_name(word) and word.casefold() not in own for word in WORD.findall(match[0]) if len(word) > 1)
    ]
    near = _near(names, makers, 14)
    if near:
        return Evidence(1.0, tuple(near))
    if names:
        return Evidence(0.85 if known.code != "de" else 0.7, tuple(names))
    roles = [place for place in makers if len(piece.tokens[place]) > 3]
    return Evidence(0.55, tuple(roles)) if roles else NONE


def _time(asked: Asked, piece: Piece, known: LanguageWords) -> Evidence:
    months = known.tells["months"].places(piece.tokens)
    dates = [*piece.places_of(YEAR), *piece.places_of(DAY)]
    if dates:
        return Evidence(1.0, tuple(dates))
    figures = _figures(piece, known)
    if _near(months, figures, 2):
        return Evidence(0.9, tuple(months))
    tokens = fold(asked.text)
    past = any(word in _PAST for word in tokens)
    conditions = known.tells["condition"].places(piece.tokens)
    return Evidence(0.7, tuple(conditions)) if conditions and not past else NONE


def _place(asked: Asked, piece: Piece, known: LanguageWords) -> Evidence:
    paths = piece.places_of(PATH)
    told = known.tells["place"].places(piece.tokens)
    if paths:
        return Evidence(1.0, tuple(paths))
    strong = [place for place in told if len(piece.tokens[place]) > 3]
    if strong:
        return Evidence(0.8, tuple(strong))
    return Evidence(0.6, tuple(told)) if told else NONE


def _count(asked: Asked, piece: Piece, known: LanguageWords) -> Evidence:
    figures = [*_figures(piece, known), *known.tells["unlimited"].places(piece.tokens)]
    few, units = known.tells["few"].first_words(), known.tells["duration_units"]
    figures = [
        place
        for place in figures
        if piece.tokens[place] not in few and not (place + 1 < len(piece.tokens) and units.at(piece.tokens, place + 1))
    ]
    if asked.noun.casefold() in units.first_words():
        return _duration(asked, piece, known)
    if not figures:
        return NONE
    if piece.row:
        return Evidence(1.0, tuple(figures))
    noun = stem(asked.noun, asked.language)
    nouns = [place for place, token in enumerate(piece.tokens) if stem(token, asked.language) == noun]
    close = [place for place in figures if any(-2 <= beside - place <= 4 or 0 < place - beside <= 8 for beside in nouns)]
    if close:
        return Evidence(1.0, tuple(close))
    return Evidence(0.6, tuple(figures)) if known.tells["maximum"].found(piece.tokens) or piece.label else Evidence(0.3, tuple(figures))


def _size(asked: Asked, piece: Piece, known: LanguageWords) -> Evidence:
    figures = _figures(piece, known)
    sizes = [place for place in known.tells["size_units"].places(piece.tokens) if _near([place], figures, 3)]
    signs = piece.places_of(SIZE_SIGN)
    if sizes or signs:
        return Evidence(1.0, tuple([*sizes, *signs]))
    free = known.tells["unlimited"].places(piece.tokens)
    if free:
        return Evidence(0.9, tuple(free))
    if figures:
        return Evidence(0.7 if piece.row or known.tells["maximum"].found(piece.tokens) else 0.4, tuple(figures))
    return NONE


def _money(asked: Asked, piece: Piece, known: LanguageWords) -> Evidence:
    found = [*piece.places_of(CURRENCY), *known.tells["money"].places(piece.tokens)]
    if found:
        return Evidence(1.0, tuple(found))
    paid = _near(_figures(piece, known), known.tells["pay"].places(piece.tokens), 4)
    return Evidence(0.9, tuple(paid)) if paid else NONE


def _amount(asked: Asked, piece: Piece, known: LanguageWords) -> Evidence:
    if known.tells["pay"].found(fold(asked.text)):
        return _money(asked, piece, known)
    size = _size(asked, piece, known)
    figures = _figures(piece, known)
    return size if size.strength > 0.6 else Evidence(0.7, tuple(figures)) if figures else NONE


def _duration(asked: Asked, piece: Piece, known: LanguageWords) -> Evidence:
    figures = [*_figures(piece, known), *(p for p, t in enumerate(piece.tokens) if t in ("a", "an"))]
    units = known.tells["duration_units"].places(piece.tokens)
    near = _near(units, figures, 2)
    years = piece.places_of(YEAR)
    signs = piece.places_of(_TIME_SIGN)
    if near or signs:
        return Evidence(1.0, tuple([*near, *signs]))
    if years:
        return Evidence(0.8, tuple(years))
    return _size(asked, piece, known)


def _frequency(asked: Asked, piece: Piece, known: LanguageWords) -> Evidence:
    told = known.tells["frequency"].places(piece.tokens)
    units = known.tells["duration_units"].places(piece.tokens)
    if _near(told, units, 8) or (told and _figures(piece, known)):
        return Evidence(1.0, tuple(told))
    return Evidence(0.7, tuple(told)) if told else NONE


def _number(asked: Asked, piece: Piece, known: LanguageWords) -> Evidence:
    figures = [*_figures(piece, known), *known.tells["unlimited"].places(piece.tokens)]
    return Evidence(1.0, tuple(figures)) if figures else NONE


def _value(asked: Asked, piece: Piece, known: LanguageWords) -> Evidence:
    """A default with what it is: after `default is`, or before `is the default`."""
    told = known.tells["default"].places(piece.tokens)
    if not told:
        return NONE
    values = sorted({*piece.places_of(SYMBOL_VALUE), *_figures(piece, known), *piece.places_of(_SETTING_WORD)})
    near = [place for place in values if any(0 <= place - at <= 8 or 0 < at - place <= 8 for at in told)]
    return Evidence(1.0 if near else 0.6, tuple(told))


def _steps(asked: Asked, piece: Piece, known: LanguageWords) -> Evidence:
    told = known.tells["steps"].places(piece.tokens)
    marked = piece.places_of(_COMMAND)
    if told and marked:
        return Evidence(1.0, tuple(told))
    if told:
        return Evidence(0.75, tuple(told))
    return Evidence(0.4, tuple(marked)) if marked else NONE


def _reason(asked: Asked, piece: Piece, known: LanguageWords) -> Evidence:
    told = known.tells["reason"].places(piece.tokens)
    denied = known.tells["negation"]
    strength = 1.0 if not denied.found(fold(asked.text)) or denied.found(piece.tokens) else 0.6
    return Evidence(strength, tuple(told)) if told else Evidence(0.25)


def _definition(asked: Asked, piece: Piece, known: LanguageWords) -> Evidence:
    """The term at the head of the sentence, then a word that says what it is; or the text of a term line."""
    if piece.label:
        return Evidence(1.0)
    wanted = [stem(token, asked.language) for word in asked.content for token in fold(word)]
    stems = [stem(token, asked.language) for token in piece.tokens[:24]]
    ends = [place for place, key in enumerate(stems) if key in wanted]
    if not wanted or not ends:
        return NONE
    copulas = known.tells["copula"].places(piece.tokens[:30])
    dash = _GLOSS.search(piece.text[:140])
    copulas = [place for place in copulas if place < len(stems) and stems[place] not in wanted]
    head = stems[: copulas[0]] if copulas else []
    share = sum(key in head for key in wanted) / len(wanted)
    if copulas and share == 1.0:
        small = known.tells["definition_head"].first_words()
        extra = sum(key not in wanted and piece.tokens[place] not in small for place, key in enumerate(head))
        first = sum(piece.tokens[place] not in small for place in range(min(ends)))
        article = copulas[0] + 1 < len(piece.tokens) and piece.tokens[copulas[0] + 1] in known.tells["definition_head"].first_words()
        strength = 0.75 + (0.25 if article else 0.1) - 0.12 * min(extra, 6) - (0.25 if first else 0.0)
        return Evidence(max(0.2, 0.9 if piece.lead else 0.0, min(1.0, strength)), (copulas[0],))
    if dash:
        head = fold(dash[0])
        extra = sum(stem(token, asked.language) not in wanted for token in head)
        return Evidence(max(0.2, 0.95 - 0.45 * extra))
    if piece.lead and ends[0] <= 4:
        return Evidence(0.85)
    return Evidence(0.2)


def _purpose(asked: Asked, piece: Piece, known: LanguageWords) -> Evidence:
    return max(_definition(asked, piece, known), _reason(asked, piece, known), key=lambda one: one.strength)


def _items(asked: Asked, piece: Piece, known: LanguageWords) -> Evidence:
    told = known.tells["items"].places(piece.tokens)
    commas = len(_COMMA.findall(piece.text))
    if piece.text.rstrip().endswith(":"):
        return Evidence(1.0, tuple(told))
    if told and commas >= 2:
        return Evidence(0.95, tuple(told))
    if commas >= 3:
        return Evidence(0.8)
    return Evidence(0.5, tuple(told)) if told else Evidence(0.2)


def _choice(asked: Asked, piece: Piece, known: LanguageWords) -> Evidence:
    """A name of the kind that is asked for: written so that it stands out, and no word of the question."""
    own = set(fold(asked.text))
    found = [place for place in piece.places_of(MARKED_NAME) if piece.tokens[place] not in own and place > 0]
    if piece.label or _GLOSS.search(piece.text[:140]):
        return Evidence(0.95)
    figures = [place for place in _figures(piece, known) if place not in found]
    return Evidence(0.85, tuple(found)) if found else Evidence(0.6 if figures else 0.4, tuple(figures))


def _replacement(asked: Asked, piece: Piece, known: LanguageWords) -> Evidence:
    told = known.tells["replacement"].places(piece.tokens)
    return Evidence(1.0, tuple(told)) if told else NONE


def _difference(asked: Asked, piece: Piece, known: LanguageWords) -> Evidence:
    if contrast := known.tells["contrast"].places(piece.tokens):
        return Evidence(1.0, tuple(contrast))
    told = known.tells["difference"].places(piece.tokens)
    return Evidence(0.7, tuple(told)) if told else Evidence(0.3)


def _statement(asked: Asked, piece: Piece, known: LanguageWords) -> Evidence:
    return Evidence(0.6 if len(piece.tokens) >= 5 else 0.2)


_PAST: Final = frozenset("was were did wurde wurden war ist été fue foi è werd is".split())
_TIME_SIGN: Final = re.compile(r"\d\s?(?:ms|s|min|h|d)\b")
_SETTING_WORD: Final = re.compile(r"\b(?:on|off|true|false|none|empty|zero|enabled|disabled|yes|no)\b", re.IGNORECASE)
_COMMAND: Final = re.compile(r"\b[A-Z]{3,}\b|\w_\w|--\w|`|\w\(\)|\b[\w-]+\.\w{2,4}\b|/\w|[“\"„«]\w")
_GLOSS: Final = re.compile(r"^\S[^\n.;:]{0,60}\s[—–-]\s")
_COMMA: Final = re.compile(r",\s|;\s")

_FORMS: Final = {
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
}
