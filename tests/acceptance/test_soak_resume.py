"""`research resume` after the command that began a run is gone: the real command against the embedded engine."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.vocabulary import Phase
from tests.acceptance.bench import LONGEST_WAIT, QUESTION, Bench, Started, benched, only_document
from tests.acceptance.held_runs import HELD, Hold
from workers.dev_server import ensure_server

pytestmark = [pytest.mark.acceptance, pytest.mark.soak, pytest.mark.timeout(240)]

ENDPOINT = (sys.executable, "-m", "tests.fakes.messages_api", "--port", "0")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """One engine for the tests of this file."""
    with benched(tmp_path_factory.mktemp("resume")) as made:
        yield made


@pytest.fixture
def endpoint(bench: Bench) -> Iterator[str]:
    """The address of a model endpoint in a process of its own."""
    process = subprocess.Popen(
        ENDPOINT, stdout=subprocess.PIPE, text=True, env=bench.environment, cwd=Path(__file__).parents[2]
    )
    assert process.stdout is not None
    yield json.loads(process.stdout.readline())["base_url"]
    process.terminate()
    process.communicate()


def begun(bench: Bench, research_id: str) -> str:
    """A run that the engine has open, and of which nothing is stored: no worker has taken it up yet."""
    asyncio.run(ensure_server(bench.home))
    started = bench.run("start", QUESTION, "--corpus", "manual", "--depth", "light", "--id", research_id)
    assert started.returncode == 0, started.stderr
    assert not (bench.home / "sessions" / f"{research_id}.json").exists()
    return started.stderr


def on(bench: Bench, *arguments: str) -> Started:
    """`research resume` beside the test, when it has joined the run."""
    resumed = bench.start("resume", *arguments)
    resumed.wait_for(f"{arguments[0]} joined")
    return resumed


def test_a_run_of_which_nothing_is_stored_goes_on(bench: Bench) -> None:
    """The server has it open: it is joined with its own limits; its status needs a worker."""
    assert "no worker is running" in begun(bench, "early")
    silent = bench.run("status", "early")
    assert (silent.returncode, "start one with `research serve`" in silent.stderr) == (4, True)
    resumed = on(bench, "early", "--set", "limits.max_iterations=1", "--out", "early")
    assert resumed.end() == 0, resumed.errors
    assert "--set is ignored when joining a run" in resumed.errors


def test_a_resumed_run_asks_for_the_model_that_it_began_with(bench: Bench, endpoint: str) -> None:
    """Without its endpoint it is refused before any work; with the flags that the last line names it goes on."""
    model = ("--model", "fake", "--model-url", endpoint)
    started = bench.start("run", QUESTION, "--corpus", "manual", "--depth", "light", "--id", "paid", *model, *HELD)
    started.wait_for("engine: model fake")
    started.wait_for("paid started")
    with Hold(bench.home, Phase.GATHERING) as hold:
        assert hold.reached.wait(LONGEST_WAIT)
        started.process.send_signal(signal.SIGINT)
        assert started.end() == 5, started.errors
        hold.release()
        go_on_with_the_model(bench, started, endpoint, model)


def go_on_with_the_model(bench: Bench, started: Started, endpoint: str, model: tuple[str, ...]) -> None:
    """Refused without the flags that the first command named, completed with them."""
    assert f"research resume paid --model fake --model-url {endpoint}" in started.output
    refused = bench.run("resume", "paid")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "this run used the model fake at 127.0.0.1" in refused.stderr
    assert "add --model fake --model-url URL" in refused.stderr
    resumed = bench.run("resume", "paid", *model, "--json", "--out", "paid")
    assert resumed.returncode == 0, resumed.stderr
    assert only_document(resumed.stdout)["usage"]["model_calls"] > 0
