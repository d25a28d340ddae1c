"""The typed handle against the real engine."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pydantic import ValidationError
from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from client import handle as handles
from client.client_errors import (
    MessageRefused,
    NoWorker,
    RunClosed,
    RunUnknown,
    ServerUnreachable,
)
from client.handle import ResearchClient, ResearchHandle
from contracts import failures, names
from contracts.messages import Prepared, PrepareRequest
from contracts.outcome import ResearchResult
from contracts.vocabulary import Outcome, RunStatus, StopReason
from tests.integration.server_homes import give_port, stop_server
from workers.dev_server import ensure_server
from workers.workflow_runner import workflow_runner
from workflows.registry import WORKFLOWS

pytestmark = pytest.mark.integration


@activity.defn(name="prepare_research")
async def prepare_nothing(request: PrepareRequest) -> Prepared:
    """Refuses: there is nothing to search."""
    raise ApplicationError(
        "there is nothing to search", {"stop_reason": "no_providers"}, type=failures.REFUSED, non_retryable=True
    )


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[ResearchClient]:
    """A client of an engine of its own."""
    give_port(tmp_path)
    engine = await ensure_server(tmp_path)
    try:
        yield await ResearchClient.connect(engine.address)
    finally:
        await stop_server(tmp_path)


@asynccontextmanager
async def working(client: Client, *, prepares: bool = False) -> AsyncIterator[None]:
    """A worker for workflows; without `prepares` every run waits for its first activity."""
    workflows = Worker(client, task_queue=names.WORKFLOWS_QUEUE, workflows=WORKFLOWS, workflow_runner=workflow_runner())
    async with workflows:
        if not prepares:
            yield
            return
        async with Worker(client, task_queue=names.RECORDS_QUEUE, activities=[prepare_nothing]):
            yield


async def test_a_run_can_be_asked_told_and_cancelled(client: ResearchClient) -> None:
    """Queries, updates and cancel, and a result for a run that returned none (S0-123)."""
    async with working(client.temporal):
        handle = await client.start({"query": "Why?", "priority": 1}, "run-1")
        assert not handle.attached
        status = await handle.status()
        assert status.status is RunStatus.CREATED
        assert (await handle.events()).events == []
        assert await handle.sources() == []
        assert await handle.decisions() == []
        assert await handle.report() is None
        assert (await handle.session()).status is RunStatus.CREATED
        assert await handle.question() == "Why?"
        assert (await handle.steer("look at 16")).startswith("taken")
        with pytest.raises(MessageRefused, match="characters"):
            await handle.steer("  ")
        await handle.cancel()
        result = await handle.result()
        assert (result.outcome, result.stop_reason) == (Outcome.CANCELLED, StopReason.USER_CANCELLED)
        await handle.cancel()
        with pytest.raises(RunClosed):
            await handle.steer("too late")


async def test_a_run_that_has_not_begun_can_be_stopped(client: ResearchClient) -> None:
    """Where nobody prepares it there is nothing to report, and a stop ends it at once (X-4)."""
    async with working(client.temporal):
        handle = await client.start({"query": "Why?"}, "run-1")
        assert "report" in await handle.stop_and_report()
        result = await handle.result()
    assert (result.outcome, result.stop_reason) == (Outcome.FAILED, StopReason.USER_STOPPED)


async def test_the_session_store_is_asked_for_a_cancelled_run(client: ResearchClient) -> None:
    """The engine has no result of a cancelled run; the record has."""
    stored = ResearchResult(
        research_id="run-1", outcome=Outcome.CANCELLED, stop_reason=StopReason.USER_CANCELLED, report="# So far"
    )

    async def read(research_id: str) -> ResearchResult | None:
        return stored if research_id == "run-1" else None

    async with working(client.temporal):
        with_store = ResearchClient(client.temporal, stored_result=read)
        handle = await with_store.start({"query": "Why?"}, "run-1")
        await handle.cancel()
        assert await handle.result() == stored


async def test_an_id_in_use_is_joined_and_a_used_one_is_refused(client: ResearchClient) -> None:
    """A plain start attaches to a running run and never replaces one that is over."""
    async with working(client.temporal):
        first = await client.start({"query": "Why?"}, "run-1")
        second = await client.start({"query": "Why?"}, "run-1")
        assert (first.attached, second.attached) == (False, True)
        await first.cancel()
        await second.result()
        with pytest.raises(RunClosed):
            await client.start({"query": "Why?"}, "run-1")


async def test_a_refused_run_gives_its_reason(client: ResearchClient) -> None:
    """The failure carries a whole result."""
    async with working(client.temporal, prepares=True):
        handle = await client.start({"query": "Why?"}, "run-1")
        result = await handle.result()
        assert (result.outcome, result.stop_reason) == (Outcome.REFUSED, StopReason.NO_PROVIDERS)
        assert result.limitations == ["there is nothing to search"]


async def test_without_a_worker_the_silence_is_explained(
    client: ResearchClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody polls: the error names the queue and what to start."""
    monkeypatch.setattr(handles, "ANSWER_SECONDS", 1.0)
    handle = await client.start({"query": "Why?"}, "run-1")
    asked: list[Callable[[ResearchHandle], object]] = [ResearchHandle.status, ResearchHandle.stop_and_report]
    for ask in asked:
        with pytest.raises(NoWorker, match=r"research-workflows.*research serve"):
            await ask(handle)  # type: ignore[misc]
    assert await client.polled_by(names.WORKFLOWS_QUEUE) == []


async def test_words_that_were_said_twice_are_taken_once(
    client: ResearchClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a worker they wait in the engine, which is said; said again, they are the same message."""
    handle = await client.start({"query": "Why?"}, "run-1")
    assert await handle.question() == "Why?"
    with monkeypatch.context() as impatient:
        impatient.setattr(handles, "ANSWER_SECONDS", 1.0)
        impatient.setattr(handles, "message_id", lambda update, arguments: f"{update}-{arguments}")
        with pytest.raises(NoWorker, match="may still receive it"):
            await handle.steer("look at 16")
        impatient.setattr(handles, "ANSWER_SECONDS", 30.0)
        async with working(client.temporal):
            for _ in range(2):
                assert (await handle.steer("look at 16")).startswith("taken")
            for _ in range(2):
                with pytest.raises(MessageRefused, match="characters"):
                    await handle.steer(" ")
            await handle.cancel()
            await handle.result()
    history = await client.temporal.get_workflow_handle("run-1").fetch_history()
    taken = [event for event in history.events if event.HasField("workflow_execution_update_accepted_event_attributes")]
    assert len(taken) == 1


async def test_unknown_runs_and_bad_requests(client: ResearchClient) -> None:
    """An id that the engine does not know, and a request that cannot be."""
    with pytest.raises(RunUnknown):
        await client.handle("nobody").is_running()
    with pytest.raises(RunUnknown):
        await client.handle("nobody").result()
    with pytest.raises(ValidationError):
        await client.start({"query": "", "colour": 1}, "run-1")


async def test_no_engine_is_one_clear_error() -> None:
    """The address is named, and what to start."""
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    with pytest.raises(ServerUnreachable, match=f"127.0.0.1:{port}.*research serve"):
        await ResearchClient.connect(f"127.0.0.1:{port}")
