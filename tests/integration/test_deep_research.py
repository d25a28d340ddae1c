"""The workflow `deep-research` on the real development server."""

import asyncio
import json
from asyncio.subprocess import PIPE, STDOUT
from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError

from contracts import names
from contracts.outcome import EventPage, ResearchStatus
from contracts.vocabulary import Outcome
from tests.fakes.world import World
from tests.integration.conftest import Server, running_workers
from tests.integration.runs import QUESTION, start
from workers.dev_server import find_binary

pytestmark = pytest.mark.integration


async def test_a_run_completes_and_can_be_read(
    client: Client, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Plain JSON in, a cited report out; status and events work on the closed run; its start and its end are logged
    once each, although every task replays the history (S0-167, S0-182, X-21).
    """
    caplog.set_level("INFO", "temporalio.workflow")
    world = World(tmp_path)
    async with running_workers(client, world):
        handle = await start(client, {"query": QUESTION, "corpus": "manual"})
        result = await handle.result()
        status = await handle.query(names.STATUS, result_type=ResearchStatus)
        events = await handle.query(names.EVENTS, 0, result_type=EventPage)
    assert result.outcome is Outcome.COMPLETED, result
    assert "[1]" in result.report
    assert status.outcome is Outcome.COMPLETED
    assert events.events[0].seq == 1
    assert events.events[-1].type == "run.finished"
    logged = [record for record in caplog.records if record.name == "temporalio.workflow"]
    assert [record.message.split(" ")[0] for record in logged] == ["run.started", "run.ended"]
    end = vars(logged[-1])
    assert (end["research_id"], end["outcome"], end["stop_reason"]) == (handle.id, "completed", result.stop_reason)
    assert (end["cost_usd"], end["seconds"] > 0) == (0.0, True)
    saved = await world.sessions.load(handle.id)
    assert saved is not None
    assert json.loads(saved)["result"]["outcome"] == "completed"


@pytest.mark.parametrize(
    ("argument", "line"),
    [
        ({"query": "x", "nonsense": 1}, "nonsense: unknown key"),
        ({"query": ""}, "query:"),
        ({"query": "x", "limits": {"max_iterations": 99}}, "limits.max_iterations:"),
        ({"query": 7}, "query:"),
        ({"query": "x", "strategy": "living"}, "strategy: not available yet"),
        (["x"], "request: expected an object"),
        (None, "request: expected an object"),
        ("secret words", "request: expected an object"),
    ],
)
async def test_malformed_input_ends_at_once(client: Client, tmp_path: Path, argument: object, line: str) -> None:
    """The run fails with `path: message` and never repeats what was sent."""
    async with running_workers(client, World(tmp_path), ("workflows",)):
        handle = await start(client, argument)
        with pytest.raises(WorkflowFailureError) as failed:
            await handle.result()
    assert isinstance(failed.value.cause, ApplicationError)
    assert failed.value.cause.type == "invalid_input"
    assert line in failed.value.cause.message
    assert "secret" not in failed.value.cause.message


async def test_no_input_two_inputs_and_bytes_end_at_once(client: Client, tmp_path: Path) -> None:
    """Nothing that a client can send leaves a run hanging."""
    inputs: list[list[object]] = [[], [{"query": "x"}, {"query": "y"}], [b"\x00\xff"]]
    async with running_workers(client, World(tmp_path), ("workflows",)):
        for number, arguments in enumerate(inputs):
            handle = await client.start_workflow(
                names.DEEP_RESEARCH, args=arguments, id=f"r-inputs-{number}", task_queue=names.WORKFLOWS_QUEUE
            )
            with pytest.raises(WorkflowFailureError):
                await handle.result()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--input", '{"query": "x", "depht": "light"}'], "depht: unknown key"),
        (["--input", "[]"], "request: expected an object"),
        ([], ""),
        (["--input", '{"query": "x"}', "--input", "1"], ""),
    ],
)
async def test_the_plain_temporal_command_gets_the_same_answers(
    client: Client, server: Server, tmp_path: Path, words: list[str], message: str
) -> None:
    """A run that the plain command line starts with nonsense fails at once, with the path of the problem."""
    command = ["workflow", "execute", "--type", names.DEEP_RESEARCH, "--task-queue", names.WORKFLOWS_QUEUE]
    async with running_workers(client, World(tmp_path), ("workflows",)):
        process = await asyncio.create_subprocess_exec(
            str(find_binary()), *command, "--address", server.address, *words, stdout=PIPE, stderr=STDOUT
        )
        output, _ = await process.communicate()
    assert process.returncode == 1
    assert "FAILED" in output.decode()
    assert message in output.decode()
