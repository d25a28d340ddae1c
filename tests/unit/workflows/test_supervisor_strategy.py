"""The strategy `supervisor`: whole runs, worlds drawn at random, gates to the digit, think-pauses and their guidance."""

import asyncio
import json
import re
from pathlib import Path
from unittest.mock import AsyncMock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.evidence import SectionRef
from contracts.gaps import GapReading
from contracts.outcome import GateIssue, GateResult, Guidance
from contracts.plan import PlanNode
from contracts.request import Gates
from contracts.resolved import CorpusSnapshot, Hook
from contracts.roles import AnalyzeInput, AnalyzerResult
from contracts.state import ResearchState
from contracts.supervisor_roles import FollowUpQuery, GapAssessment, ReflectInput, SupervisorAnswer
from contracts.vocabulary import (
    Action,
    Confidence,
    EngineKind,
    GapStatus,
    GatePolicy,
    NodeStatus,
    Outcome,
    Phase,
    Quality,
    RunStatus,
    Severity,
    SourceStatus,
    StopReason,
    ThinkMode,
)
from tests.drawn import draws
from tests.every_strategy.joined import undisturbed
from tests.fakes import model_work, states
from tests.fakes.corpus import MemoryCorpus
from tests.fakes.pauses import pause_after
from tests.fakes.random_world import RandomWorld
from tests.fakes.world import World, begin
from workflows.driver import Driver
from workflows.phases.pauses import state_for_hook
from workflows.rules.sub_queries import assign_readings, follow_ups, queries_to_analyze, reading_nodes
from workflows.run.context import MAX_CALL_REQUESTS, MAX_GUIDANCE, guidance_for, with_guidance
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies import Finished
from workflows.strategies.supervisor.decisions import (
    SupervisorPosition,
    decide,
    is_reflected_on,
    reflection_input,
    reflection_prompt,
    should_iterate,
    stop_reason_after_synthesis,
)
from workflows.strategies.supervisor.gates import curable_issues, evaluate
from workflows.strategies.supervisor.supervisor_strategy import SupervisorStrategy


async def test_a_run_answers_from_the_documents(tmp_path: Path) -> None:
    """Plan, gather, analyze, synthesize: a completed run with citations that resolve (S0-008, S0-011, S0-016, S0-022)."""
    world = World(tmp_path)
    state = await begin(world)
    assert (state.work.status, state.work.phase, state.work.iteration) == (RunStatus.CREATED, None, 1)
    run = ResearchRun(state, Inbox(), world.host())
    outcome = await Driver(run, SupervisorStrategy()).conduct()
    assert outcome is Outcome.COMPLETED, (state.work.failed_branches, state.work.limitations)
    assert state.work.status is RunStatus.COMPLETED
    assert state.evidence.citations
    report = await world.content.get_text(state.work.result.files.markdown)
    assert "two\nbillion transactions" in report or "two billion transactions" in report.replace("\n> ", " ")
    for item in state.evidence.passages.values():
        text = await world.content.get_text(state.evidence.sources[item.source_id].text)
        assert text[item.start : item.end].strip()


async def test_every_phase_is_evaluated_and_logged(tmp_path: Path) -> None:
    """Each phase has a dispatch, an evaluation and a decision, in order (S0-080, S0-083 to S0-091, S0-093, S0-183)."""
    world = World(tmp_path)
    state = await begin(world)
    await Driver(ResearchRun(state, Inbox(), world.host()), SupervisorStrategy()).conduct()
    evaluated = [item.inputs["phase"] for item in state.people.decisions if item.action == "evaluate_phase"]
    assert evaluated[:4] == ["planning", "gathering", "analysis", "synthesis"]
    actions = {item.action for item in state.people.decisions}
    assert {"decide_iteration", *(f"execute_{phase}" for phase in evaluated[:4])} <= actions
    assert [item.seq for item in state.people.decisions] == list(range(1, len(state.people.decisions) + 1))
    assert all(item.timestamp for item in state.people.decisions)
    figures = {item.inputs["phase"]: item.outputs for item in state.people.decisions if item.action == "evaluate_phase"}
    high = sum(finding.confidence.value in ("high", "confirmed") for finding in state.evidence.findings)
    expected = {
        "planning": {"sub_query_count": len(state.work.plan.sub_queries), "has_research_brief": True},
        "gathering": {"source_count": len(state.evidence.readable_sources())},
        "analysis": {"finding_count": len(state.evidence.findings), "high_confidence_count": high},
        "synthesis": {"has_report": True, "report_length": state.evidence.draft.characters},
    }
    for phase, outputs in expected.items():
        assert (outputs | {"quality_ok": figures[phase]["quality_ok"]}).items() <= figures[phase].items()


