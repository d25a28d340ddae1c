"""Every place of failure: what got no answer is done by a resumed run, and what got one is not paid again."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from temporalio.exceptions import ApplicationError

from contracts import failures
from contracts.vocabulary import EngineKind, Outcome
from tests.every_strategy.joined import ENGINES, Trial, begin_trial, resume, undisturbed, world_of
from tests.fakes import model_work, reflective_work, tool_work
from tests.fakes.messages_api import MessagesApi
from tests.toy.roles import TOY

MODEL: Final = EngineKind.MODEL.value
LOST: Final[dict[str, tuple[str, str]]] = {
    "query": ("search", failures.STORE_UNAVAILABLE),
    "page": ("read_source", failures.STORE_UNAVAILABLE),
    "analysis": ("analyze_sources", failures.INPUT_UNPROCESSABLE),
    "analysis in an outage": ("analyze_sources", failures.MODEL_UNAVAILABLE),
    "claim": ("check_claims", failures.MODEL_UNAVAILABLE),
    "section": ("write_report", failures.MODEL_UNAVAILABLE),
}
"""Place of failure → activity, and type of the failure."""
FIELDS: Final[dict[str, dict[str, Any]]] = {
    "claim": {"verify": "full"},
    "section": {"output": {"target_words": 6_000}, "limits": {"max_sub_queries": 3}},
}
TRIALS: Final = [
    (name, engine, place)
    for name, engine in ENGINES
    for place in LOST
    if name != TOY.name and place != "query"
    if engine == MODEL or place in ("page", "analysis")
]
IDLE: Final = [
    *(("orchestrator", "query", place) for place in range(3)),
    *(("orchestrator", place, 0) for place in ("page", "analysis")),
    ("reflective", "query", 2),
    ("reflective", "page", 0),
    ("supervisor", "query", 2),
    ("supervisor", "analysis", 1),
]
"""Strategy, place of failure, and how many pieces of such work are done before it."""


def lose_one(trial: Trial, place: str, after: int = 0) -> list[str]:
    """Have one piece of work at this place fail, however often it is tried; its name, once it was tried."""
    activity, kind = LOST[place]
    work, done, lost = trial.host.implementations[activity], set[str](), list[str]()

    async def fail(request: Any) -> Any:
        subject = identity(request)
        if not lost and len(done - {subject}) == after:
            lost.append(subject)
        done.add(subject)
        if subject in lost:
            raise ApplicationError("gone", {"kind": kind}, type=kind, non_retryable=True)
        return await work(request)

    trial.host.implementations[activity] = fail
    return lost


def identity(request: Any) -> str:
    """Name the piece of work that a request is for, in whatever attempt."""
    for field in ("url", "text"):
        if hasattr(request, field):
            return str(getattr(request, field))
    return str(request.operation).split("/repair")[0].split("/fallback")[0]


def answered_twice(api: MessagesApi) -> list[str]:
    """Return the requests that were answered more than once."""
    answered = Counter(call.request_hash for call in api.calls if call.status == 200 and call.delivered)
    return [request for request, count in answered.items() if count > 1]


def findings(trial: Trial) -> set[str]:
    """Ids of the findings: the same words of the same documents have the same."""
    return {finding.id for finding in trial.state.findings}


@pytest.mark.parametrize(("name", "engine", "place"), TRIALS)
async def test_a_resumed_run_does_what_got_no_answer(tmp_path: Path, name: str, engine: str, place: str) -> None:
    """The report names what is missing; resumed, the run finds what an undisturbed one finds (S0-131)."""
    fields = FIELDS.get(place, {})
    whole = await undisturbed(tmp_path / "whole", name, engine, **fields)
    async with world_of(tmp_path / "lost", engine) as (world, api):
        if place == "claim":
            api.plan.by_role = {"synthesizer": "embroiders"}
        trial = await begin_trial(world, name, **fields)
        lost = lose_one(trial, place)
        await trial.conduct()
        assert lost
        assert trial.state.result is not None
        assert trial.state.result.outcome in (Outcome.PARTIAL, Outcome.FAILED), trial.state.failed_branches
        read = list(world.corpus.reads)
        later = await resume(trial, **fields)
    assert later.state.result is not None
    assert later.state.result.outcome is Outcome.COMPLETED, (later.state.failed_branches, later.state.limitations)
    assert findings(later) >= findings(whole)
    assert name == "orchestrator" or findings(later) == findings(whole)  # another agent looks for itself
    assert {source.id for source in later.state.readable_sources()} == {
        source.id for source in whole.state.readable_sources()
    }
    assert answered_twice(api) == []
    assert not set(world.corpus.reads[len(read) :]) & set(read)
    if name != "orchestrator":
        assert sorted(world.corpus.searches) == sorted(whole.world.corpus.searches)


def stop_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the model look no further wherever it may decide: it searches for nothing of use, opens no page, ends."""

    def report(body: Mapping[str, Any]) -> list[dict[str, Any]]:
        may_report = "generate_report" in tool_work.offered(body)
        return tool_work.blocks(body, ("generate_report", {}) if may_report else ("search", {"query": "weather"}))

    monkeypatch.setitem(tool_work.TOOL_WORK, "agent", report)
    monkeypatch.setitem(tool_work.TOOL_WORK, "orchestrator", report)
    for module, name, answer in (
        (reflective_work, "searches", {"queries": [], "pages": []}),
        (reflective_work, "reflection", {"decision": "complete", "reasoning": "enough"}),
        (model_work, "refinement", {"gap_analysis": [], "iteration_recommendation": {"should_iterate": False}}),
    ):
        monkeypatch.setattr(module, name, lambda _, given=answer: given)


@pytest.mark.parametrize(("name", "place", "after"), IDLE)
async def test_a_model_cannot_leave_out_what_got_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, place: str, after: int
) -> None:
    """A resumed run whose model would end at once has the findings of an undisturbed one, or is not completed."""
    limits = {"max_sources": 3 if name == "orchestrator" else 30}
    whole = await undisturbed(tmp_path / "whole", name, MODEL, limits=limits)
    async with world_of(tmp_path / "lost", MODEL) as (world, api):
        trial = await begin_trial(world, name, limits=limits)
        lost = lose_one(trial, place, after)
        await trial.conduct()
        assert lost
        stop_at_once(monkeypatch)
        later = await resume(trial, limits=limits)
    assert later.state.result is not None
    assert findings(later) >= findings(whole) or later.state.result.outcome is not Outcome.COMPLETED
    assert answered_twice(api) == []


async def test_what_a_limit_forbids_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages without an answer for which no page is left to the agents keep the resumed run from being completed."""
    async with world_of(tmp_path, MODEL) as (world, _):
        trial = await begin_trial(world, "orchestrator")
        lost = [lose_one(trial, "page", after) for after in range(3)]
        await trial.conduct()
        assert any(lost)
        stop_at_once(monkeypatch)
        later = await resume(trial, limits={"max_reads_per_step": 1})
    assert later.state.result is not None
    assert later.state.result.outcome is Outcome.PARTIAL
    assert "because the limit of pages was reached" in await later.report()
