"""Preparing a run and saving its session: what crosses between the workflow and the records."""

from contracts.base import Contract
from contracts.documents import DocumentRef
from contracts.outcome import ResearchResult
from contracts.resolved import ResolvedResearch


class PrepareRequest(Contract):
    """Input of `prepare_research`."""

    research_id: str
    request_json: str
    """The validated request."""
    continued: bool = False
    """True when the history starts anew: the session's own resolution stays as it is."""


class Prepared(Contract):
    """Output of `prepare_research`."""

    resolved: ResolvedResearch
    packed_state: str | None = None
    """A stored session to go on from (see `ResearchState.pack`)."""
    stored_result: ResearchResult | None = None
    """Set when the stored session is complete: the run ends with it."""


class SessionRef(Contract):
    """A saved session."""

    research_id: str
    document: DocumentRef | None = None
