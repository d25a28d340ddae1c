"""How a run begins: whose id it is."""

from typing import Any

import pytest

from client.cli.command_errors import CommandError
from client.cli.run import begin, find_finished
from client.client_errors import RunUnknown
from contracts.outcome import ResearchResult
from contracts.request import ResearchRequest
from contracts.state import ResearchState
from contracts.vocabulary import Outcome, StopReason
from tests.fakes import states

QUESTION = "How does the engine prevent wraparound?"


class Record:
    """A context with one stored session, or none, and a client that begins nothing."""

    def __init__(self, state: ResearchState | None, running_tenant: str | None = None) -> None:
        self.state = state
        self.running_tenant = running_tenant

    async def stored_state(self, _: str) -> ResearchState | None:
        """The session."""
        return self.state

    def handle(self, _: str) -> "Record":
        """Stands for the handle, too."""
        return self

    async def is_running(self) -> bool:
        """Whether the engine has it open."""
        if self.running_tenant is None:
            raise RunUnknown("none")
        return True

    async def tenant(self) -> str | None:
        """Whose it is."""
        return self.running_tenant

    async def question(self) -> str:
        """What it was asked."""
        return QUESTION

    async def resume(self, *_: Any, **__: Any) -> "Record":
        """Going on."""
        return self


def stored(tenant: str) -> ResearchState:
    """A finished session of a tenant."""
    result = ResearchResult(research_id="r-1", outcome=Outcome.COMPLETED, stop_reason=StopReason.NO_OPEN_GAPS)
    return states.state(resolved=states.resolved(tenant=tenant), result=result)


@pytest.mark.parametrize(
    "record",
    [Record(stored("acme")), Record(None, "acme"), Record(stored("acme"), "acme")],
    ids=["stored", "runs", "both"],
)
async def test_an_id_of_another_tenant_cannot_be_used(record: Any) -> None:
    """It is neither joined nor gone on with, and nothing is told of its question or its result."""
    other = ResearchRequest(query="Something else?", tenant="other")
    with pytest.raises(CommandError) as caught:
        await begin(record, record, other, "r-1")
    assert str(caught.value) == "the id r-1 cannot be used with this tenant: leave tenant out, or --id for a new run"
    assert (await begin(record, record, ResearchRequest(query=QUESTION, tenant="acme"), "r-1")).how in {
        "joined",
        "resumed",
    }


async def test_a_result_of_another_tenant_is_not_shown() -> None:
    """The stored result is for its own tenant."""
    record: Any = Record(stored("acme"))
    with pytest.raises(CommandError, match="cannot be used"):
        await find_finished(record, ResearchRequest(query=QUESTION), "r-1")
    assert await find_finished(record, ResearchRequest(query=QUESTION, tenant="acme"), "r-1")
