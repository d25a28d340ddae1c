"""A strategy of an installed package through the real command: run, report, status."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.bench import QUESTION, Bench, benched, only_document

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(240)]

ROOT = Path(__file__).parents[2]
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
