"""A librarian's results for one need, persisted between units."""

from typing import Final

from contracts.addresses import normalized_text, short_hash
from contracts.base import Contract
from contracts.vocabulary import Quality

BEST_FIRST: Final = (Quality.HIGH, Quality.MEDIUM, Quality.UNKNOWN, Quality.LOW)


class ExaminedSource(Contract):
    """A candidate examined for one need; it is not examined again for the same need."""

    source_id: str
    accepted: bool
    quality: Quality = Quality.UNKNOWN
    reason: str = ""


class Vetted(Contract):
    """One round of vetting for a need: searches and examined candidates."""

    need: str
    searches: list[str] = []
    """Ids of plan nodes, including those of earlier rounds."""
    before: list[str] = []
    """Ids of the sources examined in earlier rounds."""
    examined: list[ExaminedSource] = []
    is_searched: bool = False
    """True once the librarian has proposed this round's searches."""
    complete: bool = False
    """True once every candidate of this round has been examined."""

    @property
    def accepted(self) -> list[ExaminedSource]:
        """Return the vetted sources, best first, ties in candidate order."""
        return sorted(
            (source for source in self.examined if source.accepted),
            key=lambda one: BEST_FIRST.index(one.quality),
        )

    @property
    def rejected(self) -> list[ExaminedSource]:
        """Return the rejected candidates."""
        return [source for source in self.examined if not source.accepted]

    def next_round(self) -> "Vetted":
        """Return the record of another round for the same need."""
        earlier = [*self.before, *(source.source_id for source in self.examined)]
        return Vetted(need=self.need, searches=self.searches, before=earlier)


def need_id(need: str) -> str:
    """Return the id of a need, from its normalized text."""
    return f"need-{short_hash(normalized_text(need))}"
