"""Streams of a page: what changed, once for all who look, until nobody does."""

import asyncio

from client.page.watching import Watches, event


async def test_watchers_share_one_drawing_and_get_each_change(home: object) -> None:
    """Two streams of one run ask once; what did not change is not sent; the drawing ends with the last stream."""
    drawn = 0
    text = "one"

    async def draw() -> tuple[str, bool]:
        nonlocal drawn
        drawn += 1
        return text, False

    watches = Watches()
    streams = [watches.follow("run", draw) for _ in range(2)]
    for stream in streams:
        assert (await anext(stream)).startswith("retry:")
        assert await anext(stream) == event("one")
    before = drawn
    assert before <= 2
    assert watches.watchers == 2
    text = "two\nlines"
    assert await asyncio.gather(*map(anext, streams)) == ["data: two\ndata: lines\n\n"] * 2
    for stream in streams:
        await stream.aclose()
    assert watches.watchers == 0
    await asyncio.sleep(0)
    ended = drawn
    await asyncio.sleep(0.5)
    assert drawn == ended


async def test_a_drawing_that_fails_ends_its_streams() -> None:
    """The browser asks again by itself."""

    async def draw() -> tuple[str, bool]:
        raise ValueError("a defect")

    stream = Watches().follow("run", draw)
    await anext(stream)
    assert [each async for each in stream] == []
