"""What a librarian has found for one need, as it survives between units."""

from typing import Final

from contracts.addresses import normalized_text, short_hash
from contracts.base import Contract
from contracts.vocabulary import Quality

BEST_FIRST: Final = (Quality.HIGH, Quality.MEDIUM, Quality.UNKNOWN, Quality.LOW)


class ExaminedSource(Contract):
    """A candidate that was examined for one need: it does not come back for the same one."""

    source_id: str
    accepted: bool
    quality: Quality = Quality.UNKNOWN
    reason: str = ""


class Vetted(Contract):
    """One round of vetting for a need: searches, and the candidates that were examined."""

    need: str
    searches: list[str] = []
    """Ids of nodes of the plan, those of earlier rounds included."""
    before: list[str] = []
    """Ids of the sources that earlier rounds have examined."""
    examined: list[ExaminedSource] = []
    is_searched: bool = False
    """True once the librarian has named the searches of this round."""
    complete: bool = False
    """True once every candidate of the round was examined."""

    @property
    def accepted(self) -> list[ExaminedSource]:
        """The vetted sources, the best first, else in the order of the candidates."""
        return sorted((one for one in self.examined if one.accepted), key=lambda one: BEST_FIRST.index(one.quality))

    @property
    def rejected(self) -> list[ExaminedSource]:
        """The rejected candidates."""
        return [one for one in self.examined if not one.accepted]

    def next_round(self) -> "Vetted":
        """Return the record of another round for the same need."""
        before = [*self.before, *(one.source_id for one in self.examined)]
        return Vetted(need=self.need, searches=self.searches, before=before)


def need_id(need: str) -> str:
    """Return the id of a need: the same words, however they are written, are the same need."""
    return f"need-{short_hash(normalized_text(need))}"
