"""Whole runs with the model engine, the real SDK and real activities, against a loopback endpoint."""

from pathlib import Path

import pytest

from activities.configuration import ResearchConfiguration
from contracts.messages import PrepareRequest
from contracts.request import ResearchRequest
from contracts.state import ResearchState
from contracts.vocabulary import EngineKind, Outcome, Tier
from providers.models.chat import ChatMode
from providers.models.endpoints import EndpointCapabilities
from providers.models.language_model import LanguageModelEngine
from tests.fakes.messages_api import MessagesApi
from tests.fakes.model_engine import engine_over
from tests.fakes.world import World
from workflows.driver import Driver
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies.supervisor.supervisor_strategy import SupervisorStrategy

QUESTION = "How does the engine prevent transaction ID wraparound?"
MODEL = "claude-haiku-4-5"


async def conducted(api: MessagesApi, folder: Path, mode: ChatMode = ChatMode.NATIVE) -> tuple[Outcome, ResearchState]:
    """One run to its end."""
    engine = engine_over({"default": api.base_url}, own={"default": EndpointCapabilities(mode=mode)})
    return await conducted_by(engine, folder)


async def conducted_by(engine: LanguageModelEngine, folder: Path) -> tuple[Outcome, ResearchState]:
    """One run with this engine."""
    configuration = ResearchConfiguration(
        models={tier.value: [MODEL] for tier in Tier}, model_host=lambda _: "127.0.0.1"
    )
    world = World(folder, engines={EngineKind.MODEL: engine}, configuration=configuration)
    host = world.host()
    request = ResearchRequest(query=QUESTION, corpus="manual", engine="model")
    prepared = await host.implementations["prepare_research"](
        PrepareRequest(research_id="r-unit", request_json=request.model_dump_json())
    )
    state = ResearchState(
        resolved=prepared.resolved, resolved_entry=prepared.resolved_entry, started_at=host.now().isoformat()
    )
    state.clock_started_at = host.now().timestamp()
    state.deadline_at = state.clock_started_at + prepared.resolved.limits.deadline_seconds
    outcome = await Driver(ResearchRun(state, Inbox(), host), SupervisorStrategy()).conduct()
    for item in state.evidence.values():
        stored = state.sources[item.source_id].text
        assert stored is not None
        text = await world.content.get_text(stored)
        assert text[item.start : item.end].strip()
    await engine.close()
    return outcome, state


@pytest.mark.parametrize("mode", [ChatMode.TOOL, ChatMode.TEXT])
async def test_a_sensible_model_completes_the_run(tmp_path: Path, mode: ChatMode) -> None:
    """Every role is done by the model, whichever way it is asked, and the report cites passages that exist."""
    async with MessagesApi() as api:
        outcome, state = await conducted(api, tmp_path, mode)
    assert outcome is Outcome.COMPLETED, (state.failed_branches, state.limitations, state.degraded)
    assert state.citations
    assert set(api.counts()) == {"planner", "analyzer", "synthesizer", "supervisor", "reviewer"}


@pytest.mark.parametrize("scenario", ["good", "gaps", "hopeless", "cut"])
async def test_what_the_endpoint_answered_is_what_the_run_accounts_for(tmp_path: Path, scenario: str) -> None:
    """Each run ends, and calls, tokens and cost are those of the endpoint's own journal, bad answers included."""
    async with MessagesApi(scenario) as api:
        _, state = await conducted(api, tmp_path)
    assert state.result is not None
    assert (scenario in {"hopeless", "cut"}) is any("without the model" in note for note in state.degraded)
    usage = state.result.usage
    assert usage.model_calls == len(api.calls)
    assert usage.input_tokens == sum(len(request.system + request.prompt) // 4 for request in api.requests)
    assert usage.cost_usd == pytest.approx((usage.input_tokens + 5 * usage.output_tokens) / 1e6)


async def test_a_run_over_two_endpoints_accounts_for_what_both_charged(tmp_path: Path) -> None:
    """Where the preferred endpoint fails half of the time a run completes, and accounts for what both charged (S0-096)."""
    mix = {"status:529": 0.3, "status:429:1": 0.2}
    async with MessagesApi("gaps", mix=mix, seed=3) as main, MessagesApi("gaps") as spare:
        addresses = {"default": main.base_url, "spare": spare.base_url}
        engine = engine_over(addresses, [MODEL, "spare:claude-sonnet-4-6"])
        outcome, state = await conducted_by(engine, tmp_path)
    assert outcome is Outcome.COMPLETED, (state.failed_branches, state.limitations, state.degraded)
    assert state.result is not None
    usage, charges = state.result.usage, main.book.charges + spare.book.charges
    assert min(len(main.book.charges), len(spare.book.charges)) > 0
    assert usage.model_calls == len(charges)
    assert usage.input_tokens == sum(charge.prompt for charge in charges)
    prices = {MODEL: (1.0, 5.0), "claude-sonnet-4-6": (3.0, 15.0)}
    assert usage.cost_usd == pytest.approx(main.book.owed_usd(prices) + spare.book.owed_usd(prices))
    assert set(state.models_used) == set(prices)
