"""Where a run of the strategy `orchestrator` stands: what survives between its units."""

from enum import StrEnum
from typing import Final

from pydantic import BaseModel

from contracts.evidence import DocumentRef
from contracts.state import Position, ResearchState
from contracts.tools import ToolAnswer, ToolCall

NAME: Final = "orchestrator"


class CycleUnit(StrEnum):
    """The units of work, in the order in which they first come."""

    PLANNING = "planning"
    CYCLE = "cycle"
    SYNTHESIS = "synthesis"


class Dispatched(BaseModel):
    """A call that became an agent."""

    call_id: str
    agent: str
    task: str
    steps: list[str] = []
    """Ids of the steps that it serves."""
    continues: str = ""


class OrchestratorPosition(Position):
    """The unit that comes next, the turn under way, and what turns hand on to later ones."""

    next_unit: CycleUnit = CycleUnit.PLANNING
    finished: bool = False
    cycle: int = 0
    """Cycles that are over: the number, from 0, of the one that comes next."""
    transcript: DocumentRef | None = None
    is_under_way: bool = False
    """Whether the turn's calls are there and not answered yet."""
    calls: list[ToolCall] = []
    is_sorted: bool = False
    """Whether it is decided what becomes of the calls."""
    dispatched: list[Dispatched] = []
    """Calls of the turn under way that became agents,"""
    refused: dict[str, str] = {}
    """and why others did not, by call."""
    answers: list[ToolAnswer] = []
    """To the calls of the turn before."""
    thought: bool = False
    """Whether the turn before was a thought."""
    must_think: bool = False
    """Whether agents have reported since the last thought."""
    fruitless: int = 0
    """Cycles in a row in which no agent was sent and nothing was thought or concluded."""
    by_rules: bool = False
    """Whether rules took the turn under way, because the model's brought nothing."""
    reminded: bool = False
    """Whether the orchestrator was told to look further: it is once."""
    objected: bool = False
    """Whether it was told that steps were left out when it asked for the report: it is once."""
    ended: str = ""
    """Why there is no further cycle; empty while there is one."""
    numbers: dict[int, str] = {}
    """What the numbers in agents' reports stand for, over all agents: the id of a source."""
    told_steps: list[str] = []
    """Steps that came into the plan later, and that it was told of."""
    goes_on: bool = False
    """Whether a resumed run has yet to tell it that the research goes on."""
    skipped: list[str] = []
    """Steps that the orchestrator left out: a resumed run leaves them out, too."""
    rewritten: bool = False
    """Whether the report had its one retry."""


def position_of(state: ResearchState) -> OrchestratorPosition:
    """The position in the state, typed, and from then on there; a state that has none yet gets the beginning."""
    state.position = position = read_position(state)
    return position


def read_position(state: ResearchState) -> OrchestratorPosition:
    """The same without a change of the state: whoever asks how far a run is must not change it."""
    held = state.position
    if isinstance(held, OrchestratorPosition):
        return held
    return OrchestratorPosition.model_validate(held.model_dump() if held else {"strategy": NAME})
