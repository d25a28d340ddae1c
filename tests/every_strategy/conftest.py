"""The toy is declared for every test of this folder, and the gate crosses each test with some strategies."""

import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.every_strategy.joined import JOINED, toy_declared

IN_THE_GATE = 2
OURS = [one.name for one in JOINED if one.implementation.startswith(("workflows.", "tests."))]


def strategies_of_gate(case: str, names: Sequence[str], count: int = IN_THE_GATE) -> set[str]:
    """Return the strategies, of all `names` of a case, with which the gate runs it: so many, from a place of its own.

    `make soak` runs it with all of them. What strategies share is tested by any of them; what each has of its own, by
    the cases that got it. Strategies of installed packages are crossed with every case: who wrote one runs them for it.
    """
    ours = [name for name in names if name in OURS]
    first = zlib.crc32(case.encode())
    return {*names} - {*ours} | {ours[(first + step) % len(ours)] for step in range(count) if ours}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the other crossings as slow proofs."""
    crossings = [item for item in items if isinstance(item, pytest.Function) and strategy_of(item)]
    names: dict[str, list[str]] = {}
    for item in crossings:
        known = names.setdefault(case_of(item), [])
        known.extend({strategy_of(item)} - {*known})
    cases = Counter(item.originalname for item in crossings if strategy_of(item) == names[case_of(item)][0])
    for item in crossings:
        # A test of several cases meets several strategies with one for each.
        count = 1 if cases[item.originalname] > 1 else IN_THE_GATE
        if strategy_of(item) not in strategies_of_gate(case_of(item), names[case_of(item)], count):
            item.add_marker(pytest.mark.soak)


def case_of(item: pytest.Function) -> str:
    """Return the name of a test with its parameters, but for the strategy."""
    return f"{item.originalname}[{item.callspec.id.replace(strategy_of(item), '', 1)}]"


def strategy_of(item: pytest.Function) -> str:
    """Return the strategy that a test of this folder is crossed with; empty for any other."""
    is_here = Path(__file__).parent in item.path.parents and hasattr(item, "callspec")
    return str(item.callspec.params.get("name", "")) if is_here else ""


@pytest.fixture(autouse=True)
def _declared() -> Iterator[None]:
    with toy_declared():
        yield
