"""Where a run of the strategy `reflective` stands: what survives between its units."""

from enum import StrEnum
from typing import Final

from pydantic import BaseModel

from contracts.evidence import SearchHit
from contracts.reflective_roles import ReflectionDecision, Route
from contracts.state import Position, ResearchState

NAME: Final = "reflective"


class UnitKind(StrEnum):
    """The units of work, in the order in which they first come."""

    COORDINATION = "coordination"
    BACKGROUND = "background"
    PLANNING = "planning"
    STEP = "step"
    SYNTHESIS = "synthesis"
    ANSWER = "answer"
    """Instead of all others, where a question needs no research."""


class StepReflection(BaseModel):
    """What was decided after a step, and what the reflector had said where that is something else."""

    step: str
    decision: ReflectionDecision
    coerced_from: ReflectionDecision | None = None
    reasoning: str = ""


class ReflectivePosition(Position):
    """The unit that comes next, and what units hand on to later ones."""

    next_unit: UnitKind = UnitKind.COORDINATION
    finished: bool = False
    route: Route = Route.DEEP
    choice: str = ""
    """What was chosen where the request left it open: a depth or a mode."""
    brief: str = ""
    """What earlier turns and instructions add to the question, as the coordinator hands it on."""
    assumption: str = ""
    """What is said of a question that can be read in several ways."""
    background: list[SearchHit] = []
    feedback: str = ""
    """Why the plan is adjusted; empty for the first plan."""
    suggested_changes: list[str] = []
    turns: int = 0
    """Turns that the step under way has had."""
    reflections: list[StepReflection] = []
    skipped: list[str] = []
    """Steps that a reflection left out: a resumed run leaves them out, too."""
    rewritten: bool = False
    """Whether the report had its one retry."""


def position_of(state: ResearchState) -> ReflectivePosition:
    """The position in the state, typed, and from then on there; a state that has none yet gets the beginning."""
    state.position = position = read_position(state)
    return position


def read_position(state: ResearchState) -> ReflectivePosition:
    """The same without a change of the state: whoever asks how far a run is must not change it."""
    held = state.position
    if isinstance(held, ReflectivePosition):
        return held
    return ReflectivePosition.model_validate(held.model_dump() if held else {"strategy": NAME})
