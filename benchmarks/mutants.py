"""How many faults the unit tests find: a seeded sample of mutants, each run against the tests that reach its lines.

`python benchmarks/mutants.py map` records which test reaches which line; given test files, it does those anew.
`python benchmarks/mutants.py run --seed 2` makes the sample, runs what has no result yet and prints the score; a run
that was broken off goes on where it was. Everything happens in `build/mutants`, on a copy of the tracked files.
"""

import argparse
import ast
import difflib
import importlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import coverage
import pytest

ROOT: Final = Path(__file__).resolve().parent.parent
PLACE: Final = ROOT / "build" / "mutants"
TREE: Final = PLACE / "tree"
COVERAGE: Final = PLACE / "coverage"
DURATIONS: Final = PLACE / "durations.json"
EQUIVALENT: Final = ROOT / "benchmarks" / "mutants_equivalent.toml"
PACKAGES: Final = ("workflows", "activities")
TESTS: Final = ("tests/unit/workflows", "tests/unit/activities", "tests/replay")
RECORDED: Final = ("test_whole_runs.py", "test_recorded_report.py", "test_decision_logs.py")
"""Compared word for word with what was recorded: the likeliest to find a fault, so they go first."""
HEAVY: Final = ("temporalio.worker", "temporalio.testing", "anthropic", "contracts.activities",
                "contracts.strategies", "providers.storage.sessions", "providers.models.prices",
                "providers.extractive.engine", "providers.reading.readers")  # fmt: skip
"""Imported once, before each mutant gets a process of its own; none of it imports what is changed."""

COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
ARITHMETIC: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change of one expression or statement."""

    path: str
    kind: str
    line: int
    end_line: int
    start: int
    """Offset in the file's bytes."""
    end: int
    text: str
    """What stands there instead."""
    in_function: bool
    """Whether it is run when a test calls it; else when the file is imported, whichever test did that first."""

    def apply(self) -> tuple[str, str]:
        """The file before and after."""
        before = (ROOT / self.path).read_bytes()
        return before.decode(), (before[: self.start] + self.text.encode() + before[self.end :]).decode()

    def diff(self) -> str:
        """The change, one line of context."""
        before, after = (text.splitlines() for text in self.apply())
        return "\n".join(difflib.unified_diff(before, after, self.path, self.kind, n=1, lineterm=""))

    def place(self) -> str:
        """What it is known by while the file stays as it is."""
        return f"{self.path}:{self.start}-{self.end} {self.text}"

    def key(self) -> str:
        """What it is known by while the file around it changes: the lines as they were, and what is new."""
        before, _ = self.apply()
        lines = " ".join(" ".join(before.splitlines()[self.line - 1 : self.end_line]).split())
        return f"{self.path}: {self.kind}: {lines} -> {self.text}"


