"""The notebook of a run: requests and states completed from its entries, and entries that are missing."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ActivityError, ApplicationError

from contracts import failures
from contracts.checking import (
    AnswersEntry,
    CheckMethod,
    ClaimAnswer,
    ClaimsEntry,
    ClaimVerdict,
    ExtractedClaim,
    Verdict,
)
from contracts.checking_roles import REVIEWER, ReviewInput
from contracts.evidence import DocumentRef, Evidence, Finding
from contracts.notebooks import AnalysisEntry, replace_by_references
from contracts.report_updates import REPORTER
from contracts.roles import SYNTHESIZER, ReportPart, WriteInput
from contracts.vocabulary import EngineKind, Outcome
from providers.errors import ContentMissing
from providers.storage.content import ObstoreContentStore, name_of
from providers.storage.sessions import documents_of
from tests.fakes.host import InProcessHost
from tests.fakes.world import World, begin
from workflows.driver import Driver
from workflows.phases.drafts import update_input
from workflows.phases.role_inputs import write_input
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies.supervisor.supervisor_strategy import SupervisorStrategy

ANALYZED = 3


async def stopped_after(world: World, units: int) -> ResearchRun:
    """A run after so many of its units."""
    run = ResearchRun(await begin(world), Inbox(), world.host())
    for _ in range(units):
        await Driver(run, SupervisorStrategy()).step()
    await run.checkpoints.settle()
    return run


@pytest.mark.parametrize(("starts", "page"), [([0], 1), ([0, 1, 1, 50_000], 3), (None, None)])
async def test_evidence_knows_its_page(starts: list[int] | None, page: int | None, tmp_path: Path) -> None:
    """It is the one on which the quote begins; pages without words count, documents without pages have none."""
    world = World(tmp_path)
    run = await stopped_after(world, ANALYZED)
    pages = None if starts is None else await world.content.put_text(json.dumps(starts))
    for key, source in run.state.evidence.sources.items():
        run.state.evidence.sources[key] = source.model_copy(update={"pages": pages})
    whole = await world.notebooks.complete_state(run.state)
    assert {item.page for item in whole.evidence.passages.values()} == {page}


async def test_a_writer_sees_findings_in_the_order_of_their_analyses(tmp_path: Path) -> None:
    """What a later analysis found comes last, so that the prompts of a run's drafts begin alike."""
    world = World(tmp_path)
    run = await stopped_after(world, ANALYZED)
    request = write_input(run, issues=[])
    sent = replace_by_references(SYNTHESIZER, request, run.state)
    completed = await world.notebooks.complete_input(sent, SYNTHESIZER)
    assert len(sent.entries) > 1
    assert sent.findings == []
    assert {one.id for one in completed.findings} == {one.id for one in request.findings}
    order = [one.iteration for one in completed.findings]
    assert order == sorted(order)


async def test_a_reporter_sees_the_notes_it_was_sent(tmp_path: Path) -> None:
    """An update names its notes by their ids; the reporter gets them in that order, with their passages and no others."""
    world = World(tmp_path)
    run = await stopped_after(world, ANALYZED)
    notes = [run.state.evidence.findings[-1], run.state.evidence.findings[0]]
    assert notes[0].entry != notes[1].entry
    request = update_input(run, "Where it fails", notes)
    sent = replace_by_references(REPORTER, request, run.state)
    completed = await world.notebooks.complete_input(sent, REPORTER)
    assert (sent.findings, sent.evidence, sent.sources) == ([], [], [])
    assert [(one.id, one.statement) for one in completed.findings] == [(one.id, one.statement) for one in notes]
    places = {(item.id, item.source_id, item.start, item.end) for item in request.evidence}
    assert {(item.id, item.source_id, item.start, item.end) for item in completed.evidence} == places
    assert {(one.id, one.url, one.text, one.quality) for one in completed.sources} == {
        (one.id, one.url, one.text, one.quality) for one in request.sources
    }
    assert {key for one in notes for key in one.evidence_ids} == {item.id for item in completed.evidence}


async def test_an_entry_that_is_gone_is_an_error(tmp_path: Path) -> None:
    """No role works on less than it was sent: the failure names the entry and says what to do."""
    world = World(tmp_path)
    run = await stopped_after(world, ANALYZED)
    gone = next(finding.entry for finding in run.state.evidence.findings if finding.entry)
    assert isinstance(run.host, InProcessHost)
    work, caught = run.host.implementations[SYNTHESIZER.activity], list[ApplicationError]()

    async def without(request: Any) -> Any:
        await world.content.delete(DocumentRef(hash=gone))
        world.notebooks._entries.clear()
        try:
            return await work(request)
        except ApplicationError as error:
            caught.append(error)
            raise

    run.host.implementations[SYNTHESIZER.activity] = without
    # The run may fail or end in part: the failure of the activity counts.
    with contextlib.suppress(ActivityError):
        await Driver(run, SupervisorStrategy(), stored=True).conduct()
    assert {error.type for error in caught} == {failures.CONTENT_MISSING}
    assert all(error.non_retryable and gone[:19] in error.message for error in caught)
    assert all("start it again" in error.message for error in caught)


