"""Runs over the web: real clients and the real guard, against a small web on loopback."""

from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError

from contracts import names
from contracts.evidence import Source
from contracts.outcome import ResearchResult, ResearchStatus
from contracts.state import ResearchState
from contracts.vocabulary import Outcome, SourceStatus, StopReason
from tests.fakes.web_world import Faults, Site, WebWorld, manual_sites, page
from tests.integration.runs import start
from tests.integration.web_pools import over_the_web, web_workers

NOBODY = "http://127.0.0.1:9"
"""A port that nothing listens on."""


async def sources_of(client: Client, research_id: str) -> list[Source]:
    """Every source of a run."""
    return await client.get_workflow_handle(research_id).query(names.SOURCES, result_type=list[Source])


async def session_of(client: Client, research_id: str) -> ResearchState:
    """The session with all its details, as a client that reaches only the server gets it."""
    asked = {"research_id": research_id, "name": "session.json"}
    piece = await client.execute_workflow(
        names.RESEARCH_DOCUMENT, asked, id=f"document-{research_id}", task_queue=names.WORKFLOWS_QUEUE
    )
    return ResearchState.model_validate_json(piece["text"])


async def test_a_question_is_answered_from_the_web(client: Client, tmp_path: Path) -> None:
    """Searched, read through the guard, assessed, cited; where text goes is told; a page at two addresses is one source
    (S0-050, S0-102, X-20).
    """
    original, *others = manual_sites()
    twin = Site(9, "/mirror", original.title, original.body)
    async with WebWorld([original, twin, *others]) as world, web_workers(client, tmp_path, world):
        handle = await start(client, over_the_web())
        result: ResearchResult = await handle.result()
        status = await handle.query(names.STATUS, result_type=ResearchStatus)
        sources = list((await session_of(client, handle.id)).sources.values())
    assert result.outcome is Outcome.COMPLETED
    assert result.counts.sources_cited >= 1
    assert {source.status for source in sources} == {SourceStatus.FULL}
    assert all(source.assessment is not None and source.quality_reason for source in sources)
    assert f"searches go to 127.0.0.1:{world.port} (this machine)" in status.egress
    assert [choice.name for choice in status.providers if choice.available] == ["searxng"]
    texts = [source.text.hash for source in sources if source.text]
    assert len(texts) == len(set(texts))
    assert world.url(twin) in next(source for source in sources if source.url == world.url(original)).aliases
    assert result.counts.duplicates >= 1
    assert world.hosts_asked <= {"127.0.0.1", *(entry.partition(":")[0] for entry in world.allow_hosts)}


async def test_a_protected_page_is_read_through_the_guard(client: Client, tmp_path: Path) -> None:
    """No search finds it, and it is read first and judged; one on a private host is refused, and named (S0-150)."""
    kettle = Site(9, "/kettle", "Kettle", page("Kettle", "A kettle boils at a hundred degrees. " * 9))
    async with WebWorld([*manual_sites(), kettle]) as world, web_workers(client, tmp_path, world):
        private = f"http://127.0.7.7:{world.port}/secret"
        protected = [world.url(kettle), private]
        handle = await start(client, over_the_web(protected_sources=protected))
        result: ResearchResult = await handle.result()
        sources = {source.url: source for source in (await session_of(client, handle.id)).sources.values()}
        pages = [entry for entry in world.asked if not entry.startswith("search") and "robots" not in entry]
    assert pages[0] == f"{world.host_of(kettle)} /kettle"
    assert pages.count(pages[0]) == 1
    assert sources[world.url(kettle)].analyzed
    assert sources[world.url(kettle)].assessment is not None
    assert sources[private].status is SourceStatus.FAILED
    assert [private in line for line in result.limitations if "protected source" in line] == [True]


async def test_nobody_to_ask_is_refused_before_any_work(client: Client, tmp_path: Path) -> None:
    """A provider that cannot be reached is found out first; the refusal says so (S0-102)."""
    async with WebWorld() as world, web_workers(client, tmp_path, world, TAVILY_API_KEY="k", TAVILY_BASE_URL=NOBODY):
        handle = await start(client, over_the_web("tavily"))
        with pytest.raises(WorkflowFailureError) as caught:
            await handle.result()
        asked = list(world.asked)
    refusal = caught.value.cause
    assert isinstance(refusal, ApplicationError)
    result = ResearchResult.model_validate(refusal.details[0])
    assert (result.outcome, result.stop_reason) == (Outcome.REFUSED, StopReason.NO_PROVIDERS)
    assert "tavily: 127.0.0.1 is not reachable" in refusal.message
    assert asked == []


async def test_the_run_goes_on_with_those_that_can_be_asked(client: Client, tmp_path: Path) -> None:
    """The other one is named with its reason (S0-097)."""
    async with WebWorld() as world, web_workers(client, tmp_path, world, TAVILY_API_KEY="k", TAVILY_BASE_URL=NOBODY):
        handle = await start(client, over_the_web("tavily", "searxng"))
        result: ResearchResult = await handle.result()
        status = await handle.query(names.STATUS, result_type=ResearchStatus)
    assert result.outcome is Outcome.COMPLETED
    reasons = {choice.name: choice.reason for choice in status.providers if not choice.available}
    assert "not reachable" in reasons["tavily"]


async def test_faults_of_the_web_lose_no_source_and_repeat_no_answer(client: Client, tmp_path: Path) -> None:
    """With one request in four refused for speed or broken, every source found is read, and nothing twice."""
    sites = [
        Site(number, f"/wraparound/{number}", f"Wraparound {number}", page(f"Wraparound {number}", text))
        for number, text in enumerate(_texts(8))
    ]
    faults = Faults(too_many=0.15, server_error=0.10, retry_after="0", seed=7)
    async with WebWorld(sites, faults=faults) as world, web_workers(client, tmp_path, world):
        handle = await start(client, over_the_web(limits={"max_iterations": 1}))
        result: ResearchResult = await handle.result()
        sources = await sources_of(client, handle.id)
    assert result.outcome in (Outcome.COMPLETED, Outcome.PARTIAL)
    assert world.failed
    assert max(world.served.values()) == 1
    assert {source.status for source in sources} == {SourceStatus.FULL}
    assert result.usage.reads == len(sources)


def _texts(count: int) -> list[str]:
    """Different pages about one thing."""
    return [
        f"# Wraparound on engine {number}\n\nEngine number {number} prevents transaction ID wraparound by vacuuming "
        f"every table after {number * 7 + 3} million transactions.\n\nIf that is neglected, engine number {number} "
        f"refuses to start new transactions once fewer than {number + 2} million remain, as its manual explains."
        for number in range(count)
    ]
