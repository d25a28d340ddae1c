"""Queries of a run, and the answers that a client waits for."""

from typing import Any

import pytest
from temporalio.client import WorkflowQueryFailedError

from client.client_errors import MessageRefused
from client.handle import ResearchHandle
from contracts.failures import EVENTS_AFTER_TASK
from contracts.outcome import EventPage


class Run:
    """A run whose queries fail so often, each with the next message."""

    def __init__(self, *failures: str) -> None:
        self.failures = list(failures)

    def get_workflow_handle(self, _: str) -> "Run":
        return self

    async def query(self, *_: Any, **__: Any) -> EventPage:
        if self.failures:
            raise WorkflowQueryFailedError(self.failures.pop(0))
        return EventPage(next=7)


async def test_a_run_that_is_being_read_again_is_queried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that comes between an event and its workflow task is made again; any other failure is an error."""
    monkeypatch.setattr("client.handle.QUERY_PAUSE_SECONDS", 0.0)
    handle = ResearchHandle(Run(EVENTS_AFTER_TASK, EVENTS_AFTER_TASK), "r-1")  # type: ignore[arg-type]
    assert (await handle.events()).next == 7
    with pytest.raises(MessageRefused, match="could not answer `events`: broken"):
        await ResearchHandle(Run("broken"), "r-1").events()  # type: ignore[arg-type]
