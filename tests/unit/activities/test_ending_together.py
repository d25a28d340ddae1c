"""Reads of one run that are done about the same time end at once."""

import asyncio

import pytest

from activities.reading import EndTogether


async def read(together: EndTogether, run: str, work: asyncio.Event, ended: list[str], name: str) -> None:
    """One read whose work is done when the event is set."""
    async with together.read(run):
        await work.wait()
    ended.append(name)


async def turns() -> None:
    """Let everything go on that can."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_the_last_read_ends_those_that_wait() -> None:
    """Who is done first waits for the others of its run, and for those of no other run."""
    together, ended = EndTogether(seconds=600), list[str]()
    first, second, other = asyncio.Event(), asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(read(together, "run-a", first, ended, "first"))
        group.create_task(read(together, "run-a", second, ended, "second"))
        group.create_task(read(together, "run-b", other, ended, "other"))
        await turns()
        first.set()
        await turns()
        assert ended == []
        other.set()
        await turns()
        assert ended == ["other"]
        second.set()
    assert sorted(ended) == ["first", "other", "second"]


async def test_a_slow_read_is_not_waited_for() -> None:
    """What is done ends after the time, although another read of its run goes on."""
    together, ended = EndTogether(seconds=0.01), list[str]()
    quick, slow = asyncio.Event(), asyncio.Event()
    quick.set()
    async with asyncio.TaskGroup() as group:
        going_on = group.create_task(read(together, "run", slow, ended, "slow"))
        await group.create_task(read(together, "run", quick, ended, "quick"))
        assert ended == ["quick"]
        assert not going_on.done()
        slow.set()


async def test_a_read_that_fails_waits_for_nobody() -> None:
    """Its error is told at once, and the others do not wait for it."""
    together, ended, slow = EndTogether(seconds=600), list[str](), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(read(together, "run", slow, ended, "slow"))
        await turns()
        with pytest.raises(ValueError, match="no page"):
            async with together.read("run"):
                raise ValueError("no page")
        slow.set()
    assert ended == ["slow"]
