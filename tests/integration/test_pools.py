"""Worker pools against a real server: polling, cancelling, draining, health, and the process around them."""

import asyncio
import signal
import sys
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest
from temporalio.client import Client
from temporalio.worker import Replayer, Worker

from client.cli.run import Leaving
from contracts.failures import EVENTS_AFTER_TASK
from contracts.names import POOLS
from contracts.packages import PackageFault
from tests.architecture.repository import ROOT
from tests.integration.conftest import Server
from tests.integration.pool_calls import HELD_SECONDS, Calls, HeldUp, SlowStart, UnderWay
from tests.integration.runs import BUILD_ID
from tests.toy import declared
from tests.toy.roles import TOY
from tests.toy.timed import Timed
from workers.pools import (
    DEADLOCK_SECONDS,
    WORKFLOW_TASKS,
    PoolContents,
    PoolGroup,
    PoolHealth,
    build_worker,
    run_pools,
    workflow_runner,
)
from workers.process import serve_health
from workers.settings.loading import Settings
from workers.temporal import open_connection
from workflows.registry import WORKFLOWS

pytestmark = pytest.mark.integration

SOON = 90.0
STALLING = """
import asyncio, re, sys, time
from workers.stalls import end_if_stalled

async def main(work):
    async with end_if_stalled(limit_seconds=0.5):
        print("ready", flush=True)
        await asyncio.sleep(0.01)
        if work == "pattern":
            re.match(r"(a+)+$", "a" * 64 + "b")
        elif work == "computing":
            while True:
                pass
        elif work == "waiting for a file":
            time.sleep(60)
        elif work == "a loaded machine":
            time.sleep(1)
        await asyncio.sleep(1)
    print("done", flush=True)

asyncio.run(main(sys.argv[1]))
"""
ENDED = "research: this worker ends: its event loop stood still for"


@pytest.fixture
async def calls() -> AsyncIterator[Calls]:
    made = Calls()
    yield made
    made.go_on.set()


def identity() -> str:
    return f"w-{uuid.uuid4().hex[:8]}"


async def test_a_run_whose_thread_was_blocked_continues(client: Client) -> None:
    """A loaded machine has no time for a workflow's thread now and then: that is no deadlock, and costs nothing else."""
    HeldUp.seconds.append(2.5)
    async with run_pools(client, PoolContents(workflows=[HeldUp]), ("workflows",), drain={"workflows": timedelta()}):
        async with asyncio.timeout(SOON):
            run = client.execute_workflow("held-up", id=identity(), task_queue=POOLS["workflows"])
            assert await run == "done"
    assert not HeldUp.seconds


async def test_the_deadlock_timeout_is_still_where_it_was(client: Client) -> None:
    """The SDK has the private attribute that is set for want of an option; a version without it fails here."""
    plain = Worker(client, task_queue="any", workflows=[HeldUp], build_id=BUILD_ID)
    assert plain._workflow_worker is not None
    assert plain._workflow_worker._deadlock_timeout_seconds == 2
    worker = build_worker("workflows", client, PoolContents(workflows=[HeldUp]))
    assert worker._workflow_worker is not None
    assert worker._workflow_worker._deadlock_timeout_seconds == DEADLOCK_SECONDS


async def test_a_worker_names_the_package_that_workflow_code_cannot_load(client: Client) -> None:
    """One line in place of the SDK's traceback, which ends with the name of a workflow."""
    misspelt = replace(TOY, implementation="tests.toy.strategy:ToyStrategi")
    with declared(misspelt), pytest.raises(PackageFault) as refused:
        build_worker("workflows", client, PoolContents(workflows=WORKFLOWS))
    line = "the strategy toy cannot be loaded: tests/toy/strategy.py has no class ToyStrategi (nearest: ToyStrategy at"
    assert str(refused.value).startswith(line)


async def test_runs_under_way_are_served_before_starts(client: Client) -> None:
    """More starts than a worker has slots hold it up; a run that it works on gets its answer nevertheless."""
    contents, queue = PoolContents(workflows=[SlowStart, UnderWay]), POOLS["workflows"]
    SlowStart.go_on.clear()
    async with run_pools(client, contents, ("workflows",), drain={"workflows": timedelta()}), asyncio.timeout(SOON):
        run = await client.start_workflow("under-way", id=identity(), task_queue=queue)
        assert await run.execute_update("ping") == "pong"
        number = WORKFLOW_TASKS + 10
        patience = timedelta(seconds=2 * HELD_SECONDS)
        starts = [
            await client.start_workflow("slow-start", id=identity(), task_queue=queue, task_timeout=patience)
            for _ in range(number)
        ]
        try:
            async with asyncio.timeout(HELD_SECONDS - 5.0):
                for _ in range(WORKFLOW_TASKS):  # polls that wait already have their slots
                    assert await run.execute_update("ping") == "pong"
        finally:
            SlowStart.go_on.set()
            await asyncio.gather(*(start.result() for start in starts))
            await run.terminate()


