"""The subprocess pool: what goes wrong in a child costs one task."""

import asyncio
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from pydantic import Base64UrlBytes, TypeAdapter

from contracts.outcome import Usage
from providers.errors import (
    ContentMissing,
    InputUnprocessable,
    InvalidCall,
    ProcessStalled,
    ProviderError,
    SourceUnreadable,
)
from providers.isolation.confinement import _code_folders
from providers.isolation.pool import SubprocessPool, import_path, read_answer
from tests.fakes.killers import FORGED

MEGABYTE = 1_000_000
ANYTHING = TypeAdapter[object](object)
NUMBER = TypeAdapter(int)
PROBE = "providers.isolation.confinement:probe"
linux = pytest.mark.skipif(sys.platform != "linux", reason="confinement is Linux's")
TEXT = TypeAdapter[str | None](str | None)
with_others = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[SubprocessPool]:
    """One for all tests that find whatever child there is: a child that failed or was killed is replaced anyway."""
    async with SubprocessPool(1) as started:
        yield started


async def failure_of(pool: SubprocessPool, function: str, *arguments: object) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await pool.call(function, *arguments, returns=ANYTHING)
    return caught.value


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("function", "arguments", "kind"),
    [
        ("builtins:sum", (range(10**11),), "timeout"),
        ("os:abort", (), "crash"),
        ("operator:mul", (b"x" * MEGABYTE, 4_000), "memory"),
    ],
)
async def test_a_child_that_computes_crashes_or_eats_memory_is_replaced(function, arguments, kind):
    """Each way to die has its kind, and the next task runs in a fresh child; starting one is waited for apart.

    A busy loop ends at the limit of processor time, long before that of wall time.
    """
    async with SubprocessPool(1, cpu_seconds=1, wall_factor=60) as pool:
        error = await failure_of(pool, function, *arguments)
        assert isinstance(error, InputUnprocessable)
        assert error.kind == kind
        assert await pool.call("math:sqrt", 9.0, returns=TypeAdapter(float)) == 3.0


async def test_a_child_that_cannot_be_started_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason of the system alone does not tell a person what is not permitted; no folder is left behind."""
    monkeypatch.setattr(sys, "executable", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    async with SubprocessPool(1) as pool:
        with pytest.raises(
            PermissionError, match=r"no process that reads documents can be started \(permission denied"
        ):
            await pool.call("math:sqrt", 9.0, returns=TypeAdapter(float))
    assert list(tmp_path.iterdir()) == []


async def test_a_child_that_gets_no_processor_time_is_an_outage() -> None:
    """A text is not blamed for a paused machine: the call may be made again, and then succeeds."""
    async with SubprocessPool(1, cpu_seconds=1, wall_factor=0.5) as pool:
        child = await pool.call("os:getpid", returns=NUMBER)
        stalled = await failure_of(pool, "tests.fakes.killers:stop_as", child)
        assert isinstance(stalled, ProcessStalled)
        assert await pool.call("tests.fakes.killers:stop_as", child, returns=TEXT, seconds=20) == "alive"


async def test_a_child_paused_for_longer_than_its_processor_time_continues() -> None:
    """Only processor time is short: a call that a busy machine holds up for twice that time returns its result."""
    async with SubprocessPool(1, cpu_seconds=1) as pool:
        assert await pool.call("tests.fakes.killers:pause", 2.0, returns=TEXT) == "alive"


@with_others
async def test_an_unexpected_exception_tells_type_and_place_but_no_text(pool: SubprocessPool):
    """A message could hold a page's text, so only the type of the exception comes back."""
    error = await failure_of(pool, "builtins:int", "secret words")
    assert isinstance(error, InputUnprocessable)
    assert error.kind == "failed"
    assert error.defect is not None
    assert (error.defect.error, "ValueError" in str(error)) == ("ValueError", True)
    assert any(frame.startswith("providers/isolation/child.py:") for frame in error.defect.frames)
    assert "secret" not in str(error)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "answer",
    [
        pickle.dumps(("value", Usage(cost_usd=99))),
        b"value\n" + pickle.dumps(Usage(cost_usd=99)),
        b'value\n{"cost_usd": "much"}',
        b"value\n[",
        b'raised\n["SystemExit", "0"]',
        b'raised\n["RateLimited", "later"]',
        b'raised\n["SourceUnreadable", "no kind"]',
        b'raised\n["InvalidCall", {"cost_usd": 99}]',
        b"failed\n[]",
        b'failed\n{"error": "KeyError", "place": "words of a page"}',
        b'failed\n{"error": "words of a page", "place": "a/b.py:1 in c"}',
        b"ready\n",
    ],
)
def test_an_answer_that_is_no_plain_data_is_none(answer: bytes) -> None:
    """Neither a result of the expected type nor an error of ours in plain words: the child that wrote it crashed."""
    with pytest.raises(InputUnprocessable) as caught:
        read_answer(answer, TypeAdapter(Usage))
    assert caught.value.kind == "crash"


