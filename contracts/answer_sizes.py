"""How long answers of models are: tokens of their parts, and how many parts a text is worth. Figures of real models."""

from typing import Final

FINDING_OUTPUT_TOKENS: Final = 400
"""Of a finding with its quotes from several pages: real models wrote up to 440 in the mean of a call."""
PAGE_FINDING_TOKENS: Final = 300
"""Of one from a single page, or where an answer's words are limited: in none of 129 readings of one page a real model
wrote more for as many findings as it might, with its gaps; and with fewer a reader puts several into one.
"""
GAPS_OUTPUT_TOKENS: Final = 400
"""Of the gaps and the sections wanted of one analysis."""
QUERY_OUTPUT_TOKENS: Final = 130
"""Of a planned query with its reason; real models wrote 80 to 120."""
WORD_OUTPUT_TOKENS: Final = 2
"""Of each word of a report, with its share of the markers."""
REWRITING_MARGIN: Final = 1.25
"""Room of a report that replaces another, in words of that one. Told to stay under a number of words, a real model
wrote 0.57 to 0.81 of it in four reports; two that had room for 0.74 and 0.99 of the words of the draft before came out
at 0.60 and 0.67 of it, without facts that it had.
"""
MAX_FINDINGS: Final = 20
"""Of one analysis."""
CHARACTERS_PER_FINDING: Final = 450
"""Of a text that is read for one purpose: of a page on settings, each paragraph is one."""
MAX_TEXT_FINDINGS: Final = 20
"""Of such a text: of six whole pages with more than 12,000 characters, real models wrote 16 findings on four, the most
that they might; two readings of a longer one made 24. Of several pages together, one for so many tokens:"""
TOKENS_PER_FINDING: Final = 1_600
"""Of shown text: a list of restrictions may need a finding for each of its lines."""


def findings_of_text(characters: int) -> int:
    """Return the most findings that a text of this length may give to a role that reads it for one purpose."""
    return min(characters // CHARACTERS_PER_FINDING, MAX_TEXT_FINDINGS)


def rewriting_tokens(words: int) -> int:
    """Return the tokens of output with which a report comes out about as full as a draft of so many words."""
    return round(REWRITING_MARGIN * WORD_OUTPUT_TOKENS * words)
