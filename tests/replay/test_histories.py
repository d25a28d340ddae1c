"""Recorded histories of real runs still replay: a workflow change is a reviewed event."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Plugin, Replayer, _replayer
from temporalio.workflow import NondeterminismError

from tests.fakes.collector import Collector, own_provider
from tests.fakes.failing_strategy import failing_strategy
from tests.integration.runs import BUILD_ID
from tests.toy.party import party_declared
from workers.pools import DEADLOCK_SECONDS, workflow_runner
from workers.settings.loading import Settings
from workers.settings.sections import TracingSettings
from workers.temporal import DATA_CONVERTER
from workers.tracing import open_tracing
from workflows.registry import WORKFLOWS

HISTORIES = sorted((Path(__file__).parent / "histories").glob("*.json.gz"))


def load(path: Path) -> dict[str, Any]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        document: dict[str, Any] = json.load(file)
    return document


class PatientWorker(_replayer._WorkflowWorker):
    """One that does not take a loaded machine for a deadlock, as our workers do not."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._deadlock_timeout_seconds = DEADLOCK_SECONDS  # type: ignore[assignment]


async def replay(document: dict[str, Any], plugins: Sequence[Plugin] = ()) -> None:
    runner = workflow_runner()
    replayer = Replayer(
        workflows=WORKFLOWS, workflow_runner=runner, data_converter=DATA_CONVERTER, plugins=plugins, build_id=BUILD_ID
    )
    with failing_strategy(), party_declared(), patch.object(_replayer, "_WorkflowWorker", PatientWorker):
        history = WorkflowHistory.from_json(document["workflow_id"], json.dumps(document["history"]))
        await replayer.replay_workflow(history)


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem.removesuffix(".json"))
async def test_a_recorded_run_replays(path: Path) -> None:
    """The same calls, timers and messages in the same order; `python -m tests.replay.record [NAME ...]` records anew."""
    await replay(load(path))


async def test_a_run_that_began_without_traces_goes_on_with_them(tmp_path: Path) -> None:
    """Traces may be switched on while runs are open: the history replays, and a replay sends no span."""
    path = next(path for path in HISTORIES if path.name.startswith("extractive"))
    with own_provider():
        async with Collector() as collector:
            settings = Settings(home=tmp_path, tracing=TracingSettings(endpoint=collector.base_url))
            async with open_tracing(settings) as plugins:
                await replay(load(path), plugins)
    assert collector.requests == []


async def test_a_changed_order_is_noticed() -> None:
    """The check can fail: a history in which another activity was scheduled does not replay."""
    document = load(next(path for path in HISTORIES if path.name.startswith("extractive")))
    document["history"] = json.loads(json.dumps(document["history"]).replace('"plan_research"', '"write_report"'))
    with pytest.raises(NondeterminismError):
        await replay(document)
