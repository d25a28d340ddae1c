"""`research serve` as an operator has it: a configured folder, addresses on standard output, any client."""

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.corpus import MANUAL
from tests.integration.server_homes import give_port, stop_server
from tests.unit.client.cli.command_line import research
from workers.dev_server import describe_server, find_binary
from workers.settings.loading import child_environment

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(120)]

COMMAND = [sys.executable, "-c", "from client.cli import main; main()"]
ROOT = Path(__file__).parents[2]
PROBES = 30


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A working folder whose configuration names a folder that was never indexed, and one that is gone."""
    (tmp_path / "docs").mkdir()
    for name, text in MANUAL.items():
        (tmp_path / "docs" / name).write_text(text, encoding="utf-8")
    (tmp_path / "research.toml").write_text('[corpus.docs]\npath = "docs"\n\n[corpus.gone]\npath = "nowhere"\n')
    give_port(tmp_path / "home")
    return tmp_path


@pytest.fixture
def environment(place: Path) -> dict[str, str]:
    return child_environment() | {
        "RESEARCH_HOME": str(place / "home"),
        "RESEARCH_CONFIG": str(place / "research.toml"),
        "RESEARCH_MODEL": "m",
        "ANTHROPIC_API_KEY": "planted-secret-key",
        "PYTHONPATH": str(ROOT),
    }


@pytest.fixture
def serving(place: Path, environment: dict[str, str]) -> Iterator["subprocess.Popen[str]"]:
    """`research serve` with its log in a file."""
    with (place / "serve.log").open("w") as log:
        process = subprocess.Popen(
            [*COMMAND, "serve"], cwd=place, env=environment, stdout=subprocess.PIPE, stderr=log, text=True
        )
    yield process
    if process.poll() is None:
        process.kill()
    process.communicate()
    asyncio.run(stop_server(place / "home"))


def addresses(process: "subprocess.Popen[str]") -> dict[str, str]:
    """What `serve` prints: one address a line."""
    assert process.stdout is not None
    found: dict[str, str] = {}
    while "metrics" not in found:
        line = process.stdout.readline()
        assert line, found
        name, _, address = line.strip().rpartition(" ")
        found[name.strip()] = address
    return found


def probe(address: str) -> dict[str, Any]:
    """The answer of the health endpoint, asked once more where it is not good yet, as probes do."""
    for _ in range(PROBES):
        with suppress(urllib.error.HTTPError), urllib.request.urlopen(address) as answer:
            return dict(json.loads(answer.read()))
        time.sleep(1)
    raise AssertionError("the health endpoint never said that all is well")


@pytest.mark.soak
def test_a_run_of_another_client_finds_a_folder_that_was_never_indexed(
    serving: "subprocess.Popen[str]", place: Path, environment: dict[str, str]
) -> None:
    """Started by the plain `temporal` program; health and metrics answer; each command gives the reason of a refused run.

    `start` prints the id alone, and `watch` writes the report; SIGTERM drains; the log has both runs, without a secret or
    a traceback.
    """
    served = addresses(serving)
    assert probe(served["health"])["ok"] is True
    with urllib.request.urlopen(served["metrics"]) as answer:
        assert b"temporal_" in answer.read()
    asked = {"query": "How does vacuum prevent wraparound?", "corpus": "docs", "engine": "extractive"}
    start = ["workflow", "start", "--address", served["server"], "--type", "deep-research", "--workflow-id", "plain"]
    start += ["--task-queue", "research-workflows", "--input", json.dumps(asked)]
    subprocess.run([find_binary(), *start], check=True, capture_output=True, env=environment)
    watch = [*COMMAND, "watch", "plain", "--json"]
    watched = subprocess.run(watch, cwd=place, env=environment, capture_output=True, text=True, check=False)
    assert watched.returncode in (0, 3), watched.stderr
    assert json.loads(watched.stdout)["counts"]["sources_cited"] > 0
    asked["corpus"] = "nowhere"
    start = [word.replace("plain", "refused") for word in start[:-1]] + [json.dumps(asked)]
    subprocess.run([find_binary(), *start], check=True, capture_output=True, env=environment)
    here = {name: environment[name] for name in ("RESEARCH_HOME", "RESEARCH_CONFIG")}
    for command, code in {"watch": 2, "status": 0}.items():
        done = research(command, "refused", **here)
        assert done.exit_code == code, (command, done.stderr)
        assert "no corpus of that name" in done.output, command
        assert "research resume" not in done.output
    listed = research("list", "--json", **here)
    (row,) = [each for each in json.loads(listed.stdout) if each["research_id"] == "refused"]
    assert (row["research_id"], row["query"]) == ("refused", asked["query"])
    assert "no corpus of that name" in row["reason"]
    begun = ["start", "How is freezing done?", "--corpus", "docs", "--engine", "extractive", "--id", "kept", "--quiet"]
    with contextlib.chdir(place):
        started = research(*begun, **here)
        assert (started.stdout, started.stderr) == ("kept\n", "")
        research("watch", "kept", "--quiet", "--out", "kept", **here)
    assert (place / "kept" / "report.html").is_file()
    serving.send_signal(signal.SIGTERM)
    assert serving.wait(30) == 0
    assert describe_server(place / "home") is None, "the server ends with the last command that uses it"
    log = (place / "serve.log").read_text()
    assert "worker.configured" in log
    assert "corpus.ready" in log
    assert "the folder of the corpus is gone" in log
    for event, fields in {
        "run.started": ["plain"],
        "run.ended": ["plain", "cost_usd=", "seconds=", "outcome="],
    }.items():
        line = next(line for line in log.splitlines() if event in line)
        assert all(field in line for field in fields), line
    assert "planted-secret-key" not in log
    assert "Traceback" not in log
