"""The real `research delete` beside a run that is going on, and without an engine."""

from pathlib import Path

import pytest

from contracts.vocabulary import Phase
from tests.acceptance.bench import LONGEST_WAIT, QUESTION, Bench, benched
from tests.acceptance.held_runs import HELD, Hold

pytestmark = [pytest.mark.acceptance, pytest.mark.soak, pytest.mark.timeout(240)]


def documents(bench: Bench) -> set[Path]:
    """What lies in the content store."""
    return {path for path in (bench.home / "content").rglob("*") if path.is_file()}


def test_deleting_a_run_takes_nothing_from_one_in_flight(tmp_path: Path) -> None:
    """What a run has read and saved nowhere yet stays, so that it ends well; later everything is removed."""
    with benched(tmp_path) as bench:
        arguments = ("run", QUESTION, "--corpus", "manual", "--depth", "light", "--id")
        made = bench.run(*arguments, "early", "--quiet")
        assert made.returncode == 0, made.stderr
        kept = documents(bench)
        started = bench.start(*arguments, "in-flight", *HELD)
        started.wait_for("in-flight started")
        with Hold(bench.home, Phase.GATHERING) as hold:
            assert hold.reached.wait(LONGEST_WAIT)
            deleted = bench.run("delete", "early", "--yes")
            assert deleted.returncode == 0, deleted.stderr
            assert "are kept while a run that may use them is going on" in deleted.stderr
            assert documents(bench) >= kept
            assert bench.run("delete", "in-flight", "--yes").returncode == 2
            hold.release()
            assert started.end() == 0, started.errors
        assert bench.run("audit", "in-flight").returncode == 0
        bench.stop_server()
        removed = bench.run("delete", "in-flight", "--yes")
        assert removed.returncode == 0, removed.stderr
        assert "1 history" in removed.stdout
        assert documents(bench) == set()


def test_a_run_that_stands_still_with_its_engine_is_in_flight(tmp_path: Path) -> None:
    """A killed run goes on once the engine is there again, so the engine is started and asked before documents go."""
    with benched(tmp_path) as bench:
        arguments = ("run", QUESTION, "--corpus", "manual", "--depth", "light", "--id")
        made = bench.run(*arguments, "early", "--quiet")
        assert made.returncode == 0, made.stderr
        kept = documents(bench)
        started = bench.start(*arguments, "killed", *HELD)
        started.wait_for("killed started")
        started.process.kill()
        started.end()
        bench.stop_server()
        deleted = bench.run("delete", "early", "--yes")
        assert deleted.returncode == 0, deleted.stderr
        assert "are kept while a run that may use them is going on" in deleted.stderr
        assert "1 history" in deleted.stdout
        assert documents(bench) >= kept
        assert bench.run("delete", "killed", "--yes").returncode == 2
