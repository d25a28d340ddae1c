"""Every place of failure: what got no answer is done by a resumed run, and what got one is not paid again."""

from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest
from temporalio.exceptions import ApplicationError

from contracts import failures
from contracts.vocabulary import EngineKind, Outcome
from tests.every_strategy.joined import ENGINES, Trial, begin_trial, resume, undisturbed, world_of
from tests.fakes.messages_api import MessagesApi

MODEL: Final = EngineKind.MODEL.value
LOST: Final[dict[str, tuple[str, str]]] = {
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
    if name in ("supervisor", "reflective") or (name == "orchestrator" and engine != MODEL)
    if engine == MODEL or place in ("page", "analysis")
]
"""A model that sends agents decides itself whether it sends another one for what is missing."""


def lose_one(trial: Trial, place: str) -> list[str]:
    """Have the first piece of work at this place fail, however often it is tried; its name, once it was tried."""
    activity, kind = LOST[place]
    work, lost = trial.host.implementations[activity], list[str]()

    async def fail(request: Any) -> Any:
        subject = identity(request)
        lost[:] = lost or [subject]
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
    assert findings(later) == findings(whole)
    assert {source.id for source in later.state.readable_sources()} == {
        source.id for source in whole.state.readable_sources()
    }
    assert answered_twice(api) == []
    assert not set(world.corpus.reads[len(read) :]) & set(read)
    if name != "orchestrator":  # another agent looks for itself
        assert sorted(world.corpus.searches) == sorted(whole.world.corpus.searches)
