"""Runs with a language model, spoken to with the real SDK over loopback: what is billed, limits, refusals and deadlines."""

import json
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError

from activities.preparation import ResearchConfiguration
from contracts import names
from contracts.outcome import EventPage, ResearchResult, ResearchStatus, Usage
from contracts.resolved import ModelPrice
from contracts.tokens import TokenSettings
from contracts.vocabulary import Completeness, EngineKind, Outcome, StopReason, Tier
from providers.models.chat import ChatApi
from providers.models.endpoints import PriceTable
from tests.fakes.completions_api import CompletionsApi
from tests.fakes.messages_api import MessagesApi
from tests.fakes.model_engine import engine_over
from tests.fakes.model_tokens import WRITE_FACTOR
from tests.fakes.world import World, model_world
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


async def run(client: Client, world: World, request: dict[str, Any]) -> ResearchResult:
    async with running_workers(client, world):
        return await (await start(client, request)).result()


def owed(api: MessagesApi) -> float:
    return api.book.owed_usd({"test-model": (PRICE.input, PRICE.output)})


def assert_equal_to_the_bill(usage: Usage, api: MessagesApi) -> None:
    charges = api.book.charges
    assert (usage.model_calls, usage.input_tokens) == (len(charges), sum(charge.prompt for charge in charges))
    assert usage.output_tokens == sum(charge.output for charge in charges)
    assert usage.cached_tokens == sum(charge.read for charge in charges)
    assert usage.cache_write_tokens == sum(charge.write for charge in charges)
    assert usage.cost_usd == pytest.approx(owed(api), abs=1e-9)


async def test_a_run_accounts_for_what_the_endpoint_bills(client: Client, tmp_path: Path) -> None:
    """After 429, 500, 529, invalid and cut answers: calls, tokens, cached ones and money as in the endpoint's books.

    report.json and the status have use by role and by phase; each table sums up to the bill.
    """
    async with MessagesApi("cached_usage", plan=TROUBLE) as api:
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
    assert result.usage.cached_share > 0
    assert set(document["usage"]["by_role"]) >= {"planner", "analyzer", "synthesizer", "supervisor"}
    assert set(document["usage"]["by_phase"]) >= {"planning", "gathering", "analysis", "synthesis"}
    for table in (document["usage"]["by_role"], document["usage"]["by_phase"]):
        for name in ("model_calls", "input_tokens", "output_tokens"):
            assert sum(part[name] for part in table.values()) == getattr(result.usage, name)
        assert sum(part["cost_usd"] for part in table.values()) == pytest.approx(owed(api), abs=1e-9)
    assert status.usage_by_role.keys() == document["usage"]["by_role"].keys()
    assert "Use" in result.report


@pytest.mark.parametrize("strategy", ["supervisor", pytest.param("orchestrator", marks=pytest.mark.soak)])
async def test_both_protocols_give_the_same_report(strategy: str, client: Client, tmp_path: Path) -> None:
    """From the same answers, even of a server with many quirks, comes the same text with the same tokens."""
    quirks = ["refuses_stream_options", "refuses_max_tokens", "no_system", "no_finish_reason", "thoughts_in_text"]
    reports: list[str] = []
    usages: list[Usage] = []
    async with MessagesApi() as messages, CompletionsApi(quirks=quirks) as completions:
        for api, protocol in ((messages, ChatApi.MESSAGES), (completions, ChatApi.CHAT)):
            world = model_world(tmp_path / protocol, api.base_url, api=protocol)
            result = await run(client, world, RULES | {"strategy": strategy})
            assert result.outcome is Outcome.COMPLETED
            assert result.files is not None
            document = json.loads(await world.content.get_text(result.files.json_document))
            reports.append(document["report"]["draft"])
            usages.append(result.usage)
    assert len(reports[0]) > 500
    assert reports[0] == reports[1]
    assert usages[0].model_calls == usages[1].model_calls
    assert usages[1].input_tokens > 0


