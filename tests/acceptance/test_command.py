"""The real `research` command on a small corpus against the dev server: nothing is patched, nothing is faked."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from activities.reporting.picture import OPENING
from contracts.vocabulary import Phase
from tests.acceptance.bench import LONGEST_WAIT, QUESTION, Bench, Started, benched, only_document
from tests.acceptance.held_runs import HELD, Hold
from workers.dev_server import describe_server, ensure_server

ENDING_WORKER = """
import asyncio, sys, time
from functools import partial
from client.cli import main, run
from workers.pools import PoolGroup
from workers.stalls import end_if_stalled

async def stand_still(*arguments):
    await asyncio.sleep(0.5)
    time.sleep(60)

async def fail(group):
    await asyncio.sleep(0.5)
    raise RuntimeError("the connection is gone")

if sys.argv.pop(1) == "a pool fails":
    PoolGroup.failure = fail
else:
    run.end_if_stalled = partial(end_if_stalled, limit_seconds=0.5)
    run.follow_run = stand_still
main()
"""
"""The command whose worker ends once: the command that takes its place is the ordinary one."""

FROM_PYTHON = """
import asyncio, sys
from durable_research import research

def show(line):
    print(line, file=sys.stderr)

found = asyncio.run(research(sys.argv[1], corpus="manual", strategy="toy", research_id="toy-run", progress=show))
print(found.outcome, found.cost_usd, found.research_id)
found.save("toy")
"""

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """One server for the tests of this file, a person whose umask lets everybody read, and a package with a strategy."""
    before = os.umask(0o022)
    root = tmp_path_factory.mktemp("bench")
    metadata = root / "site" / "toy_strategy-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-strategy\nVersion: 1.0\n", encoding="utf-8")
    entry = "[durable_research.strategies]\ntoy = tests.toy.roles:TOY\n"
    (metadata / "entry_points.txt").write_text(entry, encoding="utf-8")
    with benched(root) as made:
        made.environment["PYTHONPATH"] += f":{root / 'site'}"
        yield made
    os.umask(before)


def open_to_others(folder: Path) -> list[Path]:
    """Everything in a folder that other users of the machine could use."""
    return [path for path in (folder, *folder.rglob("*")) if path.exists() and path.lstat().st_mode & 0o077]


def test_an_interrupted_run_is_continued_and_its_report_read_audited_and_deleted(bench: Bench, tmp_path: Path) -> None:
    """Question in, Ctrl-C with exit code 5, the command that it names, three cited files out; nothing is read twice.

    Everything in the home is private. Under its id the stored report is printed, and another question is refused. A forged quote fails the audit. All
    that is stored is read without a server; a deleted run is gone, and the documents of others stay; a run that
    no worker takes up is cancelled and deleted.
    """
    started = bench.start("run", QUESTION, "--corpus", "manual", "--depth", "light", "--id", "first", *HELD)
    started.wait_for("first started")
    asyncio.run(ensure_server(bench.home))  # the server stays when the command has ended
    with Hold(bench.home, Phase.GATHERING) as hold:
        assert hold.reached.wait(LONGEST_WAIT)
        started.process.send_signal(signal.SIGINT)
        assert started.end() == 5, started.errors
        assert "cancelling" in started.errors
        assert "research resume first" in started.output
        assert only_document(bench.ask("status", "first", "--json").stdout)["status"] == "cancelled"
        hold.release()
        first = bench.run("resume", "first")
    assert first.returncode == 0, first.stderr
    assert started.lines[0] == "nothing leaves this machine"
    assert started.lines[1].startswith("engine: extractive, no model")
    shown = first.stdout
    assert 0 < shown.index("[1]") < shown.index("✔ completed") < shown.index("report.html")
    assert "research open first · research audit first" in shown
    assert len(shown.splitlines()) < 40
    (folder,) = (bench.work / "reports").iterdir()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d-how-does-vacuum-prevent-wraparound-and-which", folder.name)
    assert {path.name for path in folder.iterdir()} == {"report.md", "report.html", "report.json"}
    assert (folder / "report.md").stat().st_mode & 0o777 == 0o644
    assert open_to_others(bench.home) == []
    assert OPENING in (folder / "report.html").read_text(encoding="utf-8"), "the picture of its calls is under Method"
    assert bench.ask("audit", str(folder)).exit_code == 0
    report = json.loads((folder / "report.json").read_text())
    assert (report["research_id"], report["outcome"], bool(report["citations"])) == ("first", "completed", True)

    again = bench.ask("run", QUESTION, "--corpus", "manual", "--id", "first", "--json", "--out", "again")
    document = only_document(again.stdout)
    assert (again.exit_code, document["outcome"]) == (0, "completed")
    assert document["usage"]["reads"] == document["counts"]["sources"] > 0
    assert (bench.work / document["paths"]["html"]).is_file()
    other = bench.ask("run", "Something else?", "--corpus", "manual", "--id", "first", "--json")
    assert (other.exit_code, other.stdout) == (2, "")
    assert "belongs to another question" in other.stderr

    report["evidence"][0]["quote"] += " (forged)"
    (tmp_path / "report.json").write_text(json.dumps(report))
    audited = bench.ask("audit", str(tmp_path / "report.json"), "--json")
    assert (audited.exit_code, only_document(audited.stdout)["passed"]) == (1, False)

    bench.stop_server()
    assert "first" in {row["research_id"] for row in only_document(bench.ask("list", "--json").stdout)}
    assert bench.ask("report", "first").stdout.startswith("# ")
    bundle = bench.ask("export", "first", "--bundle", "--out", "first.zip")
    assert (bundle.exit_code, bench.ask("audit", "first.zip").exit_code) == (0, 0), bundle.stderr
    assert describe_server(bench.home) is None

    assert bench.ask("delete", "first", "--yes").exit_code == 0
    assert bench.ask("status", "first").exit_code == 2
    assert (bench.work / "manual" / "vacuum.md").is_file()

    asyncio.run(ensure_server(bench.home))
    begun = bench.ask("start", QUESTION, "--corpus", "manual", "--id", "lone")
    assert (begun.exit_code, "no worker is running" in begun.stderr) == (0, True), begun.stderr
    refused = bench.ask("delete", "lone", "--yes")
    assert (refused.exit_code, "research cancel lone" in refused.stderr) == (2, True)
    ended = bench.ask("cancel", "lone")
    assert (ended.exit_code, "did not react and was terminated" in ended.stdout) == (0, True)
    assert "research resume" not in ended.stderr  # nothing of it was ever stored
    assert bench.ask("delete", "lone", "--yes").exit_code == 0


@pytest.mark.soak
def test_a_strategy_of_an_installed_package_is_run_from_python_and_shows_its_units(bench: Bench) -> None:
    """Progress in its own words, line by line; all three forms of the report; the record names it."""
    done = subprocess.run(
        [sys.executable, "-c", FROM_PYTHON, QUESTION],
        cwd=bench.work,
        env=bench.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_WAIT,
    )
    assert done.stdout == "completed 0.0 toy-run\n", done.stderr
    for unit in ("scout", "look", "tell"):
        assert unit in done.stderr
    assert "strategy toy" in (bench.work / "toy" / "report.html").read_text(encoding="utf-8")
    assert json.loads((bench.work / "toy" / "report.json").read_text(encoding="utf-8"))["strategy"] == "toy"
    status = only_document(bench.run("status", "toy-run", "--json").stdout)
    assert [unit["mark"] for unit in status["progress"]["units"]] == ["done", "done", "done"]
    assert bench.run("audit", "toy-run").returncode == 0


@pytest.mark.soak
@pytest.mark.parametrize("end", ["its event loop stands still", "a pool fails"])
def test_a_run_whose_worker_ends_says_so_and_is_tried_once_more(bench: Bench, end: str) -> None:
    """The same command takes the ended one's place, with its options, and its run gives the report."""
    name = f"ended-{len(end)}"
    options = ("--corpus", "manual", "--depth", "light", "--id", name, "--json", "--out", name)
    started = Started.of([sys.executable, "-c", ENDING_WORKER, end, "run", QUESTION, *options], bench)
    assert started.end() == 0, started.errors
    assert started.errors.count("research: the worker of this run ended: ") == 1
    assert only_document(started.output)["outcome"] == "completed"
    assert (bench.work / name / "report.html").is_file()


@pytest.mark.soak
def test_a_run_whose_worker_ends_twice_ends_with_the_remedy(bench: Bench) -> None:
    """The second end is the last: exit code 1, the log to report, and the command that continues."""
    ending = [sys.executable, "-c", ENDING_WORKER, "its event loop stands still"]
    started = Started.of([*ending, "run", QUESTION, "--corpus", "manual", "--id", "twice", "--again"], bench)
    assert started.end() == 1, started.errors
    assert "research: the worker of this run ended again: its event loop stood still" in started.errors
    assert f"{bench.home}/logs/research.log, then research resume twice" in " ".join(started.errors.split())
    assert bench.run("resume", "twice").returncode == 0
