"""A strategy of an installed package through the real command: estimate, run, kill -9, resume, report."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.bench import LONGEST_WAIT, QUESTION, Bench, benched, only_document

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(240)]

ROOT = Path(__file__).parents[2]
ENDPOINT = (sys.executable, "-m", "tests.fakes.messages_api", "--port", "0", "--latency", "0.7")
ASKED = (QUESTION, "--corpus", "manual", "--strategy", "toy")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A bench whose Python finds the metadata of a package that brings the strategy."""
    root = tmp_path_factory.mktemp("toy")
    metadata = root / "site" / "toy_strategy-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-strategy\nVersion: 1.0\n", encoding="utf-8")
    entry = "[durable_research.strategies]\ntoy = tests.toy.roles:TOY\n"
    (metadata / "entry_points.txt").write_text(entry, encoding="utf-8")
    with benched(root) as made:
        made.environment["PYTHONPATH"] = f"{ROOT}:{root / 'site'}"
        yield made


@pytest.fixture
def endpoint(bench: Bench, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A slow model endpoint in a process of its own, and where it writes down what it answered."""
    journal = tmp_path / "journal.jsonl"
    command = [*ENDPOINT, "--journal", str(journal)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=bench.environment, cwd=ROOT)
    assert process.stdout is not None
    yield json.loads(process.stdout.readline())["base_url"], journal
    process.terminate()
    process.communicate()


def written(journal: Path) -> list[dict[str, Any]]:
    """What the endpoint wrote down."""
    return [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]


def test_it_runs_and_shows_its_units_and_its_name(bench: Bench) -> None:
    """Progress in its own words; all three forms of the report; the record names it."""
    done = bench.run("run", *ASKED, "--id", "toy-run", "--out", "toy")
    assert done.returncode == 0, done.stderr
    for unit in ("scout", "look", "tell"):
        assert unit in done.stderr
    assert "strategy toy" in (bench.work / "toy" / "report.html").read_text(encoding="utf-8")
    assert json.loads((bench.work / "toy" / "report.json").read_text(encoding="utf-8"))["strategy"] == "toy"
    status = only_document(bench.run("status", "toy-run", "--json").stdout)
    assert [unit["mark"] for unit in status["progress"]["units"]] == ["done", "done", "done"]
    assert bench.run("audit", "toy-run").returncode == 0


@pytest.mark.soak
def test_killed_it_goes_on_and_pays_nothing_twice(bench: Bench, endpoint: tuple[str, Path]) -> None:
    """After kill -9 the same command goes on; no answered request is made again.

    What the endpoint hands over in the moment of the kill has reached nobody: on a busy machine that may be any call
    after the scout's, whose answer the run had.
    """
    address, journal = endpoint
    arguments = ("run", *ASKED, "--model", "m", "--model-url", address, "--id", "toy-killed", "--out", "killed")
    killed = bench.start(*arguments)
    killed.wait_for("scouting is over")
    had = {line["request_hash"] for line in written(journal) if line["role"] == "scout"}
    killed.process.kill()
    killed.process.wait(LONGEST_WAIT)
    killed.end()
    again = bench.run(*arguments)
    assert again.returncode == 0, again.stderr
    delivered = Counter(line["request_hash"] for line in written(journal) if line["delivered"])
    assert had
    assert {delivered[request] for request in had} == {1}
    assert max(delivered.values()) <= 2