@pytest.mark.soak
async def test_a_query_after_a_kill_does_not_let_a_run_decide_by_an_old_clock(
    client: Client, server: Server, calls: Calls
) -> None:
    """The worker of a run is killed, and a query makes another one read a history that has gone on (invariant 12)."""

    async def start_worker() -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(sys.executable, "-m", "tests.toy.timed", server.address, cwd=ROOT)

    async with run_pools(client, calls.contents(), ("models",)), asyncio.timeout(SOON):
        killed = await start_worker()
        run = await client.start_workflow("timed", "waits", id=identity(), task_queue=POOLS["workflows"])
        await calls.begun.wait()
        killed.kill()
        await killed.wait()
        other = await start_worker()
        await asyncio.sleep(0.5)  # the server has noticed the kill; it still tries the killed worker for the query
        asking = asyncio.create_task(run.query("phase"))
        await asyncio.sleep(0.8)
        calls.go_on.set()
        answer = (await asyncio.gather(asking, return_exceptions=True))[0]
        assert answer == "calling" or str(answer) == EVENTS_AFTER_TASK
        assert await run.result() == "later"
        other.kill()
        await other.wait()
    replayer = Replayer(workflows=[Timed], workflow_runner=workflow_runner(), build_id=BUILD_ID)
    await replayer.replay_workflow(await run.fetch_history())


async def test_draining_lets_a_call_finish(client: Client, calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    """A worker that stops takes no new work and finishes what it began: no attempt is lost; a command says so."""
    async with run_pools(client, calls.contents(), ("workflows",)):
        async with asyncio.timeout(SOON):
            async with run_pools(client, calls.contents(), ("models",)) as models:
                run = await client.start_workflow("one-call", "waits", id=identity(), task_queue=POOLS["workflows"])
                await calls.begun.wait()
                stopping = asyncio.create_task(Leaving(grace=timedelta(milliseconds=20)).drain(models))
                await asyncio.sleep(0.1)
                assert not stopping.done()
                assert "waiting up to 3 minutes for their answers" in capsys.readouterr().err
                calls.go_on.set()
                await stopping
            assert await run.result() == "attempt 1"


async def test_a_call_outlives_any_number_of_stops(client: Client, calls: Calls) -> None:
    """Four stops within one call: only a real worker's stop shows what the next attempt is told of it."""
    async with run_pools(client, calls.contents(), ("workflows",)), asyncio.timeout(SOON):
        run = await client.start_workflow("one-call", "counted", id=identity(), task_queue=POOLS["workflows"])
        for _ in range(4):
            async with run_pools(client, calls.contents(), ("models",), drain={"models": timedelta()}):
                await calls.begun.wait()
                calls.begun.clear()
        calls.go_on.set()
        async with run_pools(client, calls.contents(), ("models",)):
            assert await run.result() == "4 reported, 0 lost"


async def test_health_tells_alive_and_ready(client: Client, calls: Calls) -> None:
    """The endpoint answers per pool, and says no as soon as a worker has ended."""
    pools = ("workflows", "models")
    group = PoolGroup(client, {pool: build_worker(pool, client, calls.contents()) for pool in pools})
    async with serve_health(group.health) as address, asyncio.timeout(SOON):
        await until_ready(group)
        status, body = await fetch(f"http://{address}/healthz")
        assert status == 200
        states = {pool: {"alive": True, "ready": True} for pool in pools}
        assert body == {"ok": True, "pools": states}
        await group.stop()
        assert (await fetch(f"http://{address}/healthz"))[0] == 503
        assert (await fetch(f"http://{address}/livez"))[0] == 503
        assert (await fetch(f"http://{address}/else"))[0] == 404
    assert await group.health() == {pool: PoolHealth(alive=False, ready=False) for pool in pools}


async def until_ready(group: PoolGroup) -> None:
    while not all(state.ready for state in (await group.health()).values()):
        await asyncio.sleep(0.02)


async def fetch(address: str) -> tuple[int, dict[str, object]]:
    """Status and JSON of an address."""
    async with httpx2.AsyncClient(trust_env=False) as browser:
        answer = await browser.get(address)
    return answer.status_code, answer.json()


async def test_a_profile_of_the_clients_file_names_the_cluster(server: Server, tmp_path: Path) -> None:
    """Temporal's own configuration file and variables decide the connection, the variables over the file."""
    file = tmp_path / "temporal.toml"
    file.write_text(f'[profile.lab]\naddress = "{server.address}"\nnamespace = "unused"\n')
    variables = {"TEMPORAL_CONFIG_FILE": str(file), "TEMPORAL_PROFILE": "lab", "TEMPORAL_NAMESPACE": "default"}
    connection = await open_connection(Settings(home=tmp_path, temporal_variables=variables))
    assert connection.address == server.address
    assert connection.client.namespace == "default"
    assert connection.ui_url is None
    assert not (tmp_path / "engine").exists()


@pytest.mark.parametrize(
    ("work", "code", "has_line"),
    [
        ("computing", 1, True),
        ("waiting for a file", 1, True),
        ("pattern", -signal.SIGPROF, False),
        ("a loaded machine", 0, False),
        ("nothing", 0, False),
    ],
)
async def test_only_a_stalled_event_loop_ends_its_process(work: str, code: int, has_line: bool) -> None:
    """What stands still ends with its stacks, and a line with the remedy where Python runs; what gets no time does not."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", STALLING, work, cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(60):
        printed, errors = await process.communicate()
    assert (process.returncode, printed) == (code, b"ready\n" if code else b"ready\ndone\n")
    assert b"in main" in errors if code else errors == b""
    assert errors.decode().count(ENDED) == has_line
    assert not has_line or errors.decode().splitlines()[-1].startswith(ENDED)