class Finder(ast.NodeVisitor):
    """Every mutant of a file."""

    def __init__(self, path: str, source: str) -> None:
        self.path = path
        self.found: list[Mutant] = []
        self._depth = 0
        self._starts = [0]
        for line in source.encode().splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self.visit(ast.parse(source))

    def _add(self, kind: str, node: Any, text: str) -> None:
        start = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[node.end_lineno - 1] + node.end_col_offset
        self.found.append(
            Mutant(self.path, kind, node.lineno, node.end_lineno, start, end, text, in_function=self._depth > 0)
        )

    def _instead(self, kind: str, node: ast.expr, **changed: Any) -> None:
        """The same node with other fields."""
        fields = {name: getattr(node, name) for name in node._fields} | changed
        self._add(kind, node, f"({ast.unparse(type(node)(**fields))})")

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """What stands within has no place of its own in Python 3.11."""
        self._add("text", node, '""')

    def visit_Constant(self, node: ast.Constant) -> None:
        """The other truth value, the next number, no text where there is one."""
        if isinstance(node.value, bool):
            self._add("boolean", node, str(not node.value))
        elif isinstance(node.value, (int, float)):
            self._add("number", node, repr(node.value + 1))
        elif isinstance(node.value, str):
            self._add("text", node, '""' if node.value else '"mutant"')

    def visit_Compare(self, node: ast.Compare) -> None:
        """`<=` for `<`, `!=` for `==`, and so on."""
        for place, operator in enumerate(node.ops):
            ops = [*node.ops]
            ops[place] = COMPARISONS[type(operator)]()
            self._instead("comparison", node, ops=ops)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """`or` for `and`."""
        self._instead("boolean", node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Without `not`, without a minus sign."""
        if isinstance(node.op, (ast.Not, ast.USub)):
            self._add("boolean" if isinstance(node.op, ast.Not) else "arithmetic", node, ast.unparse(node.operand))
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """`-` for `+`, and so on."""
        if type(node.op) in ARITHMETIC:
            self._instead("arithmetic", node, op=ARITHMETIC[type(node.op)]())
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """The first two arguments change places; each keyword is dropped."""
        if len(node.args) > 1 and not any(isinstance(argument, ast.Starred) for argument in node.args[:2]):
            self._instead("swapped arguments", node, args=[node.args[1], node.args[0], *node.args[2:]])
        for dropped in node.keywords:
            self._instead("dropped keyword", node, keywords=[one for one in node.keywords if one is not dropped])
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        """The other value."""
        self._instead("condition", node, test=ast.UnaryOp(ast.Not(), node.test))
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        """The other branch."""
        self._add("condition", node.test, f"(not ({ast.unparse(node.test)}))")
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        """Everything is kept."""
        for test in node.ifs:
            self._add("condition", test, "True")
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        """Nothing comes back."""
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            self._add("return", node, "return None")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        """What is called for its effect is not called."""
        if isinstance(node.value, (ast.Call, ast.Await)):
            self._add("removed call", node, "pass")
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)  # a docstring is no constant

    def visit_Assign(self, node: ast.Assign) -> None:
        """A field keeps its value."""
        if all(isinstance(target, (ast.Attribute, ast.Subscript)) for target in node.targets):
            self._add("removed assignment", node, "pass")
        self.visit(node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """A sum keeps its value."""
        self._add("removed assignment", node, "pass")
        self.visit(node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Its value alone, not its type."""
        if node.value is not None:
            self.visit(node.value)

    def visit_arguments(self, node: ast.arguments) -> None:
        """Their defaults alone, not their types."""
        for default in (*node.defaults, *(given for given in node.kw_defaults if given is not None)):
            self.visit(default)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Neither decorators nor types."""
        self.visit(node.args)
        self._depth += 1
        for statement in node.body:
            self.visit(statement)
        self._depth -= 1

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Its body alone."""
        for statement in node.body:
            self.visit(statement)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        """Likewise."""
        self.visit_FunctionDef(node)


def every_mutant() -> list[Mutant]:
    """Of all files, in their order."""
    listed = _git_files(*(f"{package}/*.py" for package in PACKAGES))
    return [mutant for path in listed for mutant in Finder(path, (ROOT / path).read_text(encoding="utf-8")).found]


def copy_tree() -> None:
    """The tracked files as they are now."""
    for path in _git_files():
        source, target = ROOT / path, TREE / path
        if not source.exists():
            target.unlink(missing_ok=True)
        elif not target.exists() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


def enter_tree() -> None:
    """Import from the copy from now on."""
    os.chdir(TREE)
    sys.path[:] = [
        str(TREE),
        *(part for part in sys.path if Path(part or ".").resolve() not in {ROOT, ROOT / "benchmarks"}),
    ]


def record_map(targets: list[str]) -> int:
    """Run the tests and keep, for each line, who came there."""
    known: dict[str, float] = json.loads(DURATIONS.read_text()) if DURATIONS.exists() else {}
    cover = coverage.Coverage(data_file=str(COVERAGE), source=list(PACKAGES), config_file=False, messages=False)
    if COVERAGE.exists():
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
        known = [test for test in reached if test in self._durations]
        return sorted(known, key=self._rank)[:most]

    def _rank(self, test: str) -> tuple[bool, int, float, str]:
        return not any(name in test for name in RECORDED), -self.kills[test], self._durations[test], test


def run_mutant(mutant: Mutant, tests: list[str], seconds: float) -> tuple[str, str]:
    """`killed`, `survived`, `timeout` or `unreached`, and the test that failed."""
    if not tests:
        return "unreached", ""
    target, failed = TREE / mutant.path, PLACE / "failed"
    before, after = mutant.apply()
    failed.unlink(missing_ok=True)
    target.write_text(after, encoding="utf-8")
    child = os.fork()
    if child == 0:
        os.setsid()
        _test(tests, failed)
    try:
        until = time.monotonic() + seconds
        while True:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                code = os.waitstatus_to_exitcode(status)
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


def _test(tests: list[str], failed: Path) -> None:
    """In a process of its own, which never returns."""

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


def run_sample(seed: int, count: int, most: int, seconds: float, again: bool) -> None:
    """Run the sample and print the score."""
    sample = random.Random(seed).sample(every_mutant(), count)
    results = PLACE / f"seed_{seed}.json"
    known: dict[str, Any] = json.loads(results.read_text()) if results.exists() else {}
    if again:
        known = {key: result for key, result in known.items() if result["state"] == "killed"}
    tests = TestMap()
    tests.kills.update(result["by"] for result in known.values() if result["by"])
    for module in HEAVY:
        importlib.import_module(module)
    assert not any(name.split(".")[0] in PACKAGES for name in sys.modules)
    unchanged = replace(sample[0], start=0, end=0, text="")
    if run_mutant(unchanged, tests.tests_of(sample[0], most), seconds)[0] != "survived":
        raise RuntimeError("the tests fail without any change: mend them, or make the map anew")
    same = equivalents()
    for number, mutant in enumerate(sample, 1):
        place = mutant.place()
        if place in known or mutant.key() in same:
            continue
        begun = time.monotonic()
        state, by = run_mutant(mutant, tests.tests_of(mutant, most), seconds)
        tests.kills.update([by] if by else [])
        known[place] = {"state": state, "by": by}
        results.write_text(json.dumps(known, indent=1))
        print(
            f"{number:3} {state:9} {time.monotonic() - begun:5.1f} s  {mutant.path}:{mutant.line} {mutant.kind}",
            flush=True,
        )
    states = Counter("equivalent" if m.key() in same else known[m.place()]["state"] for m in sample)
    for mutant in sample:
        if mutant.key() not in same and known[mutant.place()]["state"] in ("survived", "unreached"):
            print(f"\n{known[mutant.place()]['state']}: {mutant.key()}\n{mutant.diff()}")
    found, counted = states["killed"] + states["timeout"], count - states["equivalent"]
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
    run.add_argument("--seconds", type=float, default=150.0, help="time limit for one mutant")
    run.add_argument("--again", action="store_true", help="run those anew that were not killed")
    given = parser.parse_args()
    copy_tree()
    enter_tree()
    if given.command == "map":
        sys.exit(record_map(given.tests))
    run_sample(given.seed, given.count, given.most, given.seconds, given.again)


if __name__ == "__main__":
    main()
