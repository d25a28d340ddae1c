"""Searches of a model that bring nothing: every attempt is paid, and told."""

from dataclasses import replace
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.searching import SearchingActivities
from contracts.messages import SearchResponse
from contracts.outcome import Usage
from providers.search.decorators import CachedSearch, LimitedSearch
from providers.shared.cache import Cache
from providers.shared.limits import SharedLimiter
from providers.storage.stored_notebooks import StoredNotebooks
from tests.fakes.memory_store import MemorySharedStore
from tests.fakes.search_answers import message
from tests.fakes.search_apis import SearchApis, asking, open_provider
from tests.fakes.world import all_reachable
from tests.unit.activities.scripted import MemoryContent

ROW = {"type": "web_search_result", "url": "https://a.example/", "title": "A", "encrypted_content": "x"}
INPUT_USD, OUTPUT_USD, SEARCH_USD = 1e-6, 5e-6, 0.01
"""Of the model that the fake answers for."""
MOST_ATTEMPTS = 10


def block(content: Any) -> dict[str, Any]:
    """What came of a search."""
    return {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": content}


def failed(code: str) -> dict[str, Any]:
    """An answer whose search failed."""
    return paid(block({"type": "web_search_tool_result_error", "error_code": code}), searches=0)


def paid(*blocks: Any, searches: int) -> dict[str, Any]:
    """An answer that costs a little more than nothing."""
    usage = {"input_tokens": 9_000, "output_tokens": 4_000, "server_tool_use": {"web_search_requests": searches}}
    answer: dict[str, Any] = message(*blocks)
    return answer | {"usage": usage}


def ledger(answers: list[dict[str, Any]]) -> float:
    """What the provider would charge for them."""
    return sum(
        answer["usage"]["input_tokens"] * INPUT_USD
        + answer["usage"]["output_tokens"] * OUTPUT_USD
        + answer["usage"]["server_tool_use"]["web_search_requests"] * SEARCH_USD
        for answer in answers
    )


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


async def ended(
    activities: SearchingActivities, server: SearchApis, clock: Clock, script: list[Any]
) -> SearchResponse | ApplicationError:
    """What the engine makes of it: attempts until one ends it, each given the last heartbeat of the one before."""
    beats: list[Any] = []
    for attempt in range(1, MOST_ATTEMPTS):
        environment = ActivityEnvironment()
        environment.info = replace(environment.info, attempt=attempt, heartbeat_details=beats[-1] if beats else ())
        environment.on_heartbeat = lambda *told: beats.append(told)
        server.answer = script[min(len(server.asked), len(script) - 1)]
        clock.now += 1_000.0  # whoever was told to wait has waited
        try:
            return await environment.run(activities.search, asking("anthropic"))
        except ApplicationError as error:
            if error.non_retryable:
                return error
    raise AssertionError("it never ended")


@pytest.mark.parametrize(
    "script",
    [
        [failed("unavailable"), failed("unavailable"), paid(block([ROW]), searches=1)],
        [failed("unavailable"), failed("query_too_long")],
        [failed("too_many_requests"), failed("too_many_requests"), failed("unavailable"), paid(block([]), searches=1)],
        [paid({"type": "text", "text": "done"}, searches=0)],
    ],
)
async def test_the_sum_is_what_was_charged(script: list[Any]) -> None:
    """Through limits and cache, over all attempts, to the last digit; a model that only talks is asked once."""
    name, clock = "anthropic", Clock()
    async with SearchApis() as server, open_provider(name, server.url(name)) as provider:
        store = MemorySharedStore(clock)
        limiter = SharedLimiter(store, {})
        limited = LimitedSearch(provider, "search/anthropic", limiter)
        notebooks = StoredNotebooks(MemoryContent())
        activities = SearchingActivities({name: CachedSearch(limited, Cache(store))}, all_reachable, notebooks)
        came = await ended(activities, server, clock, script)
    assert len(server.asked) == len(script)
    if isinstance(came, SearchResponse):
        total = Usage(cost_usd=came.cost_usd).plus(came.spent_before or Usage())
    else:
        total = Usage.model_validate(came.details[0]["usage"])
    assert total.cost_usd == pytest.approx(ledger(script), abs=1e-9)
