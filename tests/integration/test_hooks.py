"""A think-pause hook on a queue of its own."""

import importlib.util
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from activities.configuration import ResearchConfiguration
from contracts import names
from contracts.resolved import Hook
from tests.fakes.world import World
from tests.integration.conftest import running_workers
from tests.integration.runs import QUESTION, start

pytestmark = pytest.mark.integration

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "think_pause_hook.py"


async def test_the_example_guides_a_run(client: Client, tmp_path: Path) -> None:
    """The hook of the examples is called after each phase, and its guidance is in the record (S0-081, S0-172)."""
    specification = importlib.util.spec_from_file_location("think_pause_hook", EXAMPLE)
    assert specification is not None
    assert specification.loader is not None
    example = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(example)
    hook = Hook(name="house-rules", activity="house_rules", task_queue="house-rules")
    configuration = ResearchConfiguration(hooks={hook.name: hook}, product_version="0.1.0")
    request = {"query": QUESTION, "corpus": "manual", "gates": {"hook": hook.name}, "limits": {"max_sub_queries": 2}}
    async with running_workers(client, World(tmp_path, configuration=configuration)):
        async with Worker(client, task_queue=hook.task_queue, activities=[example.house_rules]):
            handle = await start(client, request)
            await handle.result()
            session = await handle.query(names.SESSION)
    assert [item["text"] for item in session["guidance"] if item["origin"] == "hook"] == ["Look at how it fails, too."]
    assert sum(item["action"] == "think_pause_hook" for item in session["decisions"]) >= 4
