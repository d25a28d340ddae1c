"""Assertions: which sentences without a citation are claims, judged by their form.

Where the form leaves it open, a sentence counts as an assertion: one that needs no source costs the reader a glance,
one that is not reported costs trust.
"""

import re
from typing import Final

from providers.verification.quantities import find_quantities

FEWEST_WORDS: Final = 4
"""Words from which on a line can assert something; a shorter one is a name, a label or an exclamation."""
WORD: Final = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
CLOSERS: Final = "\"'”’»“)]*_`"
QUESTION_MARKS: Final = ("?", "？", "؟")


def asserts(words: str, language: str = "en", *, leads: bool = False) -> bool:
    """Return whether a sentence that cites nothing is a claim about the world.

    `words` is its plain text; `leads` is whether a list or a quotation follows it. Questions, lines that introduce what
    follows, and labels are none.
    """
    bare = words.strip().rstrip(CLOSERS).rstrip()
    if bare.endswith(QUESTION_MARKS):
        return False
    if bare.endswith((":", "：")) and leads:
        return False
    return len(WORD.findall(bare)) >= FEWEST_WORDS or bool(find_quantities(bare, language))
