"""The real `research` command in folders of its own: run to its end, or started beside a test."""

import asyncio
import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog
from typer.testing import Result

from tests.acceptance.held_runs import CONFIGURATION
from tests.integration.server_homes import give_port, stop_server
from tests.unit.client.cli.command_line import research
from workers.settings.loading import child_environment

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

    def ask(self, *arguments: str) -> Result:
        """Run the command to its end in this process, which takes a fraction of the time."""
        given = {name: self.environment[name] for name in ("RESEARCH_HOME", "RESEARCH_CONFIG")}
        with contextlib.chdir(self.work):
            done = research(*arguments, **given)
        structlog.reset_defaults()
        return done

    def start(self, *arguments: str) -> "Started":
        """Run the command beside the test."""
        return Started.of(self.command(*arguments), self)

    def stop_server(self) -> None:
        asyncio.run(stop_server(self.home))


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

    @classmethod
    def of(cls, command: list[str], bench: Bench) -> "Started":
        """Start a command in the folders of a bench."""
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=bench.work,
            env=bench.environment,
            stdin=subprocess.DEVNULL,
        )
        return cls(process)

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


@contextlib.contextmanager
def benched(root: Path) -> Iterator[Bench]:
    """A bench below a folder, with a corpus called `manual`; its engine is stopped in the end."""
    made = Bench(root / "home", root / "work")
    corpus = made.work / "manual"
    corpus.mkdir(parents=True)
    for number, topic in enumerate(TOPICS):
        (corpus / f"{topic}.md").write_text(page(number, topic), encoding="utf-8")
    configuration = root / "hooks.toml"
    configuration.write_text(CONFIGURATION, encoding="utf-8")
    (corpus / "broken.pdf").write_bytes(b"%PDF-1.7\nnothing that could be read")
    root_folder = Path(__file__).parents[2]
    made.environment = child_environment() | {
        "RESEARCH_HOME": str(made.home),
        "RESEARCH_CONFIG": str(configuration),
        "PYTHONPATH": str(root_folder),
    }
    give_port(made.home)
    try:
        yield made
    finally:
        made.stop_server()


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
    return json.loads(text)
