"""Workers name what has other settings beside them, when they begin."""

import os
import socket
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr

from client.cli.serve import other_settings
from client.handle import ResearchClient
from contracts.names import DEEP_RESEARCH, WORKFLOWS_QUEUE
from contracts.request import ResearchRequest
from contracts.state import ResearchState, WorkState
from providers.storage.sessions import SESSIONS, RecordSessionStore
from providers.storage.stored_records import open_records
from workers.composition import compose
from workers.pools import run_pools
from workers.settings.loading import Settings
from workers.settings.models import ModelsSettings
from workers.temporal import open_connection

pytestmark = pytest.mark.integration

POOLS = ("workflows", "records")


async def test_workers_name_what_has_other_settings(server_home: Path) -> None:
    """Workers and open runs of the same home, with what will happen and what to do; nothing where all are alike."""
    settings = Settings(home=server_home)
    modelled = Settings(
        home=server_home,
        models=ModelsSettings(default="m", base_url="http://127.0.0.1:9"),
        anthropic_api_key=SecretStr("planted-secret-key"),
    )
    temporal = (await open_connection(settings)).client
    client, sessions = ResearchClient(temporal), RecordSessionStore(open_records(None, server_home, SESSIONS))
    async with compose(settings, temporal, POOLS) as contents, run_pools(temporal, contents, POOLS):
        shown = await client.preview(ResearchRequest(query="Why?", corpus="manual"), "r-open")
        await temporal.start_workflow(
            DEEP_RESEARCH, {"query": "Why?"}, id="r-open", task_queue=WORKFLOWS_QUEUE, start_delay=timedelta(hours=1)
        )
        await sessions.save("r-open", ResearchState(work=WorkState(resolved=shown)).model_dump_json(), closed=False)
        assert await other_settings(settings, client, sessions) == []
        workers, runs = await other_settings(modelled, client, sessions)
    assert f"({os.getpid()}@{socket.gethostname()})" in workers
    assert "start these with the same --model" in workers
    assert "r-open" in runs
    assert "`research resume ID` with workers that have it" in runs
    assert "planted-secret-key" not in workers + runs
