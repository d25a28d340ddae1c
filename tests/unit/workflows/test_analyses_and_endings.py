"""Analyses that are made again, opinions on sources, the life of gaps, and how runs end."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.assessment.source_assessment import best_quality
from contracts import failures
from contracts.addresses import gap_id
from contracts.evidence import DocumentRef, Evidence, Finding, ReportDraft, SectionRef, Source, SourceAssessment
from contracts.gaps import SettledGap
from contracts.outcome import Usage
from contracts.plan import PlanNode
from contracts.roles import ANALYZER, AnalyzerResult, ProposedGap, QualityUpdate, resolved_fields
from contracts.state import ResearchState
from contracts.supervisor_roles import GapAssessment
from contracts.vocabulary import (
    Completeness,
    Confidence,
    EngineKind,
    GapStatus,
    NodeStatus,
    Outcome,
    Quality,
    Severity,
    SourceStatus,
    StopReason,
)
from tests.every_strategy.joined import undisturbed
from tests.fakes import checking_work, model_work, states
from tests.fakes.host import InProcessHost
from tests.fakes.random_world import RandomWorld
from workflows.phases.agent_reading import PageReading, group_readings, part_for
from workflows.phases.analysis import (
    analyze_without_model,
    merge_readings,
    plan_readings,
    read_sources,
    update_quality,
    withdraw,
)
from workflows.phases.checking import review_input
from workflows.phases.role_inputs import findings_of_page, reading_input, write_input
from workflows.rules import gaps
from workflows.rules.endings import (
    advice_of,
    completeness_of,
    find_unanswered,
    limitations_of,
    outcome_of,
    stop_reason_of,
)
from workflows.rules.reading import LEAST_TOKENS, PageToRead, distribute_pages
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun


def read_by(made: ResearchState, queries: Sequence[PlanNode]) -> list[dict[str, bool]]:
    """The pages of each analysis by address, and whether another one has read them before."""
    readings = plan_readings(ResearchRun(made, Inbox(), InProcessHost({})), queries, [])
    return [{source.url: source.again for source in reading.request.sources} for reading in readings]


def test_each_page_is_read_once_for_all_sub_queries() -> None:
    """One call has all open sub-queries and each page once; a later sub-query reads it again in part (S0-060)."""
    first, second = states.sub_query("the first question"), states.sub_query("the second question")
    later = states.sub_query("a question of the next iteration", iteration=2)
    page = DocumentRef(hash="sha256:" + "1" * 64, size=8_000)
    shared, lost = (states.source(f"corpus:m/{name}", text=page, analyzed=False) for name in ("a", "b"))
    shared = shared.model_copy(update={"sub_query_ids": [first.id, second.id, later.id]})
    lost = lost.model_copy(update={"sub_query_ids": [first.id, later.id]})
    made = states.state(plan=states.plan(first, second), sources=states.sources(shared, lost))
    assert read_by(made, [first, second]) == [{"corpus:m/a": False, "corpus:m/b": False}]
    made.evidence.sources[shared.id] = shared.model_copy(update={"analyzed": True})  # the other one failed
    assert read_by(made, [later]) == [{"corpus:m/a": True, "corpus:m/b": False}]
    made.work.pages_left = {first.id: [lost.id]}
    assert read_by(made, [first]) == [{"corpus:m/b": False}]


def test_a_page_that_says_nothing_on_a_question_is_not_read_for_it_again() -> None:
    """Neither when the analysis is repeated nor for the search that asks the same once more; for others it is."""
    asked, other = states.sub_query("a question"), states.sub_query("another question")
    same = states.gap(gaps.silent_gap(asked).description, origin=f"sub_query:{asked.id}")
    narrower = states.gap("a value that it leaves open", origin=f"sub_query:{asked.id}")
    again, further = (
        states.sub_query(f"search for {gap.id}", origin=f"gap:{gap.id}", iteration=2) for gap in (same, narrower)
    )
    queries = [asked, other, again, further]
    text = DocumentRef(hash="sha256:" + "1" * 64, size=8_000)
    page = states.source("corpus:m/a", text=text, sub_query_ids=[query.id for query in queries])
    run = Answering(states.state(plan=states.plan(*queries), sources=states.sources(page)), Inbox(), InProcessHost({}))
    run.state.evidence.gaps = [same, narrower]
    reading = plan_readings(run, [asked, other], [])[0]
    merge_readings(run, [], [(reading, AnalyzerResult(nothing_on=[1], read_whole=[page.id]))], [])
    assert [len(read_by(run.state, [query])) for query in queries] == [0, 1, 0, 1]


def test_another_reading_is_given_what_was_found_in_its_pages() -> None:
    """Statements of a model alone, and none of the sub-queries that are analyzed, which a repetition replaces."""
    first = states.sub_query("the first question")
    later = states.sub_query("a question of the next iteration", iteration=2)
    page = DocumentRef(hash="sha256:" + "1" * 64, size=8_000)
    read, fresh = (
        states.source(f"corpus:m/{name}", text=page, sub_query_ids=[first.id, later.id], analyzed=name == "a")
        for name in ("a", "b")
    )
    cited = {"evidence_ids": ["ev-1"], "confidence": Confidence.MEDIUM}
    found = [
        Finding(id="f-1", statement="Rows are frozen.", sub_query_id=first.id, source_ids=[read.id], **cited),
        Finding(id="f-2", statement="By rules.", sub_query_id=first.id, source_ids=[read.id], by_rules=True, **cited),
        Finding(id="f-3", statement="Elsewhere.", sub_query_id=first.id, source_ids=["src-other"], **cited),
        Finding(id="f-4", statement="Of a call that failed.", sub_query_id=later.id, source_ids=[read.id], **cited),
    ]
    made = states.state(plan=states.plan(first, later), sources=states.sources(read, fresh), findings=found)
    readings = plan_readings(ResearchRun(made, Inbox(), InProcessHost({})), [later], [])
    assert [reading.request.found for reading in readings] == [["Rows are frozen."]]
    made.evidence.sources[read.id] = read.with_fields(analyzed=False)
    assert plan_readings(ResearchRun(made, Inbox(), InProcessHost({})), [later], [])[0].request.found == []


def test_one_page_is_read_for_several_purposes_in_one_call() -> None:
    """Named sections apart; each purpose gets what names it, and rules read for one purpose at a time."""
    readings = [PageReading("src-1", "locks"), PageReading("src-2"), PageReading("src-1", "costs"),
                PageReading("src-1", section=4), PageReading("src-1", "locks")]  # fmt: skip
    groups = group_readings(readings, together=True)
    assert groups == [(readings[0], readings[2]), (readings[1],), (readings[3],)]
    assert group_readings(readings, together=False) == [(reading,) for reading in readings[:4]]
    findings = [
        Finding(id=f"f-{number}", statement="It locks.", sub_query_id="sq", confidence=Confidence.LOW)
        for number in range(3)
    ]
    named = [ProposedGap(description="a", sub_query=2), ProposedGap(description="b")]
    both = AnalyzerResult(findings=findings, answered=[[1], [1, 2], []], gaps=named)
    first, second = (part_for(both, number) for number in (1, 2))
    assert ([one.id for one in first.findings], [gap.description for gap in first.gaps]) == (
        ["f-0", "f-1", "f-2"],
        ["b"],
    )
    assert ([one.id for one in second.findings], [gap.description for gap in second.gaps]) == (["f-1"], ["a"])
    alone = AnalyzerResult(findings=findings, gaps=named)
    assert part_for(alone, 1) == alone


class Answering(ResearchRun):
    """A run whose roles give these answers, and whose requests are noted."""

    async def ask(self, role: Any, step: str, request: Any, engine: Any = None, **_: Any) -> Any:
        self.__dict__.setdefault("asked", []).append(request)
        return self.__dict__["answers"].pop(0)


@pytest.mark.parametrize("narrowed", [False, True])
async def test_what_is_hidden_after_two_readings_is_what_both_hide(narrowed: bool) -> None:
    """After a reading of which a limit left parts out, the second one may show again what the choice had."""
    source = states.source("corpus:m/a", text=DocumentRef(hash="sha256:" + "1" * 64, size=8_000))
    query = states.sub_query("a question")
    run = Answering(states.state(plan=states.plan(query), sources=states.sources(source)), Inbox(), InProcessHost({}))
    wanted = [SectionRef(source_id=source.id, start=0, end=9)]
    run.__dict__["answers"] = [
        AnalyzerResult(outline=["1. A (900 characters)", "3. C (900 characters)"], wanted=wanted, narrowed=narrowed),
        AnalyzerResult(outline=["2. B (900 characters)", "3. C (900 characters, a part of it is shown)"]),
    ]
    request = reading_input(run, [query], [source], [])
    result = await read_sources(run, ANALYZER, "analyze/a", request)
    assert result.outline == ["3. C (900 characters, a part of it is shown)"]
    again = run.__dict__["asked"][1]
    assert (again.shown_before, again.narrowed_before) == (True, narrowed)


async def test_gaps_of_a_first_reading_stay_until_the_second_answers_them() -> None:
    """They are listed as open to it, so it need not repeat them, and those that the first answered are not; one that
    it gives a place is stated with that.
    """
    source = states.source("corpus:m/a", text=DocumentRef(hash="sha256:" + "1" * 64, size=8_000))
    query = states.sub_query("a question")
    run = Answering(states.state(plan=states.plan(query), sources=states.sources(source)), Inbox(), InProcessHost({}))
    place = SectionRef(source_id=source.id, start=0, end=9)
    first = [ProposedGap(description=name) for name in ("Its price", "Its colour", "Its age")]
    placed = ProposedGap(description="Its age", unread=[place])
    run.__dict__["answers"] = [
        AnalyzerResult(
            gaps=first, wanted=[place], settled_gaps=[SettledGap(gap_id=gap_id("Its length"), answered_by=["f-0"])]
        ),
        AnalyzerResult(
            gaps=[placed, ProposedGap(description="Its maker")],
            settled_gaps=[SettledGap(gap_id=gap_id("Its price"), answered_by=["f-1"])],
        ),
    ]
    known = [states.gap(name) for name in ("Its weight", "Its length")]
    request = reading_input(run, [query], [source], []).with_fields(gaps=known)
    result = await read_sources(run, ANALYZER, "analyze/a", request)
    listed = [gap.description for gap in run.__dict__["asked"][1].gaps]
    assert listed == ["Its weight", "Its price", "Its colour", "Its age"]
    assert [(gap.description, gap.unread) for gap in result.gaps] == [
        ("Its colour", []), ("Its age", [place]), ("Its maker", [])
    ]  # fmt: skip


def test_a_gap_that_is_stated_again_gets_its_sections() -> None:
    """A later reader knows where an open gap is answered; one that is closed needs no place."""
    places = [SectionRef(source_id="src-1", start=number, end=number + 9) for number in (0, 20)]
    known = [
        states.gap("One").with_fields(unread=places[:1]),
        states.gap("Two", status=GapStatus.ADDRESSED),
    ]
    drafts = [ProposedGap(description=name, unread=places) for name in ("One", "Two")]
    assert [one.unread for one in gaps.with_unread(known, drafts)] == [places, []]


def test_named_sections_are_read_by_themselves() -> None:
    """Sub-queries that name sections share a call as far as these fit, and do not bring their pages to other calls."""
    searched = states.sub_query("a new question", iteration=2)
    page = DocumentRef(hash="sha256:" + "1" * 64, size=90_000)
    source = states.source("corpus:m/a", text=page, analyzed=True)
    fresh = states.source("corpus:m/b", text=page, sub_query_ids=[searched.id], analyzed=False)
    named = [
        states.sub_query(f"gap {number}", origin=f"gap:gap-{number}").model_copy(
            update={"sections": [SectionRef(source_id=source.id, start=size * number, end=size * (number + 1))]}
        )
        for number, size in enumerate((30_000, 30_000, 60_000))
    ]
    source = source.model_copy(update={"sub_query_ids": [query.id for query in named]})
    made = states.state(plan=states.plan(searched, *named), sources=states.sources(source, fresh))
    made.work.resolved = states.resolved(limits=states.resolved().limits.model_copy(update={"analysis_tokens": 24_000}))
    readings = plan_readings(ResearchRun(made, Inbox(), InProcessHost({})), [searched, *named], [])
    assert [[query.text for query in reading.queries] for reading in readings] == [
        ["a new question"],
        ["gap 0", "gap 1"],
        ["gap 2"],
    ]
    assert [[one.id for one in reading.request.sources] for reading in readings] == [[fresh.id], *([[source.id]] * 2)]
    assert [reading.request.wanted for reading in readings] == [
        [],
        [*named[0].sections, *named[1].sections],
        named[2].sections,
    ]


@given(
    st.lists(st.tuples(st.integers(0, 90_000), st.integers(0, 4), st.integers(1, 5), st.booleans()), max_size=40),
    st.integers(1_000, 40_000),
    st.integers(1_000, 200_000),
)
def test_every_page_is_in_one_call_with_room_for_it(
    drawn: list[tuple[int, int, int, bool]], analysis_tokens: int, reading_tokens: int
) -> None:
    """No page is lost or read twice, no call has more than its tokens or twenty pages, and the limit of all holds but
    for the least of each page.
    """
    pages = [
        PageToRead(id=f"src-{number}", characters=size, query=query, rank=rank, again=again)
        for number, (size, query, rank, again) in enumerate(drawn)
    ]
    batches = distribute_pages(pages, analysis_tokens, reading_tokens)
    assert sorted(name for batch in batches for name in batch.ids) == sorted(page.id for page in pages if batches)
    assert all(batch.tokens <= max(analysis_tokens, LEAST_TOKENS) and len(batch.ids) <= 20 for batch in batches)
    assert sum(batch.tokens for batch in batches) <= reading_tokens + LEAST_TOKENS * len(pages)


def test_what_no_page_needs_is_divided_among_the_calls() -> None:
    """A call of long pages may show more of them, as far as the limit of the iteration allows; requests say so."""
    pages = [PageToRead(id=f"src-{number}", characters=90_000, query=0, rank=number) for number in range(4)]
    assert [batch.tokens for batch in distribute_pages(pages, 12_000, 24_000)] == [12_000, 12_000]
    assert [batch.tokens for batch in distribute_pages(pages, 16_000, 28_000)] == [14_000, 14_000]
    assert [batch.tokens for batch in distribute_pages(pages, 16_000, 99_000)] == [16_000, 16_000]
    query = states.sub_query("a question")
    text = DocumentRef(hash="sha256:" + "1" * 64, size=90_000)
    source = states.source("corpus:m/a", text=text, sub_query_ids=[query.id], analyzed=False)
    made = states.state(plan=states.plan(query), sources=states.sources(source))
    assert made.work.resolved
    limits = made.work.resolved.limits.with_fields(reading_tokens=9_000, analysis_tokens=24_000)
    made.work.resolved = made.work.resolved.with_fields(limits=limits)
    (reading,) = plan_readings(ResearchRun(made, Inbox(), InProcessHost({})), [query], [])
    assert reading.request.most_tokens == 9_000
    assert resolved_fields(ANALYZER, reading.request, made.work.resolved)["shown_tokens"] == 9_000


def test_a_model_does_not_write_from_what_rules_picked_after_a_limit() -> None:
    """Their findings and passages do not reach the writer, unless there is nothing else."""
    made = states.state(plan=states.plan(states.sub_query("a question")))
    own, picked = (states.finding(text, evidence_ids=[f"ev-{text}"]) for text in ("own", "picked"))
    picked = picked.model_copy(update={"by_rules": True})
    made.evidence.findings = [own, picked]
    made.evidence.passages = {
        f"ev-{text}": Evidence(id=f"ev-{text}", source_id="src-1", start=0, end=9) for text in ("own", "picked")
    }
    run = ResearchRun(made, Inbox(), InProcessHost({}))
    request = write_input(run, issues=[])
    assert ([one.id for one in request.findings], [one.id for one in request.evidence]) == ([own.id], ["ev-own"])
    made.evidence.findings = [picked]
    assert [one.id for one in write_input(run, issues=[]).findings] == [picked.id]


async def test_pages_that_an_analysis_left_out_do_not_wait_for_one() -> None:
    """The report counts those alone that no call has been shown for want of a budget."""
    done, later = states.sub_query("a question"), states.sub_query("a question of the last iteration", iteration=2)
    pages = [
        states.source(f"corpus:m/{name}", sub_query_ids=[query.id], analyzed=analyzed)
        for name, query, analyzed in (("a", done, True), ("b", done, False), ("c", later, False), ("d", later, False))
    ]
    made = states.state(
        plan=states.plan(done, later), sources=states.sources(*pages), findings=[states.finding("a statement")],
        resolved=states.resolved(engine=EngineKind.MODEL),
    )  # fmt: skip
    made.work.analyzed_sub_queries = [done.id]
    run = ResearchRun(made, Inbox(), InProcessHost({}))
    assert not await analyze_without_model(run)
    assert made.work.degraded == ["2 pages of those read could not be analyzed any more"]


def test_what_is_analyzed_again_opens_what_it_had_closed() -> None:
    """Open gaps of the first analysis are superseded; a gap that it had closed waits for the second one."""
    query = states.sub_query("a question", origin="gap:gap-closed")
    closed = states.gap("closed", id="gap-closed", status=GapStatus.ADDRESSED)
    mine = states.gap("mine", origin=f"sub_query:{query.id}")
    other = states.gap("other", origin="sub_query:another")
    made = states.state(plan=states.plan(query), gaps=[closed, mine, other], findings=[states.finding("x")])
    withdraw(made, [query])
    assert [gap.status for gap in made.evidence.gaps] == [GapStatus.OPEN, GapStatus.SUPERSEDED, GapStatus.OPEN]
    assert len(made.evidence.findings) == 1


def assessed(label: Quality, **parts: object) -> Source:
    """A source that the rules judged, as it is known after reading."""
    given = {"authority": 0.8, "relevance": 0.5, "recency": 0.5, "content_quality": 0.5, "label": label}
    found = SourceAssessment(**given | {"reason": "university site"} | parts)
    best = best_quality(found)
    return states.source("https://e.org/a", quality=label, assessment=found, best_quality=best)


def opinion(source: Source, quality: str) -> Source:
    return update_quality(source, QualityUpdate(source_id=source.id, quality=quality))


@pytest.mark.parametrize(
    ("label", "word", "expected"),
    [
        (Quality.MEDIUM, "high", Quality.HIGH),
        (Quality.MEDIUM, "low", Quality.LOW),
        (Quality.LOW, "high", Quality.MEDIUM),
        (Quality.HIGH, "low", Quality.MEDIUM),
        (Quality.HIGH, "unknown", Quality.HIGH),
        (Quality.HIGH, "excellent", Quality.HIGH),
    ],
)
def test_an_opinion_moves_a_label_by_one_step(label: Quality, word: str, expected: Quality) -> None:
    """The label follows the analyzer by one step, with what it was before as the reason (S0-063, X-20)."""
    source = opinion(assessed(label), word)
    assert source.quality is expected
    if expected is not label:
        assert source.quality_reason == f"analyzer: {expected.value} (was {label.value})"


def test_where_anybody_can_write_nothing_is_authoritative() -> None:
    """The analyzer cannot raise a page of a forum or an open encyclopedia to high (X-20)."""
    edited, open_to_all = (assessed(Quality.MEDIUM, authority=0.6, user_generated=by_all) for by_all in (False, True))
    assert opinion(edited, "high").quality is Quality.HIGH
    assert opinion(open_to_all, "high").quality is Quality.MEDIUM
    assert opinion(open_to_all, "low").quality is Quality.LOW


# --- gaps and endings -------------------------------------------------------------------------------------------------
def test_a_gap_is_not_opened_twice() -> None:
    """The same description, but for case and space, is the same gap."""
    made = states.state(gaps=[states.gap("What about locks")])
    drafts = [
        ProposedGap(description="what  about LOCKS?"),
        ProposedGap(description="And memory"),
        ProposedGap(description=" "),
    ]
    assert [gap.description for gap in gaps.open_gaps(made, drafts, "analysis")] == ["And memory"]


def test_a_full_list_of_gaps_keeps_those_that_still_matter() -> None:
    """New gaps are never lost for old ones: settled, minor and early gaps give way; what people asked for stays."""
    wish = states.gap("and the locks?", origin="steer")
    settled = [states.gap(f"settled {number}", status=GapStatus.ADDRESSED) for number in range(10)]
    minor = [states.gap(f"minor {number}", severity=Severity.MINOR) for number in range(5)]
    early = [states.gap(f"early {number}") for number in range(14)]
    made = states.state(gaps=[wish, *settled, *minor, *early])
    left = gaps.with_gaps(made, [states.gap(f"new {number}") for number in range(20)])
    assert len(left) == 30
    assert [gap.description for gap in left[:6]] == ["and the locks?", *(f"early {number}" for number in range(5, 10))]
    assert [gap.description for gap in left[-20:]] == [f"new {number}" for number in range(20)]


def test_a_gap_is_closed_by_findings_that_a_model_calls_an_answer() -> None:
    """Only known findings count; a gap that repeats another gives way to it; nothing else changes (C0-25)."""
    locks, waits, again = states.gap("locks"), states.gap("waits"), states.gap("which locks")
    made = states.state(gaps=[locks, waits, again], findings=[states.finding("It locks.")])
    known = made.evidence.findings[0].id
    judged = [
        SettledGap(gap_id=locks.id, answered_by=[known, "f-unknown"]),
        SettledGap(gap_id=waits.id, answered_by=["f-unknown"], duplicate_of="gap-unknown"),
        SettledGap(gap_id=again.id, duplicate_of=locks.id),
        SettledGap(gap_id="gap-unknown", answered_by=[known]),
    ]
    result = gaps.settle_gaps(made, judged)
    assert [(gap.status, gap.resolved_by) for gap in result] == [
        (GapStatus.ADDRESSED, [known]),
        (GapStatus.OPEN, []),
        (GapStatus.SUPERSEDED, []),
    ]


async def test_a_finding_on_something_else_closes_no_gap() -> None:
    """A follow-up that finds something leaves its gap open until a finding answers it; nothing at all ends it (C0-25)."""
    gap = states.gap("same architecture")
    query = states.sub_query("architecture of both servers", origin=f"gap:{gap.id}")
    source = states.source("corpus:m/a", sub_query_ids=[query.id])
    aside = states.finding("A compiler flag.", source_ids=[source.id])
    answers = {
        GapStatus.OPEN: AnalyzerResult(findings=[aside]),
        GapStatus.ADDRESSED: AnalyzerResult(
            findings=[aside], settled_gaps=[SettledGap(gap_id=gap.id, answered_by=[aside.id])]
        ),
        GapStatus.UNADDRESSABLE: AnalyzerResult(),
    }
    for status, answer in answers.items():
        made = states.state(gaps=[gap], plan=states.plan(query), sources=states.sources(source))
        run = ResearchRun(made, Inbox(), RandomWorld(1).host())
        (reading,) = plan_readings(run, [query], [])
        merge_readings(run, [query], [(reading, answer)], set())
        assert [one.status for one in made.evidence.gaps] == [status]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("names_passages", [True, False])
async def test_a_gap_that_the_report_answers_is_closed_with_its_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names_passages: bool
) -> None:
    """The reviewer of the last report names it with the passages cited there; one that it names without any stays."""
    sensible = checking_work.reviewing

    def reviewing(prompt: str) -> dict[str, Any]:
        plain = model_work.unmarked(prompt)
        listed = re.findall(r"(?m)^(gap-\w+): ", plain)
        cited = re.findall(r"\[(ev-\w+)\]", plain)[:1] if names_passages else ["ev-0"]
        return sensible(prompt) | {"answered_gaps": [{"gap_id": name, "passages": cited} for name in listed[:1]]}

    monkeypatch.setattr(checking_work, "reviewing", reviewing)
    analysis = model_work.analysis
    monkeypatch.setattr(model_work, "analysis", lambda prompt, **_: analysis(prompt, with_gap=True))
    trial = await undisturbed(tmp_path, "supervisor", "model", limits={"max_iterations": 1})
    found = trial.state.evidence.gaps
    assert found
    closed = [gap for gap in found if gap.status is GapStatus.ADDRESSED]
    assert len(closed) == names_passages
    cited = set(trial.state.evidence.draft_citations)
    by_id = {finding.id: finding for finding in trial.state.evidence.findings}
    for gap in closed:
        assert all(cited & set(by_id[name].evidence_ids) for name in gap.resolved_by)
    reviewed = [request.prompt for request in trial.api.requests if request.role == "reviewer"]
    assert all("Open gaps of the research" in prompt for prompt in reviewed)


def test_the_refiner_sets_severity_and_addressability() -> None:
    """Unknown ids change nothing, and what is to be read further can be closed (S0-075, S0-175)."""
    hole, listed = states.gap("locks"), states.gap("waits")
    items = [
        GapAssessment(gap_id=hole.id, severity=Severity.CRITICAL, addressable=False),
        GapAssessment(gap_id=listed.id, severity=Severity.MINOR, addressable=False, read_further=[1]),
        GapAssessment(gap_id="gap-unknown", severity=Severity.MINOR, addressable=True),
    ]
    result = gaps.apply_assessments(states.state(gaps=[hole, listed]), items)
    assert [(gap.severity, gap.status) for gap in result] == [
        (Severity.CRITICAL, GapStatus.UNADDRESSABLE),
        (Severity.MINOR, GapStatus.OPEN),
    ]


def test_what_a_person_asked_for_is_looked_for_once() -> None:
    """A refiner cannot wave it away before it was searched; one attempt without evidence ends it (C0-25)."""
    wish = states.gap("and the locks?", origin="steer")
    made = states.state(gaps=[wish], findings=[states.finding("It locks.")])
    found = made.evidence.findings[0].id
    for assessment in (
        GapAssessment(gap_id=wish.id, severity=Severity.MINOR, addressable=False),
        GapAssessment(gap_id=wish.id, answered_by=[found]),
    ):
        assert gaps.apply_assessments(made, [assessment]) == [wish]
    made.work.plan = states.plan(states.sub_query("the locks", origin=f"gap:{wish.id}"))
    searched = gaps.apply_assessments(made, [GapAssessment(gap_id=wish.id, answered_by=[found])])
    assert searched[0].status is GapStatus.ADDRESSED
    assert gaps.give_up_gap([wish], wish.id)[0].status is GapStatus.UNADDRESSABLE


QUESTION = "What limits the speed?"


def answered_state(**changes: object) -> ResearchState:
    query = states.sub_query("a question of the plan", finding_count=1)
    base = {
        "resolved": states.resolved(engine=EngineKind.MODEL),
        "plan": states.plan(query),
        "findings": [states.finding("an answer", sub_query_id=query.id)],
        "draft": states.draft(),
    }
    return states.state(**(base | changes))


@pytest.mark.parametrize(
    ("lost", "reason", "outcome"),
    [
        (2, "TimeoutError", Outcome.PARTIAL),
        (1, "TimeoutError", Outcome.COMPLETED),
        (2, failures.STORAGE_FULL, Outcome.PARTIAL),
        (5, "http_status", Outcome.COMPLETED),
    ],
)
def test_a_lost_fifth_of_the_sources_makes_it_partial(lost: int, reason: str, outcome: Outcome) -> None:
    """What nobody read by a fault of ours is missing, and is told; pages that cannot be read are everyday life."""
    failed = {"status": SourceStatus.FAILED, "status_reason": reason}
    registry = [states.source(f"https://e.org/{n}", **(failed if n < lost else {})) for n in range(10)]
    made = answered_state(sources=states.sources(*registry))
    assert outcome_of(QUESTION, made, StopReason.NO_OPEN_GAPS) is outcome
    told = [line for line in limitations_of(QUESTION, made, StopReason.NO_OPEN_GAPS) if "sources were not read" in line]
    assert [line.startswith(f"{lost} of 10 ") for line in told] == [True] * (outcome is Outcome.PARTIAL)
    assert any("no room was left to keep them" in line for line in told) is (reason == failures.STORAGE_FULL)


def test_an_unanswered_sub_query_makes_it_partial_unless_its_gap_is_stated() -> None:
    """Every sub-query is answered or its gap stated (C0-24)."""
    silent = states.sub_query("a question without an answer")
    made = answered_state()
    made.work.plan = states.plan(*made.work.plan.nodes, silent)
    assert find_unanswered(QUESTION, made) == [silent.text]
    assert outcome_of(QUESTION, made, StopReason.NO_OPEN_GAPS) is Outcome.PARTIAL
    made.evidence.gaps = [states.gap("nothing on it", origin=f"sub_query:{silent.id}")]
    assert outcome_of(QUESTION, made, StopReason.NO_OPEN_GAPS) is Outcome.COMPLETED
    made.evidence.gaps = [states.gap("nothing on it", origin="sub_query:another")]
    assert outcome_of(QUESTION, made, StopReason.NO_OPEN_GAPS) is Outcome.PARTIAL
    shared = silent.model_copy(update={"stated_gaps": [made.evidence.gaps[0].id]})
    made.work.plan = states.plan(*made.work.plan.nodes[:-1], shared)
    assert outcome_of(QUESTION, made, StopReason.NO_OPEN_GAPS) is Outcome.COMPLETED


def test_what_is_researched_beside_a_review_is_not_missing_in_the_report() -> None:
    """The reviewer of an earlier report is not shown the sub-queries of the iteration that is being read."""
    made = answered_state()
    silent = states.sub_query("nothing was found for it")
    later = states.sub_query("it is searched for now", iteration=2)
    made.work.plan = states.plan(*made.work.plan.nodes, silent, later)
    made.work.iteration = 2
    draft = ReportDraft(document=DocumentRef(hash="sha256:" + "1" * 64))
    earlier = review_input(made, draft, None, is_earlier=True)
    assert (earlier.unanswered, later.text in earlier.sub_queries) == ([silent.text], False)
    assert review_input(made, draft, None).unanswered == [silent.text, later.text]


def test_findings_on_aspects_alone_do_not_answer_the_question() -> None:
    """The sub-query that is the question itself needs a finding, of its own or of a search that closes its gap."""
    asked = states.sub_query(f" {QUESTION.lower()}")
    gap = states.gap("the best passage holds little of the question", origin=f"sub_query:{asked.id}")
    made = answered_state(gaps=[gap])
    aspect = made.work.plan.sub_queries[0]
    made.work.plan = states.plan(asked, aspect)
    assert find_unanswered(QUESTION, made) == [asked.text]
    assert outcome_of(QUESTION, made, StopReason.NO_OPEN_GAPS) is Outcome.PARTIAL
    assert f"Not answered: {asked.text}" in limitations_of(QUESTION, made, StopReason.NO_OPEN_GAPS)
    later = states.sub_query("another search for it", origin=f"gap:{gap.id}", finding_count=1)
    made.work.plan = states.plan(asked, aspect, later)
    assert outcome_of(QUESTION, made, StopReason.NO_OPEN_GAPS) is Outcome.COMPLETED


FAULTS = [
    {"draft": states.draft(50)},
    {"draft": states.draft(has_headings=False)},
    {"draft": states.draft(unresolved_markers=["ev-unknown"])},
    {"draft": states.draft(evidence_ids=[])},
    {"failed_branches": ["planner: InvalidModelOutput"]},
    {"fallbacks": {"analyzer": 1}},
]
CUT_SHORT = [StopReason.BUDGET_TIME, StopReason.BUDGET_CALLS, StopReason.BUDGET_COST, StopReason.USER_STOPPED]


@pytest.mark.parametrize(
    ("changes", "reason", "outcome"),
    [
        ({}, StopReason.NO_OPEN_GAPS, Outcome.COMPLETED),
        *((fault, StopReason.NO_OPEN_GAPS, Outcome.PARTIAL) for fault in FAULTS),
        *(({}, reason, Outcome.PARTIAL) for reason in CUT_SHORT),
        ({"findings": []}, StopReason.NO_EVIDENCE, Outcome.EMPTY),
        ({"findings": []}, StopReason.BUDGET_TIME, Outcome.TIMED_OUT),
    ],
)
def test_the_outcome_follows_from_what_is_missing(
    changes: dict[str, Any], reason: StopReason, outcome: Outcome
) -> None:
    """Faulty reports, failed work, fallbacks, limits and stops decide it; quality gates do not. A run without any text has
    failed (S0-032, C0-24, X-4).
    """
    made = answered_state(**changes)
    assert outcome_of(QUESTION, made, reason) is outcome
    lines = limitations_of(QUESTION, made, reason)
    assert any("from what was there" in line for line in lines) is (reason in CUT_SHORT)
    assert any(line.startswith("The report did not pass its check: ") for line in lines) is ("draft" in changes)
    assert lines or outcome is not Outcome.PARTIAL
    # A faulty report leaves no part of the plan without an answer.
    whole = Completeness.PARTIAL if reason in CUT_SHORT or made.work.failed_branches else Completeness.FULL
    assert completeness_of(QUESTION, made, reason) is (whole if made.evidence.findings else Completeness.EMPTY)
    if made.evidence.findings:
        made.evidence.draft = None
        assert outcome_of(QUESTION, made, reason) is Outcome.FAILED


def test_an_outage_is_not_an_empty_answer() -> None:
    """If no search succeeded, or nobody read what they found, nobody can say that nothing answers: failed (C0-13)."""
    searched = answered_state(findings=[])
    assert stop_reason_of(searched, StopReason.NO_OPEN_GAPS) is StopReason.NO_EVIDENCE
    failed = states.sub_query("a question", status=NodeStatus.FAILED)
    lost = states.source("https://e.org/1", status=SourceStatus.FAILED, status_reason="TimeoutError")
    for made in (
        answered_state(findings=[], plan=states.plan(failed), failed_branches=["search"]),
        states.state(plan=states.plan(states.sub_query("a question")), sources=states.sources(lost)),
    ):
        reason = stop_reason_of(made, StopReason.NO_OPEN_GAPS)
        assert (reason, outcome_of(QUESTION, made, reason)) == (StopReason.PROVIDER_OUTAGE, Outcome.FAILED)


@pytest.mark.parametrize(
    ("spent", "reason"), [(1.7, StopReason.BUDGET_COST), (1.69, StopReason.BUDGET_REST), (2.0, StopReason.BUDGET_COST)]
)
def test_a_limit_of_costs_is_reached_once_it_is_spent(spent: float, reason: StopReason) -> None:
    """With less than 85 % of it spent the run says that the rest was too little, and names the same remedy."""
    limits = states.resolved().limits.model_copy(update={"max_cost_usd": 2.0})
    made = answered_state(resolved=states.resolved(limits=limits), usage=Usage(model_calls=9, cost_usd=spent))
    assert stop_reason_of(made, StopReason.BUDGET_COST) is reason
    assert outcome_of(QUESTION, made, reason) is Outcome.PARTIAL
    assert "limits.max_cost_usd=N" in advice_of(made, Outcome.PARTIAL, reason)
    said = "too little for the next step" if reason is StopReason.BUDGET_REST else "cost limit was reached"
    assert said in limitations_of(QUESTION, made, reason)[0]
    assert stop_reason_of(made, StopReason.BUDGET_TOKENS) is StopReason.BUDGET_TOKENS


def test_passages_are_completed_whatever_is_not_answered() -> None:
    """Without a model nobody judges answers: one passage completes a run, and nothing else than work that failed."""
    silent = states.sub_query("a question without an answer")
    made = answered_state(resolved=states.resolved(engine=EngineKind.EXTRACTIVE))
    made.work.plan = states.plan(*made.work.plan.nodes, silent)
    assert outcome_of(QUESTION, made, StopReason.NO_OPEN_GAPS) is Outcome.COMPLETED
    assert not limitations_of(QUESTION, made, StopReason.NO_OPEN_GAPS)


@pytest.mark.parametrize(
    ("changes", "outcome", "reason", "advice"),
    [
        ({}, Outcome.COMPLETED, StopReason.NO_OPEN_GAPS, ""),
        ({"findings": []}, Outcome.EMPTY, StopReason.NO_EVIDENCE, "ask in other words"),
        ({}, Outcome.PARTIAL, StopReason.NO_ACTIONABLE_GAPS, "ask in other words"),
        ({}, Outcome.PARTIAL, StopReason.MAX_ITERATIONS, "limits.max_iterations=N"),
        ({}, Outcome.PARTIAL, StopReason.BUDGET_CALLS, "limits.max_model_calls=N"),
        ({}, Outcome.PARTIAL, StopReason.BUDGET_TIME, ""),
        ({"failed_branches": ["search for “x”"]}, Outcome.PARTIAL, StopReason.NO_ACTIONABLE_GAPS, ""),
        ({"hasty_analyses": ["sq-1"]}, Outcome.PARTIAL, StopReason.MAX_ITERATIONS, ""),
        ({"draft": states.draft(50)}, Outcome.PARTIAL, StopReason.NO_OPEN_GAPS, ""),
    ],
)
def test_resuming_is_advised_where_it_would_do_something(
    changes: dict[str, Any], outcome: Outcome, reason: StopReason, advice: str
) -> None:
    """Elsewhere the run names what helps instead."""
    found = advice_of(answered_state(**changes), outcome, reason)
    assert advice in found
    assert bool(found) is bool(advice)


async def test_a_gap_that_only_the_refiner_states_is_searched_for_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No reader names it: the refiner does, with its queries; it becomes a gap of the run and the next iteration's search."""
    own = {
        "description": "How much a full freeze costs",
        "severity": "critical",
        "follow_up_queries": [{"query": "cost of a full freeze in hours"}],
    }

    def refinement(prompt: str) -> dict[str, object]:
        del prompt
        return {"gap_analysis": [], "own_gaps": [own], "iteration_recommendation": {"should_iterate": False}}

    analysis = model_work.analysis
    monkeypatch.setattr(
        model_work, "analysis", lambda prompt, **_: analysis(prompt, with_gap="Iteration: 1 of" in prompt)
    )
    monkeypatch.setattr(model_work, "refinement", refinement)
    trial = await undisturbed(tmp_path, "supervisor", "model", limits={"max_iterations": 2})
    trial.assert_completed()
    state = trial.state
    [gap] = [gap for gap in state.evidence.gaps if gap.origin == "refiner"]
    assert (gap.description, gap.severity) == (own["description"], Severity.CRITICAL)
    searched = [query for query in state.searches() if query.iteration == 2]
    assert [query.text for query in searched if query.gap_id == gap.id] == ["cost of a full freeze in hours"]
    assert searched[0].gap_id == gap.id


@pytest.mark.parametrize(
    ("characters", "most"), [(0, 5), (900, 6), (2_000, 12), (5_000, 12), (7_200, 16), (40_000, 20)]
)
def test_a_short_page_may_be_a_list_of_findings(characters: int, most: int) -> None:
    """A list has a fact in each line, so that the room of an answer does not follow the length alone."""
    text = DocumentRef(hash="sha256:" + "1" * 64, size=characters)
    assert findings_of_page(states.source("corpus:m/a", text=text)) == most
