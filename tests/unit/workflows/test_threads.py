"""Follow-up questions: what the thread above a run has read comes first, and is counted."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from contracts.outcome import Counts
from contracts.plan import OTHER_FORM, PlanNode
from contracts.request import FollowUp
from contracts.vocabulary import EngineKind, Outcome
from tests.every_strategy.joined import Trial, world_of
from tests.fakes.corpus import MANUAL, MemoryCorpus
from tests.fakes.world import QUESTION, World, begin
from workflows.phases.searching import Searching

SAME = "Is it necessary to vacuum every table to prevent transaction ID wraparound?"
ELSE = "Which lock does an exclusive table lock conflict with?"

BRIEF: Mapping[str, Any] = {"depth": "light", "limits": {"max_iterations": 1}}


async def conducted(world: World, identity: str, strategy: str = "supervisor", **fields: Any) -> Trial:
    """A whole run under an id of its own."""
    trial = Trial(world, strategy, await begin(world, identity, strategy=strategy, **fields))
    assert await trial.conduct() in (Outcome.COMPLETED, Outcome.PARTIAL)
    return trial


async def thread(world: World, *questions: str, strategy: str = "supervisor", **fields: Any) -> list[Trial]:
    """Runs of which each follows the one before."""
    trials: list[Trial] = []
    for number, question in enumerate(questions):
        above = {"follow_up_of": f"r-{number - 1}"} if number else {}
        trials.append(await conducted(world, f"r-{number}", strategy, query=question, **above, **fields))
    return trials


@pytest.mark.one_in(3)
@pytest.mark.parametrize("engine", ["extractive", "model"])
async def test_a_question_that_the_thread_answers_is_not_searched_for(tmp_path: Path, engine: str) -> None:
    """Nothing is searched, every passage is counted as an earlier one, and the report says so (X-22)."""
    async with world_of(tmp_path, engine) as (world, _):
        await thread(world, QUESTION, **BRIEF)
        searched = len(world.corpus.searches)
        trial = await conducted(world, "r-next", query=SAME, follow_up_of="r-0", **BRIEF)
        counts = trial.state.counts()
        report = await trial.report()
    assert len(world.corpus.searches) == searched
    assert trial.state.accounts.usage.searches == 0
    assert counts.passages_cited
    assert counts.passages_earlier == counts.passages_cited
    assert counts.sources_earlier == counts.sources <= counts.sources_offered
    assert [name for name, _ in trial.host.calls].count("consult_thread") == 1
    assert f"from earlier answers of the thread: {counts.passages_cited}. Sources newly read: 0." in report


async def test_what_the_thread_lacks_is_searched_for_and_counted_apart(tmp_path: Path) -> None:
    """Sources of the thread and new ones are counted by the text that was archived before, not by who found them."""
    pages = {name: text for name, text in MANUAL.items() if "lock" not in name}
    corpus = MemoryCorpus(pages)
    world = World(tmp_path, corpus)
    await thread(world, QUESTION, **BRIEF)
    corpus.add({name: text for name, text in MANUAL.items() if name not in pages})
    trial = await conducted(world, "r-next", query=ELSE, follow_up_of="r-0", **BRIEF)
    counts = trial.state.counts()
    sources = trial.state.evidence.readable_sources()
    assert corpus.searches
    assert any("lock" in source.url and not source.earlier for source in sources)
    assert counts.sources_earlier == sum(source.earlier for source in sources) < counts.sources
    assert counts.passages_earlier < counts.passages_cited


async def test_every_question_above_is_offered_also_past_a_deleted_one(tmp_path: Path) -> None:
    """The third question is offered the pages of the first, after the second was deleted, too."""
    world = World(tmp_path)
    first, second = await thread(world, QUESTION, ELSE, **BRIEF)
    third = (await begin(world, "r-2", query=SAME, follow_up_of="r-1")).resolution.follow_up
    fourth = await conducted(world, "r-3", query="And what of locks on pages?", follow_up_of="r-1", **BRIEF)
    assert isinstance(third, FollowUp)
    assert (third.thread, third.answered) == (["r-0"], 2)
    assert [turn.question for turn in third.turns] == [QUESTION]
    assert "Found: " in third.turns[0].answer
    cited = {source.id for trial in (first, second) for source in trial.state.evidence.readable_sources()}
    assert third.sources <= len(cited)
    await world.sessions.delete("r-1")
    after = (await begin(world, "r-4", query=SAME, follow_up_of="r-3")).resolution.follow_up
    assert after.thread == ["r-0"]
    assert after.sources >= len(first.state.evidence.readable_sources()) - 1
    assert fourth.state.resolution.follow_up.thread == ["r-0"]


async def test_removed_documents_and_runs_of_others_are_not_offered(tmp_path: Path) -> None:
    """A document that left its corpus is none of the thread any more; nobody follows the run of another tenant."""
    world = World(tmp_path)
    [first] = await thread(world, QUESTION, **BRIEF)
    before = (await begin(world, "r-1", query=SAME, follow_up_of="r-0")).resolution.follow_up
    gone = first.state.evidence.readable_sources()[0].url.removeprefix("corpus:manual/")
    world.corpus.remove(gone)
    after = (await begin(world, "r-1", query=SAME, follow_up_of="r-0")).resolution.follow_up
    assert after.sources == before.sources - 1
    with pytest.raises(Exception, match="there is no stored run r-0"):
        await begin(world, "r-1", query=SAME, follow_up_of="r-0", tenant="another")


async def test_other_forms_of_an_answered_question_are_not_searched_for(tmp_path: Path) -> None:
    """The archivist is asked about the questions alone; their other forms are settled with them."""
    world = World(tmp_path)
    await thread(world, QUESTION, **BRIEF)
    trial = Trial(world, "supervisor", await begin(world, "r-1", query=SAME, follow_up_of="r-0"))
    queries = [
        PlanNode(id="sq-1", text=SAME),
        PlanNode(id="sq-2", text="vacuum wraparound table default", facet=OTHER_FORM),
    ]
    searching = Searching(trial.run, queries)
    answers = [await searching.search(query) for query in queries]
    assert all(answer.has_hits for answer in answers)
    assert {response.provider for answer in answers for response in answer.responses} == {"earlier"}
    assert [call for call, _ in trial.host.calls].count("consult_thread") == 1
    assert trial.state.accounts.engine_by_role["archivist"] == EngineKind.EXTRACTIVE


def test_a_run_that_follows_none_counts_nothing_of_a_thread() -> None:
    """Histories of earlier versions have no such figures."""
    old: Mapping[str, Any] = {"sources": 3, "passages_cited": 4}
    counts = Counts.model_validate(old)
    assert (counts.sources_offered, counts.sources_earlier, counts.passages_earlier) == (0, 0, 0)
