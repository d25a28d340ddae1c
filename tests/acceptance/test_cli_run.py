"""The real `research` command on a small corpus against the embedded engine: nothing is patched, nothing is faked."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.vocabulary import Phase
from tests.acceptance.bench import LONGEST_WAIT, QUESTION, Bench, benched, only_document
from tests.acceptance.held_runs import HELD, Hold
from workers.dev_server import ServerFiles, describe_server

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """One engine for the tests of this file."""
    with benched(tmp_path_factory.mktemp("bench")) as made:
        yield made


@pytest.fixture(scope="module")
def first_run(bench: Bench) -> subprocess.CompletedProcess[str]:
    """A whole run from nothing: engine, index and workers are started by it."""
    return bench.run("run", QUESTION, "--corpus", "manual", "--depth", "light", "--id", "first")


def test_a_run_from_nothing_gives_a_cited_report(bench: Bench, first_run: subprocess.CompletedProcess[str]) -> None:
    """Question in, three files out, exit code 0; where text goes is said first."""
    assert first_run.returncode == 0, first_run.stderr
    assert first_run.stderr.splitlines()[0] == "nothing leaves this machine"
    assert first_run.stderr.splitlines()[1].startswith("engine: extractive, no model")
    assert "✔ completed" in first_run.stdout
    assert "research open first · research audit first" in first_run.stdout
    (folder,) = (bench.work / "reports").iterdir()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d-how-does-vacuum-prevent-wraparound-and-which", folder.name)
    assert {path.name for path in folder.iterdir()} == {"report.md", "report.html", "report.json"}
    report = json.loads((folder / "report.json").read_text())
    assert (report["research_id"], report["outcome"]) == ("first", "completed")
    assert report["citations"]


def test_an_audit_finds_no_difference_and_then_a_forged_one(
    bench: Bench, first_run: subprocess.CompletedProcess[str], tmp_path: Path
) -> None:
    """Exit code 0 for the run and for its files, 1 when a quote was changed."""
    assert first_run.returncode == 0
    assert bench.run("audit", "first").returncode == 0
    (folder,) = (bench.work / "reports").iterdir()
    report = json.loads((folder / "report.json").read_text())
    report["evidence"][0]["quote"] += " (forged)"
    forged = tmp_path / "report.json"
    forged.write_text(json.dumps(report))
    audited = bench.run("audit", str(forged), "--json")
    assert audited.returncode == 1
    assert only_document(audited.stdout)["passed"] is False
    assert "✖" in bench.run("audit", str(forged)).stdout


def test_json_is_one_document_and_progress_goes_elsewhere(
    bench: Bench, first_run: subprocess.CompletedProcess[str]
) -> None:
    """A finished id gives the stored result at once; another question under it is refused."""
    assert first_run.returncode == 0
    again = bench.run("run", QUESTION, "--corpus", "manual", "--id", "first", "--json", "--out", "again")
    document = only_document(again.stdout)
    assert (again.returncode, document["outcome"], document["research_id"]) == (0, "completed", "first")
    assert Path(bench.work / document["paths"]["html"]).is_file()
    other = bench.run("run", "Something else?", "--corpus", "manual", "--id", "first", "--json")
    assert (other.returncode, other.stdout) == (2, "")
    assert "belongs to another question" in other.stderr


def test_a_question_that_nothing_answers(bench: Bench, first_run: subprocess.CompletedProcess[str]) -> None:
    """Exit code 8, and the report cites nothing."""
    assert first_run.returncode == 0
    done = bench.run("run", "Who won the chess tournament in Zanzibar?", "--corpus", "manual", "--json", "--out", "no")
    assert done.returncode == 8, done.stderr
    document = only_document(done.stdout)
    assert (document["outcome"], document["counts"]["sources_cited"]) == ("empty", 0)


def test_ctrl_c_keeps_the_state_and_resume_goes_on(bench: Bench, first_run: subprocess.CompletedProcess[str]) -> None:
    """Ctrl-C cancels: exit code 5 and the line that says how to go on; nothing is read twice."""
    assert first_run.returncode == 0
    started = bench.start("run", QUESTION, "--corpus", "manual", "--id", "interrupted", *HELD)
    started.wait_for("interrupted started")
    with Hold(bench.home, Phase.GATHERING) as hold:
        assert hold.reached.wait(LONGEST_WAIT)
        started.process.send_signal(signal.SIGINT)
        assert started.end() == 5, started.errors
        assert "cancelling" in started.errors
        assert "research resume interrupted" in started.output
        status = only_document(bench.run("status", "interrupted", "--json").stdout)
        assert status["status"] == "cancelled"
        hold.release()
        resumed = bench.run("resume", "interrupted", "--set", "limits.max_iterations=1", "--json", "--out", "resumed")
        assert resumed.returncode == 0, resumed.stderr
    document = only_document(resumed.stdout)
    assert document["usage"]["reads"] == document["counts"]["sources"] > 0


def test_a_killed_command_goes_on_under_its_id(bench: Bench, first_run: subprocess.CompletedProcess[str]) -> None:
    """A kill -9 leaves the run in the engine; the same command joins it and brings it to its end."""
    assert first_run.returncode == 0
    arguments = ("run", QUESTION, "--corpus", "manual", "--depth", "light", "--id", "killed", *HELD)
    started = bench.start(*arguments)
    started.wait_for("killed started")
    with Hold(bench.home, Phase.PLANNING) as hold:
        assert hold.reached.wait(LONGEST_WAIT)
        started.process.kill()
        started.end()
        again = bench.start(*arguments)
        again.wait_for("killed joined")
        hold.release()
        assert again.end() == 0, again.errors


def test_an_engine_that_dies_is_started_again(bench: Bench, first_run: subprocess.CompletedProcess[str]) -> None:
    """The engine's process is killed in the middle of a run; the command goes on with the same run."""
    assert first_run.returncode == 0
    started = bench.start("run", QUESTION, "--corpus", "manual", "--depth", "light", "--id", "engine-died")
    started.wait_for("engine-died started")
    description = ServerFiles(bench.home).read()
    os.kill(description.pid, signal.SIGKILL)
    assert started.end() == 0, started.errors


