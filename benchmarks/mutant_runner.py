"""Run tests against one mutant: in a process that forks where all tests are collected, its functions changed in memory.

What is only run at the import of a file gets a new process with the changed file instead, which takes longer.
"""

import gc
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from changed_functions import change_functions
from mutant_finder import ROOT, Mutant

OPTIONS: Final = ("-q", "-p", "no:cacheprovider", "-n", "0")
QUICK_SHARE: Final = 0.25
"""Of the time limit: tests that take longer without the change are slow, and say nothing about one that took longer."""


class MutantRunner:
    """Runs the collected tests; the current folder is the copy whose files are changed."""

    def __init__(self, items: dict[str, pytest.Item], seconds: float) -> None:
        """`seconds` may pass on the clock for one mutant."""
        self.items = items
        self._seconds = seconds
        self._sound = set[str]()
        """Tests that found a fault, and pass without one."""

    def judge(self, mutant: Mutant, tests: list[str], processor: int) -> tuple[str, str]:
        """`killed`, `survived`, `loop`, `timeout`, `unreached` or `unsettled`, and the test that failed.

        A loop is what used up `processor` seconds of processor time, which does not depend on what else the machine
        does; `unsettled` is said where the time was up because the machine is slow. Raises RuntimeError when a test
        fails without any change, or when tests cannot be run.
        """
        if not tests:
            return "unreached", ""
        state, by = self._run(mutant, tests, self._seconds, processor)
        same = replace(mutant, start=0, end=0, text="")
        if state == "timeout" and self._run(same, tests, self._seconds * QUICK_SHARE, processor)[0] != "survived":
            return "unsettled", ""
        if by and by not in self._sound:
            if self._run(same, [by], self._seconds, processor)[0] != "survived":
                raise RuntimeError(f"{by} fails without any change: mend it, or make the map anew")
            self._sound.add(by)
        return state, by

    def _run(self, mutant: Mutant, tests: list[str], seconds: float, processor: int) -> tuple[str, str]:
        target, failed = Path.cwd() / mutant.path, Path.cwd() / "failed"
        before, after = mutant.apply()
        failed.unlink(missing_ok=True)
        # Also for functions, whose file is imported anew by the sandbox of a workflow.
        target.write_text(after, encoding="utf-8")
        child = os.fork()
        if child == 0:
            _limit(processor)
            if mutant.in_function and change_functions(target, before, after):
                self._test(tests, failed)
            _test_anew(tests, failed)
        try:
            until = time.monotonic() + seconds
            while True:
                done, status = os.waitpid(child, os.WNOHANG)
                if done:
                    return _outcome(os.waitstatus_to_exitcode(status), failed, tests)
                if time.monotonic() > until:
                    os.killpg(child, signal.SIGKILL)
                    os.waitpid(child, 0)
                    return "timeout", ""
                time.sleep(0.02)
        finally:
            target.write_text(before, encoding="utf-8")
            shutil.copystat(ROOT / mutant.path, target)

    def _test(self, tests: list[str], failed: Path) -> None:
        """In a process of its own, which never returns."""
        reports = list[str]()

        class Failures:
            def pytest_runtest_logreport(self, report: Any) -> None:
                reports.extend([report.nodeid] if report.failed else [])

        code = 1
        try:
            chosen = [self.items[test] for test in tests]
            chosen[0].config.pluginmanager.register(Failures())
            for item, following in zip(chosen, [*chosen[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if reports:
                    failed.write_text(reports[0], encoding="utf-8")
                    break
            else:
                code = 0
        finally:
            os._exit(code)


def collected(tests: list[str], seconds: float, work: Callable[[MutantRunner], None]) -> int:
    """Collect test files once and do the work; pytest's exit code."""

    class Collected:
        def pytest_runtestloop(self, session: pytest.Session) -> bool:
            gc.unfreeze()  # else the functions could not be listed
            work(MutantRunner({item.nodeid: item for item in session.items}, seconds))
            return True

    return int(pytest.main([*tests, *OPTIONS], plugins=[Collected()]))


def _limit(processor: int) -> None:
    """A group of its own, no output, and a limit of processor time."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (processor, processor + 5))
    quiet = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(quiet, number)


def _test_anew(tests: list[str], failed: Path) -> None:
    """In a new Python, which imports the changed file; never returns."""
    ending = subprocess.run(
        [sys.executable, "-B", "-m", "pytest", "-x", "-rf", *OPTIONS, *tests],
        capture_output=True,
        text=True,
        check=False,
    )
    if ending.returncode == -signal.SIGXCPU:
        os.kill(os.getpid(), signal.SIGXCPU)
    lines = [line.split(" ")[1] for line in ending.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    if ending.returncode:
        # Without the name of a test the file could not even be imported.
        failed.write_text(next((line for line in lines if line in tests), ""), encoding="utf-8")
    os._exit(abs(ending.returncode))


def _outcome(code: int, failed: Path, tests: list[str]) -> tuple[str, str]:
    if code == -signal.SIGXCPU:
        return "loop", ""
    if code > 0 and not failed.exists():
        raise RuntimeError(f"the tests could not be run (exit code {code}): {tests[0]} …")
    return ("survived" if code == 0 else "killed"), failed.read_text(encoding="utf-8") if failed.exists() else ""
