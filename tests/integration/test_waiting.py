"""Waiting for a person on real servers, whatever the strategy: over the web, without workers, over an hour, and over
a new history. The runs of all strategies wait side by side.
"""

import asyncio
import sys
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.exceptions import ApplicationError
from temporalio.testing import WorkflowEnvironment

from contracts import names
from contracts.outcome import ResearchResult
from contracts.plan import PlanAnswer
from contracts.vocabulary import Outcome, RunStatus, StopReason
from tests.every_strategy.joined import NAMES, toy_declared
from tests.fakes.web_world import WebWorld
from tests.fakes.world import World
from tests.integration.conftest import running_workers
from tests.integration.runs import QUESTION, start, until
from tests.integration.test_long_histories import short_histories
from tests.integration.web_pools import over_the_web, web_workers

pytestmark = pytest.mark.integration

Handle = WorkflowHandle[Any, ResearchResult]
HOUR = timedelta(hours=1)
TEST_SERVER = Path(sys.executable).parent / "temporal-test-server"
"""From its wheel."""
TWO = ("supervisor", "orchestrator")
"""Strategies that end at a plan of their own form; the others wait in the same place."""
APPROVE = {"approve": "plan", "think": "rules"}


@pytest.fixture(autouse=True)
def _declared() -> Iterator[None]:
    with toy_declared():
        yield


async def asked(handle: Handle) -> int:
    """The version of the plan that waits for approval."""
    status = await until(handle, lambda known: known.status is RunStatus.AWAITING_APPROVAL)
    assert status.waiting is not None
    return status.waiting.plan_version


async def begun(
    client: Client, request: dict[str, Any], prefix: str, strategies: Sequence[str] = NAMES
) -> dict[str, Handle]:
    """A run of each of these strategies, by its name."""
    return {
        name: await start(client, request | {"strategy": name, "depth": "light"}, id=f"{prefix}-{name}")
        for name in strategies
    }


async def test_nobody_outside_hears_of_a_run_before_its_plan_is_approved(client: Client, tmp_path: Path) -> None:
    """No search, page, robots.txt or look at a provider before, also through the loss of all workers.

    On a server, because only composed workers have all that connects anywhere (X-2).
    """
    async with WebWorld() as world:
        async with web_workers(client, tmp_path, world):
            runs = await begun(client, over_the_web(gates=APPROVE, limits={"max_sources": 2}), "r-web")
            for handle in runs.values():
                await asked(handle)
        assert world.asked == []
        async with web_workers(client, tmp_path, world):
            for handle in runs.values():
                with pytest.raises(WorkflowUpdateFailedError) as refused:
                    await handle.execute_update(names.APPROVE_PLAN, args=[7])
                assert "version: 7 does not exist; look at version 1" in str(refused.value.cause)
                edit = {"sub_queries": [QUESTION]}
                told = await handle.execute_update(names.REVISE_PLAN, args=[edit, 1], result_type=str)
                assert "version 2" in told
                with pytest.raises(WorkflowUpdateFailedError) as stale:
                    await handle.execute_update(names.APPROVE_PLAN, args=[1])
                assert "older than the plan that there is" in str(stale.value.cause)
            assert world.asked == []
            for name, handle in runs.items():
                await handle.execute_update(names.APPROVE_PLAN, args=[2])
                result = await handle.result()
                plan = await handle.query(names.PLAN, result_type=PlanAnswer)
                assert (plan.version, plan.approved_version, plan.waiting) == (2, 2, None), name
                assert result.outcome in (Outcome.COMPLETED, Outcome.PARTIAL), result
                assert result.counts.sources, name
        assert any(place.endswith("/robots.txt") for place in world.asked)


async def test_an_hour_of_waiting_costs_nothing_and_three_days_end_it(tmp_path: Path) -> None:
    """The limits count work alone; what nobody approves ends by itself, and is asked for again when it is resumed.

    On the server that skips time: nothing else waits for hours.
    """
    skipping = await WorkflowEnvironment.start_time_skipping(
        data_converter=pydantic_data_converter, test_server_existing_path=str(TEST_SERVER)
    )
    async with skipping as environment:
        async with running_workers(environment.client, World(tmp_path)):
            request = {"query": QUESTION, "corpus": "manual", "gates": APPROVE, "limits": {"deadline_seconds": 120}}
            runs = await begun(environment.client, request, "r-hour", TWO)
            versions = {name: await asked(handle) for name, handle in runs.items()}
            await environment.sleep(HOUR)
            for name, handle in runs.items():
                assert await asked(handle) == versions[name]
                with environment.auto_time_skipping_disabled():
                    await handle.execute_update(names.APPROVE_PLAN, args=[versions[name]])
                    result = await handle.result()
                assert result.outcome is Outcome.COMPLETED, result
                assert result.usage.active_seconds < 100
            other = await start(environment.client, request, id="r-days")
            with pytest.raises(WorkflowFailureError) as expired:
                await other.result()
            again = await start(environment.client, request | {"continue_from": "r-days"}, id="r-days")
            assert await asked(again) == versions["supervisor"]
            await again.execute_update(names.REJECT_PLAN, "changed my mind")
            with pytest.raises(WorkflowFailureError) as rejected:
                await again.result()
    assert isinstance(expired.value.cause, ApplicationError)
    ended = ResearchResult.model_validate(expired.value.cause.details[0])
    assert (ended.outcome, ended.stop_reason) == (Outcome.TIMED_OUT, StopReason.APPROVAL_EXPIRED)
    assert ended.resumable
    assert ended.usage.active_seconds < 100
    assert isinstance(rejected.value.cause, ApplicationError)
    assert rejected.value.cause.type == StopReason.APPROVAL_REJECTED.value


async def test_a_wait_survives_a_new_history(tmp_path: Path) -> None:
    """However often a plan is edited, the history starts anew, and the run waits on for the same until the same time.

    On a server, because a host in the process has no history.
    """
    async with short_histories(30) as client, running_workers(client, World(tmp_path)):
        request = {
            "query": QUESTION,
            "corpus": "manual",
            "gates": APPROVE,
            "strategy": "orchestrator",
            "depth": "light",
        }
        handle = await start(client, request)
        version = await asked(handle)
        known = await until(handle, lambda status: status.waiting is not None)
        first = (await handle.describe()).run_id
        while (await handle.describe()).run_id == first:
            edit = {"sub_queries": [f"What about part {version} of wraparound?"]}
            try:
                await handle.execute_update(names.REVISE_PLAN, args=[edit, version])
            except WorkflowUpdateFailedError as refused:
                if "getting ready" not in str(refused.cause):
                    raise
                continue  # between two histories nobody can say yet what is waited for; nothing is lost
            version += 1
            while (await handle.query(names.PLAN, result_type=PlanAnswer)).version != version:
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.3)
        status = await until(handle, lambda shown: shown.waiting is not None)
        assert status.waiting is not None
        assert known.waiting is not None
        assert status.waiting.expires_at == known.waiting.expires_at
        await handle.execute_update(names.APPROVE_PLAN, args=[version])
        result = await handle.result()
    assert result.outcome in (Outcome.COMPLETED, Outcome.PARTIAL, Outcome.EMPTY)
