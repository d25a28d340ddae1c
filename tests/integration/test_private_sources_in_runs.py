"""Runs over a private source that speaks the protocol of tools, by its address, with the pools of a process."""

import json
from collections import Counter
from pathlib import Path

import pytest
from temporalio.client import Client

from client.handle import ResearchClient
from contracts.names import POOLS
from contracts.vocabulary import Outcome
from tests.fakes.document_servers import DOCUMENTS, LINK, serving
from tests.fakes.messages_api import MessagesApi
from tests.integration.runs import QUESTION
from tests.integration.web_pools import model_settings
from workers.composition import compose
from workers.pools import run_pools
from workers.settings.loading import Settings
from workers.settings.sections import UNVERSIONED, SearchSettings, ServerSettings, WorkersSettings

pytestmark = pytest.mark.integration


async def test_what_a_private_source_has_is_archived_cited_and_asked_for_once(client: Client, tmp_path: Path) -> None:
    """A citation has its web address, and the rating that the operator gave; each document is fetched once."""
    async with serving("good", tmp_path) as url, MessagesApi() as models:
        source = ServerSettings(url=url, authority="high")
        settings = Settings(
            home=tmp_path / "home",
            temporal_variables={"TEMPORAL_ADDRESS": "elsewhere"},
            workers=WorkersSettings(build_id=UNVERSIONED),
            search=SearchSettings(mcp={"wiki": source}),
            **model_settings(models),
        )
        async with compose(settings, client) as contents, run_pools(client, contents, tuple(POOLS)):
            request = {"query": QUESTION, "search": {"providers": ["mcp.wiki"]}, "limits": {"max_iterations": 1}}
            handle = await ResearchClient(client).start(request, "r-private")
            result = await handle.result()
            report = json.loads(await handle.document("report.json"))
    assert result.outcome is Outcome.COMPLETED
    cited = {citation["source_id"] for citation in report["citations"]}
    sources = [source for source in report["sources"] if source["id"] in cited]
    assert sources
    assert all(source["url"].startswith("mcp:wiki/") and source["address"].startswith(LINK) for source in sources)
    assert {source["quality"] for source in sources} == {"high"}
    assert LINK in report["report"]["markdown"]
    fetched = [line.split()[1] for line in (tmp_path / "calls").read_text(encoding="utf-8").splitlines()]
    assert Counter(fetched)["fetch"] == len(DOCUMENTS)
