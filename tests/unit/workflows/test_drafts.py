"""The one door for a new text: a live report takes it step by step, whoever wrote it and however the run ends."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.reporting.drafts import describe_draft, parse_draft, store_draft
from activities.reporting.updates import measure_reports, read_live
from contracts import failures
from contracts.addresses import digest
from contracts.checking_roles import ReviewerAnswer
from contracts.evidence import DocumentRef, Finding, ReportDraft
from contracts.outcome import Event, GateIssue
from contracts.report_updates import MAX_REVISIONS, REPORTER, AppliedUpdates, Operation, ReportUpdate
from contracts.strategies import SUPERVISOR_STRATEGY
from contracts.vocabulary import Outcome, ReportKind, StopReason
from tests.every_strategy.joined import trial_of, undisturbed
from tests.every_strategy.test_tokens_of_every_strategy import assert_verbatim
from tests.fakes.world import World, begin
from tests.toy import declared
from workflows.phases.drafts import (
    apply_updates,
    closest_findings,
    remarks_by_section,
    revise_sections,
    take_draft,
    take_step,
)
from workflows.phases.writing import _planned_sections, _write_by_sections
from workflows.run.inbox import Inbox, Interrupted
from workflows.run.research_run import ResearchRun
from workflows.status import details_markdown

GROWING = replace(
    SUPERVISOR_STRATEGY,
    name="growing",
    live_report=True,
    roles=(*SUPERVISOR_STRATEGY.roles, REPORTER),
    presets={
        depth: limits.model_copy(update={"max_update_characters": 800})
        for depth, limits in SUPERVISOR_STRATEGY.presets.items()
    },
)
"""The supervisor with a live report."""
OUTLINE = ["Answer", "Reasons", "Limits"]
SENTENCE = "This sentence about the vacuum of tables has a number of words in it, and a number"


@pytest.fixture(autouse=True)
def _declared() -> Iterator[None]:
    with declared(GROWING):
        yield


@asynccontextmanager
async def growing(folder: Path, **fields: Any) -> AsyncIterator[tuple[ResearchRun, World]]:
    """A run with a live report that has done nothing yet, and its outline."""
    world = World(folder)
    try:
        run = ResearchRun(await begin(world, strategy="growing", **fields), Inbox(), world.host())
        run.state.work.plan = run.state.work.plan.model_copy(update={"outline": OUTLINE})
        yield run, world
    finally:
        await world.close()


async def draft_of(world: World, **bodies: str) -> ReportDraft:
    """A stored text with these sections, as a writer makes it."""
    text = "# Title\n\n" + "\n\n".join(f"## {name}\n\n{body}" for name, body in bodies.items())
    empty = ReportDraft(document=DocumentRef(hash=digest("")), iteration=3, foreign_urls=["https://evil.test"])
    draft, markdown = describe_draft(empty, parse_draft(text))
    return await store_draft(world.content, draft, markdown)


def updates_in(run: ResearchRun) -> list[Event]:
    return [event for event in run.state.people.events if event.type == "report.updated"]


async def text_of(world: World, identity: str) -> str:
    return await world.content.get_text(DocumentRef(hash=identity))


async def assert_bounded(world: World, events: list[Event], most: int = 800) -> None:
    """Each text after the first differs from the one before it as its event says, by no more than the bound."""
    reports = [read_live(await text_of(world, event.data["report"])) for event in events]
    for before, after, event in zip(reports, reports[1:], events[1:], strict=False):
        assert measure_reports(before, after) == (event.data["inserted"], event.data["removed"])
        assert 0 < event.data["inserted"] + event.data["removed"] <= most
        assert after.headings == before.headings


# --- the door --------------------------------------------------------------------------------------------------------
async def test_a_new_text_arrives_as_updates_and_the_state_names_each_before_its_event(tmp_path: Path) -> None:
    """The first one is the outline; whoever is woken by an event finds its text in the state, and the details of the web
    UI have the words of each section (S2-003, S2-014, S2-032).
    """
    async with growing(tmp_path) as (run, world):
        seen: list[tuple[str, str]] = []

        def changed() -> None:
            if (event := run.state.people.events[-1]).type == "report.updated" and run.state.evidence.draft:
                seen.append((event.data["report"], run.state.evidence.draft.document.hash))

        run.hooks = replace(run.hooks, changed=changed)
        draft = await draft_of(
            world, Answer=" ".join(f"{SENTENCE} {each}." for each in range(30)), Limits="None known."
        )
        await take_draft(run, draft)
        events = updates_in(run)
        assert len(events) > 4
        assert len(seen) == len(events)
        assert all(told == named for told, named in seen)
        assert [event.data["report"] for event in events] == run.state.evidence.revisions
        assert read_live(await text_of(world, events[0].data["report"])).sections == tuple((h, "") for h in OUTLINE)
        await assert_bounded(world, events)
        final = run.state.evidence.draft
        assert final is not None
        assert "a number 29." in await text_of(world, final.document.hash)
        assert (final.iteration, final.foreign_urls) == (3, ["https://evil.test"])
        assert final.words_by_section["Reasons"] == 0
        assert f"Answer ({final.words_by_section['Answer']} words)" in details_markdown(run.state, 0.0)
        assert "Reasons (empty)" in details_markdown(run.state, 0.0)


async def test_of_the_earlier_texts_the_newest_forty_are_named(tmp_path: Path) -> None:
    """Each is within the bound that the request gives, in characters inserted and removed together; there is no history of
    patches (S2-009, S2-033, S2-038, C2-2).
    """
    async with growing(tmp_path, limits={"max_update_characters": 200}) as (run, world):
        await take_draft(run, await draft_of(world, Answer=" ".join(f"{SENTENCE} {each}." for each in range(120))))
        await assert_bounded(world, updates_in(run), 200)
        assert len(updates_in(run)) > MAX_REVISIONS
        assert len(run.state.evidence.revisions) == MAX_REVISIONS
        assert run.state.evidence.revisions == [event.data["report"] for event in updates_in(run)][-MAX_REVISIONS:]
        assert run.state.evidence.draft is not None
        assert run.state.evidence.revisions[-1] == run.state.evidence.draft.document.hash


async def test_the_report_of_another_strategy_takes_a_text_as_it_is(tmp_path: Path) -> None:
    """No step, no event, no names of earlier texts."""
    world = World(tmp_path)
    try:
        run = ResearchRun(await begin(world), Inbox(), world.host())
        draft = await draft_of(world, Answer="Text.")
        await take_draft(run, draft)
    finally:
        await world.close()
    assert (run.state.evidence.draft, run.state.evidence.revisions, updates_in(run)) == (draft, [], [])


async def test_a_text_that_cannot_be_divided_leaves_the_report_as_it_is(tmp_path: Path) -> None:
    """The report says that the change was not made."""
    async with growing(tmp_path) as (run, world):
        await take_draft(run, await draft_of(world, Answer="Text."))
        before = run.state.evidence.draft

        async def fail(_: Any) -> Any:
            raise ApplicationError("the store does not answer", type=failures.STORE_UNAVAILABLE)

        run.host.implementations["split_draft"] = fail  # type: ignore[attr-defined]
        await take_draft(run, await draft_of(world, Answer="Another text."))
        assert run.state.evidence.draft == before
        assert any("could not be divided" in line for line in run.state.work.degraded)


async def test_a_sentence_beyond_the_bound_is_named_as_missing(tmp_path: Path) -> None:
    """It is neither cut nor inserted whole."""
    async with growing(tmp_path, limits={"max_update_characters": 200}) as (run, world):
        await take_draft(run, await draft_of(world, Answer=f"{'Long ' * 60}. Short."))
        assert run.state.evidence.draft is not None
        assert (await text_of(world, run.state.evidence.draft.document.hash)).split("\n\n")[2] == "Short."
        assert any("exceed limits.max_update_characters" in line for line in run.state.work.degraded)


# --- updates ---------------------------------------------------------------------------------------------------------
async def test_updates_are_applied_in_order_and_a_refused_one_says_why(tmp_path: Path) -> None:
    """The others are applied; the text of the state changes where a step is taken, and only then (S2-014, S2-028)."""
    async with growing(tmp_path) as (run, _):
        first = await apply_updates(run, [])
        assert (first.outcomes, first.draft.sections, first.draft.kind) == ([], OUTLINE, ReportKind.PASSAGES)
        assert run.state.evidence.draft is None
        empty = digest("")
        quoted = ReportUpdate(
            heading="Limits", base=empty, operations=[Operation(text="> Slow. [ev-1]")], kind=ReportKind.PASSAGES
        )
        updates = [
            ReportUpdate(heading="Answer", base=empty, operations=[Operation(text="## Mine")]),
            quoted,
            quoted,
            ReportUpdate(heading="Answer", base=empty, operations=[Operation(text="Yes [ev-2].")]),
        ]
        applied: AppliedUpdates = await apply_updates(run, updates)
        assert [bool(each.step) for each in applied.outcomes] == [False, True, False, True]
        assert "level of the outline" in applied.outcomes[0].refusal
        assert "applied already" in applied.outcomes[2].refusal
        kinds = [each.step.draft.kind for each in applied.outcomes if each.step]
        assert kinds == [ReportKind.PASSAGES, ReportKind.REPORT]
        assert [each.step.cited for each in applied.outcomes if each.step] == [["ev-1"], ["ev-2"]]
        assert applied.draft.words_by_section == {"Answer": 1, "Reasons": 0, "Limits": 1}
        assert run.state.evidence.draft is None
        for each in applied.outcomes:
            if each.step:
                take_step(run, each.step)
        assert run.state.evidence.draft == applied.draft.model_copy(update={"evidence_ids": ["ev-1", "ev-2"]})


# --- whole runs ------------------------------------------------------------------------------------------------------
@pytest.mark.one_in(3)
@pytest.mark.parametrize("writer", ["good", "embroiders"])
async def test_corrections_and_revisions_arrive_as_updates(tmp_path: Path, writer: str) -> None:
    """What verification corrects and what a review asks for goes through the same door, and the record has a new text
    long before the run ends (S2-013, S2-029, X-12).
    """
    by_role = {"synthesizer": writer}
    trial = await undisturbed(tmp_path, "growing", "model", by_role=by_role, verify="full", checks={"review": "model"})
    events = updates_in(trial.run)
    await assert_bounded(trial.world, events)
    assert trial.state.evidence.draft is not None
    assert events[-1].data["report"] == trial.state.evidence.draft.document.hash
    text = await text_of(trial.world, trial.state.evidence.draft.document.hash)
    assert "Zyzzyva" not in text
    work = [activity for activity, _ in trial.host.calls]
    assert "save_session" in work[work.index("write_report") : work.index("render_report")]
    assert trial.state.work.result is not None
    assert trial.state.work.result.outcome in (Outcome.COMPLETED, Outcome.PARTIAL)


async def test_every_heading_is_in_every_form_also_without_text(tmp_path: Path) -> None:
    """One line at the end names the empty ones (S2-030)."""
    async with trial_of(tmp_path, "growing", "model", verify="off") as trial:
        write = trial.host.implementations["write_report"]

        async def with_empty_sections(request: Any) -> Any:
            result = await write(request)
            text = await text_of(trial.world, result.draft.document.hash)
            draft, markdown = describe_draft(result.draft, parse_draft(f"{text}\n\n## Nothing here\n"))
            return result.model_copy(update={"draft": await store_draft(trial.world.content, draft, markdown)})

        trial.host.implementations["write_report"] = with_empty_sections
        await trial.conduct()
        document, markdown = await trial.document(), await trial.report()
        html = await trial.world.content.get_text(trial.state.work.result.files.html)
    await assert_verbatim(trial)
    assert "Nothing here" in document["report"]["sections"]
    assert "\n## Nothing here\n" in markdown
    assert "Nothing here" in html
    assert "Nothing was written under: Nothing here" in document["limitations"]
    assert markdown.count("Nothing was written under: Nothing here") == 1


async def test_a_review_asks_the_reporter_section_by_section(tmp_path: Path) -> None:
    """No writer rewrites a live report; sections without a change stay as they are, and both texts have their sources."""
    async with trial_of(tmp_path, "growing", "model", verify="light", checks={"review": "model"}) as trial:
        score, cited, asked = scores_of(3.0, 8.0), list[int](), list[str]()

        async def scored(request: Any) -> Any:
            cited.append(request.sources_cited)
            return await score(request)

        trial.host.implementations["review_report"] = scored
        update = trial.host.implementations["write_report_update"]

        async def watched(request: Any) -> Any:
            asked.append(request.heading)
            assert request.issues
            result = await update(request)
            costs = Operation(text=f"It costs time [{trial.state.evidence.draft.evidence_ids[0]}].")
            return result.model_copy(update={"update": result.update.model_copy(update={"operations": [costs]})})

        trial.host.implementations["write_report_update"] = watched
        await trial.conduct()
        assert trial.state.evidence.draft is not None
        assert asked == trial.state.evidence.draft.sections
        assert len(cited) == 2
        assert min(cited) > 0
        assert [call.role for call in trial.api.calls].count("synthesizer") == 1
        await assert_bounded(trial.world, updates_in(trial.run))


def test_a_remark_reaches_the_sections_that_it_is_about() -> None:
    """One that names no subject of a heading reaches all, and a section without a remark is not asked."""
    outline = ["How backups are made", "Restoring to a point in time", "Costs"]
    restore, general = (
        GateIssue(code="review", message=text) for text in ("The steps of restoring are missing", "Too many adverbs")
    )
    assert remarks_by_section(outline, [restore]) == {outline[1]: [restore]}
    assert remarks_by_section(outline, [restore, general]) == {
        outline[0]: [general], outline[1]: [restore, general], outline[2]: [general],
    }  # fmt: skip


def test_a_revision_gets_the_notes_that_answer_its_remarks() -> None:
    """Rare words count more, and of equal notes those that the report does not cite come first."""
    notes = [
        Finding(id=f"f-{number}", statement=text, evidence_ids=[f"ev-{number}"])
        for number, text in enumerate(
            [
                "The server archives files.",
                "The server restores files to a timeline.",
                "The server logs.",
                "Other words.",
            ]
        )
    ]
    chosen = closest_findings("How does the server restore a timeline?", notes, ["ev-1"])
    assert [note.id for note in chosen] == ["f-0", "f-1", "f-2"]
    many = [note.model_copy(update={"id": f"{note.id}-{copy}"}) for copy in range(9) for note in notes[:3]]
    assert [note.id for note in closest_findings("timeline", many, [])] == [f"f-1-{copy}" for copy in range(9)]
    same = [notes[2].model_copy(update={"id": f"n-{each}", "evidence_ids": [f"ev-{each}"]}) for each in range(20)]
    assert "n-19" in [note.id for note in closest_findings("server", same, [f"ev-{each}" for each in range(10)])]


async def test_a_section_and_a_revision_of_a_model_have_no_findings_of_rules(tmp_path: Path) -> None:
    """What rules picked after a limit is offered to neither writer, unless there is nothing else."""
    async with trial_of(tmp_path, "growing", "model", output={"target_words": 4_000}) as trial:
        await trial.conduct()
        run = trial.run
        own, picked = run.state.evidence.findings[0], run.state.evidence.findings[-1]
        own_query, other = run.state.work.plan.sub_queries[:2]
        run.state.evidence.findings = [
            own.model_copy(update={"sub_query_id": own_query.id}),
            picked.model_copy(update={"sub_query_id": other.id, "by_rules": True}),
            picked.model_copy(update={"id": "f-own", "sub_query_id": other.id}),
        ]
        sections = _planned_sections(run)
        assert [[one.id for one in findings] for _, _, findings in sections] == [[own.id], ["f-own"]]


def scores_of(*scores: float) -> Any:
    """A reviewer with these scores in order."""
    left = list(scores)

    async def review(_: Any) -> ReviewerAnswer:
        score = left.pop(0)
        return ReviewerAnswer(
            coverage=score, support=score, depth=score, readability=score, notes=["say what it costs"]
        )

    return review


@pytest.mark.parametrize("work", ["write", "revise"])
async def test_the_first_error_of_a_section_ends_the_other_calls(
    work: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their answers are of no use without it: none of them is waited for."""
    ended = list[str]()

    async def ask(role: Any, step: str, request: Any) -> Any:
        if step.endswith("-1"):
            raise Interrupted(StopReason.PROVIDER_OUTAGE)
        try:
            return await asyncio.Event().wait()
        finally:
            ended.append(step)

    async with growing(tmp_path) as (run, world):
        run.state.evidence.draft = await draft_of(world, **dict.fromkeys(OUTLINE, SENTENCE))
        monkeypatch.setattr(run, "ask", ask)
        sections = [(heading, f"{heading}?", []) for heading in OUTLINE]
        remarks = [GateIssue(code="review", message="shorter")]
        calls = revise_sections(run, remarks) if work == "revise" else _write_by_sections(run, sections, [])
        with pytest.raises(Interrupted):
            await asyncio.wait_for(calls, 60)
    assert ended == [f"{work}-section-{number}" for number in (2, 3)]
