"""The real `research` command with a model that directs agents, and with a person who is asked on the way."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.bench import QUESTION, Bench, benched, only_document

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(240)]

PHRASE = "Authorized to execute"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """One engine for the tests of this file."""
    with benched(tmp_path_factory.mktemp("bench")) as made:
        yield made


@pytest.fixture(scope="module")
def model() -> Iterator[list[str]]:
    """The flags that name a model at an endpoint of its own process."""
    command = [sys.executable, "-m", "tests.fakes.messages_api", "--port", "0", "--latency", "0.05"]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())["base_url"]
        yield ["--model", "test-model", "--model-url", address]
        process.terminate()


def test_agents_begin_when_the_plan_is_approved_as_it_was_edited(
    bench: Bench, model: list[str], tmp_path: Path
) -> None:
    """What cannot be taken is told by its field, the exact command is named, and agents do the steps that were agreed
    upon (X-1).
    """
    waits = ["--corpus", "manual", "--id", "approved", "--approve", "phrase", "--strategy", "orchestrator"]
    started = bench.start("run", QUESTION, *waits, *model)
    started.wait_for(f"research approve approved --version 1 --phrase '{PHRASE}'")
    assert f"research approve approved --version 1 --phrase '{PHRASE}'" in bench.run("status", "approved").stdout
    assert re.search(r"approved +awaiting approval ", bench.run("list").stdout)
    plan = tmp_path / "plan.md"
    plan.write_text(f"- {'x' * 600}")
    refused = bench.run("plan", "approved", "--set", str(plan))
    assert (refused.returncode, "sub_queries.0.query: " in refused.stderr) == (2, True)
    plan.write_text("- What does vacuum freeze?\n- Which settings does autovacuum have?\n")
    edited = bench.run("plan", "approved", "--set", str(plan))
    assert edited.stdout == "taken: the plan is version 2 now; approve it to begin\n"
    assert edited.stderr == f"research approve approved --version 2 --phrase '{PHRASE}'\n"
    for version, phrase, problem in (
        ("1", PHRASE, "version: 1 is older than the plan that there is; look at version 2"),
        ("2", f"not {PHRASE} yet", f"phrase: this run wants exactly these words: {PHRASE}"),
    ):
        refused = bench.run("approve", "approved", "--version", version, "--phrase", phrase)
        assert (refused.returncode, problem in refused.stderr) == (2, True), refused.stderr
    assert only_document(bench.run("status", "approved", "--json").stdout)["agents"] == []
    agreed = bench.run("approve", "approved", "--version", "2", "--phrase", f"{PHRASE.lower()}.")
    assert agreed.returncode == 0, agreed.stderr
    assert started.end() == 0, started.errors
    shown = bench.run("status", "approved").stdout
    tasks = [line for line in shown.splitlines() if " agent-" in line]
    assert all(re.match(r"✔ agent-\d +done", line) for line in tasks), shown
    assert ["freeze" in tasks[0], "autovacuum" in tasks[1]] == [True, True]
    decided = bench.run("decisions", "approved").stdout
    assert "person: approve plan" in decided
    assert re.search(r"agents: merge +agent-2 ", decided)
    assert re.search(r"\[1\]", bench.run("report", "approved").stdout)
