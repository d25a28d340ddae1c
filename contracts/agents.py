"""Agents: scoped runs with their own task, their requests and results.

An agent gets only its task, no other part of the run that started it. Ids are hashes, so findings of several agents
can be merged.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Final

from pydantic import Field

from contracts.base import CompactModel, Contract
from contracts.call_sizes import CallSizes
from contracts.defects import Defect
from contracts.evidence import QueryRecord, SearchHit, Source
from contracts.outcome import AgentProgress, Counts, Usage
from contracts.resolved import ResolvedResearch
from contracts.sentences import Text
from contracts.state_changes import unpack_json
from contracts.texts import AGENT_ID
from contracts.vocabulary import AgentStatus, StopReason

TASK_CHARACTERS: Final = 4_000
SUMMARY_CHARACTERS: Final = 600
AT_ONCE: Final = 3
"""Default limit of concurrent agents."""


class LostWork(CompactModel):
    """Unanswered searches and unread or unanalyzed pages of an agent, for its next start."""

    queries: list[str] = []
    pages: list[SearchHit] = []


class PageRead(CompactModel):
    """What an agent had read of a page."""

    purposes: list[str] = []
    """Keys of the purposes for which it was read."""
    hidden: list[str] = []
    """Lines of the outline for sections that no reading was shown whole; empty: all of the page was shown."""


class AgentTask(CompactModel):
    """The task of one agent."""

    id: str = Field(pattern=AGENT_ID.pattern)
    """Unique in its run and stable across resumes: `agent-1`. Prefix of the names of all its calls.

    Its findings belong to the node of the run's plan with this id.
    """
    text: str = Field(min_length=1, max_length=TASK_CHARACTERS)
    """The query of the scoped run, self-contained."""
    strategy: str
    seconds: float | None = None
    """Time after which it stops working and reports its findings; None: its strategy's preset."""
    most_seconds: float | None = None
    """Time after which the run continues without it; None: its strategy's preset."""
    given: dict[str, Any] = {}
    """Plain JSON for its strategy, read from `state.work.task`.

    No part of the question, the plan or other agents' findings belongs here.
    """
    protects: int = 0
    """Number of the run's protected sources that it reads, on top of its share."""
    level: int = 1
    """Depth below the run: 1 for an agent that the run itself started."""
    lost: LostWork = LostWork()
    """Set when the task is retried."""
    pages_read: dict[str, PageRead] = {}
    """By id of a source: what its earlier start had read, from where it goes on; empty: it begins anew."""


class AgentShare(Contract):
    """Budget reserved for one agent; None if the run has no such limit."""

    sources: int = 0
    model_calls: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    searches: int | None = None


class Ledger(Contract):
    """Queries and pages of a run before an agent started; read-only for the agent."""

    queries: list[QueryRecord] = []
    pages: list[Source] = []
    notes: dict[str, list[str]] = {}
    """By id of a page: what models found in it, so that another reading adds to that."""
    read_whole: list[str] = []
    """Ids of the pages of which another agent was shown all."""


class NodeEnd(StrEnum):
    """Reason why work on a node ended."""

    SUFFICIENT = "sufficient"
    CORRECTIONS_USED = "corrections_used"
    NO_PROGRESS = "no_progress"
    NOT_CLOSABLE = "not_closable"
    BUDGET = "budget"
    TIME = "time"
    STOPPED = "stopped"
    FAILED = "failed"


class NodeSummary(CompactModel):
    """One node of a tree of agents, with its descendants: its goal, its usage, and why it ended."""

    id: str
    """Id of its agent and of its node in the plan."""
    goal: str
    level: int = Field(default=1, ge=1)
    source_ids: list[str] = []
    """Sources of its own leaves."""
    corrections: int = 0
    answered_by: list[str] = []
    """Ids of findings, its own or of its descendants, that answer the gap for which it was started, as their readers
    judge; empty for a node of the first plan."""
    end: NodeEnd = NodeEnd.SUFFICIENT
    usage: Usage = Usage()
    """Its own usage, without its descendants'."""
    below: list["NodeSummary"] = []
    """Nodes of the agents that it started, in task order."""


