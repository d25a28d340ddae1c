"""Readers run in these tests as in their child processes; what they refuse has a kind."""

import sys
from collections.abc import AsyncIterator, Awaitable, Iterator

import pytest

from providers.errors import SourceUnreadable
from providers.isolation.child import RECURSION_LIMIT
from tests.fakes.web import WebServer


@pytest.fixture(autouse=True)
def recursion_limit() -> Iterator[None]:
    """The limit of a child process."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(RECURSION_LIMIT)
    yield
    sys.setrecursionlimit(before)


@pytest.fixture
async def server() -> AsyncIterator[WebServer]:
    async with WebServer({}) as running:
        yield running


async def kind_of(reading: Awaitable[object]) -> str:
    """The kind of the refusal in which reading ends."""
    with pytest.raises(SourceUnreadable) as raised:
        await reading
    return raised.value.kind
