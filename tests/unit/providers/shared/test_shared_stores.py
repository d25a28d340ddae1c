"""What every shared store does: the same tests for each kind."""

import asyncio
import contextlib

import pytest

from providers.interfaces import SharedStore
from tests.unit.providers.shared.conftest import EVERYWHERE, Stores

SOON = 20.0

pytestmark = pytest.mark.parametrize("kind", EVERYWHERE)


async def value_of(store: SharedStore, key: str) -> bytes | None:
    """What lies under a key."""
    return (await store.get(key)).value


async def until_gone(store: SharedStore, key: str) -> None:
    """Return when the store has forgotten a key."""
    async with asyncio.timeout(SOON):
        while await value_of(store, key) is not None:
            await asyncio.sleep(0.01)


async def count_up(store: SharedStore, times: int) -> None:
    """Add one to a counter again and again, each time until it succeeds."""
    for _ in range(times):
        while True:
            held = await value_of(store, "counter")
            if await store.swap("counter", held, b"%d" % (int(held or 0) + 1)):
                break


async def test_a_value_is_replaced_only_if_it_is_the_expected_one(store: SharedStore) -> None:
    """Each way to swap succeeds with what the key holds, fails with anything else, and then changes nothing."""
    assert await value_of(store, "k") is None
    assert await store.swap("k", None, None)
    assert not await store.swap("k", b"1", b"2")
    assert not await store.swap("k", b"1", None)
    assert await store.swap("k", None, b"1")
    assert not await store.swap("k", None, b"2")
    assert not await store.swap("k", None, None)
    assert not await store.swap("k", b"2", b"3")
    assert not await store.swap("k", b"2", None)
    assert await value_of(store, "k") == b"1"
    assert await store.swap("k", b"1", b"2")
    assert await value_of(store, "k") == b"2"
    assert await store.swap("k", b"2", None)
    assert await value_of(store, "k") is None


@pytest.mark.parametrize("value", [b"", b"\x00", bytes(range(256)), b"\n\n", b"\r\n$-1\r\n", b"x" * 300_000])
async def test_any_bytes_are_kept_as_they_are(store: SharedStore, value: bytes) -> None:
    """Values are bytes: nothing in them is special, and no value is not the same as an empty one."""
    assert await store.swap("k", None, value)
    assert await value_of(store, "k") == value
    assert await store.swap("k", value, value + b"!")
    assert await value_of(store, "k") == value + b"!"


async def test_any_text_is_a_key(store: SharedStore) -> None:
    """Letters of any script, half surrogates and signs that are special somewhere are different keys."""
    keys = [
        "",
        "k",
        "K",
        "k ",
        "ключ",
        "鍵",
        "🔑",
        "e\u0301",
        "é",
        "\ud800",
        "a*b",
        "a?b",
        "a[b]",
        "a\\b",
        "a\x00b",
        "a\nb",
    ]
    for number, key in enumerate(keys):
        assert await store.swap(key, None, str(number).encode())
    assert [await value_of(store, key) for key in keys] == [str(number).encode() for number in range(len(keys))]


async def test_a_value_is_forgotten_when_its_time_is_over(store: SharedStore) -> None:
    """An expired value counts as nothing for reading and for swapping; one without an end stays."""
    assert await store.swap("short", None, b"1", 0.03)
    assert await store.swap("long", None, b"1", 600.0)
    assert await store.swap("kept", None, b"1")
    await until_gone(store, "short")
    assert not await store.swap("short", b"1", b"2")
    assert not await store.swap("short", b"1", None)
    assert await store.swap("short", None, b"2")
    assert [await value_of(store, key) for key in ("short", "long", "kept")] == [b"2", b"1", b"1"]


async def test_each_change_sets_the_time_anew(store: SharedStore) -> None:
    """A swap with a shorter time shortens, one with a longer or without a time lengthens."""
    await store.swap("shortened", None, b"1")
    await store.swap("shortened", b"1", b"1", 0.03)
    await store.swap("kept", None, b"1", 0.2)
    assert await store.swap("kept", b"1", b"1")
    await store.swap("lengthened", None, b"1", 0.2)
    assert await store.swap("lengthened", b"1", b"1", 600.0)
    await store.swap("ended", None, b"1", 0.21)
    await until_gone(store, "shortened")
    await until_gone(store, "ended")
    assert await value_of(store, "kept") == b"1"
    assert await value_of(store, "lengthened") == b"1"


async def test_all_have_one_clock_that_goes_on(stores: Stores) -> None:
    """Times that several workers read in turn never go back, whether there is a value or not."""
    one, other = stores.open(), stores.open()
    await one.swap("k", None, b"1")
    times = [(await each.get(key)).now for each in (one, other, one, other) for key in ("k", "none")]
    assert times == sorted(times)
    assert times[0] > 1_600_000_000


async def test_tasks_that_race_lose_no_change(stores: Stores) -> None:
    """Of tasks that swap the same value at the same moment one succeeds, through one connection or several."""
    one, other = stores.open(), stores.open()
    await asyncio.gather(*(count_up(each, 20) for each in (one, other) for _ in range(4)))
    assert await value_of(one, "counter") == b"160"
    won = await asyncio.gather(*(each.swap("first", None, b"1") for each in (one, other) for _ in range(20)))
    assert sum(won) == 1


async def test_a_cancelled_change_is_made_or_not_and_harms_nothing(store: SharedStore) -> None:
    """Whatever is given up in the middle, the store goes on, and every answer belongs to its question."""
    await store.swap("a", None, b"a")
    for turns in range(12):
        tasks = [asyncio.create_task(store.swap(f"k{turns}", None, b"1")), asyncio.create_task(store.get("a"))]
        for _ in range(turns):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        assert await value_of(store, "a") == b"a"
        assert await value_of(store, f"k{turns}") in {None, b"1"}
        assert await value_of(store, "none") is None


async def test_closing_twice_is_closing(stores: Stores) -> None:
    """Whoever shares a store may close it, once more too."""
    opened = stores.open()
    await opened.swap("k", None, b"1")
    await opened.close()
    await opened.close()