class TaskResult(CompactModel):
    """Result of one agent, whether it finished or not; its findings, sources and gaps are in the run's state."""

    stop_reason: StopReason
    problem: Text = ""
    """Reason for an incomplete result, in one line; empty if the agent finished its work."""
    defects: list[Defect] = []
    """Unforeseen errors that ended it or its own agents."""
    is_stub: bool = False
    """True if the agent returned nothing: it timed out, failed or never started."""
    summary: str = ""
    """For people and for the parent run, at most `SUMMARY_CHARACTERS`."""
    finding_ids: list[str] = []
    source_ids: list[str] = []
    """Sources that it read, and those that it got already read."""
    gap_ids: list[str] = []
    pages_read: dict[str, PageRead] = {}
    """By id of a source: what it had read, if its strategy reads for purposes."""
    counts: Counts = Counts()
    usage: Usage = Usage()
    usage_by_role: dict[str, Usage] = {}
    """Usage by role, without times; the sum is `usage`."""
    lost: LostWork = LostWork()
    failed_branches: list[Text] = []
    node: NodeSummary | None = None
    """Its part of a tree; None if its strategy builds none."""
    answers_counted: list[str] = []
    """Names of its paid answers so far, with those of its agents."""
    repeated_by_role: dict[str, Usage] = {}
    """The part of `usage_by_role` that an earlier start has brought, and its run has counted, already."""
    calls: dict[str, dict[str, int]] = {}
    """Number of calls by caller and called role, including those of its own agents."""
    agents: list[AgentProgress] = []
    """Agents that it started, in task order."""
    call_sizes: dict[str, CallSizes] = {}
    """The sizes of calls by role that the agent knows in the end; empty once merged into the run's state."""
    packed: str = ""
    """The agent's packed state in transit; empty once merged into the run's state."""


class AgentRecord(Contract):
    """Record of an agent in its run."""

    task: AgentTask
    status: AgentStatus = AgentStatus.QUEUED
    workflow_id: str = ""
    starts: int = 0
    share: AgentShare | None = None
    """None until the budget is divided."""
    known_queries: int = 0
    """Length of the run's query list when the task was assigned; that prefix is the agent's ledger."""
    known_sources: int = 0
    known_findings: int = 0
    """Likewise the number of findings, of which the agent is shown those on pages that it opens."""
    started_at: str = ""
    ended_at: str = ""
    result: TaskResult | None = None
    """Its latest result, without the parts that are in the state; None before the first."""

    @property
    def is_over(self) -> bool:
        """Return true if the task needs no retry."""
        return self.status in (AgentStatus.DONE, AgentStatus.FAILED)


class AgentRequest(CompactModel):
    """The one argument of the workflow `research-agent`."""

    task: AgentTask
    resolved: ResolvedResearch
    """Its query is the task; no other part of it is about the run's question."""
    started_at: str = ""
    """Start of the run; its date is the date of all calls."""
    deadline_at: float = 0.0
    """Time by which the agent must return, in seconds since the epoch (workflow clock)."""
    approved_version: int | None = None
    lost_providers: dict[str, Text] = {}
    call_sizes: dict[str, CallSizes] = {}
    """The sizes of the run's calls by role so far."""
    answers_counted: list[str] = []
    """Names of the paid answers of its earlier starts."""
    packed_ledger: str = ""
    packed_earlier: str = ""
    """Packed state with what its earlier start had found, from which it goes on; empty: it begins anew."""
    run_entry: str = ""
    """Hash of the resolution of who starts the agent. Pages that its first searches find are read by it, since what it
    says of searching and reading is the agent's, too; empty: the agent stores its own before it searches."""

    def ledger(self) -> Ledger:
        """Return the queries and pages of the run. Raises ValueError if `packed_ledger` cannot be read."""
        if self.packed_ledger:
            return Ledger.model_validate(unpack_json(self.packed_ledger))
        return Ledger()


class PrepareAgentRequest(CompactModel):
    """Input of `prepare_agent`, which stores an agent's resolution in its run's notebook."""

    resolved: ResolvedResearch


def collect_nodes(records: Iterable[AgentRecord]) -> list[NodeSummary]:
    """Return the nodes of agents, in task order; a stub without a node timed out or failed."""
    nodes = []
    for record in records:
        result = record.result
        task = record.task
        if result is not None and (result.node is not None or result.is_stub):
            end = NodeEnd.TIME if result.stop_reason is StopReason.BUDGET_TIME else NodeEnd.FAILED
            nodes.append(result.node or NodeSummary(id=task.id, goal=task.text, level=task.level, end=end))
    return nodes


def agent_progress(record: AgentRecord) -> AgentProgress:
    """Return an agent's progress from its record in the run."""
    progress = AgentProgress(
        id=record.task.id,
        task=record.task.text,
        strategy=record.task.strategy,
        status=record.status,
        workflow_id=record.workflow_id,
        started_at=record.started_at,
        ended_at=record.ended_at,
    )
    if record.result is None:
        return progress
    return progress.with_fields(
        problem=record.result.problem,
        summary=record.result.summary,
        counts=record.result.counts,
        usage=record.result.usage,
        agents=record.result.agents,
    )