def test_an_engine_whose_port_was_taken_is_found_elsewhere(
    bench: Bench, first_run: subprocess.CompletedProcess[str]
) -> None:
    """Where another program listens in the place of a killed engine, the command goes on with its own elsewhere."""
    assert first_run.returncode == 0
    started = bench.start("run", QUESTION, "--corpus", "manual", "--depth", "light", "--id", "engine-moved")
    started.wait_for("engine-moved started")
    before = ServerFiles(bench.home).read()
    os.kill(before.pid, signal.SIGKILL)
    with listening(before.port):
        assert started.end() == 0, started.errors
    assert "moved to another port" in started.errors
    assert ServerFiles(bench.home).read().port != before.port


@contextlib.contextmanager
def listening(port: int) -> Iterator[None]:
    """Another program at a port, from the moment in which the port is free; it hangs up on everybody."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        while True:
            try:
                listener.bind(("127.0.0.1", port))
                break
            except OSError:
                time.sleep(0.001)
        listener.listen()
        hanging_up = threading.Thread(target=hang_up, args=(listener,))
        hanging_up.start()
        yield
        listener.shutdown(socket.SHUT_RDWR)
        hanging_up.join()


def hang_up(listener: socket.socket) -> None:
    """End every connection, until nobody listens any more."""
    with contextlib.suppress(OSError):
        while True:
            listener.accept()[0].close()


def test_the_record_is_readable_without_an_engine(bench: Bench, first_run: subprocess.CompletedProcess[str]) -> None:
    """status, list, report, sources, decisions and audit need the session store alone."""
    assert first_run.returncode == 0
    bench.stop_server()
    listed = only_document(bench.run("list", "--json").stdout)
    assert "first" in {row["research_id"] for row in listed}
    assert only_document(bench.run("status", "first", "--json").stdout)["outcome"] == "completed"
    report = bench.run("report", "first")
    assert report.stdout.startswith("# ")
    sources = only_document(bench.run("sources", "first", "--json").stdout)
    cited = next(source for source in sources if source["citation"] == 1)
    assert "frozen" in bench.run("sources", "first", "1").stdout
    assert bench.run("sources", "first", cited["id"], "--raw").stdout.startswith("# ")
    assert only_document(bench.run("decisions", "first", "--json").stdout)
    assert bench.run("audit", "first").returncode == 0
    assert describe_server(bench.home) is None


def test_a_deleted_run_is_gone(bench: Bench, first_run: subprocess.CompletedProcess[str]) -> None:
    """Session and stored report are removed; what other runs cite stays, and their audit still passes."""
    assert first_run.returncode == 0
    made = bench.run("run", QUESTION, "--corpus", "manual", "--depth", "light", "--id", "short-lived", "--quiet")
    assert made.returncode == 0, made.stderr
    assert bench.run("delete", "short-lived").returncode == 2
    assert bench.run("delete", "short-lived", "--yes").returncode == 0
    assert bench.run("status", "short-lived").returncode == 2
    assert bench.run("audit", "first").returncode == 0
