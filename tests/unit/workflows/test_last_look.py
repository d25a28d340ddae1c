"""The last look at open gaps in pages that were read, before a report states them."""

from pathlib import Path
from typing import Any

import pytest

from contracts.evidence import DocumentRef, SectionRef
from contracts.gaps import SettledGap
from contracts.outcome import CallAccount
from contracts.roles import AnalyzeInput, AnalyzerResult
from contracts.vocabulary import EngineKind, GapStatus, StopReason
from tests.every_strategy.joined import undisturbed
from tests.fakes import model_work, states
from tests.fakes.host import InProcessHost
from workflows.phases.last_look import look_at_gaps
from workflows.phases.role_inputs import write_input
from workflows.rules.gaps import silent_gap
from workflows.run.inbox import Inbox, Interrupted
from workflows.run.research_run import ResearchRun

TEXT = DocumentRef(hash="sha256:" + "1" * 64, size=8_000)
BY_MODEL = CallAccount(engine=EngineKind.MODEL)


class Looking(ResearchRun):
    """A run whose analyzer gives these answers, or raises them, and whose requests are noted."""

    asked: list[AnalyzeInput]
    answers: list[Any]

    async def ask(self, role: Any, step: str, fields: Any, engine: Any = None) -> Any:
        self.asked.append(fields)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def looking(*answers: Any, engine: EngineKind = EngineKind.MODEL, **changes: Any) -> Looking:
    """A run with one page, one finding and one open gap that a reader expects to be answered in a section."""
    query = states.sub_query("Which servers may replicate?")
    page = states.source("corpus:m/a", text=TEXT)
    gap = states.gap("Which releases may replicate", origin=f"sub_query:{query.id}").with_fields(
        unread=[SectionRef(source_id=page.id, start=10, end=400)]
    )
    known = states.finding("A standby follows", source_ids=[page.id], evidence_ids=["ev-known"])
    made = states.state(
        plan=states.plan(query),
        sources=states.sources(page),
        gaps=[gap],
        findings=[known],
        resolved=states.resolved(engine=engine),
    )
    states.change(made, **changes)
    run = Looking(made, Inbox(), InProcessHost({}))
    run.asked = []
    run.answers = list(answers)
    return run


@pytest.mark.parametrize(
    ("description", "is_looked_at"),
    [
        ("A fault of the first release [pg/release.html], not opened", False),
        ("A fault of the first release (pg/release.html)", False),
        ("A value to which the page [a] refers, or [pg/release.html]", False),
        ("A value to which the pages [m/a.md] and [pg/release.html] refer", True),
        ("A value (with or without a unit)", True),
    ],
)
async def test_documents_that_were_not_opened_are_not_looked_for(description: str, is_looked_at: bool) -> None:
    """An agent names what it saw in the line of a search; the room of the look is for gaps that a page may answer."""
    page = states.source("corpus:m/m/a.md", text=TEXT)
    run = looking(AnalyzerResult(account=BY_MODEL), gaps=[states.gap(description)], sources=states.sources(page))
    await look_at_gaps(run)
    assert bool(run.asked) is is_looked_at


async def test_pages_that_say_nothing_on_a_question_are_not_looked_at_for_it() -> None:
    """Each of them was read whole for the sub-query that the gap only calls unanswered."""
    run = looking()
    (query,) = run.state.work.plan.nodes
    run.state.evidence.gaps = [states.gap(silent_gap(query).description, origin=f"sub_query:{query.id}")]
    for page in list(run.state.evidence.sources.values()):
        run.state.evidence.sources[page.id] = page.with_fields(nothing_on=[query.id])
    assert not await look_at_gaps(run)
    assert run.asked == []
    (told,) = write_input(run, []).gaps
    assert (told.status, run.state.evidence.gaps[0].status) == (GapStatus.UNADDRESSABLE, GapStatus.OPEN)


def answering(run: Looking, statement: str, *passages: str) -> AnalyzerResult:
    """An answer with a finding that answers the gap of this run."""
    (page,) = run.state.evidence.sources.values()
    found = states.finding(statement, source_ids=[page.id], evidence_ids=list(passages))
    settled = [SettledGap(gap_id=run.state.evidence.gaps[0].id, answered_by=[found.id])]
    return AnalyzerResult(findings=[found], settled_gaps=settled, analyzed_source_ids=[page.id], account=BY_MODEL)


