"""A process of the product: whose files it makes, how it leaves, and how it sets a cluster up."""

import asyncio
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from client.cli.reports import write_atomically
from workers import own_process, setup
from workers.own_process import files_of_user, restrict_files_to_owner, run_to_end


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(own_process, "_user_umask", None)
    before = os.umask(0o022)
    restrict_files_to_owner()
    restrict_files_to_owner()
    yield
    os.umask(before)


@pytest.mark.usefixtures("person")
def test_the_home_is_private_and_reports_are_the_persons(tmp_path: Path) -> None:
    """Files of the process and of its children are for the owner; what `--out` names has the person's own rights."""
    subprocess.run([sys.executable, "-c", "open('child', 'w')"], cwd=tmp_path, check=True)
    write_atomically(tmp_path / "ours" / "note", b"text")
    with files_of_user():
        write_atomically(tmp_path / "out" / "report.md", b"text")
    assert [mode(tmp_path / name) for name in ("child", "ours", "ours/note")] == [0o600, 0o700, 0o600]
    assert [mode(tmp_path / name) for name in ("out", "out/report.md")] == [0o755, 0o644]


def test_the_end_of_a_process_waits_for_no_unneeded_thread() -> None:
    """A blocking call that goes on for ever delays neither the loop's end nor the result."""
    never = threading.Event()

    async def work() -> str:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.to_thread(never.wait, 30), 0.01)
        return "done"

    try:
        assert run_to_end(work()) == "done"
    finally:
        never.set()


def test_a_cluster_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without an address set-up is wrong usage; a silent one is named when the time is over."""
    for name in ("TEMPORAL_ADDRESS", "TEMPORAL_PROFILE", "TEMPORAL_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)
    assert setup.main([]) == setup.USAGE
    assert "TEMPORAL_ADDRESS" in capsys.readouterr().err
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:9")
    assert setup.main(["--wait-seconds", "0"]) == setup.FAILED
    assert "127.0.0.1:9" in capsys.readouterr().err
