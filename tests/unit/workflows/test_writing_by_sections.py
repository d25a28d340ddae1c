"""A long report: its sections side by side, then the frame; a short one in one call."""

import json
from pathlib import Path

from contracts.state import ResearchState
from contracts.vocabulary import Outcome
from tests.fakes.messages_api import MessagesApi
from tests.fakes.world import World, model_world
from tests.unit.workflows.test_supervisor_strategy import begin
from workflows.driver import Driver
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies.supervisor.supervisor_strategy import SupervisorStrategy

LIMITS = {"max_iterations": 1, "max_sub_queries": 3}


async def written(folder: Path, **output: object) -> tuple[World, ResearchState, list[str]]:
    """A finished run with a model, and the operations of its writing."""
    async with MessagesApi() as api:
        world = model_world(folder, api.base_url)
        state = await begin(world, output=output, limits=LIMITS)
        host = world.host()
        outcome = await Driver(ResearchRun(state, Inbox(), host), SupervisorStrategy()).conduct()
        assert outcome is Outcome.COMPLETED, (state.degraded, state.failed_branches, state.limitations)
        calls = [operation for activity, operation in host.calls if activity in ("write_report", "join_report")]
        return world, state, calls


async def test_long_report_is_written_section_by_section(tmp_path: Path) -> None:
    """Each section from its own evidence; the frame goes around them."""
    world, state, calls = await written(tmp_path, target_words=6_000)
    assert sorted(calls) == ["join/1", "write-frame/1", "write-section-1/1", "write-section-2/1"]
    text = await world.content.get_text(state.draft.document)
    assert state.draft.sections == ["Summary", "Part 1", "Part 2", "Gaps and limitations", "Conclusion"]
    assert [text.count(heading) for heading in ("\n## Part 1\n", "\n## Part 2\n")] == [1, 1]
    assert set(state.draft.evidence_ids) <= state.evidence.keys()
    stored = json.loads(await world.content.get_text(state.result.files.json_document))
    assert {claim["section"] for claim in stored["claims"]} >= {"Part 1", "Part 2"}
    assert all(stored["report"]["markdown"][one["start"] : one["end"]] == one["text"] for one in stored["claims"])
    await world.close()


async def test_short_report_is_written_in_one_call(tmp_path: Path) -> None:
    """Whole-report writing is the simple case: citations look as the request wants."""
    world, state, calls = await written(tmp_path, target_words=700, citation_style="link")
    report = json.loads(await world.content.get_text(state.result.files.json_document))
    labels = [citation["label"] for citation in report["citations"]]
    assert labels
    assert all(label in report["report"]["markdown"] for label in labels)
    assert calls == ["write/1"]
    assert state.draft is not None
    await world.close()
