"""How the processes of the suite share its tests, and what one test that fails does to the others."""

import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from tests.architecture.repository import ROOT

HOOKS = "pytest_runtest_logfinish, pytest_runtest_logreport, pytest_xdist_make_scheduler"
NOTING = """
import os

import pytest

@pytest.mark.parametrize("number", range(6))
def test_noted(number, pytestconfig):
    with open(pytestconfig.rootpath / "noted", "a") as file:
        file.write(f"{os.environ['PYTEST_XDIST_WORKER']} {__file__}\\n")
"""
LEAVING = """
import gc
import socket

def test_fails_before_it_closes():
    left = socket.socket()
    assert not left

def test_later():
    gc.collect()
"""


def run_suite(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run the tests of a folder with the hooks of this suite, and with warnings as errors."""
    (folder / "conftest.py").write_text(f"from tests.conftest import {HOOKS}\n", encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    alone = {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    return subprocess.run(command, cwd=folder, env=os.environ | alone, capture_output=True, text=True, check=False)


@pytest.mark.soak
def test_a_file_is_run_by_one_process_and_acceptance_tests_by_several(tmp_path: Path) -> None:
    """Otherwise each process prepares what the tests of a file share, and one process gets all the long tests."""
    for folder in ("acceptance", "unit"):
        (tmp_path / "tests" / folder).mkdir(parents=True)
        for name in ("one", "two"):
            (tmp_path / "tests" / folder / f"test_{folder}_{name}.py").write_text(NOTING, encoding="utf-8")
    done = run_suite(tmp_path, "-p", "xdist", "-n", "2")
    assert done.returncode == 0, done.stdout
    processes = defaultdict(set)
    for line in (tmp_path / "noted").read_text(encoding="utf-8").splitlines():
        process, _, file = line.partition(" ")
        processes[Path(file).parent.name, Path(file).name].add(process)
    assert {len(several) for (folder, _), several in processes.items() if folder == "unit"} == {1}
    assert 2 in {len(several) for (folder, _), several in processes.items() if folder == "acceptance"}


def test_what_a_failed_test_left_open_fails_no_other(tmp_path: Path) -> None:
    """Its connections are forgotten with it, and not in a test that happens to run when Python notices."""
    (tmp_path / "test_leaving.py").write_text(LEAVING, encoding="utf-8")
    done = run_suite(tmp_path)
    assert "1 failed, 1 passed" in done.stdout, done.stdout