WORLDS = st.builds(RandomWorld, st.integers(0, 10**9), trouble=st.sampled_from([0.0, 0.2, 0.6]))
THINK = st.sampled_from(list(ThinkMode))
POLICY = st.sampled_from(list(GatePolicy))
ITERATIONS = st.integers(1, 4)
BOUNDED = draws(10)


def beginning(think_mode: ThinkMode, policy: GatePolicy, iterations: int) -> ResearchState:
    limits = states.resolved().limits.model_copy(
        update={"max_iterations": iterations, "max_sources": 8, "max_new_sources": 4, "max_parallel": 2}
    )
    gates = Gates(policy=policy, think=think_mode)
    made = states.state(resolved=states.resolved(limits=limits, gates=gates, engine=EngineKind.MODEL))
    made.clock.clock_started_at = 1_795_262_400.0
    made.clock.deadline_at = made.clock.clock_started_at + 1e9
    return made


def conduct(world: RandomWorld, state: ResearchState) -> Outcome:
    return asyncio.run(Driver(ResearchRun(state, Inbox(), world.host()), SupervisorStrategy()).conduct())


@BOUNDED
@given(WORLDS, THINK, POLICY, ITERATIONS)
def test_whatever_the_world_answers_every_reference_resolves(world, think_mode, policy, iterations) -> None:
    """Citation→source, evidence→source, finding→evidence resolve; budgets and widths hold; each source has an owner;
    the decision is taken after synthesis only, the supervisor does no research, the gatherer asks no model
    (invariants 3, 4, 6, 7, 14, S0-002, S0-004, S0-027, S0-049, S0-052, S0-058, S0-085, S0-092, S0-093, S0-175).
    """
    state = beginning(think_mode, policy, iterations)
    conduct(world, state)
    assert all(item.source_id in state.evidence.sources for item in state.evidence.passages.values())
    for finding in state.evidence.findings:
        assert set(finding.evidence_ids) <= set(state.evidence.passages)
        assert set(finding.source_ids) <= set(state.evidence.sources)
    numbers = [citation.number for citation in state.evidence.citations]
    assert len(set(numbers)) == len(numbers)
    assert len({citation.source_id for citation in state.evidence.citations}) == len(numbers)
    assert world.most_searching <= 2
    assert len(state.evidence.readable_sources()) <= 8
    assert sum(event.type == "run.finished" for event in state.people.events) <= 1
    queries = {query.id: query for query in state.work.plan.sub_queries}
    assert all(source.sub_query_ids[0] in queries for source in state.evidence.sources.values())
    read = sum(source.status is SourceStatus.FULL for source in state.evidence.sources.values())
    assert sum(query.new_source_count for query in queries.values()) == read
    ended = (NodeStatus.COMPLETED, NodeStatus.FAILED)
    assert all(query.status in ended for query in queries.values() if query.iteration < state.work.iteration)
    for decision in state.people.decisions:
        if decision.action == "evaluate_phase" and decision.inputs["phase"] == "refinement":
            assert decision.outputs.keys() == {"quality_ok", "unaddressed_gaps", "should_iterate"}
        if decision.action == "decide_iteration":
            assert decision.phase == Phase.SYNTHESIS
            assert decision.outputs["next_phase"] in ("refinement", "completed")
        if decision.agent == "supervisor":
            assert not decision.action.startswith("execute_")
    assert not any(operation.startswith(("search", "read")) for operation in world.paid)


@BOUNDED
@given(WORLDS, THINK, POLICY, ITERATIONS)
def test_iterations_rise_and_sources_never_fall(world, think_mode, policy, iterations) -> None:
    """Unit by unit: the iteration rises by one up to its limit, nothing known is lost (invariants 1, 2, S0-023 to S0-026)."""

    async def watch() -> None:
        run = ResearchRun(beginning(think_mode, policy, iterations), Inbox(), world.host())
        seen, sources, findings, syntheses = 1, set(), set(), 0
        for _ in range(200):
            replaces = run.retries(Phase.ANALYSIS)
            step = await SupervisorStrategy().advance(run)
            if isinstance(step, Finished):
                break
            await pause_after(run, step.name, can_change=step.can_change)
            state = run.state
            assert state.work.iteration in (seen, seen + 1)
            assert state.work.iteration <= iterations
            assert sources <= set(state.evidence.sources)
            assert replaces or findings <= {finding.id for finding in state.evidence.findings}
            seen, sources = state.work.iteration, set(state.evidence.sources)
            findings = {finding.id for finding in state.evidence.findings}
            syntheses += step.name == Phase.SYNTHESIS
        else:
            raise AssertionError("the run never ends")
        assert syntheses <= 2 * iterations

    asyncio.run(watch())


