"""How many faults the unit tests find: a seeded sample of mutants, each run against the tests that reach its lines.

`python benchmarks/mutants.py map` records which test reaches which line; given test files, it does those anew.
`python benchmarks/mutants.py run --seed 2` makes the sample, runs what has no result yet and prints the score; a run
that was broken off goes on where it was. Everything happens in `build/mutants`, on a copy of the tracked files.
"""

import argparse
import ast
import json
import math
import os
import random
import shutil
import subprocess
import sys
import time
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, Final

import coverage
import pytest
from mutant_finder import ROOT, Finder, Mutant
from mutant_runner import MutantRunner, collected

PLACE: Final = ROOT / "build" / "mutants"
TREE: Final = PLACE / "tree"
COVERAGE: Final = PLACE / "coverage"
DURATIONS: Final = PLACE / "durations.json"
EQUIVALENT: Final = ROOT / "benchmarks" / "mutants_equivalent.toml"
PACKAGES: Final = ("workflows", "activities")
TESTS: Final = ("tests/unit/workflows", "tests/unit/activities", "tests/unit/providers/extractive",
                "tests/replay", "tests/every_strategy")  # fmt: skip
RECORDED: Final = ("whole_runs.py", "test_histories.py", "test_recorded_", "test_decision_logs.py")
"""Compared word for word with what was recorded: the likeliest to find a fault, so they go first."""
FOUND: Final = ("killed", "loop", "timeout")


def every_mutant() -> list[Mutant]:
    """Of all files, in their order."""
    listed = _git_files(*(f"{package}/*.py" for package in PACKAGES))
    return [mutant for path in listed for mutant in Finder(path, (ROOT / path).read_text(encoding="utf-8")).found]


def copy_tree(tree: Path) -> Path:
    """The tracked files as they are now."""
    for path in _git_files():
        source, target = ROOT / path, tree / path
        if not source.exists():
            target.unlink(missing_ok=True)
        elif not target.exists() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    return tree


def enter_tree(tree: Path) -> None:
    """Import from the copy from now on."""
    os.chdir(tree)
    sys.path[:] = [
        str(tree),
        *(part for part in sys.path if Path(part or ".").resolve() not in {ROOT, ROOT / "benchmarks"}),
    ]


def record_map(targets: list[str]) -> int:
    """Run the tests and keep, for each line, who came there."""
    before: dict[str, float] = json.loads(DURATIONS.read_text()) if DURATIONS.exists() else {}
    # A test that is no longer there cannot be run.
    known = {test: seconds for test, seconds in before.items() if targets and not test.startswith(tuple(targets))}
    cover = coverage.Coverage(data_file=str(COVERAGE), source=list(PACKAGES), config_file=False, messages=False)
    if targets and COVERAGE.exists():
        cover.load()

    class Contexts:
        def pytest_runtest_logstart(self, nodeid: str) -> None:
            cover.switch_context(nodeid)

        def pytest_runtest_logreport(self, report: Any) -> None:
            known[report.nodeid] = report.duration + (0.0 if report.when == "setup" else known.get(report.nodeid, 0.0))

    cover.start()
    code = int(pytest.main([*(targets or TESTS), "-q", "-p", "no:cacheprovider"], plugins=[Contexts()]))
    cover.stop()
    cover.save()
    DURATIONS.write_text(json.dumps(known, indent=0))
    return code


class TestMap:
    """Which tests come to a line, those that found the most faults so far first."""

    def __init__(self) -> None:
        self._data = coverage.CoverageData(str(COVERAGE))
        self._data.read()
        self._durations: dict[str, float] = json.loads(DURATIONS.read_text())
        self.kills: Counter[str] = Counter()

    def tests_of(self, mutant: Mutant, most: int) -> list[str]:
        """The tests of the lines that change; for what is only run at the import, those of the file.

        All of the files that import what changes, then at most so many others.
        """
        lines = self._data.contexts_by_lineno(str(TREE / mutant.path))
        wanted = range(mutant.line, mutant.end_line + 1) if mutant.in_function else lines
        reached = {test for line in wanted for test in lines.get(line, []) if test}
        known = sorted((test for test in reached if test in self._durations), key=self._rank)
        module = mutant.path.removesuffix(".py").replace("/", ".")
        near = [test for test in known if module in _imports(test.partition("::")[0])]
        others = [test for test in known if test not in set(near)]
        # After what is recorded, some of each file: the tests of one file often do the same.
        places, rounds = Counter[str](), dict[str, int]()
        for test in others:
            file = "" if any(name in test for name in RECORDED) else test.partition("::")[0]
            rounds[test] = places[file] if file else -1
            places[file] += 1
        return near + sorted(others, key=rounds.__getitem__)[:most]

    def files(self) -> list[str]:
        """The files of all tests that are still there."""
        files = {test.partition("::")[0] for test in self._durations}
        return sorted(file for file in files if Path(file).exists() and file.startswith(TESTS))

    def processor_seconds(self, tests: list[str]) -> int:
        """What these tests may use of a processor: more than what they took on the clock when the map was made."""
        return 30 + math.ceil(1.5 * sum(self._durations[test] for test in tests))

    def _rank(self, test: str) -> tuple[bool, int, float, str]:
        return not any(name in test for name in RECORDED), -self.kills[test], self._durations[test], test


