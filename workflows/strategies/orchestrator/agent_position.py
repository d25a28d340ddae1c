"""The position of an agent, the pages that it found, and its continuation by a later agent."""

from typing import Any, ClassVar, Final

from contracts.addresses import canonical_url
from contracts.evidence import Candidate, DocumentRef, SearchHit
from contracts.orchestrator_roles import FoundPage
from contracts.plan import PlanNode
from contracts.state import Position, ResearchState
from contracts.state_changes import pack_json, unpack_json
from contracts.tools import ToolAnswer, ToolCall
from contracts.vocabulary import NodeStatus

CONTINUATION: Final = "continuation"
"""Key of the packed values for an agent that continues another one."""


class AgentPosition(Position):
    """The turn under way, and values that turns pass to later ones."""

    NAME: ClassVar[str] = "agent"

    turn: int = 1
    first_turn: int = 1
    """Its own first one: an agent that continues another one counts on."""
    transcript: DocumentRef | None = None
    is_under_way: bool = False
    """True while the calls of the turn have no answers yet."""
    calls: list[ToolCall] = []
    answers: list[ToolAnswer] = []
    """Answers to the calls of the turn before."""
    opened: list[int] = []
    """Numbers of the opened pages."""
    opened_before: int = 0
    """Number of pages opened by the agent that this one continues."""
    searches: int = 0
    """Searches that count against the limit: repetitions do not."""
    has_searched: bool = False
    """True if the turn before searched."""
    thought: bool = False
    """True if the turn before was a thought."""
    silent_turns: int = 0
    """Turns in a row without a call."""
    not_analyzed: list[str] = []
    """Ids of sources whose analysis failed: it is not tried again."""
    earlier: list[str] = []
    """Ids of the findings of the agent that this one continues."""
    open_questions: list[str] | None = None
    """Questions that the agent reports as open; None if it did not report."""
    finished: str = ""
    """Reason for which there is no further turn; empty while there is one."""
    is_continuing: bool = False
    """True once the values of the agent that this one continues are taken over."""


# --- pages ---------------------------------------------------------------------------------------------------------
def pages_found(state: ResearchState) -> list[Candidate]:
    """Return the hits of all searches, each address once; the first has the number 1."""
    found: dict[str, Candidate] = {}
    for candidate in state.candidates:
        found.setdefault(canonical_url(candidate.hit.url), candidate)
    return list(found.values())


def unopened(state: ResearchState) -> list[FoundPage]:
    """Return the pages that were not opened yet, by number."""
    opened = set(AgentPosition.read(state).opened)
    return [
        FoundPage(index=number, rank=page.hit.rank)
        for number, page in enumerate(pages_found(state), start=1)
        if number not in opened
    ]


# --- continuation --------------------------------------------------------------------------------------------------
def continuation_of(state: ResearchState) -> dict[str, Any]:
    """Return the values that another agent needs to continue this one: its conversation, and its numbered pages."""
    position = AgentPosition.read(state)
    if position.transcript is None:
        return {}
    values = {
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
    return {CONTINUATION: pack_json(values)}


def take_continuation(state: ResearchState) -> None:
    """Start with the values of the agent that this one continues, if any. Raises ValueError for broken ones."""
    position = AgentPosition.of(state)
    packed = state.task.given.get(CONTINUATION) if state.task else None
    if position.is_continuing or not isinstance(packed, str):
        return
    values = unpack_json(packed)
    position.is_continuing = True
    position.earlier = [finding.id for finding in state.findings]
    position.transcript = DocumentRef.model_validate(values["transcript"])
    position.turn = position.first_turn = int(values["turn"])
    position.answers = [ToolAnswer.model_validate(answer) for answer in values["answers"]]
    position.opened = [int(number) for number in values["opened"]]
    position.opened_before = len(position.opened)
    nodes = [PlanNode(id=each["id"], text=each["text"], status=NodeStatus.COMPLETED) for each in values["nodes"]]
    state.plan = state.plan.with_nodes(*nodes)
    state.analyzed_sub_queries = [node.id for node in nodes]
    state.candidates = [
        Candidate(sub_query_id=each["node"], hit=SearchHit.model_validate(each["hit"])) for each in values["candidates"]
    ]
