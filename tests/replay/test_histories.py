"""Recorded histories of real runs still replay, word for word: a workflow change is a reviewed event."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from temporalio.workflow import NondeterminismError

from tests.replay.replaying import asked_by_the_workflow, kept_by_the_server, replay

HISTORIES = sorted((Path(__file__).parent / "histories").glob("*.json.gz"))


def load(path: Path) -> dict[str, Any]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        document: dict[str, Any] = json.load(file)
    return document


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem.removesuffix(".json"))
async def test_a_recorded_run_replays_word_for_word(path: Path) -> None:
    """Calls with all they say, timers, messages, result and answers to queries are as when the run was recorded.

    `python -m tests.replay.record [NAME ...]` records anew; read the difference of the answers.
    """
    document = load(path)
    notes = await replay(document)
    assert asked_by_the_workflow(notes.commands) == kept_by_the_server(document)


async def test_a_changed_order_is_noticed() -> None:
    """The check can fail: a history in which another activity was scheduled does not replay."""
    document = load(next(path for path in HISTORIES if path.name.startswith("extractive")))
    document["history"] = json.loads(json.dumps(document["history"]).replace('"plan_research"', '"write_report"'))
    with pytest.raises(NondeterminismError):
        await replay(document)


def test_every_way_a_run_can_go_is_recorded() -> None:
    """There is a history for each recording of the script."""
    from tests.replay.record import RECORDINGS

    assert {path.name.removesuffix(".json.gz") for path in HISTORIES} == RECORDINGS
