"""How many faults the unit tests find: a seeded sample of mutants, each run against the tests that reach its lines.

`python benchmarks/mutants.py map` records which test reaches which line; given test files, it does those anew.
`python benchmarks/mutants.py run --seed 2` makes the sample, runs what has no result yet and prints the score; a run
that was broken off goes on where it was. Everything happens in `build/mutants`, on a copy of the tracked files.
"""

import argparse
import importlib
import json
import math
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import coverage
import pytest
from mutant_finder import ROOT, Finder, Mutant

PLACE: Final = ROOT / "build" / "mutants"
TREE: Final = PLACE / "tree"
COVERAGE: Final = PLACE / "coverage"
DURATIONS: Final = PLACE / "durations.json"
EQUIVALENT: Final = ROOT / "benchmarks" / "mutants_equivalent.toml"
PACKAGES: Final = ("workflows", "activities")
TESTS: Final = ("tests/unit", "tests/replay", "tests/every_strategy")
RECORDED: Final = ("whole_runs.py", "test_histories.py", "test_recorded_", "test_decision_logs.py")
"""Compared word for word with what was recorded: the likeliest to find a fault, so they go first."""
FOUND: Final = ("killed", "loop", "timeout")
SOUND: Final = set[str]()
"""Tests that found a fault, and pass without one."""
QUICK_SHARE: Final = 0.25
"""Of the time limit: tests that take longer without the change are slow, and say nothing about one that took longer."""
HEAVY: Final = ("temporalio.worker", "temporalio.testing", "anthropic", "contracts.activities",
                "contracts.strategies", "providers.storage.sessions", "providers.models.prices",
                "providers.extractive.engine", "providers.reading.readers")  # fmt: skip
"""Imported once, before each mutant gets a process of its own; none of it imports what is changed."""


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
        """The tests of the lines that change; for what is only run at the import, those of the file."""
        lines = self._data.contexts_by_lineno(str(TREE / mutant.path))
        wanted = range(mutant.line, mutant.end_line + 1) if mutant.in_function else lines
        reached = {test for line in wanted for test in lines.get(line, []) if test}
        known = sorted((test for test in reached if test in self._durations), key=self._rank)
        # After what is recorded, some of each file: the tests of one file often do the same.
        places, rounds = Counter[str](), dict[str, int]()
        for test in known:
            file = "" if any(name in test for name in RECORDED) else test.partition("::")[0]
            rounds[test] = places[file] if file else -1
            places[file] += 1
        return sorted(known, key=rounds.__getitem__)[:most]

    def processor_seconds(self, tests: list[str]) -> int:
        """What these tests may use of a processor: more than what they took on the clock when the map was made."""
        return 30 + math.ceil(1.5 * sum(self._durations[test] for test in tests))

    def _rank(self, test: str) -> tuple[bool, int, float, str]:
        return not any(name in test for name in RECORDED), -self.kills[test], self._durations[test], test


def run_mutant(mutant: Mutant, tests: list[str], seconds: float, processor: int) -> tuple[str, str]:
    """`killed`, `survived`, `loop`, `timeout` or `unreached`, and the test that failed.

    A loop is what used up `processor` seconds of processor time, which does not depend on what else the machine does.
    """
    if not tests:
        return "unreached", ""
    target, failed = Path.cwd() / mutant.path, Path.cwd() / "failed"
    before, after = mutant.apply()
    failed.unlink(missing_ok=True)
    target.write_text(after, encoding="utf-8")
    child = os.fork()
    if child == 0:
        os.setsid()
        _test(tests, failed, processor)
    try:
        until = time.monotonic() + seconds
        while True:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                code = os.waitstatus_to_exitcode(status)
                if code == -signal.SIGXCPU:
                    return "loop", ""
                if code > 0 and not failed.exists():
                    raise RuntimeError(f"the tests could not be run (exit code {code}): {tests[0]} …")
                return ("survived" if code == 0 else "killed"), failed.read_text() if failed.exists() else ""
            if time.monotonic() > until:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return "timeout", ""
            time.sleep(0.02)
    finally:
        target.write_text(before, encoding="utf-8")
        shutil.copystat(ROOT / mutant.path, target)


def judge(mutant: Mutant, tests: list[str], seconds: float, processor: int) -> tuple[str, str]:
    """What `run_mutant` says; `unsettled` where the time was up because the machine is slow."""
    state, by = run_mutant(mutant, tests, seconds, processor)
    if state == "timeout" and run_mutant(unchanged(mutant), tests, seconds * QUICK_SHARE, processor)[0] != "survived":
        return "unsettled", ""
    if by and by not in SOUND:
        if run_mutant(unchanged(mutant), [by], seconds, processor)[0] != "survived":
            raise RuntimeError(f"{by} fails without any change: mend it, or make the map anew")
        SOUND.add(by)
    return state, by


def unchanged(mutant: Mutant) -> Mutant:
    """Its file as it is."""
    return replace(mutant, start=0, end=0, text="")


def _test(tests: list[str], failed: Path, processor: int) -> None:
    """In a process of its own, which never returns."""
    resource.setrlimit(resource.RLIMIT_CPU, (processor, processor + 5))

    class First:
        def pytest_runtest_logreport(self, report: Any) -> None:
            if report.failed:
                failed.write_text(report.nodeid)

        def pytest_collectreport(self, report: Any) -> None:
            if report.failed:
                failed.write_text("")  # the change cannot be imported

    quiet = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(quiet, number)
    sys.dont_write_bytecode = True
    code = 99
    try:
        # Plugins whose assertions are not ours are imported before pytest starts.
        options = ["-x", "-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
        code = int(pytest.main([*tests, *options], plugins=[First()]))
    finally:
        os._exit(code)


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
    tests = TestMap()
    tests.kills.update(result["by"] for result in known.values() if result["by"])
    for module in HEAVY:
        importlib.import_module(module)
    assert not any(name.split(".")[0] in PACKAGES for name in sys.modules)
    near = tests.tests_of(sample[0], most)
    if run_mutant(unchanged(sample[0]), near, seconds, tests.processor_seconds(near))[0] != "survived":
        raise RuntimeError("the tests fail without any change: mend them, or make the map anew")
    same = equivalents()
    for number, mutant in enumerate(sample, 1):
        place = mutant.place()
        if known.get(place, {"state": "unsettled"})["state"] != "unsettled" or mutant.key() in same:
            continue
        begun = time.monotonic()
        near = tests.tests_of(mutant, most)
        state, by = judge(mutant, near, seconds, tests.processor_seconds(near))
        tests.kills.update([by] if by else [])
        known[place] = {"state": state, "by": by}
        results.write_text(json.dumps(known, indent=1))
        print(
            f"{number:3} {state:9} {time.monotonic() - begun:5.1f} s  {mutant.path}:{mutant.line} {mutant.kind}",
            flush=True,
        )
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
    run.add_argument("--most", type=int, default=150, help="tests for one mutant")
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