class SecondThoughts(RandomWorld):
    """The supervisor is content with everything but the first analyses; the plan's first sub-query has no answer."""

    asked: list[tuple[list[str], list[str]]]

    async def analyze_sources(self, request: AnalyzeInput) -> AnalyzerResult:
        self.asked.append(([query.id for query in request.queries], [issue.message for issue in request.issues]))
        result = await super().analyze_sources(request)
        if request.issues:
            return result
        others = [number for number, answered in enumerate(result.answered) if answered != [1]]
        return result.model_copy(
            update={name: [getattr(result, name)[number] for number in others] for name in ("findings", "answered")}
        )

    async def reflect_on_phase(self, request: ReflectInput) -> SupervisorAnswer:
        action = Action.RETRY if request.phase == Phase.ANALYSIS else Action.PROCEED
        return SupervisorAnswer(action=action, rationale="weigh both sides", account=self.account(request))


def test_a_repeated_analysis_goes_to_those_without_findings() -> None:
    """Those alone are told the supervisor's reason, and nobody is told to find more; the other findings stand."""
    world = SecondThoughts(1, trouble=0)
    world.asked = []
    state = beginning(ThinkMode.MODEL, GatePolicy.STRICT, 1)
    conduct(world, state)
    first, second = [names for names, told in world.asked if not told], [one for one in world.asked if one[1]]
    assert second
    assert all(told == ["weigh both sides"] for _, told in second)
    assert {name for names, _ in second for name in names} < {name for names in first for name in names}
    by_query = {
        query.id: [one for one in state.evidence.findings if one.sub_query_id == query.id]
        for query in state.work.plan.nodes
    }
    # Findings of the last look count for every sub-query whose gap they answer.
    assert {query.id: query.finding_count for query in state.work.plan.nodes if by_query[query.id]} == {
        name: len(found) for name, found in by_query.items() if found
    }
    assert set(state.evidence.passages) >= {
        item for finding in state.evidence.findings for item in finding.evidence_ids
    }


# --- gates ------------------------------------------------------------------------------------------------------------
def planned(*texts: str, brief: str = "We look.", most: int = 5, query: str = "a question") -> ResearchState:
    limits = states.resolved().limits.model_copy(update={"max_sub_queries": most})
    queries = [states.sub_query(text) for text in texts]
    resolved = states.resolved(limits=limits, query=query)
    return states.state(resolved=resolved, plan=states.plan(*queries, brief=brief))


def read(count: int, quality: Quality = Quality.HIGH, *, failed: int = 0, done: int = 1) -> ResearchState:
    queries = [states.sub_query(f"completed question {number}") for number in range(done)]
    queries += [states.sub_query(f"failed question {number}", status=NodeStatus.FAILED) for number in range(failed)]
    found = [states.source(f"corpus:m/{number}", quality=quality) for number in range(count)]
    return states.state(plan=states.plan(*queries), sources=states.sources(*found))


def analyzed(cited: int, *findings: Confidence, unseen: int = 0) -> ResearchState:
    """Ten sources of two collections; the first finding cites `cited` of them."""
    made = [states.source(f"corpus:{'mn'[number % 2]}/{number}", analyzed=number >= unseen) for number in range(10)]
    used = [item.id for item in made[unseen : unseen + cited]]
    return states.state(
        sources=states.sources(*made),
        findings=[
            states.finding(f"finding {place}", source_ids=[] if place else used, confidence=confidence)
            for place, confidence in enumerate(findings)
        ],
    )


