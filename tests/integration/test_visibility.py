"""What a person sees of a run in the web UI and in lists: summary, details, activity summaries, search attributes."""

from functools import partial
from pathlib import Path

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

from activities.preparation import ResearchConfiguration
from contracts import names
from tests.fakes.world import World
from tests.integration.conftest import running_workers
from tests.integration.runs import QUESTION, start
from workers.temporal import has_search_attributes, register_search_attributes

pytestmark = pytest.mark.integration

REQUEST = {"query": QUESTION, "corpus": "manual"}


async def test_a_run_can_be_read_in_the_web_ui(client: Client, tmp_path: Path) -> None:
    """Details in Markdown, activities named after their work, attributes without a word of the user's."""
    await register_search_attributes(client)
    await register_search_attributes(client)
    configuration = ResearchConfiguration(
        search_attributes=partial(has_search_attributes, client), product_version="0.1.0"
    )
    async with running_workers(client, World(tmp_path, configuration=configuration)):
        handle = await start(client, REQUEST)
        await handle.result()
        metadata = await handle.query("__temporal_workflow_metadata")
    description = await handle.describe()
    attributes = {pair.key.name: pair.value for pair in description.typed_search_attributes}
    assert attributes[names.OUTCOME_ATTRIBUTE] == "completed"
    assert attributes[names.STRATEGY_ATTRIBUTE] == "supervisor"
    assert attributes[names.TENANT_ATTRIBUTE] == "default"
    assert attributes[names.COST_ATTRIBUTE] == 0.0
    assert not any(word in str(attributes) for word in QUESTION.split()[2:])
    assert await description.memo() == {
        "question": QUESTION,
        "strategy": "supervisor",
        "tenant": "default",
        "outcome": "completed",
    }
    assert "**completed**" in str(metadata)
    assert "sources" in str(metadata)
    assert QUESTION in str(metadata)  # although a plain client gave the run no summary
    assert "0.00 USD of at most 2.00" in str(metadata)
    named = (EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, EventType.EVENT_TYPE_TIMER_STARTED)
    summaries = [
        event.user_metadata.summary.data.decode()
        async for event in handle.fetch_history_events()
        if event.event_type in named
    ]
    assert all(summaries)
    assert '"time for research, without that for writing"' in summaries
    assert '"read: Routine Vacuuming"' in summaries
    assert any(text.startswith('"search: ') for text in summaries)
    changes = EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES
    upserts = [event async for event in handle.fetch_history_events() if event.event_type == changes]
    assert len(upserts) <= 5
