"""The activity `take_turn`."""

from dataclasses import replace

import pytest
from temporalio.exceptions import ApplicationError

from activities.turns import TurnActivities, is_news
from contracts import failures
from contracts.messages import QueueTurn, TurnRequest
from tests.unit.activities.scripted import environment


class Queue:
    """Gives the same place to everybody."""

    def __init__(self, place: int) -> None:
        self.turn = QueueTurn(place=place, waiting=40, pause_seconds=4.0)

    async def take(self, research_id: str, tenant: str) -> QueueTurn:
        return self.turn

    async def leave(self, research_id: str) -> None:
        raise AssertionError("asking for a turn gives none back")


@pytest.mark.parametrize(("place", "told"), [(0, 12), (20, 0), (16, 20), (3, 4), (1, 2), (30, 20)])
async def test_news_are_told(place: int, told: int) -> None:
    """The turn itself, the first place, one that is clearly another, and each of the last few."""
    activities = TurnActivities(Queue(place))
    request = TurnRequest(research_id="r-1", told=told)
    assert (await environment().run(activities.take_turn, request)).place == place


@pytest.mark.parametrize(("place", "told"), [(20, 20), (18, 20), (22, 20), (1, 1)])
async def test_what_is_no_news_is_asked_again_by_the_server(place: int, told: int) -> None:
    """However long a run waits, the attempts are no events in its history and use up nothing."""
    env = environment()
    env.info = replace(env.info, attempt=5_000, heartbeat_details=({"reported": 4_999},))
    with pytest.raises(ApplicationError) as caught:
        await env.run(TurnActivities(Queue(place)).take_turn, TurnRequest(research_id="r-1", told=told))
    assert (caught.value.type, caught.value.non_retryable) == (failures.RATE_LIMITED, False)
    assert caught.value.next_retry_delay is not None
    assert 4.0 <= caught.value.next_retry_delay.total_seconds() <= 4.4


def test_a_long_queue_makes_a_short_history() -> None:
    """From the hundredth place to the first, a quarter of the steps at most is told."""
    told, events = 0, 0
    for place in range(100, 0, -1):
        if is_news(place, told):
            told, events = place, events + 1
    assert events <= 25
