"""The toy is declared for every test of this folder, and the gate crosses each test with two strategies."""

import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.every_strategy.joined import JOINED, toy_declared

IN_THE_GATE = 2
OURS = [one.name for one in JOINED if one.implementation.startswith(("workflows.", "tests."))]


def strategies_of_gate(test: str, names: Sequence[str]) -> set[str]:
    """Return the strategies, of all `names` of a test, with which the gate runs it: two, from a place of its own.

    `make soak` runs it with all of them. What strategies share is tested by any two; what each has of its own, by the
    tests that got it. Strategies of installed packages are crossed with every test: who wrote one runs them for it.
    """
    ours = [name for name in names if name in OURS]
    first = zlib.crc32(test.encode())
    return {*names} - {*ours} | {ours[(first + step) % len(ours)] for step in range(IN_THE_GATE) if ours}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the other crossings as slow proofs."""
    crossings = [item for item in items if isinstance(item, pytest.Function) and strategy_of(item)]
    names: dict[str, list[str]] = {}
    for item in crossings:
        known = names.setdefault(item.originalname, [])
        known.extend({strategy_of(item)} - {*known})
    for item in crossings:
        if strategy_of(item) not in strategies_of_gate(item.originalname, names[item.originalname]):
            item.add_marker(pytest.mark.soak)


def strategy_of(item: pytest.Function) -> str:
    """Return the strategy that a test of this folder is crossed with; empty for any other."""
    is_here = Path(__file__).parent in item.path.parents and hasattr(item, "callspec")
    return str(item.callspec.params.get("name", "")) if is_here else ""


@pytest.fixture(autouse=True)
def _declared() -> Iterator[None]:
    with toy_declared():
        yield
