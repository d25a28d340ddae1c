"""Summaries by a model in place of a text's own sentences: the role, and references to what it reads and writes.

Only texts without quotes are summarised (drafts, earlier turns, older answers of tools). The engine, which knows the
window, names them; the run has them summarised and repeats the call.
"""

from typing import Final

from contracts.base import CompactModel
from contracts.evidence import DocumentRef
from contracts.roles import RoleAnswer, RoleInput, RoleSpec
from contracts.tokens import RATIOS, Level
from contracts.vocabulary import Tier

SUMMARY_LEVELS: Final = (Level.CONDENSED, Level.COMPRESSED, Level.KEY_POINTS, Level.HEADLINE)
"""Levels at which a summary can take the place of a text's own sentences."""
SHORTEST_SUMMARY: Final = 100
"""Characters: less than that is one sentence of the text itself."""
ORIGINAL_CHARACTERS: Final = 100_000
"""Of a text that are summarised."""


class SummaryOrder(CompactModel):
    """A stored text to be summarised for a level."""

    text: DocumentRef
    level: Level

    @property
    def key(self) -> str:
        """Name of the summary."""
        return summary_key(self.text.hash, self.level)


class SummaryEntry(CompactModel):
    """A summary, as the notebook stores it."""

    key: str
    summary: str


def summary_key(text_hash: str, level: Level) -> str:
    """Return the name of the summary of a text at a level."""
    return f"{level.value}/{text_hash}"


def summary_characters(length: int, level: Level) -> int:
    """Return the most characters of the summary of a text; its own sentences have at least as many."""
    return int(length * RATIOS[level])


class SummarizeInput(RoleInput):
    """Hand-off to the summarizer."""

    text: DocumentRef
    level: Level
    summarizer: str
    """Name of the model, in place of that of the tier."""

    @property
    def most_characters(self) -> int:
        """The most that the summary may have."""
        return summary_characters(self.text.size or 0, self.level)


class SummarizerAnswer(RoleAnswer):
    """A summary."""

    summary: str


class SummarizerResult(RoleAnswer):
    """A summary in the notebook."""

    entry: str = ""
    """Hash of the stored `SummaryEntry`."""


SUMMARIZER: Final = RoleSpec(
    "summarizer", "summarize_text", Tier.SIMPLE, SummarizeInput, SummarizerAnswer, SummarizerResult,
    output_tokens=4_000, expected_output_tokens=500, has_fallback=False, plain_text=True,
)  # fmt: skip
"""Works for any role with `tokens.summarization_provider`; its tokens belong to the share of analysis."""
