"""The real `research` command on a small corpus against the embedded engine: nothing is patched, nothing is faked."""

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from contracts.vocabulary import Phase
from tests.acceptance.held_runs import CONFIGURATION, HELD, Hold
from workers.embedded import stop_engine
from workers.engine_files import EngineFiles
from workers.settings import child_environment

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(240)]

QUESTION = "How does vacuum prevent wraparound, and which settings control it?"
TOPICS = ("vacuum", "freezing", "wraparound", "autovacuum", "locks", "indexes", "checkpoints", "backups")
LONGEST_WAIT = 120.0


@dataclass
class Bench:
    """A data folder, a working folder and a corpus of their own."""

    home: Path
    work: Path
    environment: dict[str, str] = field(default_factory=dict)

    def command(self, *arguments: str) -> list[str]:
        """How the command is called."""
        return [sys.executable, "-c", "from client.cli import main; main()", *arguments]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command to its end."""
        return subprocess.run(
            self.command(*arguments),
            capture_output=True,
            text=True,
            cwd=self.work,
            env=self.environment,
            check=False,
            timeout=LONGEST_WAIT,
            stdin=subprocess.DEVNULL,
        )

    def start(self, *arguments: str) -> "Started":
        """Run the command beside the test."""
        process = subprocess.Popen(
            self.command(*arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.work,
            env=self.environment,
            stdin=subprocess.DEVNULL,
        )
        return Started(process)

    def stop_engine(self) -> None:
        """Stop the engine, whoever is attached."""
        asyncio.run(stop_engine(self.home))


class Started:
    """A command that runs: its standard error is read as it comes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        self._news = threading.Condition()
        self._ended = False
        self.output = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_for(self, words: str) -> None:
        """Wait until a line holds these words."""
        with self._news:
            found = self._news.wait_for(lambda: self._ended or any(words in line for line in self.lines), LONGEST_WAIT)
        assert found, self.lines
        assert any(words in line for line in self.lines), self.lines

    def end(self) -> int:
        """Wait for the end; its exit code."""
        code = self.process.wait(LONGEST_WAIT)
        self._reader.join(LONGEST_WAIT)
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.output = self.process.stdout.read()
        self.process.stdout.close()
        self.process.stderr.close()
        return code

    @property
    def errors(self) -> str:
        """Standard error so far."""
        return "\n".join(self.lines)

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._news:
                self.lines.append(line.rstrip())
                self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """One engine for the tests of this file."""
    root = tmp_path_factory.mktemp("bench")
    made = Bench(root / "home", root / "work")
    corpus = made.work / "manual"
    corpus.mkdir(parents=True)
    for number, topic in enumerate(TOPICS):
        (corpus / f"{topic}.md").write_text(page(number, topic), encoding="utf-8")
    (made.work / "research.toml").write_text(CONFIGURATION, encoding="utf-8")
    (corpus / "broken.pdf").write_bytes(b"%PDF-1.7\nnothing that could be read")
    root_folder = Path(__file__).parents[2]
    made.environment = child_environment() | {"RESEARCH_HOME": str(made.home), "PYTHONPATH": str(root_folder)}
    yield made
    made.stop_engine()


def page(number: int, topic: str) -> str:
    """A page of a manual, with one fact of its own."""
    return (
        f"# {topic.title()}\n\n"
        f"{topic.title()} is described on this page. Without {topic} the database would slow down after a while.\n\n"
        "## Wraparound\n\n"
        "To prevent transaction id wraparound, vacuum marks old rows as frozen. "
        f"The setting {topic}_freeze_max_age controls when this happens; its default is {200 + number} million. "
        f"Every table must be vacuumed at least once every {number + 2} billion transactions.\n\n"
        "## Exceptions\n\n"
        f"However, {topic} is not done while another session holds a lock on the table.\n"
    )


def only_document(text: str) -> Any:
    """Standard output of `--json`: exactly one JSON document."""
    return json.loads(text)


@pytest.fixture(scope="module")
def first_run(bench: Bench) -> subprocess.CompletedProcess[str]:
    """A whole run from nothing: engine, index and workers are started by it."""
    return bench.run("run", QUESTION, "--corpus", "manual", "--depth", "light", "--id", "first")


def test_a_run_from_nothing_gives_a_cited_report(bench: Bench, first_run: subprocess.CompletedProcess[str]) -> None:
    """Question in, three files out, exit code 0; where text goes is said first (X-1)."""
    assert first_run.returncode == 0, first_run.stderr
    assert first_run.stderr.splitlines()[0] == "nothing leaves this machine"
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
    description = EngineFiles.of(bench.home).read()
    for pid in (description.keeper_pid, description.server_pid):
        os.kill(pid, signal.SIGKILL)
    assert started.end() == 0, started.errors


def test_an_engine_whose_port_was_taken_is_found_elsewhere(
    bench: Bench, first_run: subprocess.CompletedProcess[str]
) -> None:
    """Where another program listens in the place of a killed engine, the command goes on with its own elsewhere."""
    assert first_run.returncode == 0
    started = bench.start("run", QUESTION, "--corpus", "manual", "--depth", "light", "--id", "engine-moved")
    started.wait_for("engine-moved started")
    before = EngineFiles.of(bench.home).read()
    for pid in (before.keeper_pid, before.server_pid):
        os.kill(pid, signal.SIGKILL)
    with listening(before.port):
        assert started.end() == 0, started.errors
    assert "came back at another port" in started.errors
    assert EngineFiles.of(bench.home).read().port != before.port


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
    bench.stop_engine()
    listed = only_document(bench.run("list", "--json").stdout)
    assert "first" in {row["research_id"] for row in listed}
    assert only_document(bench.run("status", "first", "--json").stdout)["outcome"] == "completed"
    report = bench.run("report", "first")
    assert report.stdout.startswith("# ")
    sources = only_document(bench.run("sources", "first", "--json").stdout)
    cited = next(source for source in sources if source["citation"] == 1)
    assert "frozen" in bench.run("source", "first", "1").stdout
    assert bench.run("source", "first", cited["id"], "--raw").stdout.startswith("# ")
    assert only_document(bench.run("decisions", "first", "--json").stdout)
    assert bench.run("audit", "first").returncode == 0
    assert EngineFiles.of(bench.home).keeper_lock().is_free()


def test_a_deleted_run_is_gone(bench: Bench, first_run: subprocess.CompletedProcess[str]) -> None:
    """Session and stored report are removed; what other runs cite stays, and their audit still passes."""
    assert first_run.returncode == 0
    made = bench.run("run", QUESTION, "--corpus", "manual", "--depth", "light", "--id", "short-lived", "--quiet")
    assert made.returncode == 0, made.stderr
    assert bench.run("delete", "short-lived").returncode == 2
    assert bench.run("delete", "short-lived", "--yes").returncode == 0
    assert bench.run("status", "short-lived").returncode == 2
    assert bench.run("audit", "first").returncode == 0
