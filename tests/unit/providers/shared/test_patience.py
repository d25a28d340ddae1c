"""What counts as silence of somebody else, and what does not."""

import asyncio
import time

import pytest

from providers.shared.stores.redis_store import stall_tolerant_timeout


async def test_silence_is_given_up() -> None:
    """Who never answers is given up, as a TimeoutError, and the wait itself is ended."""
    ended = asyncio.Event()

    async def wait_in_vain() -> None:
        async with stall_tolerant_timeout(0.05):
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

    with pytest.raises(TimeoutError):
        await wait_in_vain()
    assert ended.is_set()


async def test_a_standstill_of_the_process_is_nobodys_silence() -> None:
    """An answer that came while the process stood still for longer than the limit is read, not given up."""
    answered = asyncio.get_running_loop().create_future()
    async with stall_tolerant_timeout(0.5):
        asyncio.get_running_loop().call_later(0.25, answered.set_result, "here")
        await asyncio.sleep(0)
        stand_still()
        assert await answered == "here"


def stand_still() -> None:
    """Nothing of this process goes on, for longer than the limit."""
    time.sleep(1.0)


async def test_what_happens_within_is_told_as_it_is() -> None:
    """Errors, cancellations and results of the block pass unchanged, and nothing fires afterwards."""
    with pytest.raises(KeyError):
        async with stall_tolerant_timeout(5.0):
            raise KeyError("own")
    with pytest.raises(asyncio.CancelledError):
        async with stall_tolerant_timeout(5.0):
            raise asyncio.CancelledError
    async with stall_tolerant_timeout(0.02):
        pass
    await asyncio.sleep(0.05)
