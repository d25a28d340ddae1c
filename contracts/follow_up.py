"""A follow-up question: the earlier run whose evidence is offered first."""

from typing import Final

from contracts.base import Contract

EARLIER: Final = "earlier"
"""The name under which an earlier run stands among the providers."""
SUMMARY_CHARACTERS: Final = 4_000


class FollowUp(Contract):
    """What a run knows of the run that it follows."""

    research_id: str
    query: str
    summary: str = ""
    """Of its report, for the planner."""
    entry: str = ""
    """Hash of the stored entry with its sources, as hits; empty where none can be used by this run."""
    sources: int = 0
    """How many of them there are."""
