"""Fields of a request that change what a run reads and writes: exclusions, follow-ups, output, protected sources."""

import re
from pathlib import Path
from typing import Any

import pytest

from contracts.evidence import DocumentRef
from contracts.exclusions import mentions
from contracts.notebooks import HitsEntry
from contracts.parse_request import InvalidRequest, parse_request
from contracts.protected_sources import resolve_protected_sources
from contracts.request import ResearchRequest
from contracts.state import ResearchState
from contracts.texts import from_markdown
from contracts.tokens import RATIOS, ContentEntry, Level
from contracts.vocabulary import Outcome, Phase, RunStatus, SourceStatus
from tests.every_strategy.joined import Trial, at_window, trial_of, undisturbed
from tests.fakes import states
from tests.fakes.corpus import MANUAL, MemoryCorpus
from tests.fakes.host import InProcessHost
from tests.fakes.model_tokens import TokenBook
from tests.fakes.world import QUESTION, World, begin
from workflows.rules.duplicates import add_unread_protected, hits_to_protect, protected_ids
from workflows.run.checkpoints import resume_state
from workflows.strategies import load_strategy

FOLLOWING = "Which settings control the freezing of old rows?"


@pytest.mark.one_in(2)
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


@pytest.mark.one_in(2)
@pytest.mark.parametrize("engine", ["extractive", "model"])
async def test_nothing_excluded_is_read_or_cited(tmp_path: Path, engine: str) -> None:
    """Neither engine reads the source, and the report quotes no passage that names it; a model is told as well."""
    excluded = ["locks.md", "locks", "lock"]
    async with trial_of(tmp_path, "supervisor", engine, depth="medium", exclude=excluded) as trial:
        assert await trial.conduct() is not Outcome.FAILED
        report = await trial.report()
    assert trial.state.evidence.citations
    assert not [source.url for source in trial.state.evidence.sources.values() if "locks" in source.url]
    assert not any(mentions(finding.statement, "lock") for finding in trial.state.evidence.findings)
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
    """Earlier sources come before those of the search and are quoted again, and the report names them (X-22)."""
    world = World(tmp_path)
    first = (await conducted(world, "r-first", query=QUESTION)).state
    trial = await conducted(world, "r-second", query=FOLLOWING, follow_up_of="r-first")
    state, earlier = trial.state, trial.state.resolution.follow_up
    assert (
        len({citation.source_id for citation in first.evidence.citations})
        <= earlier.sources
        <= len(first.evidence.sources)
    )
    assert state.resolution.earlier_turns[-1].question == QUESTION
    offered = HitsEntry.model_validate_json(await world.content.get_text(DocumentRef(hash=earlier.entry)))
    assert {"Routine Vacuuming", "The Autovacuum Daemon"} <= {hit.title for hit in offered.hits}
    assert all(hit.snippet and hit.rank for hit in offered.hits)
    again = [source for source in state.evidence.sources.values() if source.provider == "earlier"]
    assert again
    assert all(source.earlier for source in again)
    assert state.evidence.citations
    report = await trial.report()
    assert "r-first" in report
    assert "offered first" in report


async def test_agents_are_offered_the_earlier_sources_and_not_the_earlier_question(tmp_path: Path) -> None:
    """What the report says was offered first was offered, and read (X-22, S3-009)."""
    world = World(tmp_path)
    await conducted(world, "r-first", query=QUESTION)
    trial = await conducted(world, "r-second", "orchestrator", query=FOLLOWING, follow_up_of="r-first")
    again = [source for source in trial.state.evidence.sources.values() if source.provider == "earlier"]
    assert again
    counts = trial.state.counts()
    assert 0 < counts.passages_earlier <= counts.passages_cited
    assert f"from earlier answers of the thread: {counts.passages_earlier}." in await trial.report()
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
    draft, document = trial.state.evidence.draft, await trial.document()
    assert sorted(calls) == ["join/1", "write-frame/1", "write-section-1/1", "write-section-2/1", "write-section-3/1"]
    assert draft.sections == ["Summary", "Part 1", "Part 2", "Part 3", "Gaps and limitations", "Conclusion"]
    text = await trial.world.content.get_text(draft.document)
    assert [text.count(heading) for heading in ("\n## Part 1\n", "\n## Part 2\n")] == [1, 1]
    assert set(draft.evidence_ids) <= trial.state.evidence.passages.keys()
    assert {claim["section"] for claim in document["claims"]} >= {"Part 1", "Part 2"}
    markdown = document["report"]["markdown"]
    assert all(markdown[one["start"] : one["end"]] == one["text"] for one in document["claims"])


