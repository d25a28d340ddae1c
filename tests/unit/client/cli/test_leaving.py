"""The end of `research run` while calls of other runs are under way in its process."""

import asyncio
import signal
from datetime import timedelta
from typing import NoReturn

import pytest

from client.cli.run import Leaving

SOON = timedelta(milliseconds=5)


class Pools:
    """Pools of which that of models stops once its call is answered."""

    def __init__(self) -> None:
        self.answered = asyncio.Event()

    def running(self) -> frozenset[str]:
        return frozenset() if self.answered.is_set() else frozenset({"models"})

    async def stop(self) -> None:
        await self.answered.wait()


class Exited(Exception):
    """Stands for the end of the process."""


def leave(code: int) -> NoReturn:
    raise Exited(code)


async def test_an_answer_that_is_paid_for_is_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    """The command says what it waits for, unless it is quiet, and ends with the answer; without a call it ends at once."""
    for quiet in (False, True):
        pools = Pools()
        leaving = asyncio.create_task(Leaving(quiet=quiet, grace=SOON).drain(pools, leave))  # type: ignore[arg-type]
        await asyncio.sleep(4 * SOON.total_seconds())
        assert not leaving.done()
        said = capsys.readouterr().err
        assert ("calls to a model are under way for other runs" in said) is not quiet
        pools.answered.set()
        await asyncio.wait_for(leaving, 5.0)
    pools = Pools()
    pools.answered.set()
    await asyncio.wait_for(Leaving(grace=timedelta(hours=1)).drain(pools, leave), 5.0)  # type: ignore[arg-type]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_person_who_does_not_wait_leaves_with_the_code_of_the_run(number: signal.Signals) -> None:
    """One signal is enough, before and after the command has said what it waits for."""
    for pause in (0.0, 4 * SOON.total_seconds()):
        leaving = asyncio.create_task(Leaving(code=3, grace=SOON).drain(Pools(), leave))  # type: ignore[arg-type]
        await asyncio.sleep(pause)
        signal.raise_signal(number)
        with pytest.raises(Exited, match="3"):
            await asyncio.wait_for(leaving, 5.0)
