"""Runs with a language model, spoken to with the real SDK over loopback."""

import re
from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError

from client.cli.errors import exit_code
from contracts import names
from contracts.outcome import EventPage, ResearchResult
from contracts.vocabulary import Completeness, Outcome, StopReason
from providers.models.endpoints import EndpointCapabilities
from tests.fakes.corpus import MANUAL, MemoryCorpus
from tests.fakes.messages_api import MessagesApi
from tests.fakes.model_tokens import TokenBook
from tests.fakes.world import model_world
from tests.integration.conftest import running_workers
from tests.integration.runs import QUESTION, start

pytestmark = pytest.mark.integration

REQUEST = {"query": QUESTION, "corpus": "manual"}


async def run(client: Client, folder: Path, api: MessagesApi, request: dict[str, object]) -> ResearchResult:
    async with running_workers(client, model_world(folder, api.base_url)):
        return await (await start(client, request)).result()


async def test_a_model_does_every_role(client: Client, tmp_path: Path) -> None:
    """Plan, reflections, analysis and report come from the model; each call is accounted once (S0-034, S0-041)."""
    async with MessagesApi() as api:
        result = await run(client, tmp_path, api, REQUEST)
    assert result.outcome is Outcome.COMPLETED, (result.failed_branches, result.limitations)
    assert api.counts()["planner"] == 1
    assert api.counts()["supervisor"] >= 4
    assert result.usage.model_calls == len(api.calls)
    assert result.usage.cost_usd is None
    assert "[1]" in result.report


async def test_a_hopeless_model_ends_in_an_honest_brief(client: Client, tmp_path: Path) -> None:
    """Useless prose for everything: the fallback writes, and nobody calls that a success (S0-098, X-15)."""
    async with MessagesApi("hopeless") as api:
        result = await run(client, tmp_path, api, REQUEST)
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
            await run(client, tmp_path, api, REQUEST)
    assert isinstance(failed.value.cause, ApplicationError)
    result = ResearchResult.model_validate(failed.value.cause.details[0])
    assert (result.outcome, result.stop_reason) == (Outcome.FAILED, StopReason.PROVIDER_OUTAGE)
    assert len(api.calls) == 1
    assert (result.completeness, result.counts.findings, result.counts.sources_cited) == (Completeness.EMPTY, 0, 0)


async def test_a_prompt_that_is_too_long_says_what_to_change(client: Client, tmp_path: Path) -> None:
    """The role is done without the model, and the last failure names the remedy (S0-099)."""
    async with MessagesApi(by_role={"analyzer": "too_long"}) as api:
        async with running_workers(client, model_world(tmp_path, api.base_url)):
            handle = await start(client, REQUEST | {"gates": {"think": "rules"}})
            result = await handle.result()
            events = await handle.query(names.EVENTS, 0, result_type=EventPage)
    assert result.outcome is Outcome.PARTIAL
    assert any("max_sources_per_query" in event.text for event in events.events)


async def test_protected_sources_that_fit_no_window_are_not_paid_for(client: Client, tmp_path: Path) -> None:
    """Need and room are named, the report is written without the model, and the run is partial (S0-099, C0-10)."""
    words = "To prevent transaction ID wraparound the engine must vacuum every table. "
    notes = {f"note-{number}.md": f"# Note {number}\n\n{words * 40}" for number in range(25)}
    async with MessagesApi(book=TokenBook(window=8_192)) as api:
        own = EndpointCapabilities(window=8_192)
        world = model_world(tmp_path, api.base_url, MemoryCorpus({**MANUAL, **notes}), own)
        async with running_workers(client, world):
            request = REQUEST | {"protected_sources": list(notes)}
            result = await (await start(client, request)).result()
    assert exit_code(result.outcome, result.stop_reason) == 3
    assert not {"analyzer", "synthesizer", "refiner"} & set(api.counts())
    why = r"needs about \d+ tokens and .* has with a margin of 15% room for \d+ .* or protect fewer sources"
    assert re.search(why, "\n".join(result.failed_branches))
    assert result.files is not None
    assert "[1]" in result.report


async def test_being_told_to_wait_does_not_use_up_a_call(client: Client, tmp_path: Path) -> None:
    """Four answers of 429 in a row, then an answer: the run completes without a fallback."""
    async with MessagesApi(plan=["status:429:0"] * 4) as api:
        result = await run(client, tmp_path, api, REQUEST | {"gates": {"think": "rules"}})
    assert not any("without the model" in note for note in result.degraded), result.degraded


async def test_the_limit_on_model_calls_holds(client: Client, tmp_path: Path) -> None:
    """Never more calls than allowed; one is kept for the report (invariant 6)."""
    async with MessagesApi() as api:
        result = await run(client, tmp_path, api, REQUEST | {"limits": {"max_model_calls": 3}})
    assert len(api.calls) <= 3
    assert (result.outcome, result.stop_reason) == (Outcome.PARTIAL, StopReason.BUDGET_CALLS)
    assert api.counts()["synthesizer"] == 1


async def test_at_the_deadline_the_report_is_written(client: Client, tmp_path: Path) -> None:
    """A model too slow for the deadline: a partial report from what was read (S0-032, S0-127, X-4)."""
    async with MessagesApi(by_role={"analyzer": "slow", "synthesizer": "slow"}) as api:
        request = REQUEST | {"limits": {"deadline_seconds": 6}, "gates": {"think": "rules"}}
        result = await run(client, tmp_path, api, request)
    assert (result.outcome, result.stop_reason) == (Outcome.PARTIAL, StopReason.BUDGET_TIME)
    assert "[1]" in result.report


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
