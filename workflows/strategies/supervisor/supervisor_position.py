"""Where the strategy `supervisor` stands."""

from typing import Final

from contracts.state import Position, ResearchState
from contracts.vocabulary import Phase

NAME: Final = "supervisor"


class SupervisorPosition(Position):
    """The phase that comes next, and which phases were retried."""

    strategy: str
    next_phase: Phase = Phase.PLANNING
    retried: list[str] = []
    """`<phase>/<iteration>` of each phase that had its one retry."""
    recommended: bool | None = None
    """What the refiner recommended; None before a refinement."""


def position_of(state: ResearchState) -> SupervisorPosition:
    """The position in the state, typed, and from then on there; a state that has none yet gets the beginning."""
    state.position = position = read_position(state)
    return position


def read_position(state: ResearchState) -> SupervisorPosition:
    """The same without a change of the state: whoever asks how far a run is must not change it."""
    held = state.position
    if isinstance(held, SupervisorPosition):
        return held
    return SupervisorPosition.model_validate(held.model_dump() if held else {"strategy": NAME})