LONG = [f"question number {number} of the plan" for number in range(6)]
PLANS = [
    (planned(LONG[0]), {"too_few_sub_queries"}, 2.5),
    (planned(LONG[0], most=1), set(), 2.5),
    (planned(*LONG[:4]), set(), 10.0),
    (planned(*LONG), {"too_many_sub_queries"}, 10.0),
    (planned(*LONG[:3], brief="  "), {"no_brief"}, 7.5),
    (planned("123456789", "1234567890"), {"short_sub_query"}, 5.0),
    (planned("WAL", "1234567890", query="WAL "), set(), 5.0),
    (planned(brief=""), {"too_few_sub_queries", "no_brief"}, 0.0),
]
SOURCES = [
    (read(2), {"too_few_sources"}, 3.0),
    (read(3), set(), 4.5),
    (read(0), {"too_few_sources"}, 0.0),
    (read(3, Quality.LOW), {"no_high_quality_source"}, 4.5),
    (read(3, failed=1), set(), 4.5),
    (read(3, failed=2), {"too_few_completed"}, 4.5),
]
FINDINGS = [
    (analyzed(3, Confidence.HIGH, Confidence.HIGH), set(), 6.0),
    (analyzed(2, Confidence.LOW), {"too_few_findings", "no_high_confidence", "low_coverage"}, 2.0),
    (analyzed(1, Confidence.HIGH, Confidence.HIGH, unseen=9), set(), 6.0),
    (analyzed(1, Confidence.LOW, Confidence.LOW, unseen=9), set(), 4.0),
]
REPORTS = [
    (states.state(), {"no_report"}, 0.0),
    (states.state(draft=states.draft(99)), {"short_report"}, 0.198),
    (states.state(draft=states.draft(100)), set(), 0.2),
    (
        states.state(draft=states.draft(1_500, has_headings=False, unresolved_markers=["ev-nothing"])),
        {"no_sections", "unresolved_citations"},
        3.0,
    ),
]
GAPS = [
    (states.state(iteration=3, gaps=[states.gap("one"), states.gap("two")]), {"open_gaps"}, 6.0),
    (states.state(iteration=2, gaps=[states.gap("one")]), set(), 8.0),
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("phase", "state", "issues", "score"),
    [
        (phase, *case)
        for phase, cases in zip(Phase, (PLANS, SOURCES, FINDINGS, REPORTS, GAPS), strict=True)
        for case in cases
    ],
)
def test_the_gate_of_each_phase(phase: Phase, state: ResearchState, issues: set[str], score: float) -> None:
    """The plan has two to the limit of sub-queries of ten characters, unless one is the question itself, and a brief;
    three sources, a good one, and half of the searches are completed; two findings, one of high confidence, cite three
    tenths of the analyzed sources; the report has a hundred characters, headings, and citations that resolve; the
    refinement is valid in any case (S0-103 to S0-122, S0-174, C0-3, C0-17, C0-23).
    """
    # Findings of one source cannot be of high confidence, so the gate does not demand it.
    result = evaluate(phase, state)
    assert {issue.code for issue in result.issues} == issues
    assert result.quality_score == pytest.approx(score)
    assert result.valid is (not issues or phase is Phase.REFINEMENT)
    if "short_sub_query" in issues:
        assert [issue.message for issue in result.issues] == ["sub-query too short: 123456789"]


OPEN = states.gap("open")


def gate(phase: Phase, *codes: str, policy: GatePolicy = GatePolicy.STRICT) -> GateResult:
    issues = [GateIssue(code=code, message=code) for code in codes]
    return GateResult(phase=phase, valid=not issues, issues=issues, quality_score=5, policy=policy)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("changes", "iterates", "reason"),
    [
        ({"gaps": [OPEN], "iteration": 2}, True, StopReason.COVERAGE_SUFFICIENT),
        ({"gaps": [OPEN], "iteration": 3}, False, StopReason.MAX_ITERATIONS),
        ({}, False, StopReason.NO_OPEN_GAPS),
        ({"gaps": [states.gap("closed", status=GapStatus.ADDRESSED)]}, False, StopReason.NO_OPEN_GAPS),
        ({"gaps": [states.gap("minor", severity=Severity.MINOR)]}, False, StopReason.NO_ACTIONABLE_GAPS),
        ({"gaps": [states.gap("hopeless", status=GapStatus.UNADDRESSABLE)]}, False, StopReason.NO_OPEN_GAPS),
    ],
)
def test_another_iteration_needs_a_gap_that_matters(changes: dict, iterates: bool, reason: StopReason) -> None:
    """Gaps that matter and an iteration left are needed (S0-017, S0-018, S0-025, S0-029, S0-030, S0-173, C0-5, X-3)."""
    made = states.state(**changes)
    assert should_iterate(made) is iterates
    assert stop_reason_after_synthesis(made) is reason
    assert made.evidence.unaddressed_gaps() or not iterates


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("phase", "issues", "reflection", "can_change", "action"),
    [
        (Phase.PLANNING, (), None, True, Action.PROCEED),
        (Phase.GATHERING, (), None, True, Action.PROCEED),
        (Phase.ANALYSIS, (), None, True, Action.PROCEED),
        (Phase.ANALYSIS, ("x",), None, True, Action.RETRY),
        (Phase.GATHERING, ("x",), None, False, Action.PROCEED),
        (Phase.ANALYSIS, (), Action.RETRY, True, Action.RETRY),
        (Phase.ANALYSIS, ("x",), Action.PROCEED, True, Action.RETRY),
        (Phase.ANALYSIS, ("x",), Action.COMPLETE, True, Action.RETRY),
        (Phase.SYNTHESIS, (), Action.ITERATE, True, Action.COMPLETE),
    ],
)
def test_a_reflection_may_only_tighten(
    phase: Phase, issues: tuple[str, ...], reflection: Action | None, can_change: bool, action: Action
) -> None:
    """Satisfied gates proceed, strict ones demand a retry where it can help (S0-013 to S0-015, C0-22, C0-27)."""
    answer = SupervisorAnswer(action=reflection) if reflection else None
    pause = decide(states.state(), gate(phase, *issues), answer, can_change=can_change)
    assert pause.action is action
    assert can_change or pause.rationale.startswith("nothing to change: ")


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("phase", "open_gaps", "valid", "asked"),
    [
        (Phase.PLANNING, True, True, False),
        (Phase.PLANNING, True, False, True),
        (Phase.GATHERING, True, True, False),
        (Phase.ANALYSIS, False, True, True),
        (Phase.SYNTHESIS, True, True, False),
        (Phase.SYNTHESIS, False, True, False),
        (Phase.SYNTHESIS, False, False, True),
        (Phase.REFINEMENT, True, True, False),
    ],
)
def test_a_model_is_asked_where_something_is_open(phase: Phase, open_gaps: bool, valid: bool, asked: bool) -> None:
    """By default not after a satisfied plan or gathering, nor where the refiner judges; `model` asks always."""
    checked = gate(phase) if valid else gate(phase, "x")
    for mode, expected in ((ThinkMode.AUTO, asked), (ThinkMode.MODEL, True), (ThinkMode.RULES, False)):
        resolved = states.resolved(engine=EngineKind.MODEL, gates=Gates(think=mode))
        made = states.state(resolved=resolved, gaps=[OPEN] if open_gaps else [])
        assert is_reflected_on(made, checked) is expected


