"""Whole runs while the Redis that workers share fails in the middle of them: they end as if nothing had happened."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.journal import AWAY
from contracts import failures
from contracts.messages import ReadRequest, SearchRequest
from contracts.names import POOLS
from contracts.roles import PLANNER, PlanInput
from contracts.vocabulary import EngineKind, Outcome
from tests.comparable import comparable
from tests.fakes.messages_api import MessagesApi, repeated
from tests.fakes.states import PERMITTED
from tests.fakes.valkey import ValkeyServer, free_port, running_valkey
from tests.fakes.web_world import WebWorld
from tests.integration.conftest import Server
from tests.integration.disturbed_runs import (
    CALLS_AT_ONCE,
    LONGEST_RUN,
    PASSWORD,
    REQUEST,
    Ran,
    Reached,
    Scene,
    carry_out,
    losing,
    most_at_once,
    settings_of,
    with_password,
)
from tests.integration.runs import QUESTION, start
from workers.composition import compose
from workers.pools import PoolContents, run_pools
from workers.settings.loading import Settings
from workers.settings.models import EndpointSettings, ModelsSettings
from workers.settings.sections import SearchSettings

pytestmark = pytest.mark.integration

A_MINUTE = 20
AT_ONCE, SLACK = 5, 2
"""A quarter of what a minute allows goes at once; then one every three seconds, for which a slow machine has time."""


async def connected(server: Server) -> Client:
    """A client of its own, as each machine has."""
    return await Client.connect(server.address, data_converter=pydantic_data_converter)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def undisturbed(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """The run as it is while Redis is there."""
    client = await connected(server)
    folder = tmp_path_factory.mktemp("undisturbed")
    with running_valkey(folder) as valkey:
        return await carry_out(client, folder / "home", valkey.port)


def call_in_flight(role: str) -> Reached:
    """Whether the model works on an answer of this role."""
    return lambda scene: any(call.role == role and call.ended is None for call in scene.api.calls)


def answered(scene: Scene) -> bool:
    """Whether all analyses were answered, although none has arrived."""
    return scene.lost >= CALLS_AT_ONCE


def page_read(scene: Scene) -> bool:
    """Whether a page was given, while others are still to be read."""
    return any(place.startswith("127.") for place in scene.world.served)


async def gone(valkey: ValkeyServer) -> None:
    await asyncio.to_thread(valkey.kill)


async def empty_again(valkey: ValkeyServer) -> None:
    await asyncio.to_thread(valkey.kill)
    await asyncio.to_thread(valkey.start)


async def flushed(valkey: ValkeyServer) -> None:
    await valkey.tell("FLUSHALL")


async def hanging(valkey: ValkeyServer) -> None:
    valkey.pause()


async def full(valkey: ValkeyServer) -> None:
    await valkey.tell("CONFIG", "SET", "maxmemory-policy", "noeviction")
    await valkey.tell("SET", "theirs", b"x" * 2_000_000)
    await valkey.tell("CONFIG", "SET", "maxmemory", "1mb")


@dataclass(frozen=True)
class Fault:
    """What happens to the server, when, and what becomes of the shared state for the rest of the run."""

    strike: Callable[[ValkeyServer], Awaitable[None]]
    reached: Reached
    lasts: bool


FAULTS = {
    "gone": Fault(gone, call_in_flight("analyzer"), lasts=True),
    "empty again": Fault(empty_again, answered, lasts=False),
    "flushed": Fault(flushed, answered, lasts=False),
    "hanging": Fault(hanging, page_read, lasts=True),
    "full": Fault(full, call_in_flight("planner"), lasts=True),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_a_run_ends_as_if_nothing_had_happened(
    client: Client, tmp_path: Path, undisturbed: Ran, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The same report, no call paid and no page asked for twice, no burst, one warning, no secret (F16, invariant 12)."""
    fault = FAULTS[name]
    caplog.set_level(logging.INFO)
    with running_valkey(tmp_path) as valkey:
        ran = await carry_out(client, tmp_path / "home", valkey.port, fault.reached, lambda: fault.strike(valkey))
    assert not ran.finished_before_the_fault
    assert ran.result.outcome is Outcome.COMPLETED
    assert ran.report == undisturbed.report
    assert len(ran.calls) == len(undisturbed.calls) == ran.result.usage.model_calls
    assert repeated(vars(call) for call in ran.calls) == {}
    assert set(ran.pages.values()) == {1}
    assert ran.pages.keys() == undisturbed.pages.keys()
    assert most_at_once(ran.calls) <= CALLS_AT_ONCE
    assert ran.warnings == ran.logged_of("shared_state.degraded")
    changes = ran.logged_of("shared_state")
    if fault.lasts:
        assert changes == ["shared_state.degraded"]
        assert ran.notes(AWAY)
    else:
        assert changes in ([], ["shared_state.degraded"], ["shared_state.degraded", "shared_state.recovered"])
    assert PASSWORD not in f"{ran.logged} {ran.events} {ran.result} {caplog.text}"


