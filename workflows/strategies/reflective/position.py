"""The position of the `reflective` strategy: its next unit, and what passes between units."""

from typing import ClassVar

from pydantic import BaseModel

from contracts.evidence import SearchHit
from contracts.reflective_roles import ReflectionDecision
from contracts.request import Mode
from contracts.sentences import Text
from workflows.strategies.units import UnitName, UnitPosition


class UnitKind(UnitName):
    """The units of work, in order of first occurrence."""

    COORDINATION = "coordination", "classify"
    BACKGROUND = "background", "explore"
    PLANNING = "planning", "plan"
    STEP = "step"
    SYNTHESIS = "synthesis", "write"
    ANSWER = "answer"
    """Replaces everything after the coordination for a question that needs no research."""


class StepReflection(BaseModel):
    """The decision after a step, and the reflector's own decision if limits changed it."""

    step: str
    decision: ReflectionDecision
    coerced_from: ReflectionDecision | None = None
    reasoning: str = ""


class ReflectivePosition(UnitPosition):
    """The next unit, and values passed between units."""

    NAME: ClassVar[str] = "reflective"

    next_unit: UnitKind = UnitKind.COORDINATION
    route: Mode = Mode.DEEP
    choice: str = ""
    """The depth or mode chosen for a request that leaves it open."""
    brief: str = ""
    """The coordinator's summary of earlier turns and instructions."""
    assumption: Text = ""
    """The note to readers about an ambiguous question."""
    background_queries: list[str] = []
    """Proposed while the route is chosen; empty if they are still to be asked for."""
    background: list[SearchHit] = []
    feedback: str = ""
    """Reason for adjusting the plan; empty for the first plan."""
    suggested_changes: list[str] = []
    first_searches: dict[str, list[str]] = {}
    """By step that has not begun: the searches that came with the plan."""
    turns: int = 0
    """Turns taken in the current step."""
    reflections: list[StepReflection] = []
