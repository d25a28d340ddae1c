"""Other programs use the same server: what they start there breaks no command and prints nothing odd."""

import asyncio
import re
import subprocess
from collections.abc import Iterator

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.common import RawValue
from temporalio.worker import Worker

from contracts.names import DEEP_RESEARCH
from tests.acceptance.bench import Bench, benched
from tests.acceptance.strange import Strange
from workers.dev_server import detach_server, ensure_server

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(240)]

STRANGE_IDS = (
    "a/../../b",
    "two\nlines",
    "\x1b]0;owned\x07\x1b[2J",
    "x" * 1000,
    "r-20261121-ab\u202ecd",
    'it\'s "quoted"',
)
BINARY = RawValue(Payload(metadata={"encoding": b"binary/odd\xff"}, data=b"\x00\xff\x1b[31m"))
NO_REQUEST = RawValue(Payload(metadata={"encoding": b"json/plain"}, data=b'["\x1b[31m"'))


async def start_strange(address: str) -> None:
    """Workflows of other types and of ours, with strange ids, inputs and memos; two of ours are closed."""
    client = await Client.connect(address)
    for number, name in enumerate(STRANGE_IDS):
        for kind, queue in (("Odd\x1b[31m", "odd"), (DEEP_RESEARCH, "odd")):
            known = name + "." * (kind == DEEP_RESEARCH)
            if len(known) <= 1000:
                await client.start_workflow(
                    kind, (BINARY, NO_REQUEST)[number % 2], id=known, task_queue=queue, memo={"m": BINARY}
                )
    for name in ("plain-running", "plain-terminated"):
        await client.start_workflow(
            DEEP_RESEARCH, BINARY, id=name, task_queue="odd", static_summary="\x1b[31mred", memo={"m": BINARY}
        )
    await client.get_workflow_handle("plain-terminated").terminate("\x1b[31mred")
    await client.start_workflow("Odd", NO_REQUEST, id="not-ours", task_queue="odd")
    async with Worker(client, task_queue="done", workflows=[Strange]):
        await client.execute_workflow(DEEP_RESEARCH, NO_REQUEST, id="plain-completed", task_queue="done")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """An engine with strange workflows in it."""
    with benched(tmp_path_factory.mktemp("strange")) as made:

        async def prepare() -> None:
            engine = await ensure_server(made.home)
            await start_strange(engine.address)

        asyncio.run(prepare())
        yield made
        detach_server(made.home)


def assert_sane(done: subprocess.CompletedProcess[str]) -> None:
    """Neither a traceback nor anything that drives a terminal."""
    said = done.stdout + done.stderr
    assert "internal error" not in said, said
    assert "Traceback" not in said, said
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", said), said


def test_the_list_shows_what_may_be_a_run(bench: Bench) -> None:
    """Workflows of other types and without a research id are no runs; the others stand in one line each."""
    done = bench.run("list")
    assert_sane(done)
    assert done.returncode == 0
    assert {line.split()[0] for line in done.stdout.splitlines()} == {
        "plain-running",
        "plain-terminated",
        "plain-completed",
    }


def test_the_doctor_looks_past_them(bench: Bench) -> None:
    """The server is found well, and only what may be a run is counted."""
    done = bench.run("doctor")
    assert_sane(done)
    assert re.search(r"runs +1 running", done.stdout), done.stdout


@pytest.mark.parametrize("name", ["not-ours", *STRANGE_IDS], ids=range(len(STRANGE_IDS) + 1))
def test_what_is_no_run_is_unknown(bench: Bench, name: str) -> None:
    """A workflow of another type, and one without a research id, is no run for any command."""
    done = bench.run("status", name)
    assert_sane(done)
    assert (done.returncode, "no run" in done.stderr) == (2, True)


@pytest.mark.parametrize("command", ["status", "report", "sources", "decisions", "resume", "stop", "watch"])
def test_no_command_breaks_on_what_only_looks_like_a_run(bench: Bench, command: str) -> None:
    """Every command says in plain words what it cannot do with a workflow that has our name and returns no result."""
    done = bench.run(command, "plain-completed")
    assert_sane(done)
    if command in {"report", "watch"}:
        assert (done.returncode, "another program" in done.stderr) == (2, True)


def test_a_run_does_not_join_another_program(bench: Bench) -> None:
    """An id that another program uses is refused before anything is done."""
    done = bench.run("run", "How does vacuum work?", "--corpus", "manual", "--id", "not-ours")
    assert_sane(done)
    assert (done.returncode, "another program" in done.stderr) == (2, True)


def test_one_that_goes_on_can_be_cancelled(bench: Bench) -> None:
    """A workflow under our name for which nobody works is cancelled like a run."""
    done = bench.run("cancel", "plain-running")
    assert_sane(done)
    assert done.returncode == 0


def test_deleting_a_run_leaves_other_programs_alone(bench: Bench) -> None:
    """What is of another type stays, and what may be a run is removed."""
    assert_sane(bench.run("delete", "not-ours", "--yes"))
    done = bench.run("delete", "plain-terminated", "--yes")
    assert_sane(done)
    assert "removed" in done.stdout

    async def still_there() -> bool:
        engine = await ensure_server(bench.home)
        client = await Client.connect(engine.address)
        return bool((await client.get_workflow_handle("not-ours").describe()).id)

    assert asyncio.run(still_there())
