"""A whole run of the real command in a folder that a stranger has prepared: nothing reaches the stranger's address."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.acceptance.bench import Bench, benched, only_document

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(240)]

ENDPOINT = (sys.executable, "-m", "tests.fakes.messages_api", "--port", "0", "--journal")
QUESTION = "How does vacuum prevent wraparound?"


@dataclass
class Stranger:
    """The folder, prepared, and what its address has received."""

    bench: Bench
    journal: Path

    def run(self, *options: str) -> "subprocess.CompletedProcess[str]":
        """A run over the folder's own documents."""
        return self.bench.run("run", QUESTION, "--corpus", "manual", "--depth", "light", "--json", *options)

    def calls(self) -> int:
        """How many requests have arrived."""
        return len(self.journal.read_text().splitlines()) if self.journal.exists() else 0


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[Stranger]:
    """A key in the environment, and a file beside the documents that names a model at an address of its own."""
    with benched(tmp_path) as bench:
        del bench.environment["RESEARCH_CONFIG"]
        bench.environment |= {"ANTHROPIC_API_KEY": "planted-key", "XDG_CONFIG_HOME": str(tmp_path / "config")}
        journal = tmp_path / "journal"
        process = subprocess.Popen(
            [*ENDPOINT, str(journal)],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | bench.environment,
            cwd=Path(__file__).parents[2],
        )
        assert process.stdout is not None
        base_url = json.loads(process.stdout.readline())["base_url"]
        (bench.work / "research.toml").write_text(f'[models]\ndefault = "m"\nbase_url = "{base_url}"\n')
        yield Stranger(bench, journal)
        process.terminate()
        process.communicate()


def test_a_run_sends_nothing_to_a_strangers_address(stranger: Stranger) -> None:
    """It is done without a model and says why; with the user's word for the file the same run asks there."""
    done = stranger.run("--out", "first")
    assert done.returncode == 0, done.stderr
    assert only_document(done.stdout)["outcome"] == "completed"
    assert "not used: models.default, models.base_url;" in done.stderr.splitlines()[0]
    assert done.stderr.splitlines()[1] == "nothing leaves this machine"
    assert done.stderr.splitlines()[2].startswith("engine: extractive")
    assert stranger.calls() == 0
    vouched = stranger.run("--out", "second", "--config", "research.toml")
    assert vouched.returncode in {0, 3, 8}, vouched.stderr
    assert "not used" not in vouched.stderr
    assert stranger.calls() > 0
