"""What the next phase is told by people, hooks, models and rules."""

from collections.abc import Sequence
from typing import Final

from contracts.outcome import PERSON, Guidance

KEPT: Final = 20
"""Of a run, in its state."""
HEARD: Final = 6
"""Of them in one call of a role: about a round of think-pauses."""


def with_guidance(known: Sequence[Guidance], new: Guidance) -> list[Guidance]:
    """The newest, with what was said just now; what is said again counts as said now, and stands once."""
    others = [one for one in known if (one.origin, one.text) != (new.origin, new.text)]
    return newest([*others, new], KEPT)


def newest(known: Sequence[Guidance], most: int) -> list[Guidance]:
    """So many of the newest in their order; a person's wish gives way to nothing but a newer one."""
    wishes = [place for place, one in enumerate(known) if one.origin == PERSON][-most:]
    others = [place for place, one in enumerate(known) if one.origin != PERSON]
    room = most - len(wishes)
    return [known[place] for place in sorted((*wishes, *(others[-room:] if room else ())))]
