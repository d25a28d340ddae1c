"""Fields of a request that change what a whole run reads and writes: `exclude`, `follow_up_of`, `output`."""

from pathlib import Path
from typing import Any

import pytest

from contracts.evidence import DocumentRef
from contracts.exclusions import mentions
from contracts.notebooks import HitsEntry
from contracts.vocabulary import Outcome
from tests.every_strategy.joined import Trial, trial_of, undisturbed
from tests.fakes.host import InProcessHost
from tests.fakes.world import World
from tests.unit.workflows.test_supervisor_strategy import QUESTION, begin

FOLLOWING = "Which settings control the freezing of old rows?"


@pytest.mark.parametrize(
    ("text", "exclusion", "found"),
    [
        ("The Lock is held.", "lock", True),
        ("Local clocks block", "lock", False),
        ("Version 9.6 is old", "version 9.6", True),
        ("row and table locks", "table locks", True),
        ("table of locks", "table locks", False),
        ("anything", "…", False),
    ],
)
def test_an_exclusion_is_whole_words_in_their_order(text: str, exclusion: str, found: bool) -> None:
    """Case does not count; parts of words do not match."""
    assert mentions(text, exclusion) is found


@pytest.mark.parametrize("engine", ["extractive", "model"])
async def test_nothing_excluded_is_read_or_cited(tmp_path: Path, engine: str) -> None:
    """Neither engine reads the source, and the report quotes no passage that names it; a model is told as well."""
    excluded = ["locks.md", "locks", "lock"]
    async with trial_of(tmp_path, "supervisor", engine, depth="medium", exclude=excluded) as trial:
        assert await trial.conduct() is not Outcome.FAILED
        report = await trial.report()
    assert trial.state.citations
    assert not [source.url for source in trial.state.sources.values() if "locks" in source.url]
    assert not any(mentions(finding.statement, "lock") for finding in trial.state.findings)
    assert "> " not in "".join(line for line in report.splitlines() if mentions(line, "locks"))
    prompts = [request.prompt for request in trial.api.requests]
    assert all("Leave out, do not report on: locks" in prompt for prompt in prompts if "<preferences>" in prompt)
    assert bool(prompts) is (engine == "model")


async def conducted(world: World, identity: str, strategy: str = "supervisor", **fields: Any) -> Trial:
    """A whole run under an id of its own."""
    trial = Trial(world, strategy, await begin(world, identity, strategy=strategy, **fields))
    assert await trial.conduct() in (Outcome.COMPLETED, Outcome.PARTIAL)
    return trial


async def test_what_was_found_before_is_offered_first_and_the_report_says_so(tmp_path: Path) -> None:
    """Earlier sources come before those of the search, are read and quoted again, and the report names them (X-22)."""
    world = World(tmp_path)
    first = (await conducted(world, "r-first", query=QUESTION)).state
    trial = await conducted(world, "r-second", query=FOLLOWING, follow_up_of="r-first")
    state, earlier = trial.state, trial.state.resolution.follow_up
    assert len({citation.source_id for citation in first.citations}) <= earlier.sources <= len(first.sources)
    assert state.resolution.earlier_turns[-1].question == QUESTION
    offered = HitsEntry.model_validate_json(await world.content.get_text(DocumentRef(hash=earlier.entry)))
    assert {"Routine Vacuuming", "The Autovacuum Daemon"} <= {hit.title for hit in offered.hits}
    assert all(hit.snippet and hit.rank for hit in offered.hits)
    again = [source for source in state.sources.values() if source.provider == "earlier"]
    ranks = {source.rank for source in again if source.sub_query_ids[0] == state.plan.sub_queries[0].id}
    others = {source.rank for source in state.sources.values() if source.provider != "earlier"}
    assert max(ranks) < min(others)
    assert state.citations
    report = await trial.report()
    assert "r-first" in report
    assert "offered first" in report


async def test_agents_are_offered_the_earlier_sources_and_not_the_earlier_question(tmp_path: Path) -> None:
    """What the report says was offered first was offered, and read (X-22, S3-009)."""
    world = World(tmp_path)
    await conducted(world, "r-first", query=QUESTION)
    trial = await conducted(world, "r-second", "orchestrator", query=FOLLOWING, follow_up_of="r-first")
    again = [source for source in trial.state.sources.values() if source.provider == "earlier"]
    assert again
    assert f"{len(again)} were read again" in await trial.report()
    assert not any(QUESTION in request.model_dump_json() for request in trial.host.agents)


async def test_a_long_report_is_written_section_by_section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each section from its own evidence; the frame goes around them, before calls of runs that begin."""
    fields = {
        "depth": "medium",
        "output": {"target_words": 6_000},
        "limits": {"max_iterations": 1, "max_sub_queries": 3},
    }
    first = dict[str, bool]()
    run = InProcessHost.execute

    async def noted(self: Any, spec: Any, argument: Any, options: Any) -> Any:
        first[options.activity_id] = options.first
        return await run(self, spec, argument, options)

    monkeypatch.setattr(InProcessHost, "execute", noted)
    trial = await undisturbed(tmp_path, "supervisor", "model", **fields)
    trial.assert_completed()
    assert first["join/1"]
    calls = [operation for name, operation in trial.host.calls if name in ("write_report", "join_report")]
    draft, document = trial.state.draft, await trial.document()
    assert sorted(calls) == ["join/1", "write-frame/1", "write-section-1/1", "write-section-2/1"]
    assert draft.sections == ["Summary", "Part 1", "Part 2", "Gaps and limitations", "Conclusion"]
    text = await trial.world.content.get_text(draft.document)
    assert [text.count(heading) for heading in ("\n## Part 1\n", "\n## Part 2\n")] == [1, 1]
    assert set(draft.evidence_ids) <= trial.state.evidence.keys()
    assert {claim["section"] for claim in document["claims"]} >= {"Part 1", "Part 2"}
    markdown = document["report"]["markdown"]
    assert all(markdown[one["start"] : one["end"]] == one["text"] for one in document["claims"])