async def test_every_document_of_a_run_can_be_removed(tmp_path: Path) -> None:
    """State and notebook together name all that a run has stored, originals included."""
    world = World(tmp_path)
    run = await stopped_after(world, 0)
    assert await Driver(run, SupervisorStrategy()).conduct() is Outcome.COMPLETED
    stored = {"sha256:" + path.parent.name + path.name for path in (tmp_path / "content").glob("??/*")}
    whole = await world.notebooks.complete_state(run.state)
    named = documents_of(run.state.model_dump(mode="json"))
    assert stored - named == set()
    assert (await world.sessions.documents())["r-unit"] == named
    assert {source.raw.hash for source in whole.evidence.sources.values() if source.raw} <= named


async def test_a_reviewer_sees_verdicts_of_judged_statements_alone(tmp_path: Path) -> None:
    """A statement that waits for the checker shows no verdict, whatever rules found; of two the second look counts."""
    world = World(tmp_path)
    draft = await world.content.put_text("Draft.")
    ruled = ClaimVerdict(claim_id="", verdict=Verdict.UNSUPPORTED, method=CheckMethod.RULES)

    def claim(name: str, *, asked: bool) -> ExtractedClaim:
        return ExtractedClaim(
            id=name, text=name, fingerprint=f"c-{name}", evidence_ids=["ev-1"], ruled=ruled, asked=asked
        )

    claims = [claim("waits", asked=True), claim("judged", asked=True), claim("rules", asked=False)]
    claims_entry = await world.notebooks.write(ClaimsEntry(draft=draft, claims=claims))
    first = ClaimAnswer(fingerprint="c-judged", verdict=Verdict.PARTIAL)
    second = ClaimAnswer(fingerprint="c-judged", verdict=Verdict.SUPPORTED, is_second=True)
    entries = [await world.notebooks.write(AnswersEntry(items=[answer])) for answer in (second, first)]
    request = ReviewInput(
        research_id="r-1", query="q", date="2026-11-29", draft=draft, claims_entry=claims_entry, answers=entries
    )
    for answers in (entries, entries[::-1]):
        completed = await world.notebooks.complete_input(request.with_fields(answers=answers), REVIEWER)
        shown = [(item.text, item.verdict) for item in completed.claims]
        assert shown == [("judged", Verdict.SUPPORTED), ("rules", Verdict.UNSUPPORTED)]


async def test_a_text_is_read_from_the_store_once_and_is_gone_when_deleted(tmp_path: Path) -> None:
    """A run needs a page for analyses, checks and reports; a text that this process deleted is not remembered."""
    store = ObstoreContentStore(tmp_path)
    document = await store.put_text("A page.")
    assert await store.get_text(document) == "A page."
    (tmp_path / name_of(document)).unlink()
    assert await store.get_text(document) == "A page."
    assert await store.delete(document)
    with pytest.raises(ContentMissing):
        await store.get_text(document)


async def test_a_section_is_written_from_its_own_findings(tmp_path: Path) -> None:
    """One analysis has findings for several sub-queries; the writer of a section gets those of one, with their passages."""
    world = World(tmp_path)
    passages = [
        Evidence(id=f"ev-{number}", source_id="src-1", start=10 * number, end=10 * number + 9) for number in (1, 2)
    ]
    findings = [
        Finding(id=f"f-{number}", statement=f"It is {number}.", evidence_ids=[f"ev-{number}"]) for number in (1, 2)
    ]
    entry = await world.notebooks.write(AnalysisEntry(findings=findings, evidence=passages))
    run = await stopped_after(world, ANALYZED)
    own = findings[1].with_fields(entry=entry)
    section = write_input(run, issues=[]).with_fields(findings=[own], evidence=[], part=ReportPart(number=1))
    completed = await world.notebooks.complete_input(
        replace_by_references(SYNTHESIZER, section, run.state), SYNTHESIZER
    )
    assert [one.id for one in completed.findings] == ["f-2"]
    assert [one.id for one in completed.evidence] == ["ev-2"]
    frame = section.with_fields(part=ReportPart())
    completed = await world.notebooks.complete_input(replace_by_references(SYNTHESIZER, frame, run.state), SYNTHESIZER)
    assert [one.id for one in completed.findings] == ["f-1", "f-2"]


async def test_a_model_that_writes_gets_what_several_readers_quoted_alike_once(tmp_path: Path) -> None:
    """Agents that read one page for tasks of their own note the same passages; rules that write choose among them."""
    world = World(tmp_path)
    mine = Finding(id="f-1", statement="It takes minutes.", evidence_ids=["ev-1"])
    other = Finding(id="f-2", statement="Minutes are enough.", evidence_ids=["ev-1"])
    entries = [await world.notebooks.write(AnalysisEntry(findings=[one])) for one in (mine, other)]
    for engine, shown in ((EngineKind.MODEL, ["f-1"]), (EngineKind.EXTRACTIVE, ["f-1", "f-2"])):
        request = WriteInput(entries=entries, engine=engine)
        assert [one.id for one in (await world.notebooks.complete_input(request, SYNTHESIZER)).findings] == shown
