"""The typed handle against the real engine."""

import asyncio
import uuid
from datetime import timedelta

import pytest
from pydantic import ValidationError
from temporalio import workflow
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError
from temporalio.worker import Worker

from client import handle as handles
from client.client_errors import MessageRefused, NoWorker, RunClosed, RunOfOtherVersion, RunUnknown, ServerUnreachable
from client.handle import ResearchClient
from contracts import failures, names
from contracts.outcome import ResearchResult
from contracts.vocabulary import Outcome, RunStatus, StopReason
from tests.integration.conftest import Server
from tests.integration.runs import BUILD_ID
from tests.toy.versions import NAME, Earlier, Later
from workers.pools import PoolContents, build_worker
from workers.setup import ensure_namespace
from workers.temporal import DATA_CONVERTER
from workflows.registry import WORKFLOWS

pytestmark = pytest.mark.integration


@pytest.fixture
async def client(server: Server) -> ResearchClient:
    """A client in a namespace of its own: the workers of other tests are not seen there."""
    namespace = f"handle-{uuid.uuid4().hex[:8]}"
    temporal = await Client.connect(server.address, namespace=namespace, data_converter=DATA_CONVERTER)
    await ensure_namespace(temporal, timedelta(days=1))
    async with asyncio.timeout(60):
        while not await is_known(temporal):
            await asyncio.sleep(0.05)
    return ResearchClient(temporal)


async def is_known(client: Client) -> bool:
    """Whether the server can start workflows in the namespace; it learns of a new one within a second."""
    try:
        await client.count_workflows()
    except RPCError:
        return False
    return True


def working(client: Client) -> Worker:
    """A worker for workflows: every run waits for its first activity."""
    return build_worker("workflows", client, PoolContents(workflows=WORKFLOWS), grace=timedelta())


@workflow.defn(name="late", sandboxed=False)
class Late:
    """A run that refuses the first two messages, as one does that begins a new history."""

    refusals = 0

    def __init__(self) -> None:
        self.approved = False

    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: self.approved)

    @workflow.update(name=names.APPROVE_PLAN)
    async def approve(self, version: int) -> str:
        self.approved = True
        return f"approved version {version}"

    @approve.validator
    def check(self, version: int) -> None:
        if Late.refusals < 2:
            Late.refusals += 1
            raise ApplicationError("the run is getting ready: send this again", type=failures.NOT_READY)


async def test_a_message_to_a_run_that_is_getting_ready_is_sent_again(client: ResearchClient) -> None:
    """Nobody has to type it twice because the run had just begun a new history."""
    async with Worker(client.temporal, task_queue="late", workflows=[Late], build_id=BUILD_ID):
        await client.temporal.start_workflow(Late.run, id="late", task_queue="late")
        assert await client.handle("late").approve_plan(1) == "approved version 1"
    assert Late.refusals == 2


async def test_a_run_of_another_version_says_what_continues_it(client: ResearchClient) -> None:
    """The message names commands, not the error that the SDK has for a history that does not fit the code."""
    queue = names.WORKFLOWS_QUEUE
    async with build_worker("workflows", client.temporal, PoolContents(workflows=[Earlier]), grace=timedelta()):
        run = await client.temporal.start_workflow(NAME, id="run-1", task_queue=queue)
        async with asyncio.timeout(60):
            while [event async for event in run.fetch_history_events()][
                -1
            ].event_type != EventType.EVENT_TYPE_TIMER_STARTED:
                await asyncio.sleep(0.05)
    async with build_worker("workflows", client.temporal, PoolContents(workflows=[Later]), grace=timedelta()):
        with pytest.raises(RunOfOtherVersion, match=r"`research resume run-1 --version new`$"):
            await client.handle("run-1").status()


async def test_a_run_answers_queries_and_messages_and_can_be_cancelled(client: ResearchClient) -> None:
    """Queries, updates and cancel, and a result for a run that returned none, from the record if there is one (S0-123)."""
    stored = ResearchResult(
        research_id="run-1", outcome=Outcome.CANCELLED, stop_reason=StopReason.USER_CANCELLED, report="# So far"
    )

    async def read(research_id: str) -> ResearchResult | None:
        return stored if research_id == "run-1" else None

    async with working(client.temporal):
        handle = await client.start({"query": "Why?", "priority": 1}, "run-1")
        assert (handle.attached, (await client.start({"query": "Why?"}, "run-1")).attached) == (False, True)
        status = await handle.status()
        assert status.status is RunStatus.CREATED
        assert (await handle.events()).events == []
        assert await handle.sources() == []
        assert await handle.decisions() == []
        assert await handle.report() is None
        assert (await handle.session()).work.status is RunStatus.CREATED
        assert await handle.question() == "Why?"
        assert (await handle.steer("look at 16")).startswith("taken")
        with pytest.raises(MessageRefused, match="characters"):
            await handle.steer("  ")
        await handle.cancel()
        result = await handle.result()
        assert (result.outcome, result.stop_reason) == (Outcome.CANCELLED, StopReason.USER_CANCELLED)
        assert await ResearchClient(client.temporal, stored_result=read).handle("run-1").result() == stored
        await handle.cancel()
        for too_late in (handle.steer("too late"), client.start({"query": "Why?"}, "run-1")):
            with pytest.raises(RunClosed):
                await too_late


async def test_a_run_that_has_not_started_can_be_stopped(client: ResearchClient) -> None:
    """Where nobody prepares it there is nothing to report, and a stop ends it at once (X-4)."""
    async with working(client.temporal):
        handle = await client.start({"query": "Why?"}, "run-1")
        assert "report" in await handle.stop_and_report()
        result = await handle.result()
    assert (result.outcome, result.stop_reason) == (Outcome.FAILED, StopReason.USER_STOPPED)


async def test_without_a_worker_the_silence_is_explained_and_words_wait(
    client: ResearchClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the queue and what to start; words that were said twice meanwhile are one message."""
    handle = await client.start({"query": "Why?"}, "run-1")
    assert await handle.question() == "Why?"
    assert await client.polled_by(names.WORKFLOWS_QUEUE) == []
    with monkeypatch.context() as impatient:
        impatient.setattr(handles, "ANSWER_SECONDS", 0.5)
        impatient.setattr(handles, "message_id", lambda update, arguments: f"{update}-{arguments}")
        with pytest.raises(NoWorker, match=r"research-workflows.*research serve"):
            await handle.status()
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
