"""The examples of docs/api.md, run as they are; documents of a run through the server alone."""

import json
from pathlib import Path

import pytest
from temporalio.client import Client

from client.client_errors import DocumentMissing
from client.handle import ResearchClient
from contracts.names import DEEP_RESEARCH
from tests.architecture.repository import ROOT, load_script
from tests.fakes.world import World
from tests.integration.conftest import Server, running_workers
from tests.integration.runs import QUESTION

pytestmark = pytest.mark.integration


async def test_temporals_own_client_is_enough(
    client: Client, server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Start, result and the report as HTML, without a line of the product; the web UI's list shows the question."""
    async with running_workers(client, World(tmp_path)):
        await load_script(ROOT / "examples" / "plain_client.py").main(server.address, QUESTION, "manual")
    assert [line[:9].lower() for line in capsys.readouterr().out.splitlines()] == ["completed", "<!doctype"]
    started = [run.id async for run in client.list_workflows(f'WorkflowType="{DEEP_RESEARCH}"')]
    shown = [await (await client.get_workflow_handle(one).describe()).static_summary() for one in started]
    assert QUESTION in shown


async def test_the_handle_follows_a_run_and_fetches_its_documents(
    client: Client, server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each event once, to the last; a document that does not exist is an error, never an empty text."""
    async with running_workers(client, World(tmp_path)):
        await load_script(ROOT / "examples" / "typed_handle.py").main(server.address, QUESTION, "manual")
        lines = capsys.readouterr().out.splitlines()
        handle = await (await ResearchClient.connect(server.address)).start(
            {"query": QUESTION, "corpus": "manual", "depth": "light"}, "r-documents"
        )
        result = await handle.result()
        assert json.loads(await handle.document("report.json"))["report"]["markdown"] == result.report
        assert await handle.document("report.md") == result.report
        with pytest.raises(DocumentMissing, match=r"report\.pdf of r-documents"):
            await handle.document("report.pdf")
    events = [int(line.split()[0]) for line in lines[:-2]]
    assert events == list(range(1, len(events) + 1))
    assert "run.finished" in lines[-3]
    assert lines[-2].startswith("completed")
    assert int(lines[-1]) > 1_000
