"""Whole runs while the Redis that workers share fails in the middle of them: they end as if nothing had happened."""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs
from temporalio.client import Client

from contracts.names import POOLS
from contracts.outcome import ResearchResult
from contracts.vocabulary import Outcome
from tests.fakes.messages_api import MessagesApi, repeated
from tests.fakes.valkey import ValkeyServer, free_port, running_valkey
from tests.fakes.web_world import Latencies, WebWorld
from tests.integration.runs import QUESTION, start
from workers.composition import compose
from workers.runtime import running_pools
from workers.settings import Settings
from workers.settings_models import ModelsSettings
from workers.settings_sections import WebSettings
from workers.settings_web import WebSearchSettings

pytestmark = pytest.mark.integration


async def test_experiment(client: Client, tmp_path: Path) -> None:
    with running_valkey(tmp_path) as valkey:
        async with MessagesApi(latency=0.3) as api, WebWorld(latencies=Latencies(0.1)) as world:
            t0 = time.time()
            settings = Settings(
                home=tmp_path / "home",
                redis_url=SecretStr(f"redis://default:planted-secret@127.0.0.1:{valkey.port}/0"),
                models=ModelsSettings(default="fake-model", base_url=api.base_url),
                anthropic_api_key=SecretStr("sk-fake"),
                temporal_variables={"TEMPORAL_ADDRESS": "elsewhere"},
                web=WebSettings(allow_hosts=world.allow_hosts),
                web_search=WebSearchSettings(searxng_url=world.searxng_url),
            )
            with capture_logs() as logs:
                async with compose(settings, client) as contents, running_pools(client, contents, tuple(POOLS)):
                    t1 = time.time()
                    handle = await start(client, {"query": QUESTION, "search": {"providers": ["searxng"]}, "limits": {"max_iterations": 1}})
                    result = await handle.result()
                    t2 = time.time()
            print("start", t1 - t0, "run", t2 - t1, "stop", time.time() - t2)
            print(result.outcome, result.degraded, result.failed_branches, result.limitations)
            base = api.calls[0].started
            for call in api.calls:
                print(call.role, round(call.started - base, 2), round(call.ended - base, 2), call.status, call.request_hash[:6])
            print(world.asked)
            print(logs)
            print(result.report)
            print(result.counts)
