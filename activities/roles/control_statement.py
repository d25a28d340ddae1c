"""A statement that no passage bears out, put among those of a call: who calls it supported is believed in nothing.

A checker to whom everything is supported, by its own weakness or because a page told it so, cannot be told from a good
one by its answers to true statements. The control says what no page speaks of: who reads it cannot err.
"""

from collections.abc import Sequence
from typing import Final

from contracts.addresses import long_hash
from contracts.checking import AskedClaim
from contracts.texts import shorten
from providers.verification.rules import shared_words

STATEMENTS: Final = (
    "The lighthouse of Ervandsund was painted yellow by its keeper in spring.",
    "A baker in Tolmsby has kept eleven grey parrots above his shop.",
    "Snow fell on the harbour of Quellinmar during the midsummer dance.",
    "The choir of Hasselwyk rehearses beneath an old walnut tree.",
    "Two ferries named after poets cross Lake Ombrel on Thursdays.",
)
PASSAGE_CHARACTERS: Final = 80


def control_of(claims: Sequence[AskedClaim]) -> AskedClaim | None:
    """The control of a call with a passage of its claims, the same for the same claims; None without a passage."""
    passage = next((passage for claim in claims for passage in claim.passages if passage.quote.strip()), None)
    if passage is None:
        return None
    shown = passage.model_copy(
        update={"before": "", "quote": shorten(passage.quote, PASSAGE_CHARACTERS), "after": ""},
    )
    name = "c-" + long_hash("control", *(claim.fingerprint for claim in claims))
    first = int(name[2:10], 16) % len(STATEMENTS)
    # A page may well be about lighthouses.
    text = min(
        (*STATEMENTS[first:], *STATEMENTS[:first]), key=lambda statement: shared_words(statement, [shown.quote])[0]
    )
    return AskedClaim(fingerprint=name, text=text, passages=[shown])


def with_control(claims: Sequence[AskedClaim]) -> list[AskedClaim]:
    """The claims as a checker is shown them: the control at any place among them."""
    control = control_of(claims)
    if control is None:
        return list(claims)
    place = int(control.fingerprint[10:18], 16) % (len(claims) + 1)
    return [*claims[:place], control, *claims[place:]]
