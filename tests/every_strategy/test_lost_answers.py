"""Every place of failure: nothing is concluded from what got no answer; a resumed run does it, and pays nothing again."""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from temporalio.exceptions import ApplicationError

from contracts import failures
from contracts.messages import SearchRequest, SearchResponse
from contracts.strategies import declaration
from contracts.vocabulary import EngineKind, Outcome, StopReason
from tests.every_strategy.joined import ENGINES, Trial, resume, trial_of, whole_run
from tests.fakes import model_work, reflective_work, tool_work
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
    if place != "section" or not declaration(name).live_report
    if engine == MODEL or place in ("page", "analysis")
]
IDLE: Final = [
    *(("orchestrator", "query", place) for place in range(3)),
    *(("orchestrator", place, 0) for place in ("page", "analysis")),
    ("reflective", "query", 2),
    ("reflective", "page", 0),
    ("supervisor", "query", 2),
    ("supervisor", "analysis", 0),
]
"""Strategy, place of failure, and how many pieces of such work are done before it."""


def lose_one(trial: Trial, place: str, after: int = 0) -> list[str]:
    """Have one piece of work at this place fail, however often it is tried; its name, once it was tried."""
    activity, kind = LOST[place]
    if activity == "analyze_sources" and "extractor" in {role.name for role in declaration(trial.name).roles}:
        activity = "extract_source"
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


@pytest.mark.one_in(6)
@pytest.mark.parametrize(("name", "engine", "place"), TRIALS)
async def test_a_resumed_run_does_what_got_no_answer(tmp_path: Path, name: str, engine: str, place: str) -> None:
    """The report names what is missing; resumed, the run finds what an undisturbed one finds (S0-131, C4-12)."""
    fields = FIELDS.get(place, {})
    whole = await whole_run(tmp_path / "whole", name, engine, **fields)
    by_role = {"synthesizer": "embroiders", "reporter": "embroiders"} if place == "claim" else {}
    async with trial_of(tmp_path / "lost", name, engine, by_role=by_role, **fields) as trial:
        lost = lose_one(trial, place)
        await trial.conduct()
        assert lost
        assert trial.state.work.result.outcome in (Outcome.PARTIAL, Outcome.FAILED), trial.state.work.failed_branches
        read = list(trial.world.corpus.reads)
        later = await resume(trial, **fields)
    later.assert_completed()
    assert later.findings >= whole.findings
    assert name == "orchestrator" or later.findings == whole.findings  # another agent looks for itself
    assert {source.id for source in later.state.evidence.readable_sources()} == {
        source.id for source in whole.state.evidence.readable_sources()
    }
    assert answered_twice(trial) == []
    assert not set(trial.world.corpus.reads[len(read) :]) & set(read)
    if name != "orchestrator":
        assert sorted(trial.world.corpus.searches) == sorted(whole.world.corpus.searches)


def answered_twice(trial: Trial) -> list[str]:
    answered = Counter(call.request_hash for call in trial.api.calls if call.status == 200 and call.delivered)
    return [request for request, count in answered.items() if count > 1]


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


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("name", "place", "after"), IDLE)
async def test_a_model_cannot_leave_out_what_got_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, place: str, after: int
) -> None:
    """A resumed run whose model would end at once has the findings of an undisturbed one, or is not completed."""
    limits = {"max_sources": 3 if name == "orchestrator" else 30}
    whole = await whole_run(tmp_path / "whole", name, MODEL, limits=limits)
    async with trial_of(tmp_path / "lost", name, MODEL, limits=limits) as trial:
        lost = lose_one(trial, place, after)
        await trial.conduct()
        assert lost
        stop_at_once(monkeypatch)
        later = await resume(trial, limits=limits)
    assert later.findings >= whole.findings or later.state.work.result.outcome is not Outcome.COMPLETED
    assert answered_twice(trial) == []


async def test_what_a_limit_forbids_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages without an answer for which no page is left to the agents keep the resumed run from being completed."""
    async with trial_of(tmp_path, "orchestrator", MODEL) as trial:
        lost = [lose_one(trial, "page", after) for after in range(3)]
        await trial.conduct()
        assert any(lost)
        stop_at_once(monkeypatch)
        later = await resume(trial, limits={"max_reads_per_step": 1})
    assert later.state.work.result.outcome is Outcome.PARTIAL
    assert "because the limit of pages was reached" in await later.report()


def refuse_searches(trial: Trial, refused: set[str] | None) -> None:
    """Refuse searches with these words for good, or every search."""
    search = trial.host.implementations["search"]

    async def refuse(request: SearchRequest) -> SearchResponse:
        if refused is None or request.text in refused:
            raise ApplicationError("it was taken away", type=failures.SEARCH_NOT_CONFIGURED, non_retryable=True)
        response: SearchResponse = await search(request)
        return response

    trial.host.implementations["search"] = refuse


SEARCHES: Final = [
    *((name, EngineKind.EXTRACTIVE.value, lost) for name, engine in ENGINES for lost in ("first", "last", "all")
      if engine != MODEL and name != "toy"),
    *(("supervisor", MODEL, lost) for lost in ("first", "last", "all")),
    ("reflective", MODEL, "all"),
    *(("orchestrator", MODEL, lost) for lost in ("first", "last", "all")),
]  # fmt: skip
"""With a model the next step is its decision: these are the ones in which the fake one looks further."""


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("name", "engine", "lost"), SEARCHES)
async def test_a_resumed_run_does_the_searches_that_failed(tmp_path: Path, name: str, engine: str, lost: str) -> None:
    """It never ends `empty` for them, and once they answer it finds what an undisturbed run finds (S0-097, S0-131, C0-13)."""
    whole = await whole_run(tmp_path / "whole", name, engine)
    searched = whole.world.corpus.searches
    async with trial_of(tmp_path, name, engine) as trial:
        refuse_searches(trial, {"first": {searched[0]}, "last": {searched[-1]}, "all": None}[lost])
        await trial.conduct()
        result = trial.state.work.result
        assert result.outcome is (Outcome.FAILED if lost == "all" else Outcome.PARTIAL)
        told = " ".join([*result.limitations, result.summary, await trial.report()])
        if lost == "all":  # nobody looked, so nobody says that nothing answers
            assert result.counts.queries_failed == len(trial.state.searches()) > 0
            assert (result.stop_reason, trial.state.evidence.citations) == (StopReason.PROVIDER_OUTAGE, [])
            assert not re.search("Nothing in the sources|No passage matches|nothing answers", told)
        later = await resume(trial)
    assert later.findings == whole.findings
    later.assert_completed()


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("name", "engine"), ENGINES)
async def test_the_report_lists_the_searches_that_were_made(tmp_path: Path, name: str, engine: str) -> None:
    """In `report.json` and in *Method*: those of agents and before the plan too, and no task or step beside them."""
    whole = await whole_run(tmp_path / "whole", name, engine)
    made = set(whole.world.corpus.searches)
    assert {query["text"] for query in (await whole.document())["queries"]} == made
    report = await whole.report()
    assert not [text for text in made if text not in report.replace("\\", "")]
