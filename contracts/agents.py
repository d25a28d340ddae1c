"""Agents: scoped runs with a task of their own, their requests and their results.

An agent knows its task alone, and no part of the run that started it. Ids are hashes, so the findings of several
agents can be merged.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Final

from pydantic import Field

from contracts.base import CompactModel, Contract
from contracts.evidence import QueryRecord, SearchHit, Source
from contracts.outcome import AgentProgress, Counts, Usage
from contracts.resolved import ResolvedResearch
from contracts.state_changes import unpack_json
from contracts.texts import AGENT_ID
from contracts.vocabulary import AgentStatus, StopReason

TASK_CHARACTERS: Final = 4_000
SUMMARY_CHARACTERS: Final = 600
AT_ONCE: Final = 3
"""Most agents that work side by side by default."""


class LostWork(CompactModel):
    """Searches of an agent without an answer, and pages not read or not analyzed: another start of it does them."""

    queries: list[str] = []
    pages: list[SearchHit] = []


class AgentTask(CompactModel):
    """The task of one agent."""

    id: str = Field(pattern=AGENT_ID.pattern)
    """Unique in its run, and the same whenever the run is resumed: `agent-1`. It begins the names of all its calls.

    Its findings belong to the node of the run's plan with this id.
    """
    text: str = Field(min_length=1, max_length=TASK_CHARACTERS)
    """The query of the scoped run, complete in itself."""
    strategy: str
    seconds: float | None = None
    """Time after which it ends its work and reports its findings; None: the preset of its strategy."""
    most_seconds: float | None = None
    """Time after which the run goes on without it; None: the preset of its strategy."""
    given: dict[str, Any] = {}
    """Plain JSON for its strategy, which finds it in `state.task`.

    No part of the question, of the plan or of other agents' findings belongs here.
    """
    protects: int = 0
    """Number of protected sources of its run that it reads, in addition to its share."""
    level: int = 1
    """Number of agents from its run down to this one: 1 for an agent of the run itself."""
    lost: LostWork = LostWork()
    """Set for a task that is given again."""


class AgentShare(Contract):
    """Budget reserved for one agent; None where the run has no such limit."""

    sources: int = 0
    model_calls: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None


class Ledger(Contract):
    """Queries and pages of a run before an agent began; the agent cannot change it."""

    queries: list[QueryRecord] = []
    pages: list[Source] = []


class NodeEnd(StrEnum):
    """Reason for which the work on a node ended."""

    SUFFICIENT = "sufficient"
    CORRECTIONS_USED = "corrections_used"
    NO_PROGRESS = "no_progress"
    BUDGET = "budget"
    TIME = "time"
    STOPPED = "stopped"
    FAILED = "failed"


class NodeSummary(CompactModel):
    """One node of a tree of agents, with those below it: what it was for, what it used, and why it ended."""

    id: str
    """Of the agent that worked on it, and of its node in the plan."""
    goal: str
    level: int = Field(default=1, ge=1)
    source_ids: list[str] = []
    """Sources that its own leaves are about."""
    corrections: int = 0
    end: NodeEnd = NodeEnd.SUFFICIENT
    usage: Usage = Usage()
    """Its own, without those below it."""
    below: list["NodeSummary"] = []
    """Nodes of agents that it started, in the order of their tasks."""


class TaskResult(CompactModel):
    """Result of one agent, however it ended; its findings, sources and gaps are then in the run's state."""

    stop_reason: StopReason
    problem: str = ""
    """Reason for less than expected, in one line; empty where the agent finished its work."""
    is_stub: bool = False
    """True if nothing came from the agent itself: it was too late, it failed, or it never began."""
    summary: str = ""
    """For people and for the run that started it, at most `SUMMARY_CHARACTERS`."""
    finding_ids: list[str] = []
    source_ids: list[str] = []
    """Sources that it read or was given as read."""
    gap_ids: list[str] = []
    counts: Counts = Counts()
    usage: Usage = Usage()
    usage_by_role: dict[str, Usage] = {}
    """Without times; the sum is `usage`."""
    lost: LostWork = LostWork()
    failed_branches: list[str] = []
    node: NodeSummary | None = None
    """Its part of a tree; None where its strategy works on none."""
    calls: dict[str, dict[str, int]] = {}
    """Number of calls of one role by another, by caller and role, those of its own agents included."""
    agents: list[AgentProgress] = []
    """Agents that it started, in the order of their tasks."""
    packed: str = ""
    """The agent's state, packed, on its way to the run; empty once it is in the run's state."""


class AgentRecord(Contract):
    """Record of an agent in its run."""

    task: AgentTask
    status: AgentStatus = AgentStatus.QUEUED
    workflow_id: str = ""
    starts: int = 0
    share: AgentShare | None = None
    """None before shares are divided."""
    known_queries: int = 0
    """Length of the run's list of queries when the task was given; so much of it is the agent's ledger."""
    known_sources: int = 0
    started_at: str = ""
    ended_at: str = ""
    result: TaskResult | None = None
    """Its last result, without the parts that are in the state; None before the first."""

    @property
    def is_over(self) -> bool:
        """True if the task is not to be given again."""
        return self.status in (AgentStatus.DONE, AgentStatus.FAILED)


class AgentRequest(CompactModel):
    """The one argument of the workflow `research-agent`."""

    task: AgentTask
    resolved: ResolvedResearch
    """With the task as its query; no other part of it is about the question of the run."""
    started_at: str = ""
    """Of the run: its date is the date of all calls."""
    deadline_at: float = 0.0
    """Seconds since the epoch (workflow clock) at which the agent must have answered."""
    approved_version: int | None = None
    lost_providers: dict[str, str] = {}
    packed_ledger: str = ""

    def ledger(self) -> Ledger:
        """Return the queries and pages of the run. Raises ValueError if `packed_ledger` cannot be read."""
        return Ledger.model_validate(unpack_json(self.packed_ledger)) if self.packed_ledger else Ledger()


class PrepareAgentRequest(CompactModel):
    """Store the resolution of an agent in the notebook of its run."""

    resolved: ResolvedResearch


def nodes_of_records(records: Iterable[AgentRecord]) -> list[NodeSummary]:
    """Return the nodes of agents, in the order of their tasks; those without a result of their own have failed."""
    found = []
    for record in records:
        result, task = record.result, record.task
        if result is not None and (result.node is not None or result.is_stub):
            end = NodeEnd.TIME if result.stop_reason is StopReason.BUDGET_TIME else NodeEnd.FAILED
            found.append(result.node or NodeSummary(id=task.id, goal=task.text, level=task.level, end=end))
    return found


def progress_of_agent(record: AgentRecord) -> AgentProgress:
    """Return the progress of an agent, as its run knows it."""
    known = {name: getattr(record, name) for name in ("status", "workflow_id", "started_at", "ended_at")}
    if record.result:
        known |= {name: getattr(record.result, name) for name in ("problem", "summary", "counts", "usage", "agents")}
    return AgentProgress(id=record.task.id, task=record.task.text, strategy=record.task.strategy, **known)
