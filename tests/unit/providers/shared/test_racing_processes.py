"""Changes that several real processes make at the same moment."""

import asyncio

import pytest

from providers.interfaces import SharedStore
from tests.fakes.shared_stores import processes
from tests.unit.providers.shared.conftest import SHARED_BY_PROCESSES

SOON = 60.0

COUNTER = """
import asyncio, sys
from tests.fakes.shared_stores import opener
async def main():
    store = opener(sys.argv[1])()
    await store.get("counter")
    print("ready", flush=True)
    sys.stdin.readline()
    lost = 0
    for _ in range(int(sys.argv[2])):
        while True:
            held = (await store.get("counter")).value
            if await store.swap("counter", held, b"%d" % (int(held or 0) + 1), 60.0):
                break
            lost += 1
    await store.close()
    print(lost, flush=True)
asyncio.run(main())
"""


@pytest.mark.parametrize("kind", SHARED_BY_PROCESSES)
async def test_processes_that_race_lose_no_change(address: str, store: SharedStore) -> None:
    """Of processes that swap the same value one succeeds, and each counts up until it has succeeded often enough."""
    async with asyncio.timeout(SOON):
        lost = await processes(COUNTER, address, "40", count=3)
    assert len(lost) == 3
    assert (await store.get("counter")).value == b"120"
