"""Every place of failure: nothing is concluded from what got no answer; a resumed run does it, and pays nothing again."""

import re
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest
from temporalio.exceptions import ApplicationError

from contracts import failures
from contracts.messages import SearchRequest, SearchResponse
from contracts.vocabulary import EngineKind, Outcome, StopReason
from providers.errors import NotConfigured
from tests.every_strategy.joined import ENGINES, Trial, resume, trial_of, undisturbed
from tests.fakes.corpus import MemoryCorpus

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


@pytest.mark.parametrize(("name", "engine", "place"), TRIALS)
async def test_a_resumed_run_does_what_got_no_answer(tmp_path: Path, name: str, engine: str, place: str) -> None:
    """The report names what is missing; resumed, the run finds what an undisturbed one finds (S0-131)."""
    fields = FIELDS.get(place, {})
    whole = await undisturbed(tmp_path / "whole", name, engine, **fields)
    by_role = {"synthesizer": "embroiders"} if place == "claim" else {}
    async with trial_of(tmp_path / "lost", name, engine, by_role=by_role, **fields) as trial:
        lost = lose_one(trial, place)
        await trial.conduct()
        assert lost
        assert trial.state.result.outcome in (Outcome.PARTIAL, Outcome.FAILED), trial.state.failed_branches
        read = list(trial.world.corpus.reads)
        later = await resume(trial, **fields)
    later.assert_completed()
    assert later.findings == whole.findings
    assert {source.id for source in later.state.readable_sources()} == {
        source.id for source in whole.state.readable_sources()
    }
    answered = Counter(call.request_hash for call in trial.api.calls if call.status == 200 and call.delivered)
    assert [request for request, count in answered.items() if count > 1] == []
    assert not set(trial.world.corpus.reads[len(read) :]) & set(read)
    if name != "orchestrator":  # another agent looks for itself
        assert sorted(trial.world.corpus.searches) == sorted(whole.world.corpus.searches)


class FragileCorpus(MemoryCorpus):
    """A corpus that refuses some searches for good."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: set[str] | None = set()
        """Words of the searches; None: every search."""

    async def search(self, request: SearchRequest) -> SearchResponse:
        if self.refused is None or request.text in self.refused:
            raise NotConfigured("this corpus was taken away")
        return await super().search(request)


SEARCHES: Final = [
    *((name, EngineKind.EXTRACTIVE.value, lost) for name, engine in ENGINES for lost in ("first", "last", "all")
      if engine != MODEL and name != "toy"),
    *(("supervisor", MODEL, lost) for lost in ("first", "last", "all")),
    ("reflective", MODEL, "all"),
    *(("orchestrator", MODEL, lost) for lost in ("first", "last", "all")),
]  # fmt: skip
"""With a model the next step is its decision: these are the ones in which the fake one looks further."""


@pytest.mark.parametrize(("name", "engine", "lost"), SEARCHES)
async def test_a_resumed_run_does_the_searches_that_failed(tmp_path: Path, name: str, engine: str, lost: str) -> None:
    """It never ends `empty` for them, and once they answer it finds what an undisturbed run finds (S0-097, S0-131, C0-13)."""
    whole = await undisturbed(tmp_path / "whole", name, engine)
    corpus = FragileCorpus()
    searched = whole.world.corpus.searches
    corpus.refused = {"first": {searched[0]}, "last": {searched[-1]}, "all": None}[lost]
    async with trial_of(tmp_path, name, engine, corpus=corpus) as trial:
        await trial.conduct()
        result = trial.state.result
        assert result.outcome is (Outcome.FAILED if lost == "all" else Outcome.PARTIAL)
        told = " ".join([*result.limitations, result.summary, await trial.report()])
        if lost == "all":  # nobody looked, so nobody says that nothing answers
            assert (result.stop_reason, trial.state.citations) == (StopReason.PROVIDER_OUTAGE, [])
            assert not re.search("Nothing in the sources|No passage matches|nothing answers", told)
        corpus.refused = set()
        later = await resume(trial)
    assert later.findings == whole.findings
    later.assert_completed()


@pytest.mark.parametrize(("name", "engine"), ENGINES)
async def test_the_report_lists_the_searches_that_were_made(tmp_path: Path, name: str, engine: str) -> None:
    """In `report.json` and in *Method*: those of agents and before the plan too, and no task or step beside them."""
    whole = await undisturbed(tmp_path, name, engine)
    made = set(whole.world.corpus.searches)
    assert {query["text"] for query in (await whole.document())["queries"]} == made
    report = await whole.report()
    assert not [text for text in made if text not in report.replace("\\", "")]
