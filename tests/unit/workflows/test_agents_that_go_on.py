"""Agents whose share was spent, in a resumed run: they go on from what they have read, and all that is paid is counted."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from contracts.agents import PageRead
from contracts.state import ResearchState
from contracts.vocabulary import AgentStatus, StopReason
from tests.every_strategy.joined import SMALL, Trial, trial_of
from tests.fakes import tool_work
from tests.fakes.corpus import MemoryCorpus
from tests.fakes.model_work import element, unmarked
from tests.fakes.tool_work import answered, blocks, called, opening_of
from tests.fakes.world import begin
from workflows.phases.agent_reading import ReadingPosition, note_hidden
from workflows.run.checkpoints import resume_state
from workflows.strategies import load_strategy

TASK = "How often must tables of the engine be vacuumed to prevent wraparound?"
FOCUS = "How often is the engine vacuumed?"
PAGES = {
    "engine.md": "# Engine\n\nThe engine has tables that must be vacuumed often.\n",
    "spindle.md": "# Spindle\n\nThe spindle of the engine prevents wraparound of tables that are vacuumed.\n",
}
FIRST = ("open_page", {"index": 1, "focus": FOCUS})


def work(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Opens the first page; an agent that goes on opens it for the same focus again, and the next one."""
    made = [name for name, _ in called(body)]
    if "open_page" in made:
        return blocks(body, ("generate_report", {"open_questions": ["Who mends the spindle?"]}))
    if element(opening_of(body), "earlier"):
        return blocks(body, FIRST, ("open_page", {"index": 2}))
    return blocks(body, FIRST)


def direct(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    if not called(body):
        return blocks(body, ("research_agent", {"task": TASK, "searches": ["tables of the engine", "spindle"]}))
    return blocks(body, ("generate_report", {}))


async def resumed(trial: Trial, reason: StopReason) -> Trial:
    """The run once more, as if its agent had been ended by this."""
    stored = ResearchState.model_validate_json(await trial.world.sessions.load("r-unit") or "")
    (record,) = stored.work.agents
    assert record.result is not None
    result = record.result.with_fields(stop_reason=reason, problem="cut short")
    stored.work.agents = [record.with_fields(status=AgentStatus.DONE, result=result)]
    fresh = await begin(trial.world, strategy=trial.name, **SMALL)
    later = resume_state(stored, fresh.work.resolved, fresh.clock.started_at, load_strategy(trial.name).resume)
    later.clock.clock_started_at, later.clock.deadline_at = fresh.clock.clock_started_at, fresh.clock.deadline_at
    return Trial(trial.world, trial.name, later)


def requests_of(trial: Trial, role: str) -> list[Any]:
    return [request for request in trial.api.requests if request.role == role]


@pytest.mark.parametrize("reason", [StopReason.BUDGET_COST, StopReason.USER_STOPPED])
async def test_an_agent_whose_share_was_spent_goes_on_from_what_it_had_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: StopReason
) -> None:
    """It is shown its notes, is not read the same page for the same purpose, and keeps its findings; one that was
    stopped asks the same as before, which the journal answers. What both use is counted once, all of it.
    """
    monkeypatch.setitem(tool_work.TOOL_WORK, "agent", work)
    monkeypatch.setitem(tool_work.TOOL_WORK, "orchestrator", direct)
    async with trial_of(tmp_path, "orchestrator", "model", corpus=MemoryCorpus(PAGES)) as trial:
        await trial.conduct()
        found = trial.findings
        read, turns = len(requests_of(trial, "analyzer")), len(requests_of(trial, "agent"))
        paid_before = len(trial.api.calls)
        again = await resumed(trial, reason)
        counted_before = again.state.accounts.usage.model_calls
        await again.conduct()
    assert found <= again.findings
    new_turns = requests_of(trial, "agent")[turns:]
    assert len(trial.api.calls) - paid_before == again.state.accounts.usage.model_calls - counted_before
    if reason is StopReason.USER_STOPPED:
        assert new_turns == []
        return
    opening, later = (request.body for request in new_turns)
    shown = element(opening_of(opening), "earlier")
    assert "read whole:" in shown
    assert "note 1: " in shown
    assert "still open: Who mends the spindle?" in shown
    refused, opened = answered(later)
    assert "was read for this purpose already" in refused
    assert "“Spindle”" in opened
    prompts = [unmarked(request.prompt) for request in requests_of(trial, "analyzer")[read:]]
    assert ["# Engine" in prompt or "tables that must be vacuumed often" in prompt for prompt in prompts][:1] == [False]
    (record,) = again.state.work.agents
    assert record.result is not None
    assert found <= set(record.result.finding_ids)
    assert record.result.usage.model_calls == sum(
        request.role in ("agent", "analyzer") for request in trial.api.requests if "last look" not in request.prompt
    )
    orchestrator = requests_of(trial, "orchestrator")[-1].body
    news = str(orchestrator["messages"][-1])
    assert "agent-1 reports, beyond its" in news


def test_a_section_stays_hidden_until_a_reading_was_shown_all_of_it() -> None:
    """A second reading lists what it does not show of all that the first one did, so only what both list is hidden."""
    position = ReadingPosition.model_construct(hidden={})
    note_hidden(position, "src-1", ["2. Locks (900 characters)", "5. Rows (4,000 characters)"])
    note_hidden(position, "src-1", ["1. Start (800 characters)", "5. Rows (4,000 characters, a part of it is shown)"])
    assert position.hidden == {"src-1": ["5. Rows (4,000 characters)"]}
    assert PageRead(purposes=["0"], hidden=position.hidden["src-1"]).hidden
