"""The home as other users of the machine find it after a whole run of the real command."""

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.bench import QUESTION, Bench, benched

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A run that is over, made by a person whose umask lets everybody read; its engine still goes on."""
    before = os.umask(0o022)
    with benched(tmp_path_factory.mktemp("private")) as made:
        done = made.run("run", QUESTION, "--corpus", "manual", "--depth", "light", "--id", "first", "--out", "own")
        assert done.returncode == 0, done.stderr
        yield made
    os.umask(before)


def mode(path: Path) -> int:
    """The rights of a file."""
    return stat.S_IMODE(path.lstat().st_mode)


def open_to_others(home: Path) -> list[Path]:
    """Everything in a home that somebody else could use; what goes away meanwhile is none."""
    found = []
    for path in (home, *home.rglob("*")):
        try:
            if mode(path) & 0o077:
                found.append(path)
        except FileNotFoundError:
            continue
    return found


def test_everything_in_the_home_is_for_its_owner(bench: Bench) -> None:
    """Sessions, documents, indexes, databases with what SQLite puts beside them, logs, locks: nobody else reads them."""
    names = {path.name for path in bench.home.rglob("*")}
    assert {"first.json", "temporal.db", "temporal.db-wal", "server.log", "engine.json", "research.log"} <= names
    assert open_to_others(bench.home) == []


def test_reports_are_the_persons_own(bench: Bench) -> None:
    """The folder of `--out` and its files follow the person's umask."""
    assert {mode(path) for path in (bench.work / "own").iterdir()} == {0o644}
    assert mode(bench.work / "own") == 0o755


def test_the_doctor_closes_an_old_home_and_says_so(bench: Bench) -> None:
    """What an earlier version left open is closed, told once, and then in order."""
    for path in (bench.home, bench.home / "sessions", bench.home / "engine" / "temporal.db"):
        path.chmod(0o755)
    checks = {each["name"]: each for each in json.loads(bench.run("doctor", "--json").stdout)}
    assert checks["privacy"]["found"] == "3 of its files and folders were open to other users: closed"
    assert open_to_others(bench.home) == []
    again = {each["name"]: each for each in json.loads(bench.run("doctor", "--json").stdout)}
    assert again["privacy"]["found"] == "for its owner alone"
