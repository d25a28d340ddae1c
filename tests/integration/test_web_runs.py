"""Runs over the web: real clients and the real guard, against a small web on loopback."""

from pathlib import Path

from temporalio.client import Client

from contracts import names
from contracts.outcome import ResearchResult, ResearchStatus
from contracts.state import ResearchState
from contracts.vocabulary import Outcome, SourceStatus
from tests.fakes.web_world import Site, WebWorld, manual_sites
from tests.integration.runs import start
from tests.integration.web_pools import over_the_web, web_workers

NOBODY = "http://127.0.0.1:9"
"""A port that nothing listens on."""


async def session_of(client: Client, research_id: str) -> ResearchState:
    """The session with all its details, as a client that reaches only the server gets it."""
    asked = {"research_id": research_id, "name": "session.json"}
    piece = await client.execute_workflow(
        names.RESEARCH_DOCUMENT, asked, id=f"document-{research_id}", task_queue=names.WORKFLOWS_QUEUE
    )
    return ResearchState.model_validate_json(piece["text"])


async def test_a_question_is_answered_from_the_web(client: Client, tmp_path: Path) -> None:
    """Searched, read through the guard, assessed, cited; where text goes is told; a page at two addresses is one source.

    The provider that cannot be reached is named with its reason, and the run goes on with the other one
    (S0-050, S0-097, S0-102, X-20).
    """
    original, *others = manual_sites()
    twin = Site(9, "/mirror", original.title, original.body)
    keys = {"TAVILY_API_KEY": "k", "TAVILY_BASE_URL": NOBODY}
    async with WebWorld([original, twin, *others]) as world, web_workers(client, tmp_path, world, **keys):
        handle = await start(client, over_the_web("tavily", "searxng"))
        result: ResearchResult = await handle.result()
        status = await handle.query(names.STATUS, result_type=ResearchStatus)
        sources = list((await session_of(client, handle.id)).sources.values())
    assert result.outcome is Outcome.COMPLETED
    assert result.counts.sources_cited >= 1
    assert {source.status for source in sources} == {SourceStatus.FULL}
    assert all(source.assessment is not None and source.quality_reason for source in sources)
    reasons = {choice.name: choice.reason for choice in status.providers if not choice.available}
    assert "127.0.0.1 is not reachable" in reasons["tavily"]
    assert f"searches go to 127.0.0.1:{world.port} (this machine)" in status.egress
    assert [choice.name for choice in status.providers if choice.available] == ["searxng"]
    texts = [source.text.hash for source in sources if source.text]
    assert len(texts) == len(set(texts))
    assert world.url(twin) in next(source for source in sources if source.url == world.url(original)).aliases
    assert result.counts.duplicates >= 1
    assert world.hosts_asked <= {"127.0.0.1", *(entry.partition(":")[0] for entry in world.allow_hosts)}
