"""What a benchmark has started ends with it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.architecture.repository import ROOT

PIECE = """\
import subprocess, sys
from benchmarks.processes import adopt_orphans, end_with_parent

end_with_parent()
adopt_orphans()
orphan = "import subprocess; print(subprocess.Popen(['sleep', '60'], start_new_session=True, stdout=-3).pid)"
print(subprocess.run([sys.executable, '-c', orphan], stdout=subprocess.PIPE, check=True).stdout.decode(), flush=True)
subprocess.run(['sleep', '60'])
"""
COMMAND = """\
import subprocess, sys
from benchmarks.processes import adopt_orphans

adopt_orphans()
subprocess.run([sys.executable, '-c', sys.argv[1]], start_new_session=True)
"""


def is_alive(pid: int) -> bool:
    """Return whether a process runs; one that has ended and has a parent that does not look is none."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"


@pytest.mark.soak
@pytest.mark.skipif(sys.platform != "linux", reason="Linux ends and adopts processes so")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_command_that_is_killed_leaves_no_process(number: signal.Signals) -> None:
    """Neither its piece nor a server that the piece started in a session of its own, whose own parent has ended, stays."""
    command = subprocess.Popen([sys.executable, "-c", COMMAND, PIECE], cwd=ROOT, stdout=subprocess.PIPE)
    assert command.stdout is not None
    server = int(command.stdout.readline())
    assert is_alive(server)
    os.kill(command.pid, number)
    command.wait(10)
    command.stdout.close()
    end = time.monotonic() + 10
    while is_alive(server) and time.monotonic() < end:
        time.sleep(0.02)
    assert not is_alive(server)
