"""What searches cost is booked, whether they brought something or not."""

import asyncio
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from contracts import failures
from contracts.messages import SearchRequest, SearchResponse
from contracts.outcome import Usage
from contracts.resolved import EffectiveSearch, ProviderChoice
from contracts.vocabulary import NodeStatus, Phase, StopReason
from tests.fakes import states
from tests.fakes.host import InProcessHost
from workflows.phases.gathering import Gathering
from workflows.run.inbox import Inbox, Interrupted
from workflows.run.research_run import ResearchRun

QUERY = states.sub_query("how do widgets decay over time", status=NodeStatus.PENDING)
SPENT = Usage(cost_usd=0.03)


def run_over(search: Any, *names: str) -> ResearchRun:
    """A run with one query for these providers."""
    choices = [ProviderChoice(name=name, available=True, host="h") for name in names]
    resolved = states.resolved(providers=choices, web=True, search=EffectiveSearch(), corpus=None)
    state = states.state(resolved=resolved, plan=states.plan(QUERY), phase=Phase.GATHERING)
    state.deadline_at = 4e9
    return ResearchRun(state, Inbox(), InProcessHost({"search": search}))


def refused(spent: Usage) -> ApplicationError:
    """As the activity fails."""
    details = {"usage": spent.model_dump(mode="json")}
    return ApplicationError("no search", details, type=failures.SEARCH_REJECTED, non_retryable=True)


@pytest.mark.parametrize(("spent", "total"), [(SPENT, 0.05), (Usage(cost_usd=None), None)])
async def test_a_search_that_failed_is_paid_for(spent: Usage, total: float | None) -> None:
    """What its attempts cost is in the run's sum and in the gatherer's; no search is counted (X-14)."""

    async def search(request: SearchRequest) -> SearchResponse:
        if request.provider == "model":
            raise refused(spent)
        return SearchResponse(provider=request.provider, cost_usd=0.02)

    run = run_over(search, "model", "other")
    await Gathering(run, [QUERY]).carry_out()
    assert run.state.usage.cost_usd == total
    assert run.state.usage.known_cost_usd == (0.02 if total is None else total)
    assert run.state.usage_by_role["gatherer"] == run.state.usage
    assert run.state.usage.searches == 1


async def test_attempts_before_an_answer_are_paid_for() -> None:
    """A search that was answered in the end costs what all its attempts cost."""

    async def search(request: SearchRequest) -> SearchResponse:
        return SearchResponse(provider="model", cost_usd=0.02, spent_before=SPENT)

    run = run_over(search, "model")
    await Gathering(run, [QUERY]).carry_out()
    assert run.state.usage == Usage(searches=1, cost_usd=0.05)


async def test_an_interrupted_sub_query_was_paid_as_far_as_it_came() -> None:
    """One provider answered before the time was over, another did not: the first one is booked."""
    answered = asyncio.Event()

    async def search(request: SearchRequest) -> SearchResponse:
        if request.provider == "slow":
            await answered.wait()
            await asyncio.Event().wait()
        answered.set()
        return SearchResponse(provider="quick", cost_usd=0.02)

    run = run_over(search, "quick", "slow")
    work = asyncio.ensure_future(Gathering(run, [QUERY]).carry_out())
    await answered.wait()
    for _ in range(5):
        await asyncio.sleep(0)
    run.inbox.interrupt(StopReason.BUDGET_TIME)
    with pytest.raises(Interrupted):
        await work
    assert run.state.usage == Usage(searches=1, cost_usd=0.02)
