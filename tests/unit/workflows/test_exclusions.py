"""`exclude` of a request: words, names and domains that no run searches for, quotes or reports."""

from pathlib import Path

import pytest

from contracts.exclusions import mentions
from contracts.vocabulary import Outcome
from tests.fakes.messages_api import MessagesApi
from tests.fakes.world import World, model_world
from tests.unit.workflows.test_supervisor_strategy import begin, report_of
from workflows.driver import Driver
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies.supervisor.supervisor_strategy import SupervisorStrategy


@pytest.mark.parametrize(
    ("text", "exclusion", "found"),
    [
        ("The Lock is held.", "lock", True),
        ("Local clocks block", "lock", False),
        ("Version 9.6 is old", "version 9.6", True),
        ("row and table locks", "table locks", True),
        ("table of locks", "table locks", False),
        ("anything", "…", False),
    ],
)
def test_an_exclusion_is_whole_words_in_their_order(text: str, exclusion: str, found: bool) -> None:
    """Case does not count; parts of words do not match."""
    assert mentions(text, exclusion) is found


@pytest.mark.parametrize("by_model", [False, True])
async def test_nothing_excluded_is_read_or_cited(tmp_path: Path, by_model: bool) -> None:
    """Neither engine reads the source, and the report quotes no passage that names it; a model is told as well."""
    async with MessagesApi() as api:
        world = model_world(tmp_path, api.base_url) if by_model else World(tmp_path)
        state = await begin(world, exclude=["locks.md", "locks", "lock"])
        await Driver(ResearchRun(state, Inbox(), world.host()), SupervisorStrategy()).conduct()
        report = await report_of(world, state)
        await world.close()
    assert state.result.outcome is not Outcome.FAILED
    assert state.citations
    assert not [source.url for source in state.sources.values() if "locks" in source.url]
    assert not any(mentions(finding.statement, "lock") for finding in state.findings)
    assert "> " not in "".join(line for line in report.splitlines() if mentions(line, "locks"))
    prompts = [request.prompt for request in api.requests]
    assert all("Leave out, do not report on: locks" in prompt for prompt in prompts if "<preferences>" in prompt)
    assert bool(prompts) is by_model
