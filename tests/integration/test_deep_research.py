"""The workflow `deep-research` on the real development server."""

import asyncio
import json
import uuid
from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError

from client.agent_events import AnyAgentEvent, StopEvent, UpdateReportResult
from client.handle import ResearchClient
from contracts import names
from contracts.evidence import Source, source_document
from contracts.outcome import EventPage, ResearchResult, ResearchStatus
from contracts.state import ResearchState
from contracts.vocabulary import Outcome, Quality, SourceStatus
from tests.fakes.web_world import Site, WebWorld, manual_sites, page
from tests.fakes.world import World
from tests.integration.conftest import running_workers
from tests.integration.runs import QUESTION, start
from tests.integration.web_pools import over_the_web, web_workers

pytestmark = pytest.mark.integration


async def test_a_run_completes_and_can_be_read(
    client: Client, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Plain JSON in, a cited report out; status and events work on the closed run; its start and its end are logged
    once each, although every task replays the history (S0-167, S0-182, X-21).
    """
    caplog.set_level("INFO", "temporalio.workflow")
    world = World(tmp_path)
    async with running_workers(client, world, replaying=True):
        handle = await start(client, {"query": QUESTION, "corpus": "manual"})
        result = await handle.result()
        status = await handle.query(names.STATUS, result_type=ResearchStatus)
        events = await handle.query(names.EVENTS, 0, result_type=EventPage)
    assert result.outcome is Outcome.COMPLETED, result
    assert "[1]" in result.report
    assert status.outcome is Outcome.COMPLETED
    assert events.events[0].seq == 1
    assert events.events[-1].type == "run.finished"
    logged = [record for record in caplog.records if record.name == "temporalio.workflow"]
    assert [record.message.split(" ")[0] for record in logged] == ["run.started", "run.ended"]
    end = vars(logged[-1])
    assert (end["research_id"], end["outcome"], end["stop_reason"]) == (handle.id, "completed", result.stop_reason)
    assert (end["cost_usd"], end["seconds"] > 0) == (0.0, True)
    saved = await world.sessions.load(handle.id)
    assert saved is not None
    assert json.loads(saved)["result"]["outcome"] == "completed"


async def test_front_ends_for_agents_follow_a_run(client: Client, tmp_path: Path) -> None:
    """Plan, end and result of a whole run, also when they come after it; a refused one is an error with its reason,
    which its log gives first; the newest text and the files of the sources are served (S2-004, S2-022, S2-041, S2-044, S2-052).
    """
    async with running_workers(client, World(tmp_path)):
        handle = ResearchClient(client).handle((await start(client, {"query": QUESTION, "corpus": "manual"})).id)
        events = [event async for event in handle.agent_events()]
        assert [event.type for event in events] == ["AgentInput", "ToolCall", "ToolCallResult", "StopEvent"]
        assert [event async for event in handle.agent_events()] == events
        stop = events[-1]
        assert isinstance(stop, StopEvent)
        assert (stop.status, stop.result) == ("completed", await handle.result())
        assert "[ev-" in await handle.document("draft.md")
        session = json.loads(await handle.document("session.json"))
        report = json.loads(await handle.document("report.json"))
        assert session["artifacts"] == report["artifacts"] != []
        again = ResearchState.model_validate(session)
        assert [source_document(each, again.evidence.findings) for each in again.evidence.sources.values()] == [
            *session["sources"].values()
        ]
        refused = ResearchClient(client).handle((await start(client, {"query": "x", "nonsense": 1})).id)
        *_, end = [event async for event in refused.agent_events()]
        assert isinstance(end, StopEvent)
        assert (end.status, end.is_error, "nonsense: unknown key" in end.message) == ("failed", True, True)
        stated, finished = (await refused.events()).events
        assert (stated.data, finished.type, finished.text) == ({"level": "error"}, "run.finished", stated.text)


async def test_a_living_report_is_followed_text_by_text(client: Client, tmp_path: Path) -> None:
    """Before the approval nothing but the plan; then each update has its text, while the run goes on and after it, and
    the last one is the draft (S2-019, S2-022, S2-031, S2-046).
    """
    world = World(tmp_path)
    async with running_workers(client, world):
        run = await start(client, {"query": QUESTION, "corpus": "manual", "strategy": "living"})
        handle, seen = ResearchClient(client).handle(run.id), list[AnyAgentEvent]()
        try:
            async with asyncio.timeout(60):
                async for event in handle.agent_events(pause_seconds=0.1):
                    seen.append(event)
                    if event.type == "AgentOutput" and "research approve" in event.response.content:
                        begun = ["AgentInput", "ToolCall", "ToolCallResult", "AgentOutput"]
                        assert [each.type for each in seen] == begun
                        assert (world.corpus.searches, world.corpus.reads) == ([], [])
                        await handle.approve_plan(1)
        finally:
            await handle.terminate()
        assert [event async for event in handle.agent_events()] == seen
        draft = await handle.document("draft.md")
    outputs = [event.tool_output.raw_output for event in seen if event.type == "ToolCallResult"]
    texts = [output.new_report_markdown for output in outputs if isinstance(output, UpdateReportResult)]
    assert len(texts) > 2
    assert None not in texts
    assert len(set(texts)) == len(texts)
    assert texts[-1] == draft


@pytest.mark.parametrize(
    ("workflow", "arguments", "line"),
    [
        (names.DEEP_RESEARCH, [{"query": "x", "nonsense": 1}], "nonsense: unknown key"),
        (names.DEEP_RESEARCH, [{"query": "x", "strategy": "errand"}], "strategy: unknown"),
        (names.DEEP_RESEARCH, ["secret words"], "request: expected an object"),
        (names.DEEP_RESEARCH, [b"\x00\xff"], "request: "),
        (names.DEEP_RESEARCH, [], ""),
        (names.DEEP_RESEARCH, [{"query": "x"}, {"query": "y"}], ""),
        (names.RESEARCH_DOCUMENT, [{"research_id": 5, "name": []}], "research_id"),
        (names.RESEARCH_DOCUMENT, [b"\x00\xff"], ""),
        (names.RESEARCH_AGENT, [{"task": {"id": "AGENT 1"}}], "task"),
        (names.RESEARCH_AGENT, ["agent"], ""),
    ],
)
async def test_an_unusable_request_ends_the_run_at_once(
    client: Client, tmp_path: Path, workflow: str, arguments: list[object], line: str
) -> None:
    """Nothing that a client can send leaves a run hanging: it fails with `path: message` and repeats nothing of it."""
    async with running_workers(client, World(tmp_path), ("workflows",)):
        handle = await client.start_workflow(
            workflow, args=arguments, id=f"r-{uuid.uuid4().hex[:8]}", task_queue=names.WORKFLOWS_QUEUE
        )
        with pytest.raises(WorkflowFailureError) as failed:
            await asyncio.wait_for(handle.result(), 60)
    assert isinstance(failed.value.cause, ApplicationError)
    assert line in failed.value.cause.message
    assert "secret" not in failed.value.cause.message


async def test_a_protected_page_is_read_through_the_guard(client: Client, tmp_path: Path) -> None:
    """No search finds it, and it is read first and judged; one on a private host is refused, and named (S0-150)."""
    kettle = Site(9, "/kettle", "Kettle", page("Kettle", "A kettle boils at a hundred degrees. " * 9))
    async with WebWorld([*manual_sites(), kettle]) as world, web_workers(client, tmp_path, world):
        private = f"http://127.0.7.7:{world.port}/secret"
        handle = await start(client, over_the_web(protected_sources=[world.url(kettle), private]))
        result: ResearchResult = await handle.result()
        sources = {source.url: source for source in await handle.query(names.SOURCES, result_type=list[Source])}
        pages = [entry for entry in world.asked if not entry.startswith("search") and "robots" not in entry]
    assert pages[0] == f"{world.host_of(kettle)} /kettle"
    assert pages.count(pages[0]) == 1
    assert sources[world.url(kettle)].analyzed
    assert sources[world.url(kettle)].quality is not Quality.UNKNOWN
    assert sources[private].status is SourceStatus.FAILED
    assert [private in line for line in result.limitations if "protected source" in line] == [True]