def test_pages_without_further_findings_are_not_read_again() -> None:
    """What was read and has no more is not read again; a failed analysis is, without a word about the failure."""
    made = analyzed(2, Confidence.LOW)
    made.work.plan = states.plan(states.sub_query("a question", finding_count=1))
    assert curable_issues(made, evaluate(Phase.ANALYSIS, made)) == []
    made.work.hasty_analyses = [made.work.plan.nodes[0].id]
    checked = evaluate(Phase.ANALYSIS, made)
    assert [issue.code for issue in curable_issues(made, checked)] == ["analyses_failed"]
    pause = decide(made, checked, None, can_change=True)
    assert (pause.action, pause.issues) == (Action.RETRY, [])


def test_what_a_page_already_read_may_answer_is_not_searched_for() -> None:
    """Its sections are analyzed for the gap in the next iteration; the search engine is not asked (C0-1)."""
    other = states.gap("searched for")
    source = states.source("corpus:m/a")
    made = states.state(gaps=[OPEN, other], sources=states.sources(source))
    reading = GapReading(gap_id=OPEN.id, sections=[SectionRef(source_id=source.id, start=5, end=90)])
    asked = GapAssessment(gap_id=other.id, follow_up_queries=[FollowUpQuery(query="a new search for it")])
    both = GapAssessment(gap_id=OPEN.id, read_further=[1], follow_up_queries=[FollowUpQuery(query="the rest of it")])
    searched = [query.text for query in follow_ups(made, [both], [reading], [], 5) if not query.sections]
    assert searched == ["the rest of it", *other.suggested_queries], "for the one gap as the refiner asks, besides"
    fresh = follow_ups(made, [asked], [reading], [], 5)
    made.work.plan = states.plan(*fresh)
    assign_readings(made, fresh)
    assert [query.text for query in made.work.pending_sub_queries()] == ["a new search for it"]
    [query] = queries_to_analyze(made)
    assert (query.gap_id, query.sections, query.iteration) == (OPEN.id, reading.sections, 2)
    assert query.id in made.evidence.sources[source.id].sub_query_ids
    assert [search.text for search in made.searches()] == ["a new search for it"]
    SupervisorPosition.of(made).recommended = True
    made.work.plan = states.plan(query)
    assert decide(made, gate(Phase.REFINEMENT), None, can_change=False).action is Action.ITERATE


def test_sections_that_a_reader_names_are_read_before_anything_is_searched() -> None:
    """Once for each gap, where the refiner names none whose passages it has seen; those are read alone."""
    first, second = (SectionRef(source_id="src-1", start=start, end=start + 50) for start in (0, 100))
    hole = states.gap("costs", unread=[first])
    made = states.state(gaps=[hole, states.gap("other")])
    (node,) = reading_nodes(made, [], 2)
    assert (node.gap_id, node.sections) == (hole.id, [first])
    named = GapReading(gap_id=hole.id, sections=[second])
    assert [one.sections for one in reading_nodes(made, [named], 2)] == [[second]]
    made.work.plan = states.plan(node)
    assert [one.sections for one in reading_nodes(made, [named], 3)] == [[second]]
    assert reading_nodes(made, [], 3) == []


