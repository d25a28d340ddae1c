"""The plan: a brief and sub-queries."""

from pydantic import Field

from contracts.base import Contract
from contracts.vocabulary import SubQueryStatus


class SubQuery(Contract):
    """One question that can be searched for by itself."""

    id: str
    text: str
    rationale: str = ""
    priority: int = Field(default=1, ge=1, description="1 is the most important")
    origin: str = "plan"
    """`plan`, or `gap:<gap id>` when a refinement asked for it."""
    facet: str = ""
    """Which part of the answer it serves (`problem`, `mechanism`, `settings`, …); free text for a model."""
    expected_contribution: str = ""
    iteration: int = 1
    status: SubQueryStatus = SubQueryStatus.PENDING
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
    """What will be looked for."""

    version: int = 0
    brief: str = ""
    sub_queries: list[SubQuery] = []
