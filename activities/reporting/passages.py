"""Evidence with its words: cut out of the stored text, and checked, with the words around it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from contracts.addresses import digest
from contracts.evidence import Evidence, Source
from providers.errors import ContentCorrupt, ContentMissing

SELECTOR_CHARACTERS: Final = 32
"""Length of prefix and suffix of a text quote selector (Web Annotation)."""


@dataclass(frozen=True)
class QuotedPassage:
    """A verbatim passage: `quote == text[start:end]` of the stored text of its source."""

    evidence: Evidence
    text: str

    @property
    def quote(self) -> str:
        """The words of the passage."""
        return self.text[self.evidence.start : self.evidence.end]

    @property
    def prefix(self) -> str:
        """The characters before it."""
        return self.text[max(0, self.evidence.start - SELECTOR_CHARACTERS) : self.evidence.start]

    @property
    def suffix(self) -> str:
        """The characters after it."""
        return self.text[self.evidence.end : self.evidence.end + SELECTOR_CHARACTERS]


def words_around(text: str, start: int, end: int, most: int = 100) -> tuple[str, str]:
    """Return the text before and after a place, at most so many characters of each, cut between words."""
    before, after = text[max(0, start - most) : start], text[end : end + most]
    if start > most and " " in before:
        before = before.split(" ", 1)[1]
    if end + most < len(text) and " " in after:
        after = after.rsplit(" ", 1)[0]
    return before, after


def cut_passages(
    evidence: Mapping[str, Evidence], sources: Mapping[str, Source], texts: Mapping[str, str]
) -> dict[str, QuotedPassage]:
    """Cut every passage of a run out of its text, by evidence id; `texts` are the stored texts by hash.

    Raises `ContentMissing` if a passage has no source or no stored text, `ContentCorrupt` if its words differ.
    """
    passages = {}
    for identity, item in evidence.items():
        source = sources.get(item.source_id)
        if source is None or source.text is None or source.text.hash not in texts:
            raise ContentMissing(f"{identity}: there is no stored text for its source")
        passage = passages[identity] = QuotedPassage(item, texts[source.text.hash])
        if len(passage.quote) != item.end - item.start or digest(passage.quote) != item.quote_hash:
            raise ContentCorrupt(f"{identity}: the stored text does not have the quoted words at their place")
    return passages
