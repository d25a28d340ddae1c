"""What a librarian has found for one need, as it survives between units."""

from collections.abc import Iterable
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
    round: int = 1


class Vetted(Contract):
    """Searches for one need, and the candidates that were examined for it, over all rounds."""

    need: str
    searches: list[str] = []
    """Ids of nodes of the plan, in their order."""
    examined: list[ExaminedSource] = []
    round: int = 1
    searched: int = 0
    """Number of the round whose searches the librarian has named."""
    complete: bool = False
    """True once every candidate of the round was examined."""

    @property
    def accepted(self) -> list[ExaminedSource]:
        """The vetted sources of the newest round, the best first, else in the order of the candidates."""
        found = [one for one in self.examined if one.accepted and one.round == self.round]
        return sorted(found, key=lambda one: BEST_FIRST.index(one.quality))

    @property
    def rejected(self) -> list[ExaminedSource]:
        """The rejected candidates of the newest round."""
        return [one for one in self.examined if not one.accepted and one.round == self.round]

    @property
    def is_searched(self) -> bool:
        """True once the librarian has named the searches of this round."""
        return self.searched >= self.round

    @property
    def examined_before(self) -> set[str]:
        """Ids of the candidates of earlier rounds."""
        return {one.source_id for one in self.examined if one.round < self.round}

    def with_searches(self, names: Iterable[str]) -> "Vetted":
        """Return the record with the searches that the librarian has named for this round."""
        searches = list(dict.fromkeys([*self.searches, *names]))
        return self.model_copy(update={"searches": searches, "searched": self.round})

    def next_round(self) -> "Vetted":
        """Return the record for another round of the same need."""
        return self.model_copy(update={"round": self.round + 1, "complete": False})


def need_id(need: str) -> str:
    """Return the id of a need: the same words, however they are written, are the same need."""
    return f"need-{short_hash(normalized_text(need))}"
