"""The subprocess pool: what goes wrong in a child costs one task."""

import asyncio
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from contracts.outcome import Usage
from providers.errors import (
    ContentMissing,
    InputUnprocessable,
    InvalidCall,
    ProviderError,
    RateLimited,
    SourceUnreadable,
)
from providers.isolation.pool import SubprocessPool, import_path, result_of

MEGABYTE = 1_000_000


async def failure_of(pool: SubprocessPool, function: str, *arguments: object) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await pool.call(function, *arguments)
    return caught.value


@pytest.mark.parametrize(
    ("function", "arguments", "kind"),
    [
        ("time:sleep", (60,), "timeout"),
        ("builtins:sum", (range(10**11),), "timeout"),
        ("os:abort", (), "crash"),
        ("operator:mul", (b"x" * MEGABYTE, 4_000), "memory"),
    ],
)
async def test_a_child_that_hangs_crashes_or_eats_memory_is_replaced(function, arguments, kind):
    """Each way to die has its kind, and the next task runs in a fresh child; starting one is waited for apart.

    A busy loop ends at the limit of processor time, long before that of wall time.
    """
    async with SubprocessPool(1, cpu_seconds=1, wall_seconds=0.5 if function == "time:sleep" else 60) as pool:
        error = await failure_of(pool, function, *arguments)
        assert isinstance(error, InputUnprocessable)
        assert error.kind == kind
        assert await pool.call("math:sqrt", 9.0) == 3.0


async def test_an_unexpected_exception_tells_type_and_place_but_no_text():
    """A message could hold a page's text, so only the type of the exception comes back."""
    async with SubprocessPool(1) as pool:
        error = await failure_of(pool, "builtins:int", "secret words")
        assert isinstance(error, InputUnprocessable)
        assert error.kind == "failed"
        assert "ValueError" in str(error)
        assert "secret" not in str(error)


async def test_an_answer_may_only_hold_plain_data_and_our_own_classes():
    """A child that was taken over cannot make the parent build foreign objects."""
    async with SubprocessPool(1) as pool:
        assert isinstance(await failure_of(pool, "subprocess:CompletedProcess", "x", 0), InputUnprocessable)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (SourceUnreadable("empty", "no words"), SourceUnreadable),
        (InvalidCall("no words"), InvalidCall),
        (RateLimited("no words"), InputUnprocessable),
        (InvalidCall(Usage(cost_usd=99)), InputUnprocessable),  # type: ignore[arg-type]
    ],
)
def test_an_error_out_of_a_child_has_its_words_alone(error: ProviderError, kind: type[ProviderError]) -> None:
    """A child that was taken over can neither state a cost nor make its caller wait."""
    error.usage = Usage(cost_usd=99)
    with pytest.raises(kind) as caught:
        result_of(pickle.loads(pickle.dumps(("raised", error))))
    assert type(caught.value) is kind
    assert caught.value.usage == Usage()


async def test_a_call_that_outlives_its_pool_leaves_no_child() -> None:
    """The child of a call that ends after the pool was closed is ended with it."""
    pool = SubprocessPool(1)
    late = asyncio.create_task(pool.call("os:getpid"))
    await asyncio.sleep(0)
    await pool.close()
    assert not is_running(await late)


async def test_cancelling_the_caller_kills_the_child():
    """A cancelled task leaves no process behind that goes on working."""
    async with SubprocessPool(1) as pool:
        child = await pool.call("os:getpid")
        task = asyncio.create_task(pool.call("time:sleep", 60))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await pool.call("os:getpid") != child


async def test_children_are_recycled():
    """A child works for several items and then makes room for a fresh one; none of them is this process."""
    async with SubprocessPool(1, recycle_after=2) as pool:
        pids = [await pool.call("os:getpid") for _ in range(4)]
        assert pids[0] == pids[1] != pids[2] == pids[3]
        assert os.getpid() not in pids


async def test_the_child_has_no_environment_of_the_parent(monkeypatch):
    """Keys in the environment never reach a process that parses foreign documents."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    async with SubprocessPool(1) as pool:
        assert await pool.call("os:getenv", "ANTHROPIC_API_KEY") is None


def test_no_child_outlives_a_killed_parent():
    """After kill -9 of the parent its idle child ends by itself."""
    program = (
        "import asyncio\n"
        "from providers.isolation.pool import SubprocessPool\n"
        "async def main():\n"
        "    pool = SubprocessPool(1)\n"
        "    print(await pool.call('os:getpid'), flush=True)\n"
        "    await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    environment = {"PYTHONPATH": import_path()}
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=environment) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 20
    while is_running(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_running(child)


def is_running(process: int) -> bool:
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False
    ).stdout
    return bool(state.strip()) and not state.startswith("Z")


async def test_typed_errors_come_back_as_they_were_raised() -> None:
    """A missing document keeps its words, and a reason its kind."""
    async with SubprocessPool(1) as pool:
        error = await failure_of(pool, "tests.fakes.killers:miss", "gone")
        unreadable = await failure_of(pool, "providers.reading.documents:extract", b"", "empty.txt")
    assert isinstance(error, ContentMissing)
    assert str(error) == "gone"
    assert isinstance(unreadable, SourceUnreadable)
    assert unreadable.kind == "empty"


async def test_one_death_is_forgiven_and_the_second_is_not(tmp_path: Path) -> None:
    """Once it may have been the machine: a text that dies is tried again, once."""
    async with SubprocessPool(1) as pool:
        assert await pool.call("tests.fakes.killers:die_once", str(tmp_path / "died")) == "alive"