@cache
def _imports(file: str) -> frozenset[str]:
    """The modules whose names a test file imports."""
    found = set[str]()
    for node in ast.walk(ast.parse((TREE / file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
    return frozenset(found)


def _git_files(*patterns: str) -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return listed.stdout.split("\n")[:-1]


def equivalents() -> dict[str, str]:
    """Mutants that no test can find, by key, each with the reason."""
    text = EQUIVALENT.read_text(encoding="utf-8") if EQUIVALENT.exists() else ""
    return {entry["mutant"]: entry["reason"] for entry in tomllib.loads(text).get("equivalent", [])}


def run_sample(seed: int, count: int, most: int, seconds: float, again: bool, part: str) -> None:
    """Run the sample, or every so manieth of it, and print the score."""
    first, parts = map(int, part.split("/"))
    sample = random.Random(seed).sample(every_mutant(), count)[first - 1 :: parts]
    count = len(sample)
    results = PLACE / (f"seed_{seed}.json" if parts == 1 else f"seed_{seed}_{first}_of_{parts}.json")
    known: dict[str, Any] = json.loads(results.read_text()) if results.exists() else {}
    if again:
        known = {key: result for key, result in known.items() if result["state"] == "killed"}
    tests, same = TestMap(), equivalents()
    tests.kills.update(result["by"] for result in known.values() if result["by"])

    def judge(runner: MutantRunner) -> None:
        for number, mutant in enumerate(sample, 1):
            place = mutant.place()
            if known.get(place, {"state": "unsettled"})["state"] != "unsettled" or mutant.key() in same:
                continue
            begun = time.monotonic()
            near = [test for test in tests.tests_of(mutant, most) if test in runner.items]
            state, by = runner.judge(mutant, near, tests.processor_seconds(near))
            tests.kills.update([by] if by else [])
            known[place] = {"state": state, "by": by}
            results.write_text(json.dumps(known, indent=1))
            spent = time.monotonic() - begun
            print(f"{number:3} {state:9} {spent:5.1f} s  {mutant.path}:{mutant.line} {mutant.kind}", flush=True)

    if code := collected(tests.files(), seconds, judge):
        raise RuntimeError(f"pytest ended with exit code {code}: mend what it names above, or make the map anew")
    states = Counter("equivalent" if m.key() in same else known[m.place()]["state"] for m in sample)
    for mutant in sample:
        if mutant.key() not in same and known[mutant.place()]["state"] not in FOUND:
            print(f"\n{known[mutant.place()]['state']}: {mutant.key()}\n{mutant.diff()}")
    found, counted = sum(states[state] for state in FOUND), count - states["equivalent"]
    print(f"\nseed {seed}: {dict(states)}; found {found} of {counted}: {found / counted:.0%}")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("map").add_argument("tests", nargs="*")
    run = commands.add_parser("run")
    run.add_argument("--seed", type=int, default=1)
    run.add_argument("--count", type=int, default=100)
    run.add_argument("--most", type=int, default=150, help="tests for one mutant, besides those that import its file")
    run.add_argument("--seconds", type=float, default=400.0, help="time limit for one mutant")
    run.add_argument("--part", default="1/1", help="1/2 and 2/2: each half in a copy of its own, side by side")
    run.add_argument("--again", action="store_true", help="run those anew that were not killed")
    given = parser.parse_args()
    part = getattr(given, "part", "1/1").partition("/")[0]
    enter_tree(copy_tree(PLACE / ("tree" if part == "1" else f"tree_{part}")))
    if given.command == "map":
        sys.exit(record_map(given.tests))
    run_sample(given.seed, given.count, given.most, given.seconds, given.again, given.part)


if __name__ == "__main__":
    main()
