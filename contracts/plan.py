"""The plan: a brief, and the nodes of the work: sub-queries, and steps that search nothing."""

from typing import Any

from pydantic import Field, model_validator

from contracts.base import Contract
from contracts.vocabulary import NodeKind, NodeStatus
from contracts.waiting import Waiting


class PlanNode(Contract):
    """One part of the work. One that is searched for is a sub-query; the others work on what their children found."""

    id: str
    text: str
    parent: str | None = None
    """The node that it is a part of, or whose gap it is to close; None at the top."""
    depth: int = Field(default=0, ge=0)
    kind: NodeKind = NodeKind.QUERY
    needs_search: bool = True
    rationale: str = ""
    priority: int = Field(default=1, ge=1, description="1 is the most important")
    origin: str = "plan"
    """`plan`, or `gap:<gap id>` when a refinement asked for it."""
    facet: str = ""
    """Which part of the answer it serves (`problem`, `mechanism`, `settings`, …); free text for a model."""
    expected_contribution: str = ""
    iteration: int = 1
    status: NodeStatus = NodeStatus.PENDING
    status_reason: str = ""
    """Why it was skipped."""
    error: str | None = None
    provider: str | None = None
    result_count: int = 0
    new_source_count: int = 0
    duplicate_count: int = 0
    """Hits that were no new source: found before, by another sub-query, or by several providers at once."""
    merged_count: int = 0
    """The last of these: hits of several providers that became one; part of `duplicate_count`."""
    stated_gaps: list[str] = []
    """Ids of the gaps that say what of it is not answered; another sub-query may have opened them."""
    finding_count: int = 0
    """Findings that answer it, also those that another sub-query had found before."""

    @property
    def gap_id(self) -> str | None:
        """The gap that this sub-query is to close, if any."""
        return self.origin.removeprefix("gap:") if self.origin.startswith("gap:") else None


class Plan(Contract):
    """What will be looked for and worked out: a flat list of sub-queries, or a tree."""

    version: int = 0
    brief: str = ""
    nodes: list[PlanNode] = []
    """Parents before their children, otherwise in the order of the work."""

    @model_validator(mode="before")
    @classmethod
    def _as_written_before(cls, written: Any) -> Any:
        # Sessions of versions before nodes have a list of sub-queries.
        if isinstance(written, dict) and "nodes" not in written and "sub_queries" in written:
            return {**written, "nodes": written["sub_queries"]}
        return written

    @property
    def sub_queries(self) -> list[PlanNode]:
        """The nodes that are searched for."""
        return [node for node in self.nodes if node.needs_search]

    @property
    def parts(self) -> list[PlanNode]:
        """What the plan is made of, as a person reads and edits it: sub-queries, and steps without any below them."""
        broken_down = {node.parent for node in self.nodes}
        return [node for node in self.nodes if node.needs_search or node.id not in broken_down]

    def children(self, node: PlanNode) -> list[PlanNode]:
        """The nodes below one."""
        return [other for other in self.nodes if other.parent == node.id]

    def with_nodes(self, *changed: PlanNode) -> "Plan":
        """The plan with these nodes: each in the place of the one with its id, or at the end."""
        nodes = {node.id: node for node in self.nodes} | {node.id: node for node in changed}
        return self.model_copy(update={"nodes": list(nodes.values())})


class PlanAnswer(Contract):
    """Answer of the query `plan`."""

    version: int = 0
    approved_version: int | None = None
    """The version that a person approved; None where none was."""
    waiting: Waiting | None = None
    """What a person is asked now."""
    brief: str = ""
    nodes: list[PlanNode] = []
    sub_queries: list[PlanNode] = []
    """What the plan is made of: nodes that are searched for, and steps that nothing is searched for yet."""
