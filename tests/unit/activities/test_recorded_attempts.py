"""How attempts end, one after the other, against a recorded table.

`python -m tests.unit.activities.test_recorded_attempts` records. Read the difference before you record.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.attempts import count_attempts
from activities.failure_translation import MODELS, READING, RECORDS, SEARCHING, Area, application_error
from contracts.usage import Usage
from providers import errors

FILE = Path(__file__).parent / "recorded_attempts" / "endings.txt"
PAID = Usage(model_calls=1, cost_usd=0.25)
AREAS: dict[str, Area] = {"models": MODELS, "searching": SEARCHING, "reading": READING, "records": RECORDS}
PASTS: dict[str, tuple[int, tuple[Any, ...]]] = {
    "first": (1, ()),
    "second": (2, (1, 0)),
    "third": (3, (2, 0, Usage(cost_usd=0.5).model_dump(mode="json"))),
    "after waits": (9, (1, 7)),
    "tenth": (10, (9, 0)),
    "after two losses": (3, ()),
    "after three losses": (5, (1, 0)),
}


def paid(error: errors.ProviderError) -> errors.ProviderError:
    """The same, for which something was paid."""
    error.usage = PAID
    return error


ERRORS: dict[str, Callable[[], Exception]] = {
    "rate limited": lambda: errors.RateLimited("too many", retry_after=7),
    "rate limited for long": lambda: errors.RateLimited("too many", retry_after=7_000),
    "in flight": lambda: errors.CallInFlight("another attempt", retry_after=2),
    "unavailable": lambda: errors.Unavailable("down"),
    "unavailable for a while": lambda: errors.Unavailable("down", retry_after=12),
    "unavailable and paid": lambda: paid(errors.Unavailable("down")),
    "shared state": lambda: errors.SharedStateUnavailable("redis is away"),
    "not configured": lambda: errors.NotConfigured("no key: set one"),
    "invalid call": lambda: errors.InvalidCall("n" * 400),
    "worker lost": lambda: errors.WorkerLost("they died"),
    "unprocessable": lambda: errors.InputUnprocessable("memory", "it ended them"),
    "unreadable": lambda: errors.SourceUnreadable("not_found", "no such page"),
    "corpus unknown": lambda: errors.CorpusUnknown("no such corpus"),
    "content missing": lambda: errors.ContentMissing("gone"),
    "content corrupt": lambda: errors.ContentCorrupt("altered"),
    "cut": lambda: paid(errors.AnswerCut("cut")),
    "refused": lambda: errors.AnswerRefused("no"),
    "invalid output": lambda: paid(errors.InvalidOutput("p" * 700)),
    "full disk": lambda: errors.StorageFull("no room"),
    "translated store": lambda: application_error(errors.Unavailable("store"), RECORDS),
    "translated rejection": lambda: application_error(errors.InvalidCall("no"), RECORDS),
    "nothing": StopAsyncIteration,
}


def tried(area: Area, error: Exception, attempt: int, details: tuple[Any, ...]) -> list[str]:
    """What came of one attempt, and what the next one is told."""
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, attempt=attempt, heartbeat_details=details)
    beats: list[tuple[Any, ...]] = []
    environment.on_heartbeat = lambda *told: beats.append(told)

    async def body() -> str:
        async with count_attempts(area):
            if not isinstance(error, StopAsyncIteration):
                raise error
        return "done"

    try:
        ended = asyncio.run(environment.run(body))
    except ApplicationError as failure:
        known = (failure.type, failure.non_retryable, failure.next_retry_delay, failure.category, failure.details)
        ended = f"{failure.message} {known}"
    told = [tuple("a moment" if isinstance(one, float) else one for one in beat) for beat in beats]
    return [f"  {ended}", *(f"    {one}" for one in told[-1:])]


def table() -> str:
    """Each error in each area after each past."""
    lines = []
    for area_name, area in AREAS.items():
        for error_name, make in ERRORS.items():
            for past_name, (attempt, details) in PASTS.items():
                lines.append(f"{area_name}, {error_name}, {past_name}")
                lines += tried(area, make(), attempt, details)
    return "\n".join(lines) + "\n"


@pytest.mark.usefixtures("caplog")
def test_how_attempts_end_is_what_was_recorded() -> None:
    """Type, message, pause, finality, and what the next attempt is told are, word for word, what they were."""
    assert table().splitlines() == FILE.read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(table(), encoding="utf-8")