# --- protected sources -----------------------------------------------------------------------------------------------
STRATEGIES = ("supervisor", "reflective", "orchestrator")
FOLDER = {**MANUAL, "kitchen.md": "# Kitchen\n\nThe kettle boils at a hundred degrees.\n"}
ENGINE = "To prevent transaction ID wraparound the engine must vacuum every table. "


async def analyses_of(trial: Trial) -> list[ContentEntry]:
    """What the analyses showed that had no room for everything."""
    entries = [await trial.world.notebooks.read(entry, ContentEntry) for entry in trial.state.accounts.shortened_calls]
    return [entry for entry in entries if entry.role == "analyzer"]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("given", "corpus", "url"),
    [
        ("HTTPS://Docs.Example.org:443/a/../b?utm_source=x#top", None, "https://docs.example.org/b"),
        (" notes/the plan.md ", "manual", "corpus:manual/notes/the%20plan.md"),
        ("100%.md", "manual", "corpus:manual/100%25.md"),
        ("corpus:manual/the%20plan.md", "manual", "corpus:manual/the%20plan.md"),
    ],
)
def test_an_address_is_that_of_a_hit(given: str, corpus: str | None, url: str) -> None:
    """Pages are spelled as every address is, paths as the addresses of documents; each is there once."""
    request = ResearchRequest(query="How?", corpus=corpus, protected_sources=[given, url])
    assert resolve_protected_sources(request, request.search) == ([url], [])


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("field", "more", "problem"),
    [
        (["a.md"], {"corpus": None}, "protected_sources.0: a document of a corpus, and the request has none"),
        (["b.md", "a/../../c.md"], {}, "protected_sources.1: leads out of the corpus"),
        (["corpus:manual/%2e%2e/c.md"], {}, "protected_sources.0: leads out of the corpus"),
        (["/etc/passwd"], {}, "protected_sources.0: leads out of the corpus"),
        (["corpus:other/a.md"], {}, "protected_sources.0: a document of another corpus"),
        (["ftp://example.org/a"], {}, "protected_sources.0: no address of a page"),
        (["https:///a"], {}, "protected_sources.0: no address of a page"),
        (["https://a.org/"], {"search": {"domains_allow": ["b.org"]}}, "protected_sources.0: its host is not in"),
        (["https://x.b.org/"], {"search": {"domains_deny": ["b.org"]}}, "protected_sources.0: its host is in search"),
        (["https://b.org/"], {"exclude": ["b.org"]}, "protected_sources.0: `exclude` keeps it out"),
        ([f"{number}.md" for number in range(51)], {}, "protected_sources: .*at most 50"),
        (["a.md", "b.md"], {"limits": {"max_sources": 1}}, "limits.max_sources: less than"),
        (["a.md"], {"mode": "direct", "strategy": "reflective"}, "mode: an answer without research"),
    ],
)
def test_one_that_cannot_be_protected_is_refused(field: list[str], more: dict[str, Any], problem: str) -> None:
    """By key and place, with what to do, and without the value."""
    fields = {"query": "How?", "corpus": "manual", "protected_sources": field, **more}
    with pytest.raises(InvalidRequest, match=f"^{problem}") as refused:
        parse_request(ResearchRequest.model_construct(**fields).model_dump_json(warnings=False))
    assert ".md" not in refused.value.lines[0].replace("notes/plan.md", "")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_they_are_read_first_once_and_analyzed(tmp_path: Path, strategy: str) -> None:
    """Also one that no search finds; where a search finds one too, it is not read again (S0-150)."""
    named = ["kitchen.md", "locks.md"]
    trial = await undisturbed(tmp_path, strategy, corpus=MemoryCorpus(FOLDER), protected_sources=named, depth="medium")
    trial.assert_completed()
    state, reads, first = trial.state, trial.world.corpus.reads, ["corpus:manual/kitchen.md", "corpus:manual/locks.md"]
    assert reads[:2] == first
    # Agents side by side read what each of them finds.
    assert [reads.count(url) for url in first[: 1 if strategy == "orchestrator" else 2]] in ([1], [1, 1])
    own = [state.evidence.sources[identity] for identity in protected_ids(state).values()]
    assert [(source.status, source.analyzed) for source in own] == [(SourceStatus.FULL, True)] * 2
    assert not [line for line in state.work.limitations if "protected" in line]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_what_was_not_read_is_named(tmp_path: Path, strategy: str) -> None:
    """A file that is gone, and a page for a run that reads no pages: in the report, and in its limitations."""
    named = ["gone.md", "https://example.org/page"]
    trial = await undisturbed(tmp_path, strategy, protected_sources=named)
    report = await trial.report()
    for address, reason in (("corpus:manual/gone.md", "not_found"), ("https://example.org/page", "--web")):
        (line,) = (line for line in trial.state.work.result.limitations if address in line)
        assert reason in line
        assert f"protected source was not read: {address}" in from_markdown(report)
    assert trial.world.corpus.reads[0] == "corpus:manual/gone.md"


