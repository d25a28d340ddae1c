"""The position of the `living` strategy: its next unit, and what passes from one turn of its agent to the next."""

from typing import ClassVar

from contracts.evidence import DocumentRef
from contracts.tools import ToolAnswer
from workflows.phases.agent_reading import ReadingPosition
from workflows.strategies.units import UnitName, UnitPosition


class LivingUnit(UnitName):
    """The units of work, in order of first occurrence."""

    PLANNING = "planning", "plan"
    TURN = "turn"
    COMPLETION = "completion", "complete"
    REFRESH = "refresh"
    """Reads the sources of a finished run again."""


class LivingPosition(UnitPosition, ReadingPosition):
    """The next unit, and values passed between turns."""

    NAME: ClassVar[str] = "living"

    next_unit: LivingUnit = LivingUnit.PLANNING
    turn: int = 1
    transcript: DocumentRef | None = None
    answers: list[ToolAnswer] = []
    """Answers to the previous turn's calls."""
    reminder: str = ""
    idle_turns: int = 0
    """Consecutive turns without progress."""
    listed: list[int] = []
    """Numbers of the pages already listed to the agent."""
    unwritable: list[int] = []
    """Numbers of notes whose update inserted nothing; the scripted fallback skips them."""
    deferred: list[int] = []
    """Numbers of notes that an update had no room for."""
    omitted: list[int] = []
    """Numbers of notes that the reporter left out for good, or the arranger assigned to no section."""
    headings: dict[int, list[str]] = {}
    """Headings under which each note was offered to a writer, by its number; the last one is where it is due."""
    placed: list[str] = []
    """Ids of the notes in the report of a resumed run: some may have been written by rules, unknown to the agent."""
    has_reported: bool = False
    """True once a `finish` call of the agent was accepted."""
    has_looked_back: bool = False
    """True once what it left open was compared with the pages read."""
    open_questions: list[str] = []
    """Questions it left open when it finished."""
    ended: str = ""
    """Reason why there are no more turns; empty while there are."""
    plan_version: int = 0
    """Version of the plan that the agent and the report go by; 0 before the first turn."""
