"""Shorter forms, in prompts, of texts that nothing is quoted from. Pure."""

from collections.abc import Mapping, Sequence

from contracts.addresses import digest
from contracts.summaries import summary_key
from contracts.tokens import Level
from providers.tokens.shortening import shortened


def shorter_form(text: str, level: Level, question: str, documents: Mapping[str, str]) -> str:
    """Return a text at a level: its summary if there is one, else its own sentences."""
    return summary_of(text, level, documents) or shortened(text, level, question)


def summary_of(text: str, level: Level, documents: Mapping[str, str]) -> str:
    """Return the summary of a text at a level, which is among the documents of its call; empty if there is none."""
    return documents.get(summary_key(digest(text), level), "")


def levels_of(text: str, documents: Mapping[str, str]) -> Sequence[Level]:
    """Return the levels of a text: with a summary that of the summary and those below, so that it is used."""
    levels, text_hash = list(Level), digest(text)
    known = (place for place, level in enumerate(levels) if summary_key(text_hash, level) in documents)
    return levels[next(known, 0) :]