async def test_a_gap_that_a_page_answers_is_read_and_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The refiner names a listed passage; its section alone is shown to an analysis, which closes the gap (C0-25)."""
    sensible = model_work.analysis

    def analysis(prompt: str, *, with_gap: bool = False) -> dict[str, object]:
        del with_gap
        return sensible(prompt, with_gap="Iteration: 1 of" in prompt)

    def refinement(prompt: str) -> dict[str, object]:
        gaps = re.findall(r"(gap-\w+): .*passages (\d+)", model_work.unmarked(prompt))
        judged = [{"gap_id": name, "read_further": [int(number)]} for name, number in gaps]
        return {"gap_analysis": judged, "iteration_recommendation": {"should_iterate": True}}

    monkeypatch.setattr(model_work, "analysis", analysis)
    monkeypatch.setattr(model_work, "refinement", refinement)
    trial = await undisturbed(tmp_path, "supervisor", "model", limits={"max_iterations": 2})
    trial.assert_completed()
    state = trial.state
    read = [query for query in state.work.plan.nodes if query.sections]
    assert read
    assert state.work.iteration == 2
    assert {gap.id for gap in state.evidence.gaps if gap.status is GapStatus.ADDRESSED} == {
        query.gap_id for query in read
    }
    assert {query.iteration for query in state.searches()} == {1}
    [prompt] = [
        model_work.unmarked(request.prompt)
        for request in trial.api.requests
        if request.role == "analyzer" and "were chosen because they may answer" in request.prompt
    ]
    assert all(query.text in prompt for query in read)


def test_a_gate_causes_one_retry() -> None:
    """The second time the run proceeds; an advisory gate causes none (C0-2)."""
    made = states.state()
    SupervisorPosition.of(made).retried.append("analysis/1")
    assert decide(made, gate(Phase.ANALYSIS, "x"), None, can_change=True).action is Action.PROCEED
    advisory = gate(Phase.ANALYSIS, "x", policy=GatePolicy.ADVISORY)
    assert decide(states.state(), advisory, None, can_change=True).action is Action.PROCEED


def test_the_supervisor_may_decline_to_iterate_with_a_good_report() -> None:
    """`complete` is honoured at the iteration decision alone, and only with the report gate passed (S0-028, C0-27)."""
    made, wish = states.state(gaps=[OPEN]), SupervisorAnswer(action=Action.COMPLETE)
    assert decide(made, gate(Phase.SYNTHESIS), wish, can_change=True).action is Action.COMPLETE
    assert decide(made, gate(Phase.SYNTHESIS, "x"), wish, can_change=False).action is Action.ITERATE


def test_refinement_iterates_only_with_a_new_follow_up() -> None:
    """A pending follow-up leads back to gathering, unless the refiner advises against it (S0-019, C0-1, C0-4)."""
    follow_up = states.sub_query("what about it", origin=f"gap:{OPEN.id}", status=NodeStatus.PENDING)

    def after(*nodes: PlanNode, recommended: bool | None = None) -> Action:
        made = states.state(gaps=[OPEN], plan=states.plan(*nodes))
        SupervisorPosition.of(made).recommended = recommended
        return decide(made, gate(Phase.REFINEMENT), None, can_change=False).action

    assert after(states.sub_query("done question")) is Action.COMPLETE
    assert after(follow_up) is Action.ITERATE
    assert after(follow_up, recommended=False) is Action.COMPLETE


# --- reflections, hooks and guidance ---------------------------------------------------------------------------------
def thinking_run(hook: object = None, think_mode: ThinkMode = ThinkMode.OFF, **changes: object) -> ResearchRun:
    resolved = states.resolved(
        engine=EngineKind.MODEL,
        gates=Gates(think=think_mode),
        hook=Hook(name="ours", activity="our_hook", task_queue="ours") if hook else None,
    )
    state = states.state(resolved=resolved, **changes)
    state.clock.deadline_at = 4e9
    host = RandomWorld(1, trouble=0).host()
    if hook:
        host.implementations["our_hook"] = hook
    return ResearchRun(state, Inbox(), host)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("phase", "figures"),
    [
        (Phase.PLANNING, ["2 sub-queries", "brief: yes"]),
        (Phase.GATHERING, ["1 source read"]),
        (Phase.ANALYSIS, ["2 findings", "1 gap."]),
        (Phase.SYNTHESIS, ["1234 characters", "iteration 1 of 3"]),
        (Phase.REFINEMENT, ["1 of 2 addressed"]),
    ],
)
def test_prompts_state_the_figures(phase: Phase, figures: list[str]) -> None:
    """Each phase's own counts, and a question about them (S0-036, S0-037, S0-038, S0-039, S0-040)."""
    made = states.state(
        plan=states.plan(states.sub_query("one question"), states.sub_query("another")),
        sources=states.sources(states.source("corpus:m/a")),
        findings=[states.finding("x"), states.finding("y")],
        gaps=[states.gap("open"), states.gap("closed", status=GapStatus.ADDRESSED)],
        draft=states.draft(1234),
    )
    prompt = reflection_prompt(phase, made)
    assert [figure for figure in figures if figure not in prompt] == []
    assert prompt.endswith("?")


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("answer", "noted"), [({"a": 1}, True), (ValueError("no JSON"), True), ("look here " * 100_000, False)]
)
async def test_a_hook_that_answers_anything_else_is_noted(answer: object, noted: bool) -> None:
    """Hooks are written by others, in other languages: what is neither text nor null is noted, a flood of words is cut
    (S0-172).
    """
    fails = isinstance(answer, Exception)
    run = thinking_run(AsyncMock(side_effect=answer if fails else None, return_value=answer))
    await pause_after(run, Phase.PLANNING, can_change=True)
    assert any("neither text nor null" in note for note in run.state.work.degraded) is noted
    guided = [len(item.text) <= 2_000 for item in run.state.people.guidance if item.origin == "hook"]
    assert guided == ([] if noted else [True])