async def test_a_gap_is_closed_by_what_a_page_says() -> None:
    """The finding belongs to the sub-query that stated the gap; the call sees all pages, and where the answer is
    expected.
    """
    run = looking()
    run.answers = [answering(run, "Only servers of one major release", "ev-new")]
    assert await look_at_gaps(run)
    (gap,) = run.state.evidence.gaps
    (_, found) = run.state.evidence.findings
    assert (gap.status, gap.resolved_by) == (GapStatus.ADDRESSED, [found.id])
    (asked_for,) = run.state.work.plan.nodes
    assert (found.sub_query_id, asked_for.finding_count) == (asked_for.id, 1)
    (asked,) = run.asked
    assert asked.for_gaps
    assert [one.unread for one in asked.gaps] == [gap.unread]
    assert [source.id for source in asked.sources] == list(run.state.evidence.sources)


async def test_what_the_run_knows_already_closes_a_gap_itself() -> None:
    """A finding with the very passages of an earlier one is none of its own."""
    run = looking()
    run.answers = [answering(run, "Standbys follow their primary", "ev-known")]
    assert await look_at_gaps(run)
    (known,) = run.state.evidence.findings
    assert run.state.evidence.gaps[0].resolved_by == [known.id]


async def test_a_gap_is_looked_at_once() -> None:
    """A report that is written again costs no second look, and a gap without an answer stays open."""
    run = looking(AnalyzerResult(account=BY_MODEL))
    assert not await look_at_gaps(run)
    assert not await look_at_gaps(run)
    assert len(run.asked) == 1
    assert run.state.evidence.gaps[0].status is GapStatus.OPEN


@pytest.mark.parametrize(
    ("answer", "engine"),
    [
        (Interrupted(StopReason.BUDGET_COST), EngineKind.MODEL),
        (AnalyzerResult(account=CallAccount(engine=EngineKind.EXTRACTIVE)), EngineKind.MODEL),
        (None, EngineKind.EXTRACTIVE),
    ],
    ids=["no money", "rules answered", "no model"],
)
async def test_without_a_models_answer_gaps_stay_as_they_are(answer: Any, engine: EngineKind) -> None:
    """The report is written all the same, and a resumed run may look again."""
    run = looking(answer, engine=engine)
    assert not await look_at_gaps(run)
    assert run.state.evidence.gaps[0].status is GapStatus.OPEN
    assert run.state.work.gaps_looked_at == []
    assert len(run.asked) == (engine is EngineKind.MODEL)


async def test_a_page_that_no_role_has_analyzed_is_not_looked_at() -> None:
    """What a vetting refused supports nothing, and what a limit left unread is read by a resumed run."""
    refused = states.source("corpus:m/refused", text=TEXT, analyzed=False)
    run = looking(sources=states.sources(refused))
    assert not await look_at_gaps(run)
    assert run.asked == []
    read = states.source("corpus:m/a", text=TEXT)
    run = looking(AnalyzerResult(account=BY_MODEL), sources=states.sources(refused, read))
    await look_at_gaps(run)
    assert [source.id for source in run.asked[0].sources] == [read.id]
    assert not run.state.evidence.sources[refused.id].analyzed


@pytest.mark.parametrize("name", ["supervisor", "reflective", "recursive"])
async def test_a_report_is_written_after_the_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Once in a run, after the last analysis: its writer is given what it has found, and no gap that it answers."""
    look = model_work.LAST_LOOK
    monkeypatch.setattr(model_work, "LAST_LOOK", "this fake answers every gap")
    trial = await undisturbed(tmp_path, name, "model", by_role={"analyzer": "gaps"}, depth="light")
    roles = [request.role for request in trial.api.requests]
    (asked,) = [number for number, request in enumerate(trial.api.requests) if look in request.prompt]
    written = [number for number, role in enumerate(roles) if role == "synthesizer"]
    assert asked < written[-1]
    assert not {"analyzer", "extractor"} & set(roles[asked + 1 :])
    gaps = trial.state.evidence.gaps
    assert {gap.status for gap in gaps} == {GapStatus.ADDRESSED}
