"""A sentence that asserts several things, as parts that each stand for themselves.

Only clauses that are joined on one level are parted, and only where each has a subject and a verb of its own. What
depends on something (`if …, then …`), what belongs together (`both … and`) and what is reported of somebody stays
whole: half of it would say something else.
"""

import re
from collections.abc import Iterator
from typing import Final

from providers.verification.quantities import find_quantities

LONGEST: Final = 1_000
"""Characters; a longer run is no sentence that a person wrote."""
SHORTEST: Final = 4
"""Words; fewer are no clause that can be checked."""
JOINT: Final = re.compile(
    r";\s++(?:(?:and|but|while|und|aber|et|mais|y|pero|e|ma|mas|en|maar)\s++)?+"
    r"|(?:,|(?<![\s,]))\s++(?:and|while|whereas|but|und|während|aber|et|tandis que|mais|y|mientras que|pero|mentre|ma"
    r"|enquanto|mas|terwijl|maar)\s++",
    re.IGNORECASE,
)
WORD: Final = re.compile(r"[^\W_]+(?:['’.,-][^\W_]+)*")
DEPENDENT: Final = re.compile(
    r"\W*(?:if|when|whenever|unless|although|though|because|since|after|before|once|until|whether|as|despite|given"
    r"|according to|wenn|falls|obwohl|weil|nachdem|bevor|laut|si|quand|lorsque|bien que|parce que|selon|cuando|aunque"
    r"|porque|según|se|quando|anche se|secondo|embora|als|hoewel|omdat|volgens)\b",
    re.IGNORECASE,
)
"""Beginnings under whose condition the whole sentence stands."""
BOUND: Final = re.compile(
    r"\b(?:both|either|neither|between|whether|from|not only|sowohl|zwischen|entweder|weder|entre|tanto|sia|tra|zowel"
    r"|tussen|that|dass|daß|que|che|dat)\b",
    re.IGNORECASE,
)
"""Words that bind what follows, up to the end of the clause."""
POINTS_BACK: Final = frozenset(
    """it its they them their this these those that which who whom whose he she his her there both neither either such
    so then also therefore thus hence not only even to er sie es dies diese dieser dieses deren dessen dort ihn il
    elle ils elles ce cela ceci qui que dont y lo esto eso estos quien que esso essa questo che ele ela eles isto isso
    hij zij ze dit dat deze""".split()
)
"""First words of a clause that cannot stand alone."""
DETERMINERS: Final = frozenset(
    """the a an each every all most many some several no another other der die das ein eine kein jeder jede alle le la
    les un une des chaque tous el los las una unos cada il lo i gli ogni o os as um uma de het een elk""".split()
)
VERBS: Final = frozenset(
    """is are was were be been has have had does do did can could may might must shall should will would became become
    becomes began begins begin rose rises rise fell falls fall grew grows grow shrank shrinks went goes gave gives took
    takes made makes came comes led leads lost loses won wins found finds held holds kept keeps left leaves ran runs
    said says saw sees sold sells bought buys spent spends stood stands built builds sent sends wrote writes chose cost
    costs cut hit let put set met meets needs uses supports allows requires contains includes provides produces remains
    means shows offers employs covers exceeds serves works reads returns stores creates causes helps reaches
    ist sind war waren wird werden wurde wurden hat haben hatte hatten kann können muss müssen soll sollte liegt stieg
    sank fiel gibt gab est sont était étaient a ont avait avaient sera peut peuvent doit es son era eran fue fueron ha
    han había tiene tienen puede debe è sono fu furono hanno aveva può deve é são foi foram tem têm tinha pode zijn was
    waren heeft hebben had kan moet werd werden""".split()
)
REGULAR: Final = re.compile(r"[a-z]{2,}(?:ed|ied)\Z")
OPENERS: Final = "([{“„«"
CLOSERS: Final = ")]}”“»"


def split_clauses(text: str, language: str = "en") -> list[tuple[int, int]]:
    """Ranges of the clauses of a sentence in order; empty where it asserts one thing.

    Markup may stand in the text, citations may not: they are blanks.
    """
    if len(text) > LONGEST or DEPENDENT.match(text) or len(WORD.findall(text)) < 2 * SHORTEST:
        return []
    ranges, start = [], 0
    for joint in _joints(text):
        here, rest = text[start : joint.start()], text[joint.end() :]
        if _stands(here, language) and not BOUND.search(here) and _stands(_first_clause(rest), language):
            ranges.append((start, joint.start()))
            start = joint.end()
    if not ranges:
        return []
    ranges.append((start, len(text)))
    return [_trim(text, first, end) for first, end in ranges]


def _joints(text: str) -> Iterator[re.Match[str]]:
    """Joints outside of brackets and quotation marks."""
    depth, place, quoted = 0, 0, False
    for joint in JOINT.finditer(text):
        for sign in text[place : joint.start()]:
            if sign == '"':
                quoted = not quoted
            elif sign in CLOSERS and depth:
                depth -= 1
            elif sign in OPENERS:
                depth += 1
        place = joint.start()
        if not depth and not quoted:
            yield joint


def _first_clause(rest: str) -> str:
    """What stands before the next joint, if there is one with enough before it."""
    for joint in JOINT.finditer(rest):
        if len(WORD.findall(rest[: joint.start()])) >= SHORTEST:
            return rest[: joint.start()]
    return rest


def _stands(clause: str, language: str) -> bool:
    """Whether a clause has a subject that it names itself, and behind it a verb."""
    words = WORD.findall(clause)
    if len(words) < SHORTEST or words[0].casefold() in POINTS_BACK:
        return False
    first = words[0]
    named = first[0].isupper() or first.casefold() in DETERMINERS or bool(find_quantities(clause, language))
    if not named or first[0].isdigit():
        return False
    lowered = [word.casefold() for word in words]
    if lowered[0] in VERBS:
        return False
    return any(word in VERBS or REGULAR.match(word) for word in lowered[1:])


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    inner = text[start:end]
    return start + len(inner) - len(inner.lstrip()), start + len(inner.rstrip(" \t\n,;"))
