"""The activity `take_turn`: whether a run may begin, else its place among those that wait."""

from typing import Final

from temporalio import activity

from activities.failures import RECORDS, attempt
from contracts.messages import QueueTurn, TurnRequest
from providers.errors import RateLimited
from providers.interfaces import RunQueue

WORTH_TELLING: Final = 0.85
"""A place is told anew once it is so much smaller, or larger the other way round, or one of the last few."""
LAST_FEW: Final = 3


class TurnActivities:
    """Made with the queue that all workers share."""

    def __init__(self, queue: RunQueue) -> None:
        self._queue = queue

    @activity.defn(name="take_turn")
    async def take_turn(self, request: TurnRequest) -> QueueTurn:
        """Place 0 once the run may begin; before that only news: the server asks again, and the history stays short."""
        async with attempt(RECORDS):
            turn = await self._queue.take(request.research_id, request.tenant)
            if turn.place and not is_news(turn.place, request.told):
                raise RateLimited(f"place {turn.place} of {turn.waiting}", retry_after=turn.pause_seconds)
            return turn


def is_news(place: int, told: int) -> bool:
    """Whether a place is worth an event in the history of its run."""
    if not told or (place != told and place <= LAST_FEW):
        return True
    return place < told * WORTH_TELLING or place * WORTH_TELLING > told