async def test_the_cap_on_cost_holds(client: Client, tmp_path: Path) -> None:
    """The endpoint bills no more than the cap, here too little for another iteration; the run ends with a report and names the limit (invariant 6)."""
    async with MessagesApi("gaps", plan=TROUBLE) as api:
        limits = {"max_cost_usd": 0.094, "analysis_tokens": 1_000}
        result = await run(client, priced_world(tmp_path, api), REQUEST | {"limits": limits})
    assert 0 < owed(api) <= 0.094
    assert_equal_to_the_bill(result.usage, api)
    assert (result.outcome, result.stop_reason) == (Outcome.PARTIAL, StopReason.BUDGET_REST)
    assert any("cost limit" in line for line in result.limitations)
    assert "[1]" in result.report


async def test_a_hopeless_model_ends_in_an_honest_brief(client: Client, tmp_path: Path) -> None:
    """Useless prose for everything: the fallback writes, and nobody calls that a success (S0-098, X-15)."""
    async with MessagesApi("hopeless") as api:
        thinking = REQUEST | {"gates": {"think": "model"}}
        result = await run(client, model_world(tmp_path, api.base_url), thinking)
    assert result.outcome is Outcome.PARTIAL
    assert result.failed_branches
    assert any("without the model" in note for note in result.degraded)
    assert "[1]" in result.report
    assert result.usage.model_calls == len(api.calls)
    assert api.counts()["supervisor"] == 4, "given up after two fallbacks of two calls each"


async def test_a_model_that_refuses_the_key_fails_the_run_and_keeps_the_session(client: Client, tmp_path: Path) -> None:
    """401 cannot be retried: failed with the remedy, resumable; nothing is claimed (S0-033, S0-096, C0-14)."""
    async with MessagesApi("status:401") as api:
        with pytest.raises(WorkflowFailureError) as failed:
            await run(client, model_world(tmp_path, api.base_url), REQUEST)
    assert isinstance(failed.value.cause, ApplicationError)
    result = ResearchResult.model_validate(failed.value.cause.details[0])
    assert (result.outcome, result.stop_reason) == (Outcome.FAILED, StopReason.PROVIDER_OUTAGE)
    assert len(api.calls) == 1
    assert (result.completeness, result.counts.findings, result.counts.sources_cited) == (Completeness.EMPTY, 0, 0)


async def test_earlier_turns_without_room_are_summarised(client: Client, tmp_path: Path) -> None:
    """The planner's call is made again with summaries, each paid for once; every task replays the history (S0-140)."""
    answer = " ".join(f"Setting {number} of the engine is 200000{number}." for number in range(140))
    context = [{"question": f"What is setting {number}?", "answer": f"{number}. {answer}"} for number in range(3)]
    tokens = TokenSettings(summarization_provider="small")
    async with MessagesApi() as api:
        world = model_world(tmp_path, api.base_url, None, 8_192, tokens)
        async with running_workers(client, world):
            result = await (await start(client, REQUEST | {"context": context})).result()
    assert result.outcome is Outcome.COMPLETED, (result.failed_branches, result.limitations)
    summaries = [request for request in api.requests if request.role == "summarizer"]
    assert {request.model for request in summaries} == {"small"}
    planned = [request.prompt.count("In short: ") for request in api.requests if request.role == "planner"]
    assert planned == [len(summaries)]
    assert result.usage.model_calls == len(api.calls)


async def test_on_deadline_abort_saves_and_stops(client: Client, tmp_path: Path) -> None:
    """No report, a `TimedOut` failure, the session kept, one terminal event (S0-020, S0-125, S0-129, invariant 14)."""
    async with MessagesApi("slow") as api:
        request = REQUEST | {"limits": {"deadline_seconds": 3}, "on_deadline": "abort"}
        async with running_workers(client, model_world(tmp_path, api.base_url)):
            handle = await start(client, request)
            with pytest.raises(WorkflowFailureError) as failed:
                await handle.result()
            events = await handle.query(names.EVENTS, 0, result_type=EventPage)
    assert isinstance(failed.value.cause, ApplicationError)
    assert failed.value.cause.type == "TimedOut"
    assert [event.type for event in events.events].count("run.finished") == 1
