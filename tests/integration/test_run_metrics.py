"""What runs leave in the metrics of a worker; replays of a real worker must count nothing twice."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.runtime import MetricBuffer, Runtime, TelemetryConfig

from providers.errors import RateLimited, SourceUnreadable
from providers.interfaces import ExtractedDocument
from tests.fakes.world import World
from tests.integration.conftest import Server, running_workers
from tests.integration.runs import QUESTION, start
from workers.temporal import DATA_CONVERTER

pytestmark = pytest.mark.integration


async def test_runs_and_failures_are_counted_by_type(server: Server, tmp_path: Path) -> None:
    """Outcome, sources that could not be read with their reason, failures by type, refusals by service."""
    buffer = MetricBuffer(100_000)
    runtime = Runtime(telemetry=TelemetryConfig(metrics=buffer))
    client = await Client.connect(server.address, data_converter=DATA_CONVERTER, runtime=runtime)
    world = World(tmp_path)
    read, refused = world.corpus.read, list[str]()

    async def unwilling(url: str) -> ExtractedDocument:
        if not refused:
            refused.append(url)
            error = RateLimited("slowly", retry_after=0.1)
            error.service = "manual"
            raise error
        if url == refused[0]:
            raise SourceUnreadable("encrypted", "it is locked")
        return await read(url)

    world.corpus.read = unwilling  # type: ignore[method-assign]
    async with running_workers(client, world, replaying=True), asyncio.timeout(60):
        handle = await start(client, {"query": QUESTION, "corpus": "manual"})
        await handle.result()
    counted: Counter[tuple[object, ...]] = Counter()
    values: dict[str, float] = {}
    for update in buffer.retrieve_updates():
        name, told = update.metric.name, update.attributes
        values[name] = update.value
        if name.startswith("research_"):
            words = [told.get(key) for key in ("outcome", "type", "final", "service", "reason") if key in told]
            counted[(name, *words)] += int(update.value)
    assert sum(number for key, number in counted.items() if key[0] == "research_runs") == 1
    assert counted["research_sources_dropped", "encrypted"] == 1
    assert counted["research_call_failures", "RateLimited", False] == 1
    assert counted["research_call_failures", "SourceUnreadable", True] == 1
    assert counted["research_refusals", "manual"] == 1
    assert values["research_run_seconds"] > 0
