"""Which crossings of tests and strategies the gate runs."""

import ast
from pathlib import Path

from tests.every_strategy.conftest import strategies_of_gate
from tests.every_strategy.joined import NAMES


def test_the_gate_crosses_each_test_with_two_strategies_and_each_strategy_with_tests() -> None:
    """Two of any number, all of two; one for each case of a test of several; none is left to the slow proofs alone."""
    assert len(strategies_of_gate("test_any[a]", NAMES, 1)) == 1
    assert len({*strategies_of_gate("test_any[a]", NAMES, 1), *strategies_of_gate("test_any[b]", NAMES, 1)}) == 2
    assert len(strategies_of_gate("test_any", NAMES)) == 2
    assert strategies_of_gate("test_any", NAMES[:2]) == {*NAMES[:2]}
    assert "of_a_package" in strategies_of_gate("test_any", [*NAMES, "of_a_package"])
    files = Path(__file__).parent.glob("test_*.py")
    functions = [node for path in files for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    tests = [node.name for node in functions if isinstance(node, ast.AsyncFunctionDef) and node.name.startswith("test")]
    crossed = [name for test in tests for name in strategies_of_gate(test, NAMES)]
    assert all(crossed.count(name) >= 5 for name in NAMES)
