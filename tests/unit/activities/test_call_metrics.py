"""What is counted of calls."""

from temporalio.testing import ActivityEnvironment

from activities.metrics import CALL_FAILURES, DESCRIPTIONS, count
from tests.fakes.noting_meter import NotingMeter


async def test_a_call_is_counted_once_with_what_it_was() -> None:
    """Name, description, one, and the attributes; outside of an activity nothing happens."""
    meter, environment = NotingMeter(), ActivityEnvironment()
    environment.metric_meter = meter  # type: ignore[assignment]

    async def work() -> None:
        count(CALL_FAILURES, activity="search", final=True)

    await work()
    assert meter.told == []
    await environment.run(work)
    said = {"activity": "search", "final": True}
    assert meter.told == [["counter", CALL_FAILURES, DESCRIPTIONS[CALL_FAILURES], None, 1, said]]
