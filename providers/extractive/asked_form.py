"""The form of answer that a question asks for, and the words that an answer must be about."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final

from providers.extractive.question_terms import NOUNS_ARE_CAPITAL, named_terms
from providers.language_words import LanguageWords, fold, language_words
from providers.sentences import sentence_spans
from providers.text import words


class AnswerForm(StrEnum):
    """What a passage must hold to answer."""

    PERSON = "person"
    TIME = "time"
    PLACE = "place"
    COUNT = "count"
    AMOUNT = "amount"
    SIZE = "size"
    MONEY = "money"
    DURATION = "duration"
    FREQUENCY = "frequency"
    NUMBER = "number"
    VALUE = "value"
    STEPS = "steps"
    REASON = "reason"
    DEFINITION = "definition"
    PURPOSE = "purpose"
    ITEMS = "items"
    CHOICE = "choice"
    MECHANISM = "mechanism"
    CONSEQUENCE = "consequence"
    YES_NO = "yes_no"
    DIFFERENCE = "difference"
    REPLACEMENT = "replacement"
    TOPIC = "topic"
    """No question at all, only words."""


MEASURES: Final = frozenset(
    {
        AnswerForm.COUNT,
        AnswerForm.AMOUNT,
        AnswerForm.SIZE,
        AnswerForm.MONEY,
        AnswerForm.DURATION,
        AnswerForm.FREQUENCY,
        AnswerForm.NUMBER,
    }
)
"""Forms that only a figure answers."""
WIDE: Final = frozenset({AnswerForm.DEFINITION, AnswerForm.CHOICE, AnswerForm.PURPOSE, AnswerForm.TOPIC})
"""Forms that a word inside of the question makes narrower."""
BOUNDS: Final = ("default", "maximum", "minimum")
SAID_OF: Final = frozenset(
    {AnswerForm.STEPS, AnswerForm.REASON, AnswerForm.YES_NO, AnswerForm.MECHANISM, AnswerForm.CONSEQUENCE}
)
"""Forms that ask what is said of something: there even a plain verb counts where little else is left."""
OF_A_NAME: Final = MEASURES | {AnswerForm.PERSON, AnswerForm.TIME, AnswerForm.PLACE}
"""Forms that ask for one thing about a name; a plain verb beside it tells which: `How long will … be supported?`"""
FEW: Final = 2
LONG_TEXT: Final = 120
"""Characters from which a text may hold more than its question."""
LONGEST_ELISION: Final = 2
"""Letters of a word that is joined to the next one: `l'index`, `qu'un`."""
PLURAL_VERBS: Final = frozenset(("do", "does", "are", "have", "can"))
PARTICLES: Final = frozenset(("up", "off", "out", "down"))
"""What makes another verb of a verb: who backs up makes a backup."""
SEPARABLE: Final = {
    "de": frozenset("ab an auf aus bei ein fest frei her hin los mit nach statt um vor weg zu zurück zusammen".split()),
    "nl": frozenset("aan af bij door in mee na om op open over samen terug toe uit vast voor weg".split()),
}
"""What parts from its verb and stands at the end of a question: `Wie schalte ich … ab?`, `Hoe voeg ik … in?`."""
BEFORE_A_NOUN: Final = (AnswerForm.COUNT, AnswerForm.CHOICE, AnswerForm.ITEMS)
"""Forms whose opening no verb follows: `Welches Dateisystem schlägt …`."""
INVERTED: Final = ("-t-il", "-t-elle", "-t-on", "-ils", "-elles", "-il", "-elle", "-on", "-ce", "-je", "-vous")
"""What stands behind a verb in a question of French."""
SIGNS: Final = re.compile(r"(?<!\S)([$&|<>@#*!^~%=+]{2,8}+)(?=[\s?.,;]|$)")
"""What is asked about and has no letter."""
LONGEST_HEAD: Final = 3
"""Words before the opening of a question: `In SQLite, how many …`."""


@dataclass(frozen=True, slots=True)
class AskedForm:
    """A question as read for its answer."""

    text: str
    language: str
    form: AnswerForm
    content: tuple[str, ...]
    """The words that say what it is about, as written, in order."""
    names: tuple[str, ...]
    bounds: frozenset[str]
    """Which of default, maximum and minimum are asked for."""
    counted: tuple[str, ...] = ()
    """What is counted or chosen, by the words of meaning that stand first: `autovacuum processes`."""
    sides: tuple[str, str] | None = None
    """The words that tell the two sides of a difference apart, as written."""
    signs: tuple[str, ...] = ()
    """What is asked about and has no letter: `$@`, `&&`."""


@lru_cache(maxsize=4_096)
def read_asked(text: str, language: str) -> AskedForm:
    """Read what form of answer a question asks for; in a language that is not known the rules are those of English."""
    known = language_words(language)
    text = first_question(text)
    written = words(text)
    tokens = fold(text)
    form, place, length = _opening(tokens, known)
    bounds = frozenset(name for name in BOUNDS if name in known.asks_inside and known.asks_inside[name].found(tokens))
    form = _narrow(form, tokens, place + length, bounds, known)
    content = _content(written, tokens, range(place, place + length), form, known)
    counted = (
        _first_run(written[place + length :], content)
        if form in (AnswerForm.COUNT, AnswerForm.CHOICE, AnswerForm.ITEMS)
        else ()
    )
    sides = _sides(written, tokens, content, known) if form is AnswerForm.DIFFERENCE else None
    names, signs = tuple(named_terms(text, known.code)), tuple(SIGNS.findall(text))
    return AskedForm(text, language, form, tuple(content), names, bounds, counted, sides, signs)


def first_question(text: str) -> str:
    """The sentence that asks; of a long text that leads up to it, the first one with a question mark."""
    flat = " ".join(text.split())
    if len(flat) <= LONG_TEXT:
        return flat
    asking = [piece for piece in questions_of(flat) if piece.endswith("?")]
    return asking[0] if asking else flat


def questions_of(text: str) -> list[str]:
    """The sentences of a text that ask, or the text itself where none has a question mark."""
    flat = " ".join(text.split())
    pieces = [flat[start:end].strip() for start, end in sentence_spans(flat)]
    asking = [piece for piece in pieces if piece.endswith("?")]
    return asking or [flat]


def _opening(tokens: Sequence[str], known: LanguageWords) -> tuple[AnswerForm, int, int]:
    """The form by its opening words, where these stand and how many they are: the earliest, then the longest."""
    best: tuple[int, int, AnswerForm] | None = None
    for name, phrases in known.asks.items():
        form = AnswerForm(name)
        for place in range(len(tokens)):
            if place > LONGEST_HEAD and form in (AnswerForm.YES_NO, AnswerForm.ITEMS):
                break
            if place and form is AnswerForm.YES_NO:
                break
            length = phrases.at(tokens, place)
            if length:
                found = (place, -length, form)
                best = found if best is None or found[:2] < best[:2] else best
                break
    if best is None:
        return AnswerForm.TOPIC, 0, 0
    return best[2], best[0], -best[1]


def _narrow(
    form: AnswerForm, tokens: Sequence[str], after: int, bounds: frozenset[str], known: LanguageWords
) -> AnswerForm:
    inside = {name: phrases.found(tokens) for name, phrases in known.asks_inside.items()}
    if inside.get("difference"):
        return AnswerForm.DIFFERENCE
    if form is AnswerForm.MECHANISM and _asks_to_do(tokens, after, known):
        return AnswerForm.STEPS
    if (form in WIDE or form is AnswerForm.PERSON) and inside.get("replacement"):
        return AnswerForm.REPLACEMENT
    if form in WIDE:
        if "default" in bounds:
            return AnswerForm.VALUE
        if bounds & {"maximum", "minimum"} or inside.get("measure"):
            return AnswerForm.NUMBER
    if form is AnswerForm.CHOICE:
        if known.asks_inside["meaning"].found(tokens[-1:]) or (
            known.asks_inside["meaning"].found(tokens[after : after + 1])
            and known.asks_inside["meaning"].found(tokens[-3:])
        ):
            return AnswerForm.DEFINITION
        if inside.get("items") or (known.code == "en" and _asks_for_several(tokens, after)):
            return AnswerForm.ITEMS
    return form


def _sides(
    written: Sequence[str], tokens: Sequence[str], content: Sequence[str], known: LanguageWords
) -> tuple[str, str] | None:
    """The words of meaning before and behind the word that joins two sides: `lightweight` and `annotated`."""
    for place in known.asks_inside["joins"].places(tokens):
        before = [word for word in written[:place] if word in content]
        behind = [word for word in written[place + 1 :] if word in content and word not in before[-1:]]
        if before and behind:
            return before[-1], behind[0]
    return None


def _asks_to_do(tokens: Sequence[str], after: int, known: LanguageWords) -> bool:
    """Whether somebody wants to do it: `Wie kennzeichne ich …`, `Comment ajouter …`."""
    opening = tokens[after : after + 1]
    infinitive = any(word.endswith(known.infinitives) and len(word) > LONGEST_HEAD for word in opening)
    return infinitive or known.asks_inside["asker"].found(tokens[after : after + 1 + LONGEST_HEAD])


def _asks_for_several(tokens: Sequence[str], after: int) -> bool:
    """Whether the kind is a plural before a verb of the question: `What queues does …`, `Which files are …`."""
    for place in range(after, min(after + LONGEST_HEAD, len(tokens) - 1)):
        if tokens[place + 1] in PLURAL_VERBS:
            return tokens[place].endswith("s") and not tokens[place].endswith(("ss", "us", "is"))
    return False


def _first_run(written: Sequence[str], content: Sequence[str]) -> tuple[str, ...]:
    """The words of meaning that follow each other first."""
    found: list[str] = []
    for word in written:
        if word in content:
            found.append(word)
        elif found:
            break
    return tuple(found)


def _content(
    written: Sequence[str], tokens: Sequence[str], opening: range, form: AnswerForm, known: LanguageWords
) -> list[str]:
    """The words that carry meaning, each once; of words in capitals amid small ones none is left out."""
    shouted = all(word.isupper() for word in written)
    empty = set(known.stop) | set(known.frame)
    for name in ("difference", "replacement", *BOUNDS):
        if name in known.asks_inside:
            empty |= known.asks_inside[name].first_words()
    kept: dict[str, str] = {}
    spare: dict[str, str] = {}
    groups = (known.idioms, *(known.asks_inside[bound] for bound in BOUNDS))
    idle = {at + beside for group in groups for at in range(len(tokens)) for beside in range(group.at(tokens, at))}
    parted = tokens[-1] if tokens and tokens[-1] in SEPARABLE.get(known.code, ()) else ""
    if parted:
        idle.add(len(tokens) - 1)
    for place, (whole, token) in enumerate(zip(written, tokens, strict=True)):
        if place in idle:
            continue
        front = parted if place == opening.stop and whole.islower() and form not in BEFORE_A_NOUN else ""
        word, bare = front + whole, front + token.removesuffix("'s")
        head, joint, rest = bare.partition("'")
        if joint and len(head) <= LONGEST_ELISION and len(rest) > 1:
            bare, word = rest, word[len(head) + 1 :]
        if known.code == "fr" and "-" in bare:
            bare = next((bare.removesuffix(end) for end in INVERTED if bare.endswith(end)), bare)
        if (
            known.code == "en"
            and bare not in empty
            and tokens[place + 1 : place + 2]
            and tokens[place + 1] in PARTICLES
        ):
            bare, word = f"{bare}-{tokens[place + 1]}", f"{word}-{tokens[place + 1]}"
        named = len(word) > 1 and word.isupper() and not shouted and word.isalpha()
        if place in opening and not named and form is not AnswerForm.STEPS:
            continue
        if named or (token not in empty and bare not in empty):
            kept.setdefault(bare, word[: len(bare)])
        elif token not in known.stop:
            spare.setdefault(bare, word[: len(bare)])
    only_names = form in OF_A_NAME and all(word[:1].isupper() for word in kept.values())
    if (len(kept) < FEW and form in (*SAID_OF, AnswerForm.CHOICE)) or (
        only_names and known.code not in NOUNS_ARE_CAPITAL
    ):
        return [*kept.values(), *spare.values()]
    return list(kept.values()) or list(spare.values())
