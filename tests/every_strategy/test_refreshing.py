"""A finished living run whose sources are read again: only what has changed is worked on, and the report says what."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from contracts.state import ResearchState
from contracts.vocabulary import EngineKind, Outcome
from providers.errors import SourceUnreadable
from tests.every_strategy.joined import Trial, begin_again, trial_of
from tests.fakes.corpus import MANUAL, MemoryCorpus
from tests.fakes.world import begin
from workflows.run.checkpoints import begin_refresh, resume_state
from workflows.strategies import load_strategy

ENGINES = [EngineKind.EXTRACTIVE.value, EngineKind.MODEL.value]
CHANGED = MANUAL["autovacuum.md"].replace("even when it is disabled", "even where it is switched off")
GATES = {"approve": "none"}
FULL = {"verify": "full"}


class ChangingCorpus(MemoryCorpus):
    """A corpus whose documents can be changed and removed."""

    def change(self, path: str, text: str | None) -> None:
        if text is None:
            del self._documents[path]
        else:
            self._documents[path] = text

    async def read(self, url: str) -> Any:
        if url.rpartition("/")[2] not in self._documents:
            raise SourceUnreadable("not_found", "the corpus has no such document")
        return await super().read(url)


async def refresh(trial: Trial, **fields: Any) -> Trial:
    """Read everything again in what the session store holds, to the end."""
    again = await begin_refreshed(trial, **fields)
    await again.conduct()
    return again


async def begin_refreshed(trial: Trial, **fields: Any) -> Trial:
    """What reads everything again; it has done nothing yet."""
    stored = ResearchState.model_validate_json(await trial.world.sessions.load("r-unit") or "")
    fresh = await begin(trial.world, strategy=trial.name, depth="light", gates=GATES, **fields)
    begin_refresh(stored, requested=True)
    later = resume_state(stored, fresh.work.resolved, fresh.clock.started_at, load_strategy(trial.name).resume)
    later.clock.clock_started_at, later.clock.deadline_at = fresh.clock.clock_started_at, fresh.clock.deadline_at
    again = Trial(trial.world, trial.name, later)
    again.api = trial.api
    return again


@pytest.mark.one_in(2)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("more", [{}, FULL], ids=["light", "full"])
async def test_a_refresh_of_unchanged_sources_costs_nothing(tmp_path: Path, engine: str, more: dict[str, Any]) -> None:
    """A second refresh, too, asks no model, searches for nothing, reads every source once and changes no word."""
    async with trial_of(tmp_path, "living", engine, corpus=ChangingCorpus(), gates=GATES, **more) as run:
        await run.conduct()
        before, calls = await run.document(), len(run.api.calls)
        trial = run
        for _ in range(2):
            trial.world.corpus.reads.clear()
            trial.world.corpus.searches.clear()
            trial = await refresh(run, **more)
            document = await trial.document()
            assert len(trial.api.calls) == calls
            assert trial.world.corpus.searches == []
            assert len(trial.world.corpus.reads) == len(trial.state.evidence.readable_sources()) > 2
            assert document["changes"] == {"since": before["ended_at"], "claims": [], "sources": []}
            assert document["verification"] == before["verification"]
            assert [claim["text"] for claim in document["claims"]] == [claim["text"] for claim in before["claims"]]
            assert document["outcome"] == before["outcome"]
            assert set(trial.host.by_unit) <= {"refresh", ""}
            before = document


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("engine", "more", "roles"),
    [
        (EngineKind.EXTRACTIVE.value, {}, []),
        (EngineKind.MODEL.value, {}, ["analyzer", "arranger", "reporter", "reporter"]),
        (EngineKind.MODEL.value, FULL, ["analyzer", "arranger", "reporter", "reporter"]),
    ],
    ids=["extractive", "model", "full"],
)
async def test_a_changed_page_costs_its_own_calls_alone(
    tmp_path: Path, engine: str, more: dict[str, Any], roles: list[str]
) -> None:
    """What was said from it is withdrawn and written anew within the bound, and the changes name nothing else."""
    corpus = ChangingCorpus()
    async with trial_of(tmp_path, "living", engine, corpus=corpus, gates=GATES, **more) as run:
        await run.conduct()
        before, calls = await run.document(), len(run.api.calls)
        corpus.change("autovacuum.md", CHANGED)
        trial = await refresh(run, **more)
        document = await trial.document()
        bound = trial.run.resolved.limits.max_update_characters
    assert [call.role for call in trial.api.calls[calls:]] == roles
    (source,) = document["changes"]["sources"]
    assert (source["kind"], source["title"]) == ("changed", "The Autovacuum Daemon")
    assert any("even when it is disabled" in passage for passage in source["passages"])
    (claim,) = document["changes"]["claims"]
    assert claim["kind"] == "worded_anew"
    assert "even when it is disabled" in claim["before"]
    assert claim["after"] == claim["before"].replace("even when it is disabled", "even where it is switched off")
    assert document["outcome"] == before["outcome"] == Outcome.COMPLETED.value
    assert len(document["claims"]) == len(before["claims"])
    steps = [event.data for event in trial.state.people.events if event.type == "report.updated"]
    assert len(steps) >= 2
    assert all(step["inserted"] + step["removed"] <= bound for step in steps)
    quoted = {item["id"]: item["quote"] for item in document["evidence"] if item["source_id"] == source["source_id"]}
    assert all(" ".join(quote.split()) in " ".join(CHANGED.split()) for quote in quoted.values())
    assert any(set(quoted) & set(one["evidence_ids"]) for one in document["claims"])


async def test_a_page_that_is_gone_counts_as_archived(tmp_path: Path) -> None:
    """Its claims stay with the passages that they cite, and the report names it; it is not gone for good."""
    corpus = ChangingCorpus()
    async with trial_of(tmp_path, "living", EngineKind.MODEL.value, corpus=corpus, gates=GATES) as run:
        await run.conduct()
        before, calls = await run.document(), len(run.api.calls)
        corpus.change("autovacuum.md", None)
        trial = await refresh(run)
        document = await trial.document()
        assert len(trial.api.calls) == calls
        (source,) = document["changes"]["sources"]
        assert (source["kind"], source["reason"]) == ("gone", "not_found")
        assert source["passages"]
        assert document["changes"]["claims"] == []
        assert [claim["text"] for claim in document["claims"]] == [claim["text"] for claim in before["claims"]]
        assert any("The Autovacuum Daemon" in line for line in document["limitations"])
        corpus.change("autovacuum.md", MANUAL["autovacuum.md"])
        again = await (await refresh(trial)).document()
    assert again["changes"]["sources"] == []
    assert not any("The Autovacuum Daemon" in line for line in again["limitations"])


async def test_a_cancelled_refresh_can_be_continued(tmp_path: Path) -> None:
    """Cancelled before the changed page is analyzed, it is resumed: the changes are those since before the refresh."""
    corpus = ChangingCorpus()
    async with trial_of(tmp_path, "living", EngineKind.MODEL.value, corpus=corpus, gates=GATES) as trial:
        await trial.conduct()
        before = await trial.document()
        corpus.change("autovacuum.md", CHANGED)
        cut = await begin_refreshed(trial)
        place = len(cut.state.evidence.readable_sources()) + 2  # each source is read, then what was said is withdrawn
        cut.host.acts["refresh", place] = cut.cancel
        with pytest.raises(asyncio.CancelledError):
            await cut.conduct()
        again = await begin_again(cut, gates=GATES)
        await again.conduct()
        document = await again.document()
    assert document["changes"]["since"] == before["ended_at"]
    assert [one["kind"] for one in document["changes"]["claims"]] == ["worded_anew"]
    assert [one["kind"] for one in document["changes"]["sources"]] == ["changed"]


async def test_a_refresh_that_is_stopped_says_what_it_did_not_read(tmp_path: Path) -> None:
    """The report is whole, and a later refresh reads the rest; a resumption that is none reads nothing again."""
    corpus = ChangingCorpus()
    async with trial_of(tmp_path, "living", EngineKind.EXTRACTIVE.value, corpus=corpus, gates=GATES) as run:
        await run.conduct()
        before = await run.document()
        cut = await begin_refreshed(run)
        await cut.stop()
        await cut.conduct()
        document = await cut.document()
        assert any("The refresh ended before all sources were read again" in line for line in document["limitations"])
        assert [claim["text"] for claim in document["claims"]] == [claim["text"] for claim in before["claims"]]
        corpus.reads.clear()
        again = await refresh(run)
        assert len(corpus.reads) == len(again.state.evidence.readable_sources())
        assert (await again.document())["outcome"] == before["outcome"]