@with_others
async def test_a_child_that_was_taken_over_can_only_state_plain_data(pool: SubprocessPool) -> None:
    """What is no plain data ends the child that wrote it."""
    child = await pool.call("os:getpid", returns=NUMBER)
    forged = b"value\n" + pickle.dumps(Usage(cost_usd=99))
    with pytest.raises(InputUnprocessable) as caught:
        await pool.call("tests.fakes.killers:forge", forged, returns=TypeAdapter(Usage))
    assert caught.value.kind == "crash"
    assert await pool.call("os:getpid", returns=NUMBER) != child


def test_an_error_out_of_a_child_has_its_words_alone() -> None:
    """A child that was taken over cannot state a cost with an error."""
    error = read_answer(b'raised\n["InvalidCall", "no words"]', ANYTHING)
    assert (type(error), str(error)) == (InvalidCall, "no words")
    assert isinstance(error, InvalidCall)
    assert error.usage == Usage()


@with_others
async def test_bytes_come_back_as_they_were(pool: SubprocessPool) -> None:
    """Files that a child makes are no text: every byte of them arrives."""
    data = bytes(range(256))
    assert await pool.call("builtins:bytes", data, returns=TypeAdapter[bytes](Base64UrlBytes)) == data


async def test_a_call_that_outlives_its_pool_leaves_no_child() -> None:
    """The child of a call that ends after the pool was closed is ended with it."""
    pool = SubprocessPool(1)
    late = asyncio.create_task(pool.call("os:getpid", returns=NUMBER))
    await asyncio.sleep(0)
    await pool.close()
    assert not is_running(await late)


@with_others
async def test_cancelling_the_caller_kills_the_child(pool: SubprocessPool):
    """A cancelled task leaves no process behind that goes on working."""
    child = await pool.call("os:getpid", returns=NUMBER)
    task = asyncio.create_task(pool.call("time:sleep", 60, returns=ANYTHING))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await pool.call("os:getpid", returns=NUMBER) != child


async def test_children_are_recycled():
    """A child works for several items and then makes room for a fresh one; none of them is this process."""
    async with SubprocessPool(1, recycle_after=2) as pool:
        pids = [await pool.call("os:getpid", returns=NUMBER) for _ in range(4)]
        assert pids[0] == pids[1] != pids[2] == pids[3]
        assert os.getpid() not in pids


