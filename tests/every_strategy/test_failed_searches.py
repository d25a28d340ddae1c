"""Searches that fail: nothing is concluded from them, and a resumed run does what got no answer."""

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