def test_a_hook_gets_a_bounded_state() -> None:
    """The argument is below 20 kB for a large run, shows the newest findings, and counts everything."""
    long = "words " * 400
    large = states.state(
        plan=states.plan(*(states.sub_query(f"{number} {long}") for number in range(40)), brief=long),
        findings=[states.finding(f"{number} {long[:500]}") for number in range(75)],
        gaps=[states.gap(f"{number} {long[:300]}") for number in range(30)],
    )
    shown = state_for_hook(large)
    assert len(json.dumps(shown)) < 20_000
    assert [one["statement"].split()[0] for one in shown["findings"]] == [str(number) for number in range(55, 75)]
    assert shown["counts"]["findings"] == 75


@pytest.mark.one_in(2)
@pytest.mark.parametrize("hooked", [True, False])
async def test_the_record_follows_the_evaluation(hooked: bool) -> None:
    """Evaluate, reflect, hook, record: in this order, with a hook or without one (S0-080, S0-082, S0-183)."""
    order = []

    async def our_hook(*_: object) -> None:
        order.append("hook")

    run = thinking_run(our_hook if hooked else None, think_mode=ThinkMode.MODEL)
    host = run.host
    reflect = host.implementations["reflect_on_phase"]

    async def reflecting(request: object) -> object:
        order.append("reflect")
        return await reflect(request)

    host.implementations["reflect_on_phase"] = reflecting
    await pause_after(run, Phase.PLANNING, can_change=False)
    assert order == (["reflect", "hook"] if hooked else ["reflect"])
    actions = [decision.action for decision in run.state.people.decisions]
    assert actions[0] == "evaluate_phase"
    assert actions[-1] in ("proceed", "retry")


def said(origin: str, *texts: str, role: str = "", iteration: int = 0) -> list[Guidance]:
    return [Guidance(origin=origin, phase=Phase.ANALYSIS, text=text, role=role, iteration=iteration) for text in texts]


def test_a_repeated_statement_is_listed_once_and_counts_as_new() -> None:
    """A hook that says the same each time does not push everything else out."""
    known = said("hook", "too few sources", "no high confidence")
    told = with_guidance(known, *said("hook", "too few sources"))
    assert [one.text for one in told] == ["no high confidence", "too few sources"]
    assert len(with_guidance(known, *said("model", "too few sources"))) == 3


def test_a_request_of_a_person_gives_way_to_newer_requests_alone() -> None:
    """However much models and hooks say, the wish is shown (S0-081)."""
    wish = said("person", "look at the appendix")
    known = wish
    for number in range(2 * MAX_GUIDANCE):
        known = with_guidance(known, *said("model", f"advice {number}"))
    assert (len(known), known[0]) == (MAX_GUIDANCE, wish[0])
    assert guidance_for(known, "analyzer", 1) == [*wish, known[-1]]
    wishes = said("person", *(f"wish {number}" for number in range(MAX_CALL_REQUESTS + 2)))
    assert guidance_for([*wishes, *said("hook", "look")], "analyzer", 1) == [*wishes[2:], *said("hook", "look")]


