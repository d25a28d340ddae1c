"""How many calls of a model stand one after the other in a run: each call takes one unit of a clock that the test moves.

Everything else takes none, so the time of a run is its row. These are bounds: a call that comes to stand in the row, or
waits for a group where it needs one of it, makes a run slower by as much as a model takes to answer.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contracts.resolved import ModelPrice
from contracts.state import ResearchState
from contracts.strategies import declared_roles
from contracts.vocabulary import EngineKind, Outcome, Tier
from tests.every_strategy.joined import world_of
from tests.fakes import checking_work, model_work
from tests.fakes.host import TimedHost
from tests.fakes.world import begin
from workflows.driver import Driver
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies import load_strategy

CALLS = {role.activity for role in declared_roles()}
ROWS = {
    "supervisor": 4,  # plan, analyses, report, review
    "reflective": 19,  # route, plan, three steps of five (two analyses, two researchers, reflection), report, review
    "orchestrator": 9,  # outline, tasks, two turns with an analysis between, thought, end, report, review
    "living": 9,  # plan, two turns, analysis, turn, updates, last turn, look back, review
    "recursive": 12,  # scope, searches, excerpts, tree, extracts, two reports with their checks, look, report, review
}


async def row_of(
    folder: Path, strategy: str, analyzer: str = "good", **fields: Any
) -> tuple[int, ResearchState, list[str]]:
    """The length of the row of a run that nobody approves, its state, and its calls of a model as they began."""
    async with world_of(folder, EngineKind.MODEL.value, by_role={"analyzer": analyzer}) as (world, _):
        state = await begin(world, **{"strategy": strategy, "depth": "medium", "gates": {"approve": "none"}} | fields)
        host = TimedHost(world.host().implementations, lambda activity, _: float(activity in CALLS))
        start = host.now()
        conducted = asyncio.ensure_future(Driver(ResearchRun(state, Inbox(), host), load_strategy(strategy)).conduct())
        await host.pass_time(conducted)
        assert await conducted is Outcome.COMPLETED
        calls = [activity for activity, _ in host.calls if activity in CALLS]
        return round((host.now() - start).total_seconds()), state, calls


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ROWS)
async def test_no_more_calls_stand_in_a_row_than_wait_for_each_other(tmp_path: Path, name: str) -> None:
    """As many as depend on the answer before; what depends on less runs beside them."""
    row, _, _ = await row_of(tmp_path, name)
    assert row <= ROWS[name]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ROWS)
async def test_no_prompt_is_made_twice_where_its_limit_has_room(tmp_path: Path, name: str) -> None:
    """With prices, what a call may need at most is reserved; a guess that is too small would refuse its first attempt."""
    async with world_of(tmp_path, EngineKind.MODEL.value, by_role={"analyzer": "gaps"}) as (world, _):
        request = {"strategy": name, "gates": {"approve": "none"}, "limits": {"max_iterations": 2}}
        state = await begin(world, **request)
        prices = dict.fromkeys(Tier, ModelPrice(input=3.0, output=15.0))
        state.work.resolved = state.work.resolved.with_fields(model_prices=prices)
        host = world.host()
        await Driver(ResearchRun(state, Inbox(), host), load_strategy(name)).conduct()
    attempts = Counter(operation for activity, operation in host.calls if activity in CALLS)
    assert [operation for operation, count in attempts.items() if count > 1] == []


TWO: Any = {"limits": {"max_iterations": 2}}
ADVICE: Any = {"rationale": "as I see it", "guidance": []}


async def test_another_iteration_adds_an_analysis_and_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gaps are judged while the report is written, without it; that is reviewed beside the next analysis, for the
    writer of the next.
    """
    shown = list[str]()
    remark = "Say first at how many rows it begins."
    review = checking_work.reviewing
    monkeypatch.setattr(model_work, "report", _noting(shown, model_work.report))
    monkeypatch.setattr(checking_work, "reviewing", lambda prompt: review(prompt) | {"notes": [remark]})
    row, state, calls = await row_of(tmp_path, "supervisor", "gaps", **TWO)
    assert state.work.iteration == 2
    assert row == ROWS["supervisor"] + 2
    assert calls.count("refine_gaps") == 1
    assert calls.count("review_report") == 2
    second = calls.index("analyze_sources", calls.index("refine_gaps"))
    assert calls.index("review_report") > calls.index("write_report")
    assert calls.index("review_report") < calls.index("write_report", second)
    first, last = shown
    assert remark not in first
    assert remark in last


async def test_a_retry_drops_what_was_judged_of_the_analysis_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gaps of the repeated analysis are judged again, and no answer about others is taken for them."""
    actions = iter(["retry"])

    def reflection(prompt: str) -> dict[str, Any]:
        is_first = "The sources are analyzed" in prompt
        return ADVICE | {"action": next(actions, "proceed") if is_first else "proceed"}

    monkeypatch.setattr(model_work, "reflection", reflection)
    monkeypatch.setattr("workflows.strategies.supervisor.supervisor_strategy.queries_to_repeat", lambda _: ["sq"])
    _, state, calls = await row_of(tmp_path, "supervisor", "gaps", **TWO)
    assert state.work.iteration == 2
    assert calls.count("refine_gaps") == 2
    assert [one.action for one in state.people.decisions].count("retry") == 1


async def test_a_refiner_waits_where_a_model_reflects_on_every_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may end the run there, and the gaps would have been judged for nothing."""
    completing = ADVICE | {"action": "complete"}
    monkeypatch.setattr(model_work, "reflection", lambda _: completing)
    fields = TWO | {"gates": {"approve": "none", "think": "model"}}
    _, state, calls = await row_of(tmp_path, "supervisor", "gaps", **fields)
    assert state.evidence.unaddressed_gaps()
    assert "refine_gaps" not in calls


def _noting(shown: list[str], answer: Callable[[str], str]) -> Callable[[str], str]:
    """The same answer; the prompts are added to `shown`."""

    def noting(prompt: str) -> str:
        shown.append(prompt)
        return answer(prompt)

    return noting