async def test_a_run_without_redis_from_the_beginning(client: Client, tmp_path: Path, undisturbed: Ran) -> None:
    """It starts and ends the same; the log and the run itself say once that this machine is on its own (F16)."""
    ran = await carry_out(client, tmp_path / "home", free_port())
    assert ran.result.outcome is Outcome.COMPLETED
    assert ran.report == undisturbed.report
    assert ran.warnings == ["shared_state.degraded"]
    assert ran.notes(AWAY)[0] == f"planner: {AWAY}"
    assert not undisturbed.notes(AWAY)
    assert undisturbed.warnings == []


async def test_what_a_lost_machine_was_answered_is_found_by_another(
    client: Client, server: Server, tmp_path: Path, undisturbed: Ran
) -> None:
    """A machine goes before it can tell of its answers: the other one finds them in Redis and pays nothing again (invariant 12)."""
    others = tuple(pool for pool in POOLS if pool != "models")
    elsewhere = await connected(server)
    async with (
        machines(tmp_path) as (api, world, (one, other)),
        asyncio.timeout(LONGEST_RUN),
        AsyncExitStack() as stack,
    ):
        doomed, scene = await stack.enter_async_context(compose(one, elsewhere, ("models",))), Scene(api, world)
        contents = await stack.enter_async_context(compose(other, client))
        await stack.enter_async_context(run_pools(client, contents, others))
        async with run_pools(elsewhere, losing(doomed, scene, always=True), ("models",)):
            handle = await start(client, REQUEST)
            while not answered(scene):
                await asyncio.sleep(0.005)
        await stack.enter_async_context(run_pools(client, contents, ("models",)))
        result = await handle.result()
    assert result.outcome is Outcome.COMPLETED
    assert comparable(result.report) == undisturbed.report
    assert repeated(vars(call) for call in api.calls) == {}
    assert len(api.calls) == result.usage.model_calls == len(undisturbed.calls)


@asynccontextmanager
async def machines(
    folder: Path, **limits: Any
) -> AsyncIterator[tuple[MessagesApi, WebWorld, tuple[Settings, Settings]]]:
    """The settings of two machines: homes of their own, one Redis, one store of documents."""
    with running_valkey(folder) as valkey:
        async with MessagesApi(latency=0.05) as api, WebWorld() as world:
            shared = {"content_url": str(folder / "content"), **limits}
            if "models" in limits:
                shared["models"] = limits["models"].model_copy(update={"base_url": api.base_url})
            one, other = (
                settings_of(folder / name, with_password(valkey.port), api, world, **shared)
                for name in ("one", "other")
            )
            yield api, world, (one, other)


async def called(contents: PoolContents, pool: str, name: str, request: Any) -> Any:
    """One attempt of an activity, outside any run; null if it is told to wait."""
    chosen = next(each for each in contents.activities[pool] if each.__name__ == name)
    try:
        return await ActivityEnvironment().run(chosen, request)
    except ApplicationError as error:
        if error.type != failures.RATE_LIMITED:
            raise
        return None


def a_search(number: int) -> SearchRequest:
    """A question of a run of its own."""
    text = f"wraparound {number}"
    return SearchRequest(
        research_id=f"r-{number}", operation="search/1", provider="searxng", text=text, permission=PERMITTED
    )


def a_read(url: str) -> ReadRequest:
    """A page that a search found."""
    return ReadRequest(source_id="src-1", url=url, permission=PERMITTED)


def a_plan(number: int) -> PlanInput:
    """A call of a run of its own."""
    return PlanInput(
        research_id=f"r-{number}",
        operation="plan/1",
        engine=EngineKind.MODEL,
        model="fake-model",
        date="2026-11-21",
        query=QUESTION,
    )


async def test_machines_keep_one_limit_and_one_cache(client: Client, tmp_path: Path) -> None:
    """Over both machines no more goes out than is configured; what one asked the other has (reliability 2.2)."""
    limits = {
        "search": SearchSettings(requests_per_minute={"searxng": A_MINUTE}),
        "models": ModelsSettings(
            default="fake-model", endpoints={"default": EndpointSettings(requests_per_minute=A_MINUTE)}
        ),
    }
    pools = ("models", "search", "reading")
    async with machines(tmp_path, **limits) as (api, world, (first, second)):
        async with compose(first, client, pools) as one, compose(second, client, pools) as other:
            both = [one, other] * 10
            found = await asyncio.gather(*(called(each, "search", "search", a_search(0)) for each in both))
            assert len(found) == 20
            assert world.served == {"search wraparound 0": 1}
            address = found[0].hits[0].url
            read = [await called(each, "reading", "read_source", a_read(address)) for each in (one, other)]
            assert [record.cached for record in read] == [False, True]
            await asyncio.gather(
                *(called(each, "search", "search", a_search(number)) for number, each in enumerate(both))
            )
            assert AT_ONCE <= sum(place.startswith("search") for place in world.asked) <= AT_ONCE + SLACK
            plans = await asyncio.gather(
                *(called(each, "models", PLANNER.activity, a_plan(number)) for number, each in enumerate(both))
            )
            assert AT_ONCE <= len(api.calls) == sum(plan is not None for plan in plans) <= AT_ONCE + SLACK
