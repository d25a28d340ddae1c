"""Readers run in these tests as in their child processes."""

import sys
from collections.abc import Iterator

import pytest

from providers.isolation.child import RECURSION_LIMIT


@pytest.fixture(autouse=True)
def recursion_limit() -> Iterator[None]:
    """The limit of a child process."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(RECURSION_LIMIT)
    yield
    sys.setrecursionlimit(before)