def test_a_role_gets_the_newest_advice_that_concerns_it() -> None:
    """One line of a model and one of a hook; advice for others and that of earlier iterations is left out (S0-081)."""
    to_all = said("model", "the first advice")
    to_analyzer = said("model", "quote whole sentences", role="analyzer", iteration=1)
    to_writer = said("model", "begin with the answer", role="synthesizer", iteration=2)
    known = [*to_all, *to_analyzer, *to_writer, *said("hook", "old"), *said("hook", "new")]
    assert guidance_for(known, "analyzer", 2) == [*to_analyzer, *said("hook", "new")]
    assert guidance_for(known, "synthesizer", 2) == [*to_writer, *said("hook", "new")]
    assert guidance_for(known, "analyzer", 3) == [*to_all, *said("hook", "new")]
    searched = said("model", "look for the price", role="refiner", iteration=1)
    assert guidance_for(searched, "refiner", 1) == searched
    assert guidance_for(searched, "refiner", 2) == [], "it was searched for in the iteration before"
    hooks = [item for number in range(5) for item in said(f"hook-{number}", "look")]
    assert guidance_for([*hooks, *said("hook-0", "again")], "analyzer", 1) == [*hooks[3:], *said("hook-0", "again")]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("is_one", [True, False])
def test_a_supervisor_sees_places_and_only_figures_that_say_something(is_one: bool) -> None:
    """Pages with their paths; where one collection is searched, neither counts of high confidence nor a need for it."""
    state = read(3)
    corpus = CorpusSnapshot(name="m", files=3)
    state.work.resolved = state.resolution.model_copy(update={"corpus": corpus if is_one else None, "web": not is_one})
    gathered = reflection_input(Phase.GATHERING, state, evaluate(Phase.GATHERING, state))
    assert gathered.titles[0].endswith(" [0]")
    assert ("of high quality" in gathered.prompt) is not is_one
    analyzed = reflection_input(Phase.ANALYSIS, state, evaluate(Phase.ANALYSIS, state))
    assert ("high_confidence_count" in analyzed.metrics) is not is_one
    assert not analyzed.metrics.keys() & {"coverage", "not_analyzed"}
    assert ("confidence" in analyzed.gate_needs) is not is_one
    assert ("quality" in gathered.gate_needs) is not is_one


async def test_a_section_that_a_reader_names_is_read_in_the_next_iteration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second reading, which can ask for nothing more, names a section; without a word of the refiner it is read, and
    the search engine is not asked again (C0-25).
    """
    parts = "\n\n".join(f"## Part {number}\n\n{'Vacuum and wraparound are old words. ' * 60}" for number in range(12))
    pages = {f"{name}.md": f"# Page {name}\n\n{parts}" for name in "abc"}
    sensible, listed = model_work.analysis, list[tuple[bool, set[int]]]()

    def analysis(prompt: str, *, with_gap: bool = False) -> dict[str, object]:
        del with_gap
        plain = model_work.unmarked(prompt)
        hidden = [int(number) for number in re.findall(r"^(\d+)\. Part \d+", plain, re.MULTILINE)]
        answer = sensible(prompt)
        answer["findings"] = [one | {"priority": 1} for one in answer["findings"]]
        is_second = "You have read other parts" in prompt
        listed.append((is_second, set(hidden)))
        if is_second:
            gap = {"description": "What else it says.", "sub_query": 1, "in_sections": hidden[:1], "priority": 1}
            return answer | {"gaps": [gap]}
        return answer | {"gaps": [], "sections_wanted": hidden[-1:] if "were chosen" not in prompt else []}

    monkeypatch.setattr(model_work, "analysis", analysis)
    monkeypatch.setattr(model_work, "refinement", lambda _: {"gap_analysis": [], "iteration_recommendation": {}})
    limits = {"max_iterations": 2, "analysis_tokens": 3_000}
    trial = await undisturbed(tmp_path, "supervisor", "model", corpus=MemoryCorpus(pages), limits=limits)
    state = trial.state
    read = [query for query in state.work.plan.nodes if query.sections]
    assert [query.text for query in read] == ["What else it says."]
    assert state.work.iteration == 2
    assert {query.iteration for query in state.searches()} == {1}
    assert [gap.unread for gap in state.evidence.gaps if gap.description == "What else it says."] == [read[0].sections]
    assert any("were chosen because they may answer" in request.prompt for request in trial.api.requests)
    again = [model_work.unmarked(one.prompt) for one in trial.api.requests if "You have read other parts" in one.prompt]
    assert all(prompt.count("## Part") > 1 for prompt in again), "what else of the page fits comes along"
    first, second = ([numbers for is_second, numbers in listed if is_second is wanted] for wanted in (False, True))
    assert all(any(numbers < earlier for earlier in first) for numbers in second), (
        "what the first was shown is not listed"
    )
    written = [model_work.unmarked(one.prompt) for one in trial.api.requests if one.role == "synthesizer"]
    assert all("Finding (priority 1" in prompt for prompt in written), "the entry of the analysis has the priority"
    assert {finding["priority"] for finding in (await trial.document())["findings"]} == {1}
