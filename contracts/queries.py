"""The ledger of what was asked: a run does not ask one thing twice, whichever branch or iteration asks."""

from enum import StrEnum

from pydantic import Field

from contracts.base import Contract


class QueryOutcome(StrEnum):
    """What became of a query; no hits is an answer."""

    ANSWERED = "answered"
    FAILED = "failed"


class QueryRecord(Contract):
    """One query to one provider."""

    text: str
    """As it was asked: capitals tell names from words."""
    normalized_text: str
    """Its words for comparing, see `workflows.rules.query_matching.normalized_query`."""
    provider: str
    source_type: str = "web"
    sub_query_id: str
    iteration: int = Field(default=1, ge=1)
    found: int = Field(default=0, ge=0)
    outcome: QueryOutcome = QueryOutcome.ANSWERED
