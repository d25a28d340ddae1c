"""Position of the strategy `living`, and what of its plan and report is still to be done. Pure."""

from enum import StrEnum
from typing import ClassVar, Final

from contracts.evidence import DocumentRef
from contracts.plan import CHOSEN_BY_AGENT, PlanNode
from contracts.state import ResearchState
from contracts.tools import ToolAnswer
from contracts.vocabulary import NodeStatus
from workflows.phases.agent_reading import ReadingPosition
from workflows.strategies.units import UnitPosition


class LivingUnit(StrEnum):
    """The units of work, in the order in which they first come."""

    PLANNING = "planning"
    TURN = "turn"
    COMPLETION = "completion"
    REFRESH = "refresh"
    """In a run that was over: its sources are read again."""


LABELS: Final = {LivingUnit.PLANNING: "plan", LivingUnit.TURN: "turn", LivingUnit.COMPLETION: "complete"}
"""Of the units of every run."""
REFRESH_LABEL: Final = "refresh"


class LivingPosition(UnitPosition, ReadingPosition):
    """The unit that comes next, and values that turns pass to later ones."""

    NAME: ClassVar[str] = "living"

    next_unit: LivingUnit = LivingUnit.PLANNING
    turn: int = 1
    transcript: DocumentRef | None = None
    answers: list[ToolAnswer] = []
    """Answers to the calls of the turn before."""
    reminder: str = ""
    idle_turns: int = 0
    """Turns in a row that brought nothing."""
    listed: list[int] = []
    """Numbers of the pages that the agent was shown."""
    unwritable: list[int] = []
    """Numbers of notes that an update was asked for and had none of: the script without a model leaves them."""
    has_reported: bool = False
    """True once the agent has finished by itself."""
    open_questions: list[str] = []
    """Questions that it left open then."""
    ended: str = ""
    """Reason for which there is no further turn; empty while there is one."""


def planned_queries(state: ResearchState) -> list[PlanNode]:
    """Return the queries that the person approved, in their order."""
    return [query for query in state.plan.sub_queries if query.origin != CHOSEN_BY_AGENT]


def unasked_queries(state: ResearchState) -> list[PlanNode]:
    """Return the approved queries that nothing was searched for yet."""
    return [query for query in planned_queries(state) if query.status is NodeStatus.PENDING]


def empty_sections(state: ResearchState) -> list[str]:
    """Return the headings with nothing under them."""
    words = state.draft.words_by_section if state.draft else {}
    return [heading for heading in state.plan.outline if not words.get(heading)]