def test_a_resumed_run_reads_what_the_earlier_one_did_not() -> None:
    """What it had no time for is no source that was found; what it read stays protected."""
    read, late = states.source("corpus:manual/locks.md"), "corpus:manual/late.md"
    resolved = states.resolved(protected_sources=[read.url, late])
    plan = states.plan(states.sub_query("first question of the plan"))
    stopped = states.state(resolved=resolved, phase=Phase.GATHERING, plan=plan, sources=states.sources(read))
    stopped.work.status = RunStatus.PARTIAL
    assert [late in line for line in add_unread_protected(stopped)] == [True]
    stored = ResearchState.model_validate_json(stopped.model_dump_json())
    again = resume_state(stored, resolved, "now", load_strategy("supervisor").resume)
    assert protected_ids(again) == {read.url: read.id}
    assert [hit.url for hit in hits_to_protect(again)] == [late]


async def test_twenty_sources_are_no_limit_for_them(tmp_path: Path) -> None:
    """Analyses show all 25 protected ones (C0-11)."""
    notes = {f"note-{number}.md": f"# Note {number}\n\n" + "A kettle boils. " * 90 for number in range(25)}
    fields = {"protected_sources": list(notes)}
    async with at_window(tmp_path, "supervisor", TokenBook(window=16_384), MANUAL | notes, **fields) as trial:
        await analyses_of(trial)
    protected = [trial.state.evidence.sources[name] for name in protected_ids(trial.state).values()]
    assert [source.analyzed for source in protected] == [True] * 25


async def test_they_are_shortened_last(tmp_path: Path) -> None:
    """What a search found for the same analysis is cut to its beginning first (S0-150, S0-158)."""
    found = {f"note-{number}.md": f"# Note {number}\n\n{ENGINE * 40}" for number in range(8)}
    kettles = {f"kettle-{number}.md": f"# Kettle {number}\n\n" + "A kettle boils. " * 180 for number in range(8)}
    fields = {"protected_sources": list(kettles), "limits": {"max_source_characters": 3_000}}
    async with at_window(tmp_path, "supervisor", TokenBook(window=16_384), found | kettles, **fields) as trial:
        analyses = await analyses_of(trial)
    protected = set(protected_ids(trial.state).values())
    (items, *others) = ([*one.items] for one in analyses if protected & {item.id for item in one.items})
    for shown in (items, *others):
        own, found = ([item for item in shown if (item.id in protected) is is_own] for is_own in (True, False))
        assert not {Level.DROPPED, Level.TRUNCATED} & {item.current_level for item in own}
        shares = [RATIOS[item.current_level] for item in found]
        assert max(shares, default=0.0) <= min(RATIOS[item.current_level] for item in own)


async def test_what_fits_no_window_is_not_paid_for(tmp_path: Path) -> None:
    """Need and room are named, the report is written without the model, and the run is partial (S0-099, C0-10)."""
    notes = {f"note-{number}.md": f"# Note {number}\n\n{ENGINE * 40}" for number in range(12)}
    fields = {"protected_sources": list(notes), "depth": "medium"}
    async with at_window(tmp_path, "supervisor", TokenBook(window=8_192), MANUAL | notes, **fields) as trial:
        assert trial.state.work.result.outcome is Outcome.PARTIAL
        assert "[1]" in await trial.report()
    assert not {"analyzer", "synthesizer", "refiner"} & set(trial.api.counts())
    why = r"needs about \d+ tokens and .* has with a margin of 15% room for \d+ .* or protect fewer sources"
    assert re.search(why, "\n".join(trial.state.work.failed_branches))
