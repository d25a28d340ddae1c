"""What is counted of calls."""

import pytest
from structlog.testing import capture_logs
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.attempts import count_attempts
from activities.failure_translation import SEARCHING
from activities.metrics import CALL_FAILURES, DESCRIPTIONS, count
from contracts import failures
from providers.errors import NotConfigured
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


async def test_a_failed_call_is_counted_by_what_failed() -> None:
    """Activity, type, and whether it was given up."""
    meter, environment = NotingMeter(), ActivityEnvironment()
    environment.metric_meter = meter  # type: ignore[assignment]

    async def work() -> None:
        async with count_attempts(SEARCHING):
            raise NotConfigured("no key")

    with pytest.raises(ApplicationError), capture_logs() as logs:
        await environment.run(work)
    told = {"activity": "unknown", "research_id": "test", "failure_reason": failures.SEARCH_NOT_CONFIGURED}
    assert logs == [{"event": "call.failed", "log_level": "warning", "attempt": 1, "final": True, **told}]
    said = {"activity": "unknown", "type": failures.SEARCH_NOT_CONFIGURED, "final": True}
    assert meter.told == [["counter", CALL_FAILURES, DESCRIPTIONS[CALL_FAILURES], None, 1, said]]
