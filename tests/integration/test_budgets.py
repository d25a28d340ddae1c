"""Whole runs against the endpoint's own bill: what is accounted is what was billed, and limits hold to the cent."""

import json
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError

from activities.configuration import ResearchConfiguration
from contracts import names
from contracts.outcome import ResearchResult, ResearchStatus, Usage
from contracts.resolved import ModelPrice
from contracts.vocabulary import EngineKind, Outcome, StopReason, Tier
from providers.models.prices import PriceTable
from tests.fakes.messages_api import MessagesApi
from tests.fakes.model_engine import engine_over
from tests.fakes.model_tokens import WRITE_FACTOR
from tests.fakes.world import World
from tests.integration.conftest import running_workers
from tests.integration.runs import QUESTION, start

pytestmark = pytest.mark.integration

REQUEST = {"query": QUESTION, "corpus": "manual"}
RULES = REQUEST | {"gates": {"think": "rules"}}
PRICE = ModelPrice(input=3.0, output=15.0)
TABLE = PriceTable({"test-model": ModelPrice(input=PRICE.input, output=PRICE.output)})
TROUBLE = ["status:429:0", "hopeless", "status:500", "good", "cut", "status:529:0", "good", "hopeless", "hopeless"]


def priced_world(folder: Path, api: MessagesApi) -> World:
    """A world whose model has a price, and whose engine knows the same table as its configuration."""
    dearest = ModelPrice(input=PRICE.input * WRITE_FACTOR, output=PRICE.output)
    configuration = ResearchConfiguration(
        models={tier.value: ["test-model"] for tier in Tier},
        model_host=lambda _: "127.0.0.1",
        model_price=lambda _: dearest,
        product_version="0.1.0",
    )
    return World(folder, None, {EngineKind.MODEL: engine_over({"default": api.base_url}, prices=TABLE)}, configuration)


async def run(client: Client, world: World, request: dict[str, Any], **options: Any) -> ResearchResult:
    async with running_workers(client, world):
        return await (await start(client, request, **options)).result()


def owed(api: MessagesApi) -> float:
    """What the endpoint bills, in US dollars."""
    return api.book.owed_usd({"test-model": (PRICE.input, PRICE.output)})


def assert_equal_to_the_bill(usage: Usage, api: MessagesApi) -> None:
    charges = api.book.charges
    assert (usage.model_calls, usage.input_tokens) == (len(charges), sum(charge.prompt for charge in charges))
    assert usage.output_tokens == sum(charge.output for charge in charges)
    assert usage.cached_tokens == sum(charge.read for charge in charges)
    assert usage.cache_write_tokens == sum(charge.write for charge in charges)
    assert usage.cost_usd == pytest.approx(owed(api), abs=1e-9)


@pytest.mark.parametrize("scenario", ["good", "cached_usage"])
async def test_a_run_accounts_for_what_the_endpoint_bills(client: Client, tmp_path: Path, scenario: str) -> None:
    """After 429, 500, 529, invalid and cut answers: calls, tokens, cached ones and money as in the endpoint's books.

    report.json and the status have use by role and by phase; each table sums up to the bill.
    """
    async with MessagesApi(scenario, plan=TROUBLE) as api:
        world = priced_world(tmp_path, api)
        async with running_workers(client, world):
            handle = await start(client, REQUEST)
            result = await handle.result()
            status = await handle.query(names.STATUS, result_type=ResearchStatus)
            assert result.files is not None
            document = json.loads(await world.content.get_text(result.files.json_document))
    assert len(api.book.charges) < len(api.calls), "errors of the server are in the books, and are not billed"
    assert result.usage.model_calls > 5
    assert_equal_to_the_bill(result.usage, api)
    assert (result.usage.cached_share == 0) is (scenario != "cached_usage")
    assert set(document["usage"]["by_role"]) >= {"planner", "analyzer", "synthesizer", "supervisor"}
    assert set(document["usage"]["by_phase"]) >= {"planning", "gathering", "analysis", "synthesis"}
    for table in (document["usage"]["by_role"], document["usage"]["by_phase"]):
        for name in ("model_calls", "input_tokens", "output_tokens"):
            assert sum(part[name] for part in table.values()) == getattr(result.usage, name)
        assert sum(part["cost_usd"] for part in table.values()) == pytest.approx(owed(api), abs=1e-9)
    assert status.usage_by_role.keys() == document["usage"]["by_role"].keys()
    assert "Use" in result.report


async def test_an_unusable_answer_is_paid_once_over_cancel_and_resume(client: Client, tmp_path: Path) -> None:
    """Cancelled while the repair was under way, then resumed: the stored unusable answer is not paid again (S0-131)."""
    async with MessagesApi(plan=["hopeless", "slow"]) as api:
        world = priced_world(tmp_path, api)
        async with running_workers(client, world):
            handle = await start(client, RULES)
            await api.waiting.wait()
            await handle.cancel()
            with pytest.raises(WorkflowFailureError):
                await handle.result()
            again = await start(client, RULES | {"continue_from": handle.id}, id=handle.id)
            result = await again.result()
    assert [call.role for call in api.calls].count("planner") == 3, "asked, cut off, asked again"
    assert_equal_to_the_bill(result.usage, api)


async def test_the_cap_on_cost_holds(client: Client, tmp_path: Path) -> None:
    """The endpoint bills no more than the cap, here too little for the reservation of an analysis; the run ends with a report and names the limit (invariant 6)."""
    async with MessagesApi("gaps", plan=TROUBLE) as api:
        result = await run(client, priced_world(tmp_path, api), REQUEST | {"limits": {"max_cost_usd": 0.2}})
    assert owed(api) <= 0.2
    assert_equal_to_the_bill(result.usage, api)
    assert (result.outcome, result.stop_reason) == (Outcome.PARTIAL, StopReason.BUDGET_COST)
    assert any("cost limit" in line for line in result.limitations)
    assert "[1]" in result.report


async def test_without_a_cent_the_report_is_written_without_the_model(client: Client, tmp_path: Path) -> None:
    """No call fits: no call is made, and what is there is reported (X-4)."""
    async with MessagesApi() as api:
        result = await run(client, priced_world(tmp_path, api), REQUEST | {"limits": {"max_cost_usd": 0}})
    assert api.calls == []
    assert (result.outcome, result.stop_reason) == (Outcome.PARTIAL, StopReason.BUDGET_COST)
    assert "[1]" in result.report