async def test_the_child_has_no_environment_of_the_parent(monkeypatch):
    """Keys in the environment never reach a process that parses foreign documents."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    async with SubprocessPool(1) as pool:
        assert await pool.call("os:getenv", "ANTHROPIC_API_KEY", returns=TEXT) is None


def test_no_child_outlives_a_killed_parent():
    """After kill -9 of the parent its idle child ends by itself."""
    program = (
        "import asyncio\n"
        "from pydantic import TypeAdapter\n"
        "from providers.isolation.pool import SubprocessPool\n"
        "async def main():\n"
        "    pool = SubprocessPool(1)\n"
        "    print(await pool.call('os:getpid', returns=TypeAdapter(int)), flush=True)\n"
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


def test_a_folder_of_packages_may_be_read_and_what_else_lies_there_not(tmp_path: Path) -> None:
    """Code, libraries that packages bring, their versions, packages without a file of their own; no keys, no reports."""
    for name in ("code/mod.py", "bare.py", "fast.so", "a.libs/l.so.1", "a-1.dist-info/METADATA", "space/inner/mod.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for name in ("keys.txt", "reports/r/report.md", ".hidden/mod.py", "deep/er/still/mod.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    allowed = {Path(path).name for path in _code_folders([str(tmp_path)]) if path.startswith(str(tmp_path))}
    assert allowed == {"code", "bare.py", "fast.so", "a.libs", "a-1.dist-info", "space"}


@with_others
async def test_typed_errors_come_back_as_they_were_raised(pool: SubprocessPool) -> None:
    """A missing document keeps its words, and a reason its kind."""
    error = await failure_of(pool, "tests.fakes.killers:miss", "gone")
    unreadable = await failure_of(pool, "providers.reading.documents:extract", b"", "empty.txt")
    assert isinstance(error, ContentMissing)
    assert str(error) == "gone"
    assert isinstance(unreadable, SourceUnreadable)
    assert unreadable.kind == "empty"


@with_others
async def test_one_death_is_forgiven_and_the_second_is_not(pool: SubprocessPool) -> None:
    """Once it may have been the machine: a text that dies is tried again, once."""
    child = await pool.call("os:getpid", returns=NUMBER)
    assert await pool.call("tests.fakes.killers:die_as", child, returns=TEXT) == "alive"


@with_others
async def test_a_child_that_failed_serves_no_other_text(pool: SubprocessPool) -> None:
    """A text that made its reader fail may have done more, so the next one gets another process."""
    child = await pool.call("os:getpid", returns=NUMBER)
    await failure_of(pool, "builtins:int", "words")
    assert await pool.call("os:getpid", returns=NUMBER) != child


@with_others
async def test_a_child_that_writes_more_than_its_answer_serves_no_other_text(pool: SubprocessPool) -> None:
    """A whole answer that is in the pipe before a call is no answer to it."""
    child = await pool.call("tests.fakes.killers:chatter", returns=TEXT)
    await asyncio.sleep(0.5)
    assert await pool.call("os:getpid", returns=NUMBER) not in (FORGED, int(child or "0"))


@linux
async def test_a_child_that_was_taken_over_reaches_nothing(tmp_path: Path) -> None:
    """Keys of its parent, files of the user, the network and other processes are refused by the kernel."""
    secret = tmp_path / "session.json"
    secret.touch()
    with socket.create_server(("127.0.0.1", 0)) as server:
        async with SubprocessPool(1) as pool:
            port = server.getsockname()[1]
            refused = await pool.call(PROBE, [str(secret)], port, returns=TypeAdapter(dict[str, bool]))
    assert refused == dict.fromkeys(refused, True)
    assert {"keys of its parent", "files of the user", "network", "writing files", "processes"} <= set(refused)
    assert {"permissions of files", "rights of root"} <= set(refused)


@pytest.mark.one_in(4)
@linux
@pytest.mark.parametrize("call", ["execve", "ptrace", "process_vm_readv", "pidfd_open", "unshare"])
@with_others
async def test_a_call_that_no_reader_makes_ends_the_child(pool: SubprocessPool, call: str) -> None:
    """A process that tries to start a program or to look into another one serves no further document."""
    error = await failure_of(pool, "tests.fakes.killers:enter", call)
    assert isinstance(error, InputUnprocessable)
    assert error.kind == "crash"


@pytest.mark.one_in(2)
@linux
@pytest.mark.parametrize("change", ["os:chmod", "os:utime", "os:chown", "os:setxattr"])
@with_others
async def test_a_child_changes_no_file_of_its_user(pool: SubprocessPool, tmp_path: Path, change: str) -> None:
    """Not who may read it, nor its owner, times and attributes, which no rule about reading and writing covers."""
    given = {
        "os:chmod": (0o777,),
        "os:utime": ((1, 1),),
        "os:chown": (os.getuid(), os.getgid()),
        "os:setxattr": ("user.x", b"1"),
    }
    path = tmp_path / "session.json"
    path.touch(0o600)
    before = path.stat()
    error = await failure_of(pool, change, str(path), *given[change])
    assert isinstance(error, InputUnprocessable)
    assert error.defect is not None
    assert error.defect.error == "PermissionError"
    assert path.stat() == before


@pytest.mark.one_in(2)
@linux
@pytest.mark.parametrize(
    ("call", "arguments"), [("os:setpriority", (os.PRIO_PROCESS,)), ("os:sched_setaffinity", ()), ("os:nice", None)]
)
@with_others
async def test_a_child_slows_no_process(pool: SubprocessPool, call: str, arguments: tuple[int, ...] | None) -> None:
    """Neither its parent nor itself gets another priority, or other processors."""
    values = {"os:setpriority": (19,), "os:sched_setaffinity": ([0],), "os:nice": (1,)}[call]
    about = () if arguments is None else (*arguments, os.getpid())
    error = await failure_of(pool, call, *about, *values)
    assert isinstance(error, InputUnprocessable)
    assert error.defect is not None
    assert error.defect.error == "PermissionError"


@linux
@with_others
async def test_a_child_of_root_has_no_rights_of_root(pool: SubprocessPool) -> None:
    """No capability is left, such as those that set the clock or read the files of other users."""
    refused = await pool.call(PROBE, [str(Path(__file__))], 1, returns=TypeAdapter(dict[str, bool]))
    assert refused["rights of root"]


@linux
@with_others
async def test_a_child_ends_no_other_process(pool: SubprocessPool) -> None:
    """A signal to its parent ends the child itself."""
    error = await failure_of(pool, "os:kill", os.getpid(), 0)
    assert isinstance(error, InputUnprocessable)
    assert error.kind == "crash"


@linux
async def test_children_share_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder that a child may write to is its own, and is removed with it: a library unpacks code there."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    async with SubprocessPool(2) as pool:
        for _ in range(2):
            kept = await pool.call("tests.fakes.killers:leave_file", returns=TEXT)
            assert Path(kept or "").parent.parent == tmp_path
            await failure_of(pool, "builtins:int", "words")
            assert not Path(kept or "").exists()
    assert not list(tmp_path.iterdir())


def test_a_child_that_reads_documents_loads_neither_clients_nor_the_state_of_runs():
    """It starts in half the time without them, and every folder is read by several."""
    seen = "import providers.search.corpus.index, providers.isolation.child, providers.reading.documents, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", seen], capture_output=True, text=True, check=True).stdout.split()
    assert "kreuzberg" in loaded
    unwelcome = {"httpx2", "structlog", "contracts.state", "contracts.roles", "providers.search.corpus.library"}
    assert unwelcome.isdisjoint(loaded)
