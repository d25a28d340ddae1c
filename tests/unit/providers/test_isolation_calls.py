"""Work on texts from outside, where it can be killed."""

import asyncio
from itertools import count

import pytest

from contracts.outcome import Usage
from providers.errors import InputUnprocessable, InvalidOutput, ProviderError
from providers.isolation.killable_calls import MOST_KILLED, KillableCalls
from providers.isolation.pool import SubprocessPool, TaskKilled
from tests.fakes.killers import BURN, CRASH, WALL_SECONDS


class Deaths:
    """A pool whose children die a number of times; then it gives the function's name."""

    def __init__(self, times: int) -> None:
        self.left = times
        self.calls = 0

    async def call(self, function: str, *_: object, seconds: float | None = None) -> str:
        del seconds
        self.calls += 1
        if self.left:
            self.left -= 1
            raise TaskKilled("timeout")
        return function


def calls_over(pool: object) -> KillableCalls:
    return KillableCalls(pool)  # type: ignore[arg-type]


async def failure_of(calls: KillableCalls, function: str, *arguments: object) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await calls.call(function, *arguments)
    return caught.value


async def test_one_death_is_forgiven_and_the_second_is_not() -> None:
    """Once it may have been the machine; a text that killed twice is given up, with what it did."""
    once, always = Deaths(1), Deaths(99)
    assert await calls_over(once).call("a:b") == "a:b"
    error = await failure_of(calls_over(always), "a:b")
    assert isinstance(error, InputUnprocessable)
    assert (error.kind, always.calls) == ("timeout", MOST_KILLED)


@pytest.mark.parametrize(("killer", "kind"), [(BURN, "timeout"), (CRASH, "crash")])
async def test_a_text_that_holds_the_interpreter_holds_up_nobody_else(killer: str, kind: str) -> None:
    """It ends with its reason while a ticker in the same loop ticks on, and the next text is worked on."""
    ticks = count()

    async def tick() -> None:
        while True:
            next(ticks)
            await asyncio.sleep(0)

    async with SubprocessPool(1, wall_seconds=WALL_SECONDS) as pool:
        calls = KillableCalls(pool)
        ticking = asyncio.create_task(tick())
        error = await failure_of(calls, killer)
        ticking.cancel()
        assert isinstance(error, InputUnprocessable)
        assert error.kind == kind
        assert next(ticks) > MOST_KILLED
        assert await calls.call("math:sqrt", 9.0) == 3.0


async def test_a_function_that_fails_tells_its_type_and_place_alone() -> None:
    """Its message could repeat the text; trying again would fail again."""
    async with SubprocessPool(1) as pool:
        error = await failure_of(KillableCalls(pool), "builtins:int", "secret words")
    assert isinstance(error, InputUnprocessable)
    assert "ValueError" in str(error)
    assert "secret" not in str(error)


async def test_what_is_wrong_with_an_answer_comes_back_as_it_was_said() -> None:
    """A problem that a repair prompt is made of keeps its words."""
    async with SubprocessPool(1) as pool:
        error = await failure_of(KillableCalls(pool), "tests.fakes.killers:unusable", "$: empty")
    assert isinstance(error, InvalidOutput)
    assert (error.problem, error.usage) == ("$: empty", Usage())


async def test_more_time_is_given_where_it_is_asked_for() -> None:
    """A long computation has its own limit, in the same children."""
    async with SubprocessPool(1, wall_seconds=0.01) as pool:
        assert await KillableCalls(pool).call("time:sleep", 0.1, seconds=60) is None
