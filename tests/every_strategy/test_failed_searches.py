"""Searches that fail: nothing is concluded from them, and a resumed run does what got no answer."""

import json
from pathlib import Path
from typing import Final

import pytest

from contracts.messages import SearchRequest, SearchResponse
from contracts.vocabulary import EngineKind, Outcome
from providers.errors import NotConfigured
from tests.every_strategy.joined import ENGINES, Trial, begin_trial, resume, undisturbed
from tests.fakes.corpus import MemoryCorpus
from tests.fakes.messages_api import MessagesApi
from tests.fakes.world import World, model_world


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


def findings(trial: Trial) -> set[str]:
    """Ids of the findings: the same words of the same documents have the same."""
    return {finding.id for finding in trial.state.findings}


MODEL: Final = EngineKind.MODEL.value
TRIALS: Final = [
    *((name, EngineKind.EXTRACTIVE.value, lost) for name, engine in ENGINES for lost in ("first", "last", "all")
      if engine != MODEL and name != "toy"),
    *(("supervisor", MODEL, lost) for lost in ("first", "last", "all")),
    ("reflective", MODEL, "all"),
    *(("orchestrator", MODEL, lost) for lost in ("first", "last", "all")),
]  # fmt: skip
"""With a model the next step is its decision: these are the ones in which the fake one looks further."""


@pytest.mark.parametrize(("name", "engine", "lost"), TRIALS)
async def test_a_resumed_run_does_the_searches_that_failed(tmp_path: Path, name: str, engine: str, lost: str) -> None:
    """It never ends `empty` for them, and once they answer it finds what an undisturbed run finds (S0-131)."""
    whole = await undisturbed(tmp_path / "whole", name, engine)
    corpus = FragileCorpus()
    searched = whole.world.corpus.searches
    corpus.refused = {"first": {searched[0]}, "last": {searched[-1]}, "all": None}[lost]
    async with MessagesApi() as api:
        by_model = engine == MODEL
        world = model_world(tmp_path, api.base_url, corpus) if by_model else World(tmp_path, corpus)
        trial = await begin_trial(world, name)
        await trial.conduct()
        result = trial.state.result
        assert result is not None
        assert result.outcome is (Outcome.FAILED if lost == "all" else Outcome.PARTIAL)
        corpus.refused = set()
        later = await resume(trial)
        await world.close()
    assert later.state.result is not None
    assert findings(later) == findings(whole)
    assert later.state.result.outcome is Outcome.COMPLETED, later.state.result.limitations


@pytest.mark.parametrize(("name", "engine"), ENGINES)
async def test_the_report_lists_the_searches_that_were_made(tmp_path: Path, name: str, engine: str) -> None:
    """In `report.json` and in *Method*: those of agents and before the plan too, and no task or step beside them."""
    whole = await undisturbed(tmp_path, name, engine)
    made = set(whole.world.corpus.searches)
    assert whole.state.result is not None
    assert whole.state.result.files is not None
    document = json.loads(await whole.world.content.get_text(whole.state.result.files.json_document))
    assert {query["text"] for query in document["queries"]} == made
    report = await whole.report()
    assert not [text for text in made if text not in report.replace("\\", "")]


@pytest.mark.parametrize(("name", "engine"), ENGINES)
async def test_a_run_that_searched_nothing_never_says_that_nothing_answers(
    tmp_path: Path, name: str, engine: str
) -> None:
    """Neither as its outcome nor as a limitation: nobody looked."""
    corpus = FragileCorpus()
    corpus.refused = None
    async with MessagesApi() as api:
        world = model_world(tmp_path, api.base_url, corpus) if engine == MODEL else World(tmp_path, corpus)
        trial = await begin_trial(world, name)
        await trial.conduct()
        await world.close()
    result = trial.state.result
    assert result is not None
    assert result.outcome is Outcome.FAILED
    said = " ".join([*result.limitations, result.summary, await trial.report()])
    assert not [words for words in ("Nothing in the sources", "No passage matches", "nothing answers") if words in said]
