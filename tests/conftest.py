"""What every test may rely on: an environment without our variables, an empty working directory, and a home of its own."""

import gc
import os
import pickle
import re
import sys
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from pydantic import TypeAdapter

OURS = re.compile(
    r"^(RESEARCH|ANTHROPIC|TEMPORAL|TAVILY|GOOGLE|SEMANTIC_SCHOLAR|OPENALEX|PUBMED|CROSSREF|ARXIV|BRAVE|EXA|SERPER"
    r"|SEARXNG|WIKIPEDIA|VERTEX_AI_SEARCH)_|^REDIS_URL$|^(HTTPS?|ALL|NO)_PROXY$",
    re.IGNORECASE,
)
"""Variables that would change what the code under test does; proxies would catch calls to loopback servers."""

ONE_BY_ONE = ("tests/acceptance/", "tests/unit/workflows/")
"""Tests that go to any process: those of whole processes are long, and those that come last share nothing."""

TOGETHER = ("tests/architecture/",)
"""Folders whose files go to one process: each of their tests reads the syntax of the whole repository, which is kept."""

OBJECTS_UNTIL_COLLECTION = 20_000
"""With Python's own 700, looking for cycles takes a tenth of the processor time of the tests."""

settings.register_profile("gate", deadline=None, derandomize=True, max_examples=25)
settings.register_profile("exploring", deadline=None, max_examples=500)
"""`pytest --hypothesis-profile=exploring` looks for what nobody has found yet; the gate says the same twice.

A fault that 25 examples do not show is found by the 500 of `make soak`, in each of its rounds by others.
"""
settings.load_profile("gate")


def pytest_configure() -> None:
    """Forget the developer's settings before anything is imported, so that child processes do not see them either."""
    for name in [name for name in os.environ if OURS.match(name)]:
        del os.environ[name]
    gc.disable()  # what is imported and collected stays: looking through it for cycles takes a fifth of the time


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Have one process run a whole file, so that no two of them prepare the same.

    Long tests go one by one, and so do the last ones, so that no process is without work while another has a long file.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            if nodeid.startswith(ONE_BY_ONE):
                return nodeid
            together = [folder for folder in TOGETHER if nodeid.startswith(folder)]
            return together[0] if together else nodeid.partition("::")[0]

    config.option.loadscopereorder = False  # in the order of folders: what takes long comes first
    return ByFile(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cases that the gate leaves to `make soak`: which they are depends on nothing but their names.

    Of each test at least one case stays.
    """
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("one_in") and not item.get_closest_marker("soak"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for shared in cases.values():
        shared.sort(key=lambda item: zlib.crc32(item.nodeid.encode()))
        for item in shared[1:]:
            share = item.get_closest_marker("one_in")
            if share is not None and zlib.crc32(item.nodeid.encode()) % share.args[0]:
                item.add_marker(pytest.mark.soak)


failed: set[str] = set()
"""Tests of this process that failed and whose remains are not cleared yet."""


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Remember a failure until its test has ended."""
    if report.failed:
        failed.add(report.nodeid)


def pytest_runtest_logfinish(nodeid: str) -> None:
    """Clear what a failed test left open, which would fail a later test that has no part in it.

    The frames of the failure hold servers and connections, and Python warns of them when it forgets the failure.
    """
    if nodeid in failed:
        failed.remove(nodeid)
        sys.last_exc = sys.last_type = sys.last_value = sys.last_traceback = None
        with warnings.catch_warnings(action="ignore"):
            gc.collect()


def pytest_unconfigure() -> None:
    """Collect the end of servers that tests started, which Python would warn of otherwise."""
    if server := sys.modules.get("workers.dev_server"):
        for child in server._children:
            child.poll()


def pytest_collection_finish() -> None:
    """From now on garbage is collected, in what tests make and not among all that was there before."""
    gc.freeze()
    gc.set_threshold(OBJECTS_UNTIL_COLLECTION)
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def working_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty working directory: what a person has in the repository, as the demo's reports, changes no test."""
    folder = tmp_path_factory.mktemp("working-directory")
    before = Path.cwd()
    os.chdir(folder)
    yield folder
    os.chdir(before)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty RESEARCH_HOME that only this test uses."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("RESEARCH_HOME", str(folder))
    return folder


@pytest.fixture
def no_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work on texts from outside is done in the process of the test: a child takes a third of a second to start.

    What is asked and answered are the bytes that go through the pipes of a child. Tests that a child ends, is confined
    or reads a document at all have real ones.
    """
    from providers.errors import ProviderError
    from providers.isolation.child import run
    from providers.isolation.pool import SubprocessPool, read_answer

    async def call(pool: SubprocessPool, asked: tuple[Any, ...], wall_seconds: float, returns: TypeAdapter[Any]) -> Any:
        del pool, wall_seconds
        function, arguments, _ = pickle.loads(pickle.dumps(asked))
        result = read_answer(run(function, arguments), returns)
        if isinstance(result, ProviderError):
            raise result
        return result

    monkeypatch.setattr(SubprocessPool, "_call", call)
