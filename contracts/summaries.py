"""Summaries by a model instead of excerpts: the role, and references to its inputs and outputs.

Only texts that are not quoted are summarised (drafts, earlier turns, older tool answers). The engine, which knows the
window, names them; the run has them summarised and repeats the call.
"""

from typing import Final

from contracts.base import CompactModel
from contracts.evidence import DocumentRef
from contracts.roles import RoleAnswer, RoleInput, RoleSpec
from contracts.tokens import RATIOS, Level
from contracts.vocabulary import Tier

SUMMARY_LEVELS: Final = (Level.CONDENSED, Level.COMPRESSED, Level.KEY_POINTS, Level.HEADLINE)
"""Levels at which a summary can replace an excerpt."""
MIN_SUMMARY_CHARACTERS: Final = 100
"""In characters; anything shorter is no more than a sentence of the text itself."""
ORIGINAL_CHARACTERS: Final = 100_000
"""Longest part of a text that is summarised."""


class SummaryOrder(CompactModel):
    """A stored text to summarise for a level."""

    text: DocumentRef
    level: Level

    @property
    def key(self) -> str:
        """Return the name of the summary."""
        return summary_key(self.text.hash, self.level)


class SummaryEntry(CompactModel):
    """A summary in the notebook."""

    key: str
    summary: str


def summary_key(text_hash: str, level: Level) -> str:
    """Return the name of a text's summary at a level."""
    return f"{level.value}/{text_hash}"


def summary_characters(length: int, level: Level) -> int:
    """Return the longest summary of a text, in characters; the excerpt it replaces is at least as long."""
    return int(length * RATIOS[level])


class SummarizeInput(RoleInput):
    """Hand-off to the summarizer."""

    text: DocumentRef
    level: Level
    summarizer: str
    """Name of the model, instead of the tier's."""

    @property
    def most_characters(self) -> int:
        """Return the longest allowed summary, in characters."""
        return summary_characters(self.text.size or 0, self.level)


class SummarizerAnswer(RoleAnswer):
    """A summary."""

    summary: str


class SummarizerResult(RoleAnswer):
    """The reference to a stored summary."""

    entry: str = ""
    """Hash of the stored `SummaryEntry`."""


SUMMARIZER: Final = RoleSpec(
    "summarizer", "summarize_text", Tier.SIMPLE, SummarizeInput, SummarizerAnswer, SummarizerResult,
    output_tokens=4_000, expected_output_tokens=500, has_fallback=False, plain_text=True,
)  # fmt: skip
"""Serves any role if `tokens.summarization_provider` is set; its tokens count towards the share of analysis."""
