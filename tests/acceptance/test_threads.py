"""Questions typed into a terminal, one after another, with real processes; and their thread as one document."""

import json
import os
import pty
import select
import time
from pathlib import Path

import pytest

from tests.acceptance.test_first_use import COMMAND
from workers.settings.loading import child_environment

pytestmark = [pytest.mark.acceptance, pytest.mark.soak, pytest.mark.timeout(300)]

PUMPS = """# Heat pumps

The quiet pump Aurora 6 makes 32 dB at a distance of three metres. The pump Boreas 9 makes 41 dB at the same distance.
"""
SERVICE = """# Service of heat pumps

A heat pump is serviced once a year. The yearly service of a heat pump costs 180 euros and takes two hours.
"""
FIRST = "Which noise does the quiet pump Aurora 6 make, and what does the yearly service of a heat pump cost?"
SECOND = "Which noise does the pump Boreas 9 make at the same distance?"
PROMPT = b"\n? "


def typed(arguments: list[str], folder: Path, lines: list[str], seconds: float = 200) -> tuple[str, int]:
    """Run the command at a terminal of its own and answer each prompt with the next line; output and exit code."""
    environment = child_environment() | {"RESEARCH_HOME": str(folder / "home"), "TERM": "dumb", "COLUMNS": "120"}
    process, terminal = pty.fork()
    if not process:
        os.chdir(folder)
        os.execve(COMMAND[0], [*COMMAND, *arguments], environment)
    output = b""
    shown = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                data = os.read(terminal, 65_536)
            except OSError:  # the other side is closed
                break
            output += data
        if lines and PROMPT in output[shown:].replace(b"\r", b""):
            shown = len(output)
            os.write(terminal, f"{lines.pop(0)}\n".encode())
    _, status = os.waitpid(process, 0)
    os.close(terminal)
    return output.decode("utf-8", "replace").replace("\r", ""), os.waitstatus_to_exitcode(status)


def test_two_questions_and_an_empty_line(tmp_path: Path) -> None:
    """The second is answered from what the first one read, without a search, and both make one audited document."""
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "pumps.md").write_text(PUMPS, encoding="utf-8")
    (documents / "service.md").write_text(SERVICE, encoding="utf-8")
    asking = ["ask", "--corpus", str(documents), "--engine", "extractive", "--depth", "light"]
    output, code = typed(asking, tmp_path, [FIRST, SECOND, ""])
    assert code == 0, output[-3_000:]
    assert "Ask a question; an empty line leaves." in output
    assert "came from earlier answers of this thread, 0 new pages were read" in output
    assert "2 questions so far: 0.00 USD" in output
    ids = output.rpartition("asked: ")[2].splitlines()[0].split()
    assert len(ids) == 2
    shown, code = typed(["thread", ids[0], "--json"], tmp_path, [])
    assert code == 0, shown
    first, second = json.loads(shown[shown.index("{") :])["answers"]
    assert [first["research_id"], second["research_id"]] == ids
    assert second["follows"] == ids[0]
    assert second["passages_earlier"] == second["passages_cited"] > 0
    assert second["sources_earlier"] == second["sources"]
    status, _ = typed(["status", ids[1], "--json"], tmp_path, [])
    assert json.loads(status[status.index("{") :])["usage"]["searches"] == 0
    written, code = typed(["thread", ids[1], "--out", "thread.json"], tmp_path, [])
    assert code == 0, written
    audited, code = typed(["audit", "thread.json"], tmp_path, [])
    assert code == 0, audited
    assert "no difference" in audited
    assert json.loads((tmp_path / "thread.json").read_text(encoding="utf-8"))["citations_count"] <= 2
