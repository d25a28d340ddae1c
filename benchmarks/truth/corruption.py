"""Change what a sentence says, in one place, the same way each time for one seed."""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

NUMBER: Final = re.compile(r"(?<![\w.,])\d+(?:[.,]\d+)*(?![\w])")
NAME: Final = re.compile(r"(?<=[a-zß-ÿ,] )[A-ZÄÖÜÉ][\w-]{2,}(?: [A-ZÄÖÜÉ][\w-]{2,})*")
UNITS: Final = {
    "metres": "kilometres", "kilometres": "metres", "minutes": "hours", "hours": "minutes", "days": "weeks",
    "weeks": "days", "months": "years", "years": "months", "percent": "percentage points", "million": "billion",
    "billion": "million", "euros": "dollars", "dollars": "euros", "Euro": "Dollar", "Meter": "Kilometer",
    "Kilometer": "Meter", "Jahre": "Monate", "Minuten": "Stunden", "Stunden": "Minuten", "Millionen": "Milliarden",
    "kilograms": "grams", "tonnes": "kilograms", "hectares": "acres", "megawatts": "kilowatts",
}  # fmt: skip
AFTER_VERB: Final = {
    "en": (re.compile(r"\b(?:is|are|was|were|has|have|had|can|could|may|must|will|should)\b(?! not)"), "not"),
    "de": (re.compile(r"\b(?:ist|sind|war|waren|wurde|wurden|hat|haben|kann|können|darf|muss)\b"), "nicht"),
    "fr": (re.compile(r"\b(?:est|sont|était|doit|doivent|peut|a été)\b"), "pas"),
}


@dataclass(frozen=True)
class Sentence:
    """A statement with what it cites, and the names that may be put into it."""

    text: str
    language: str
    names: Sequence[str]


def other_number(sentence: Sentence, chance: random.Random) -> str | None:
    """Another number of as many digits."""
    places = list(NUMBER.finditer(sentence.text))
    if not places:
        return None
    place = chance.choice(places)
    digits = [at for at, sign in enumerate(place[0]) if sign.isdigit()]
    at = digits[0]
    new = str((int(place[0][at]) + chance.randint(1, 8)) % 9 + 1)
    if new == place[0][at]:
        new = str(int(new) % 9 + 1)
    return sentence.text[: place.start()] + place[0][:at] + new + place[0][at + 1 :] + sentence.text[place.end() :]


def negated(sentence: Sentence, chance: random.Random) -> str | None:
    """The sentence denied, or affirmed where it denies."""
    if sentence.language not in AFTER_VERB:
        return None
    verb, word = AFTER_VERB[sentence.language]
    if re.search(rf" {word}\b", sentence.text):
        return re.sub(rf" {word}\b", "", sentence.text, count=1)
    places = list(verb.finditer(sentence.text))
    if not places:
        return None
    place = chance.choice(places)
    return f"{sentence.text[: place.end()]} {word}{sentence.text[place.end() :]}"


def other_unit(sentence: Sentence, chance: random.Random) -> str | None:
    """Another unit, scale or currency."""
    places = [found for found in re.finditer(r"[^\W\d_]+", sentence.text) if found[0] in UNITS]
    if not places:
        return None
    place = chance.choice(places)
    return sentence.text[: place.start()] + UNITS[place[0]] + sentence.text[place.end() :]


def other_name(sentence: Sentence, chance: random.Random) -> str | None:
    """A name of the sentence replaced by another one of the same report."""
    places = [found for found in NAME.finditer(sentence.text) if found[0] in sentence.names]
    others = [name for name in sentence.names if name not in sentence.text and not any(
        part in sentence.text for part in name.split())]  # fmt: skip
    if not places or not others:
        return None
    place = chance.choice(places)
    return sentence.text[: place.start()] + chance.choice(others) + sentence.text[place.end() :]


CHANGES: Final[dict[str, Callable[[Sentence, random.Random], str | None]]] = {
    "number": other_number,
    "negation": negated,
    "unit": other_unit,
    "name": other_name,
}


def names_in(texts: Sequence[str], language: str) -> list[str]:
    """Names that stand inside sentences; in German every noun looks like one, so none."""
    return [] if language == "de" else sorted({found[0] for text in texts for found in NAME.finditer(text)})
