"""Where an agent stands: what survives between its turns."""

from typing import Any, Final

from contracts.addresses import canonical_url
from contracts.evidence import Candidate, DocumentRef, SearchHit
from contracts.orchestrator_roles import FoundPage
from contracts.plan import PlanNode
from contracts.state import Position, ResearchState
from contracts.state_changes import pack_json, unpack_json
from contracts.tools import ToolAnswer, ToolCall
from contracts.vocabulary import NodeStatus

NAME: Final = "agent"
KEPT: Final = "kept"
"""The name under which an agent hands on what whoever continues it begins with."""


class AgentPosition(Position):
    """The turn under way, and what turns hand on to later ones."""

    turn: int = 1
    first_turn: int = 1
    """Its own first one: an agent that continues another one counts on."""
    transcript: DocumentRef | None = None
    is_under_way: bool = False
    """Whether the turn's calls are there and not answered yet."""
    calls: list[ToolCall] = []
    answers: list[ToolAnswer] = []
    """To the calls of the turn before."""
    opened: list[int] = []
    """Pages by their numbers."""
    opened_before: int = 0
    """How many of them the agent had opened that this one continues."""
    searches: int = 0
    """That count against the limit; one that repeated another does not."""
    has_searched: bool = False
    """Whether the turn before searched."""
    thought: bool = False
    """Whether the turn before was a thought."""
    silent: int = 0
    """Turns in a row in which nothing was called."""
    not_analyzed: list[str] = []
    """Sources whose analysis failed: it is not tried again."""
    earlier: list[str] = []
    """Findings of the agent that this one continues."""
    open_questions: list[str] | None = None
    """What the agent says that it could not answer; None where it did not come to say it."""
    finished: str = ""
    """Why it takes no further turn; empty while it does."""
    begun: bool = False
    """Whether it knows what the agent has kept that it continues."""


def position_of(state: ResearchState) -> AgentPosition:
    """The position in the state, typed, and from then on there; a state that has none yet gets the beginning."""
    state.position = position = read_position(state)
    return position


def read_position(state: ResearchState) -> AgentPosition:
    """The same without a change of the state."""
    held = state.position
    if isinstance(held, AgentPosition):
        return held
    return AgentPosition.model_validate(held.model_dump() if held else {"strategy": NAME})


# --- pages ---------------------------------------------------------------------------------------------------------
def pages_found(state: ResearchState) -> list[Candidate]:
    """What searches have found, each address once, in the order in which it is numbered from 1."""
    found: dict[str, Candidate] = {}
    for candidate in state.candidates:
        found.setdefault(canonical_url(candidate.hit.url), candidate)
    return list(found.values())


def unopened(state: ResearchState) -> list[FoundPage]:
    """The pages that were not opened yet, by number."""
    opened = set(read_position(state).opened)
    return [
        FoundPage(index=number, rank=page.hit.rank)
        for number, page in enumerate(pages_found(state), start=1)
        if number not in opened
    ]


# --- going on ------------------------------------------------------------------------------------------------------
def kept_for_later(state: ResearchState) -> dict[str, Any]:
    """What an agent needs to go on where this one ended: its conversation, and what its numbers stand for."""
    position = read_position(state)
    if position.transcript is None:
        return {}
    kept = {
        "transcript": position.transcript.model_dump(mode="json"),
        "turn": position.turn,
        "answers": [answer.model_dump(mode="json") for answer in position.answers],
        "opened": position.opened,
        "candidates": [
            {"node": one.sub_query_id, "hit": one.hit.model_dump(mode="json", exclude_defaults=True)}
            for one in pages_found(state)
        ],
        "nodes": [{"id": node.id, "text": node.text} for node in state.plan.nodes],
    }
    return {KEPT: pack_json(kept)}


def go_on(state: ResearchState) -> None:
    """Begin where an earlier agent ended, if this one continues one. Raises ValueError for what no agent has kept."""
    position = position_of(state)
    packed = state.task.given.get(KEPT) if state.task else None
    if position.begun or not isinstance(packed, str):
        return
    told = unpack_json(packed)
    position.begun = True
    position.earlier = [finding.id for finding in state.findings]
    position.transcript = DocumentRef.model_validate(told["transcript"])
    position.turn = int(told["turn"])
    position.first_turn = position.turn
    position.answers = [ToolAnswer.model_validate(answer) for answer in told["answers"]]
    position.opened = [int(number) for number in told["opened"]]
    position.opened_before = len(position.opened)
    nodes = [PlanNode(id=each["id"], text=each["text"], status=NodeStatus.COMPLETED) for each in told["nodes"]]
    state.plan = state.plan.with_nodes(*nodes)
    state.analyzed_sub_queries = [node.id for node in nodes]
    state.candidates = [
        Candidate(sub_query_id=each["node"], hit=SearchHit.model_validate(each["hit"])) for each in told["candidates"]
    ]
