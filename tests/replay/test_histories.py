"""Recorded histories of real runs still replay: a workflow change is a reviewed event."""

import gzip
import json
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer
from temporalio.workflow import NondeterminismError

from workers.workflow_runner import workflow_runner
from workflows.registry import WORKFLOWS

HISTORIES = sorted((Path(__file__).parent / "histories").glob("*.json.gz"))


def load(path: Path) -> dict[str, object]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def replayer() -> Replayer:
    return Replayer(workflows=WORKFLOWS, workflow_runner=workflow_runner(), data_converter=pydantic_data_converter)


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem.removesuffix(".json"))
async def test_a_recorded_run_replays(path: Path) -> None:
    """The workflow code makes the same decisions as when the run was recorded."""
    document = load(path)
    await replayer().replay_workflow(
        WorkflowHistory.from_json(document["workflow_id"], json.dumps(document["history"]))
    )


async def test_a_changed_order_is_noticed() -> None:
    """The check can fail: a history in which another activity was scheduled does not replay."""
    document = load(next(path for path in HISTORIES if path.name.startswith("extractive")))
    text = json.dumps(document["history"]).replace('"plan_research"', '"write_report"')
    with pytest.raises(NondeterminismError):
        await replayer().replay_workflow(WorkflowHistory.from_json(document["workflow_id"], text))


def test_every_way_a_run_can_go_is_recorded() -> None:
    """There is a history for each recording of the script."""
    from tests.replay.record import RECORDINGS

    assert {path.name.removesuffix(".json.gz") for path in HISTORIES} == set(RECORDINGS)
