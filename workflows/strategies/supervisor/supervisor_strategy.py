"""The `supervisor` strategy: plan → gather → analyze → synthesize → (refine → gather …)."""

from typing import ClassVar, Final

from contracts.addresses import name_page
from contracts.evidence import ASKED_BY_PERSON, Finding, Gap, source_voice, supported_confidence
from contracts.outcome import MODEL, GateIssue, GateResult, Pause, Progress, UnitProgress
from contracts.plan import PlanNode
from contracts.roles import PLANNER, PlanInput
from contracts.sentences import Message, counted
from contracts.state import OpenPause, Position, ResearchState, Unit
from contracts.supervisor_roles import REFINER, RefineInput, ReflectInput, SupervisorAnswer
from contracts.texts import plural, shorten
from contracts.vocabulary import (
    TOP_CONFIDENCE,
    Action,
    AgentRole,
    Confidence,
    EngineKind,
    GapStatus,
    GatePolicy,
    NodeStatus,
    Phase,
    Severity,
    StopReason,
    ThinkMode,
)
from workflows.phases.analysis import analyze
from workflows.phases.gathering import Gathering
from workflows.phases.pauses import call_hook
from workflows.phases.role_inputs import to_extract
from workflows.phases.writing import write_draft
from workflows.rules.endings import report_issues
from workflows.rules.gaps import SEVERITY_ORDER, apply_assessments
from workflows.rules.sub_queries import (
    assign_readings,
    follow_ups,
    pass_over_unread,
    plan_sub_queries,
    queries_to_analyze,
    queries_to_repeat,
    unread_candidates,
    unread_hits,
)
from workflows.run.research_run import ResearchRun
from workflows.strategies.protocol import Finished, Strategy
from workflows.strategies.units import carry_out, unit_mark

LABELS: Final = {
    Phase.PLANNING: "plan",
    Phase.GATHERING: "gather",
    Phase.ANALYSIS: "analyze",
    Phase.SYNTHESIS: "write",
    Phase.REFINEMENT: "refine",
}
"""Short names for live views."""
MIN_QUERY_CHARACTERS = 10
MIN_SOURCES = 3
MIN_COMPLETION = 0.5
"""Required share of completed sub-queries."""
MIN_FINDINGS = 2
MAX_TITLES: Final = 60
"""Titles of new pages shown to the supervisor after the gathering."""
ANALYSES_FAILED: Final = "analyses_failed"
"""Code of the issue that calls of the analyzer failed."""
MIN_COVERAGE = 0.3
"""Required share of analyzed sources cited by findings."""

NEXT_PHASES = {
    Phase.PLANNING: Phase.GATHERING,
    Phase.GATHERING: Phase.ANALYSIS,
    Phase.ANALYSIS: Phase.SYNTHESIS,
}
"""The unconditional transitions."""


class SupervisorPosition(Position):
    """The next phase, and the phases already retried."""

    NAME: ClassVar[str] = "supervisor"

    next_phase: Phase = Phase.PLANNING
    retried: list[str] = []
    """`<phase>/<iteration>` of each phase that has used its only retry."""
    recommended: bool | None = None
    """The refiner's recommendation to iterate; None before a refinement."""


class SupervisorStrategy(Strategy):
    """One phase per call."""

    async def advance(self, run: ResearchRun) -> Unit | Finished:
        """Do the phase that follows from the last pause."""
        iteration = run.state.work.iteration
        stop = apply_pause(run.state)
        if stop is not None:
            return Finished(stop)
        if run.state.work.iteration > iteration:
            run.note("phase.finished", f"iteration {run.state.work.iteration} begins", phase=Phase.REFINEMENT)
        phase = SupervisorPosition.of(run.state).next_phase
        work = {
            Phase.PLANNING: self._plan,
            Phase.GATHERING: self._gather,
            Phase.ANALYSIS: self._analyze,
            Phase.SYNTHESIS: self._synthesize,
            Phase.REFINEMENT: self._refine,
        }[phase]
        again = run.retries(phase)
        title = f"{phase}{' again' if again else ''}, iteration {run.state.work.iteration}"
        label = LABELS[phase]
        return await carry_out(
            run, phase, work, lambda: phase_summary(run.state, phase), label=label, title=title, again=again
        )

    def evaluate(self, run: ResearchRun, unit: Unit) -> OpenPause:
        """Record the gate of the phase, and prepare the question to a reflecting model."""
        phase = Phase(unit.name)
        state = run.state
        gate = evaluate(phase, state)
        question = None
        state.work.gates.append(gate)
        outputs = {"quality_ok": gate.valid, **gate.metrics}
        if phase is Phase.REFINEMENT:
            outputs["should_iterate"] = should_iterate(state)
        inputs = {"phase": phase.value, "iteration": state.work.iteration}
        reasons = "; ".join(issue.message for issue in gate.issues)
        run.decide(AgentRole.SUPERVISOR, "evaluate_phase", reasons, inputs, outputs)
        messages = [issue.message for issue in curable_issues(state, gate)]
        text = f"quality check of the {phase}: {'; '.join(messages)}" if messages and not gate.valid else ""
        run.note("gate.evaluated", text, phase=phase, valid=gate.valid, score=gate.quality_score, issues=messages)
        if is_reflected_on(state, gate):
            question = reflection_input(phase, state, gate)
        if phase is Phase.SYNTHESIS:
            state.evidence.report_improvements = []
        opened = OpenPause(unit=unit, gate=gate, question=question)
        return opened.with_fields(beside=may_reflect_beside(state, opened))

    def take_reflection(self, run: ResearchRun, opened: OpenPause) -> Pause | None:
        """Apply a reflection on the analysis after the report was written beside it; a retry undoes the report."""
        if opened.gate is None or opened.reflection is None:
            return None
        _apply_reflection(run, opened.reflection, Phase(opened.unit.name))
        pause = decide(run.state, opened.gate, opened.reflection, can_change=opened.unit.can_change)
        if pause.action is not Action.RETRY:
            return None
        _note_issues(run, opened, opened.gate, pause)
        _record_decision(run, pause)
        return pause

    async def pause(self, run: ResearchRun, opened: OpenPause) -> Pause:
        """Apply the reflection, call the hook, decide, record. Raises ValueError for a pause without a gate."""
        if opened.gate is None:
            raise ValueError("this strategy opens no pause without a gate")
        phase = Phase(opened.unit.name)
        if opened.reflection is not None:
            _apply_reflection(run, opened.reflection, phase)
        await call_hook(run, phase, reflection_prompt(phase, run.state))
        pause = decide(run.state, opened.gate, opened.reflection, can_change=opened.unit.can_change)
        _note_issues(run, opened, opened.gate, pause)
        _record_decision(run, pause)
        return pause

    def resume(self, state: ResearchState, *, redo_analysis: bool) -> None:
        """Move to the first unfinished phase; a finished run may iterate again under the new limits.

        A run interrupted after its last phase continues to its end.
        """
        position = SupervisorPosition.of(state)
        pause = state.work.pause
        stored_phase = position.next_phase
        if not state.work.plan.nodes:
            position.next_phase, state.work.pause = Phase.PLANNING, None
        elif state.work.pending_sub_queries() and stored_phase != Phase.PLANNING:
            position.next_phase, state.work.pause = Phase.GATHERING, None
        elif redo_analysis:
            position.next_phase, state.work.pause = Phase.ANALYSIS, None
        elif pause is not None and pause.phase == stored_phase and pause.action is Action.COMPLETE:
            if should_iterate(state) and pause.phase == Phase.SYNTHESIS:
                state.work.pause = pause.with_fields(action=Action.ITERATE)
            elif state.work.ending is not None:
                position.next_phase, state.work.pause = Phase.SYNTHESIS, None
        if position.next_phase != stored_phase or redo_analysis:
            state.work.open_pause = state.work.pending_reflection = None

    def replan(self, state: ResearchState) -> None:
        """Plan again, with the person's message as guidance."""
        SupervisorPosition.of(state).next_phase = Phase.PLANNING
        state.work.pending_reflection = None
        state.work.pause = Pause(phase=Phase.PLANNING, action=Action.RETRY, rationale="a person wants another plan")

    def progress(self, state: ResearchState) -> Progress:
        """Return the phases of the current iteration, in loop order."""
        current = list(Phase).index(SupervisorPosition.read(state).next_phase)
        # A run whose plan was not approved has a result but no report.
        reported = state.work.result is not None and state.work.result.files is not None
        units = []
        for index, phase in enumerate(Phase):
            finished = reported or (index == current and state.work.open_pause is not None)
            started = state.work.phase is not None and state.work.result is None
            mark = unit_mark(index, current, finished=finished, started=started)
            detail = phase_summary(state, phase) if finished or index < current else ""
            units.append(UnitProgress(name=phase, label=LABELS[phase], mark=mark, detail=detail))
        max_iterations = state.work.resolved.limits.max_iterations if state.work.resolved else 1
        return Progress(summary=f"iteration {state.work.iteration} of {max_iterations}", units=units)

    # --- phases ----------------------------------------------------------------------------------------------------
    async def _plan(self, run: ResearchRun) -> Unit:
        state = run.state
        resolved = run.resolved
        limit = resolved.limits.max_sub_queries
        request = PlanInput(
            min_sub_queries=min(2, limit),
            max_sub_queries=limit,
            previous=[query.text for query in state.work.plan.sub_queries],
            issues=run.issues(Phase.PLANNING),
        )
        output = await run.ask(PLANNER, "plan", request)
        queries = plan_sub_queries(output.sub_queries, state.work.iteration, limit)
        changed = [query.text for query in queries] != [query.text for query in state.work.plan.sub_queries]
        run.draft_plan(output.research_brief, queries)
        return Unit(name=Phase.PLANNING, can_change=changed and resolved.engine is EngineKind.MODEL)

    async def _gather(self, run: ResearchRun) -> Unit:
        state = run.state
        searched = [query for query in state.work.plan.sub_queries if not query.sections]
        repeated = [query for query in searched if query.iteration == state.work.iteration]
        queries = state.work.pending_sub_queries() or (repeated if run.retries(Phase.GATHERING) else [])
        number = run.decide(AgentRole.GATHERER, "execute_gathering", "", {"sub_queries": len(queries)})
        source_count = len(state.evidence.readable_sources())
        await Gathering(run, queries).carry_out()
        run.decided(number, {"new_sources": len(state.evidence.readable_sources()) - source_count})
        return Unit(name=Phase.GATHERING, can_change=bool(unread_candidates(state, run.resolved.limits)))

    async def _analyze(self, run: ResearchRun) -> Unit:
        await analyze(run, again=run.retries(Phase.ANALYSIS))
        can_change = run.resolved.engine is EngineKind.MODEL and bool(queries_to_repeat(run.state))
        return Unit(name=Phase.ANALYSIS, can_change=can_change)

    async def _synthesize(self, run: ResearchRun) -> Unit:
        await write_draft(run)
        pass_over_unread(run.state)
        return Unit(name=Phase.SYNTHESIS, can_change=run.resolved.engine is EngineKind.MODEL, iteration_ended=True)

    async def _refine(self, run: ResearchRun) -> Unit:
        state = run.state
        position = SupervisorPosition.of(run.state)
        request = RefineInput(
            gaps=state.evidence.unaddressed_gaps(),
            remaining_iterations=run.resolved.limits.max_iterations - state.work.iteration,
            most_queries=run.resolved.limits.max_sub_queries,
            draft=state.evidence.draft.document if state.evidence.draft else None,
            source_count=len(state.evidence.readable_sources()),
            finding_count=len(state.evidence.findings),
            high_confidence_count=sum(finding.confidence in TOP_CONFIDENCE for finding in state.evidence.findings),
            asked=[query.text for query in state.work.plan.sub_queries],
            findings=state.evidence.findings,
            read_sources=[to_extract(source, to_search=False) for source in state.evidence.readable_sources()],
        )
        output = await run.ask(REFINER, "refine", request)
        state.evidence.gaps = apply_assessments(state, output.gap_analysis)
        state.evidence.report_improvements = output.report_improvements
        advice = output.iteration_recommendation
        is_requested = any(gap.origin == ASKED_BY_PERSON for gap in state.evidence.unaddressed_gaps())
        is_unread = any(gap.unread and gap.severity is not Severity.MINOR for gap in state.evidence.unaddressed_gaps())
        position.recommended = advice.should_iterate or is_requested or is_unread
        # Without an iteration left to search, follow-ups are not planned, and their gaps remain open.
        fresh: list[PlanNode] = []
        if position.recommended and should_iterate(state):
            limit = run.resolved.limits.max_sub_queries
            fresh = follow_ups(state, output.gap_analysis, output.readings, advice.priority_gaps, limit)
            assign_readings(state, fresh)
        state.work.plan = state.work.plan.with_nodes(*fresh)
        # A repeated sub-query whose search failed before is analyzed again.
        again = {query.id for query in fresh}
        state.work.analyzed_sub_queries = [query for query in state.work.analyzed_sub_queries if query not in again]
        # Record each gap that the refiner gives up or pursues as a decision.
        reviewed = {item.gap_id for item in output.gap_analysis}
        for gap in state.evidence.gaps:
            pursued = [query.id for query in fresh if query.gap_id == gap.id]
            inputs = {"gap_id": gap.id}
            if gap.status is not GapStatus.OPEN and gap.id in reviewed:
                status = {"status": gap.status.value} | ({"resolved_by": gap.resolved_by} if gap.resolved_by else {})
                run.decide(AgentRole.REFINER, f"gap_{gap.status.value}", gap.description, inputs, status)
            elif pursued:
                run.decide(AgentRole.REFINER, "gap_pursued", gap.description, inputs, {"sub_queries": pursued})
        run.note("plan.drafted", plural(len(fresh), "follow-up query"), count=len(fresh))
        return Unit(name=Phase.REFINEMENT, can_change=False)


def phase_summary(state: ResearchState, phase: Phase) -> str:
    """Return the results of a phase in a few words."""
    evidence = state.evidence
    match phase:
        case Phase.PLANNING:
            return plural(len(state.work.plan.sub_queries), "sub-query")
        case Phase.GATHERING:
            return f"{plural(len(evidence.readable_sources()), 'source')} read"
        case Phase.ANALYSIS:
            gaps = plural(len(evidence.unaddressed_gaps()), "gap")
            return f"{plural(len(evidence.findings), 'finding')}, {gaps}"
        case Phase.SYNTHESIS:
            return f"{evidence.draft.word_count if evidence.draft else 0} words"
        case Phase.REFINEMENT:
            return plural(len(open_follow_ups(state)), "follow-up query")


def _apply_reflection(run: ResearchRun, reflection: SupervisorAnswer, phase: Phase) -> None:
    """Pass on the guidance of a reflection, close the gaps that it settles, and record it."""
    for item in reflection.guidance:
        run.guide(MODEL, item.text, phase, item.role)
    run.settle_gaps(reflection.settled_gaps, AgentRole.SUPERVISOR)
    assessment = reflection.quality_assessment
    inputs = {"phase": phase.value, "iteration": run.state.work.iteration}
    outputs = {
        "action": reflection.action.value,
        "score": assessment.score,
        "strengths": [shorten(text, 200) for text in assessment.strengths[:5]],
        "weaknesses": [shorten(text, 200) for text in assessment.weaknesses[:5]],
    }
    run.decide(AgentRole.SUPERVISOR, "reflect", reflection.rationale, inputs, outputs)


# --- records -------------------------------------------------------------------------------------------------------
def _note_issues(run: ResearchRun, opened: OpenPause, gate: GateResult, pause: Pause) -> None:
    """Record a retry, or note the issues that remain after one or that a model might have resolved with one."""
    iteration = run.state.work.iteration
    retried = was_retried(run.state, gate.phase, iteration)
    if pause.action is Action.RETRY:
        SupervisorPosition.of(run.state).retried.append(f"{gate.phase}/{iteration}")
    elif not gate.valid and gate.policy is GatePolicy.STRICT and (opened.unit.can_change or retried):
        # If the input cannot change, the sources have no more, which the report states anyway.
        for issue in curable_issues(run.state, gate):
            run.degrade(Message(GATE_SENTENCES[gate.phase], issue=issue.message))


def _record_decision(run: ResearchRun, pause: Pause) -> None:
    state = run.state
    if pause.phase != Phase.SYNTHESIS or pause.action is Action.RETRY:
        run.decide(AgentRole.SUPERVISOR, pause.action.value, pause.rationale, {}, {"score": pause.score})
        return
    inputs = {
        "gap_count": len(state.evidence.unaddressed_gaps()),
        "iteration": state.work.iteration,
        "max_iterations": run.resolved.limits.max_iterations,
    }
    iterate = pause.action is Action.ITERATE
    outputs = {"should_iterate": iterate, "next_phase": Phase.REFINEMENT.value if iterate else "completed"}
    run.decide(AgentRole.SUPERVISOR, "decide_iteration", pause.rationale, inputs, outputs)


# --- gates: pure, like everything below -----------------------------------------------------------------------------
def evaluate(phase: Phase, state: ResearchState) -> GateResult:
    """Return the gate result of a phase, a pure function of the state."""
    check = {
        Phase.PLANNING: _check_plan,
        Phase.GATHERING: _check_sources,
        Phase.ANALYSIS: _check_findings,
        Phase.SYNTHESIS: _check_report,
        Phase.REFINEMENT: _check_gaps,
    }[phase]
    issues, score, metrics = check(state)
    return GateResult(
        phase=phase,
        valid=not issues or phase is Phase.REFINEMENT,
        issues=issues,
        quality_score=min(10.0, score),
        metrics=metrics,
        policy=state.resolution.gates.policy,
    )


GATE_SENTENCES: Final[dict[str, str]] = {
    Phase.PLANNING: "degraded_gate_planning",
    Phase.GATHERING: "degraded_gate_gathering",
    Phase.ANALYSIS: "degraded_gate_analysis",
    Phase.SYNTHESIS: "degraded_gate_synthesis",
}
"""Sentence of a note on a gate that is not satisfied, by phase; that of refinement always is."""
Check = tuple[list[GateIssue], float, dict[str, bool | int | float]]
"""Issues, score and metrics of a phase; the decision log records the metrics."""


def _issues(*checks: tuple[bool, str, str]) -> list[GateIssue]:
    """Return the issues whose condition holds; each is given as condition, code and message."""
    return [GateIssue(code=code, message=message) for applies, code, message in checks if applies]


def _check_plan(state: ResearchState) -> Check:
    """Require enough sub-queries of sufficient length and a brief; a run limited to one sub-query needs one.

    The question itself may be a sub-query at any length.
    """
    queries = [query for query in state.work.plan.sub_queries if query.origin == "plan"]
    limit = state.resolution.limits.max_sub_queries
    has_brief = bool(state.work.plan.brief.strip())
    count = len(queries)
    texts = (query.text for query in queries if query.text != " ".join(state.resolution.query.split()))
    minimum = min(2, limit)
    short = [text for text in texts if len(text) < MIN_QUERY_CHARACTERS]
    issues = _issues(
        (count < minimum, "too_few_sub_queries", Message("gate_few_queries", count=count, least=minimum)),
        (count > limit, "too_many_sub_queries", Message("gate_many_queries", count=count, most=limit)),
        (not has_brief, "no_brief", Message("gate_no_brief")),
        *((True, "short_sub_query", Message("gate_short_query", text=text[:20])) for text in short),
    )
    return issues, 2.5 * count, {"sub_query_count": count, "has_research_brief": has_brief}


def _check_sources(state: ResearchState) -> Check:
    """Require enough sources, one of them of high quality, and half of the sub-queries completed."""
    count = len(state.evidence.readable_sources())
    queries = state.work.plan.sub_queries
    good = state.evidence.high_quality_sources()
    completed = sum(query.status is NodeStatus.COMPLETED for query in queries)
    few = Message("half_completed", count=completed, all=len(queries))
    issues = _issues(
        (count < MIN_SOURCES, "too_few_sources", Message("few_sources", count=count, least=MIN_SOURCES)),
        (count > 0 and not good, "no_high_quality_source", Message("no_high_source")),
        (completed < MIN_COMPLETION * len(queries), "too_few_completed", few),
    )
    return issues, 1.5 * count, {"source_count": count, "completed": completed}


def _check_findings(state: ResearchState) -> Check:
    """Require enough findings, a well-supported one, and enough of the sources cited."""
    high = sum(finding.confidence in TOP_CONFIDENCE for finding in state.evidence.findings)
    count = len(state.evidence.findings)
    analyzed = {source.id for source in state.evidence.readable_sources() if source.analyzed}
    cited = {source_id for finding in state.evidence.findings for source_id in finding.source_ids} & analyzed
    coverage = len(cited) / max(1, len(analyzed))
    # Another analysis cannot raise a finding's confidence above what its sources support.
    may_be_high = any(_may_be_of_high_confidence(state, finding) for finding in state.evidence.findings)
    failed = [query for query in state.work.plan.sub_queries if query.id in state.work.hasty_analyses]
    low = Message("low_coverage", share=f"{coverage:.0%}", least=f"{MIN_COVERAGE:.0%}")
    issues = _issues(
        (bool(failed), ANALYSES_FAILED, Message("gate_analyses_failed", count=len(failed))),
        (count < MIN_FINDINGS, "too_few_findings", Message("few_findings", count=count, least=MIN_FINDINGS)),
        (not high and may_be_high, "no_high_confidence", Message("no_high_finding")),
        (coverage < MIN_COVERAGE, "low_coverage", low),
    )
    metrics = {
        "finding_count": count,
        "high_confidence_count": high,
        "coverage": round(coverage, 3),
        "not_analyzed": len(state.evidence.readable_sources()) - len(analyzed),
    }
    return issues, 2.0 * count + high, metrics


def _may_be_of_high_confidence(state: ResearchState, finding: Finding) -> bool:
    """Return true if a finding's sources are independent and good enough for high confidence."""
    sources = [state.evidence.sources[name] for name in finding.source_ids if name in state.evidence.sources]
    voices = ((source_voice(source.url, source.publisher), source.quality) for source in sources)
    return supported_confidence(voices) is Confidence.HIGH


def _check_report(state: ResearchState) -> Check:
    """Require a long enough report with headings whose markers all resolve."""
    length = state.evidence.draft.characters if state.evidence.draft else 0
    return report_issues(state), length / 500, {"has_report": length > 0, "report_length": length}


def _check_gaps(state: ResearchState) -> Check:
    """Note open gaps if no iteration is left; the gate is always valid."""
    count = len(state.evidence.unaddressed_gaps())
    is_last = state.work.iteration >= state.resolution.limits.max_iterations
    message = Message("gate_open_gaps", gaps=counted("gap", count))
    issues = _issues((count > 0 and is_last, "open_gaps", message))
    return issues, 10.0 - min(10.0, 2.0 * count), {"unaddressed_gaps": count}


GATE_NEEDS: Final = {
    Phase.PLANNING: "a brief, and sub-queries that are neither too few nor too short",
    Phase.GATHERING: f"{MIN_SOURCES} pages read{{good}}, and half of the sub-queries searched",
    Phase.ANALYSIS: f"{MIN_FINDINGS} findings{{high}}, on {MIN_COVERAGE:.0%} of the pages read",
    Phase.SYNTHESIS: "a report with headings, in which every citation names a passage",
    Phase.REFINEMENT: "nothing",
}
"""What the gates require. Their scores count pages, findings and characters, which no model is to strive for."""
GOOD_SOURCE: Final = ", one of them of high quality"
SURE_FINDING: Final = ", one of them of high confidence"


def _gate_needs(phase: Phase, state: ResearchState) -> str:
    is_one = state.resolution.one_collection
    return GATE_NEEDS[phase].format(good="" if is_one else GOOD_SOURCE, high="" if is_one else SURE_FINDING)


def _shown_metrics(state: ResearchState, gate: GateResult) -> dict[str, bool | int | float]:
    """Return the figures of a gate that say something: with one collection, no finding has a high confidence."""
    left_out = {"high_confidence_count"} if state.resolution.one_collection else set[str]()
    return {name: value for name, value in gate.metrics.items() if name not in left_out}


def is_reflected_on(state: ResearchState, gate: GateResult) -> bool:
    """Return true if a model is to reflect on a phase.

    By default it does so where something is left to decide: after an analysis, and where a gate is not satisfied.
    Before another iteration the refiner, which sees the report, judges the gaps and whether more searches would help.
    """
    think = state.resolution.gates.think
    if think is not ThinkMode.AUTO:
        return think is ThinkMode.MODEL
    return gate.phase != Phase.REFINEMENT and (gate.phase == Phase.ANALYSIS or not gate.valid)


def may_reflect_beside(state: ResearchState, opened: OpenPause) -> bool:
    """Return true if a report may be written while a model reflects on the analysis: only that may ask for a retry."""
    if opened.question is None or opened.gate is None or opened.gate.phase != Phase.ANALYSIS:
        return False
    return decide(state, opened.gate, None, can_change=opened.unit.can_change).action is Action.PROCEED


def reflection_input(phase: Phase, state: ResearchState, gate: GateResult) -> ReflectInput:
    """Return the request to the supervisor: the results of a phase, not only their numbers."""
    has_findings = phase in (Phase.ANALYSIS, Phase.SYNTHESIS, Phase.REFINEMENT)
    fresh = [source for source in state.evidence.readable_sources() if source.iteration == state.work.iteration]
    return ReflectInput(
        phase=phase,
        prompt=reflection_prompt(phase, state),
        metrics=_shown_metrics(state, gate),
        gate_valid=gate.valid,
        gate_score=gate.quality_score,
        gate_needs=_gate_needs(phase, state),
        sub_queries=[
            PlanNode(id=query.id, text=query.text, status=query.status, finding_count=query.finding_count)
            for query in state.work.plan.sub_queries
        ],
        findings=state.evidence.findings if has_findings else [],
        titles=[name_page(source.title, source.url) for source in fresh][:MAX_TITLES]
        if phase is Phase.GATHERING
        else [],
        gaps=[
            Gap(id=gap.id, description=gap.description, severity=gap.severity)
            for gap in state.evidence.unaddressed_gaps()
        ],
        draft=state.evidence.draft.document if state.evidence.draft and phase is Phase.SYNTHESIS else None,
        issues=gate.issues,
    )


def reflection_prompt(phase: Phase, state: ResearchState) -> str:
    """Return a phase's figures followed by questions about it, for the reflecting model."""
    gaps = state.evidence.unaddressed_gaps()
    sources = state.evidence.readable_sources()
    publishers = {source.publisher or source.provider for source in sources}
    spread = (
        f", {len(state.evidence.high_quality_sources())} of high quality, from {plural(len(publishers), 'publisher')}"
    )
    spread = "" if state.resolution.one_collection else spread
    addressed = sum(gap.status is GapStatus.ADDRESSED for gap in state.evidence.gaps)
    return {
        Phase.PLANNING: (
            f"The plan is made: {plural(len(state.work.plan.sub_queries), 'sub-query')}; research brief: "
            f"{'yes' if state.work.plan.brief.strip() else 'no'}. "
            "Do the sub-queries cover the whole question, and what aspect is missing?"
        ),
        Phase.GATHERING: (
            f"Searching is done: {plural(len(sources), 'source')} read{spread}. "
            "Do their titles fit the sub-queries, and which sub-query has none that does?"
        ),
        Phase.ANALYSIS: (
            f"The sources are analyzed: {plural(len(state.evidence.findings), 'finding')}, {plural(len(gaps), 'gap')}. "
            "Which parts of the question have no finding, and is any gap critical?"
        ),
        Phase.SYNTHESIS: (
            f"The report is written: {state.evidence.draft.characters if state.evidence.draft else 0} characters, "
            f"iteration {state.work.iteration} of {state.resolution.limits.max_iterations}. "
            "Is it good enough, or does it need another round?"
        ),
        Phase.REFINEMENT: (
            f"The gaps are reviewed: {addressed} of {len(state.evidence.gaps)} addressed. Go on iterating, or finish?"
        ),
    }[phase]


# --- after a phase -------------------------------------------------------------------------------------------------
def decide(state: ResearchState, gate: GateResult, reflection: SupervisorAnswer | None, *, can_change: bool) -> Pause:
    """Decide what happens after a phase.

    A reflection may be stricter than the gate, and may only loosen the decision to iterate. `can_change` is false if a
    retry would have the same input.
    """
    is_retried = was_retried(state, gate.phase, state.work.iteration)
    is_strict = gate.policy is GatePolicy.STRICT
    rationale = reflection.rationale if reflection else "the gate is satisfied"
    reasons = "; ".join(issue.message for issue in gate.issues) or rationale
    wants_retry = reflection is not None and reflection.action is Action.RETRY
    issues = curable_issues(state, gate)
    retry_is_due = wants_retry or (is_strict and bool(issues))
    action = Action.PROCEED
    repeated_for = None
    if retry_is_due and gate.phase != Phase.REFINEMENT and not is_retried and can_change:
        action = Action.RETRY
        rationale = reasons
        # A failed call is repeated as it was: that it failed says nothing to a model.
        repeated_for = [issue for issue in issues if issue.code != ANALYSES_FAILED]
        if reflection is not None and wants_retry:
            repeated_for.append(GateIssue(code="reflection", message=reflection.rationale))
    elif gate.phase == Phase.SYNTHESIS:
        completes = reflection is not None and reflection.action is Action.COMPLETE and gate.valid
        action = Action.COMPLETE
        gaps = actionable_gaps(state)
        if not should_iterate(state):
            rationale = "no gap is left that another iteration could close"
        elif completes:
            rationale = f"the supervisor completes with open gaps: {', '.join(gap.id for gap in gaps)}"
        else:
            action = Action.ITERATE
            rationale = f"gaps that matter: {len(gaps)}; an iteration is left"
    elif gate.phase == Phase.REFINEMENT:
        action = Action.COMPLETE
        pending = open_follow_ups(state)
        if SupervisorPosition.read(state).recommended is False:
            rationale = "more searching would not help"
        elif not pending or not should_iterate(state):
            rationale = "the refinement found nothing new to search for"
        else:
            action = Action.ITERATE
            rationale = plural(len(pending), "follow-up query")
    elif retry_is_due or not gate.valid:
        obstacle = "nothing to change" if is_strict else "the gate is advisory"
        rationale = f"{'the one retry is used' if is_retried else obstacle}: {reasons}"
    rationale = shorten(rationale, 500)
    return Pause(phase=gate.phase, action=action, rationale=rationale, score=gate.quality_score, issues=repeated_for)


def curable_issues(state: ResearchState, gate: GateResult) -> list[GateIssue]:
    """Return the issues that a retry might resolve; only these cause retries and notes.

    Ordinary sites are never of high quality; a folder with all hits read has no more sources; and pages that were read
    have no more in them because somebody counts: that nothing was found is an answer, and a reader who is asked for
    more findings invents some.
    """
    hopeless = {"too_few_findings", "low_coverage", "no_high_confidence"}
    if state.resolution.web:
        hopeless.add("no_high_quality_source")
    elif len(state.evidence.readable_sources()) == len(state.evidence.fetched_sources()) and not unread_hits(state):
        hopeless.add("too_few_sources")
    return [issue for issue in gate.issues if issue.code not in hopeless]


def open_follow_ups(state: ResearchState) -> list[PlanNode]:
    """Return the follow-up queries that are to be searched for or, from pages already read, to be analyzed."""
    pending = {query.id for query in (*state.work.pending_sub_queries(), *queries_to_analyze(state))}
    return [query for query in state.work.plan.sub_queries if query.gap_id and query.id in pending]


def was_retried(state: ResearchState, phase: str, iteration: int) -> bool:
    """Return true if a phase has used its only retry in this iteration."""
    return f"{phase}/{iteration}" in SupervisorPosition.read(state).retried


# --- to the next phase ---------------------------------------------------------------------------------------------
def apply_pause(state: ResearchState) -> StopReason | None:
    """Move the position by the last pause and the table of transitions; return the stop reason at the end."""
    position = SupervisorPosition.of(state)
    pause = state.work.pause
    if pause is not None and pause.action is Action.RETRY:
        position.next_phase = Phase(pause.phase)
    if pause is None or pause.phase != position.next_phase or pause.action is Action.RETRY:
        return None
    if position.next_phase in NEXT_PHASES:
        position.next_phase = NEXT_PHASES[position.next_phase]
    elif pause.action is not Action.ITERATE:
        return stop_reason_after_synthesis(state)
    elif position.next_phase == Phase.SYNTHESIS:
        position.next_phase = Phase.REFINEMENT
    else:
        state.work.iteration += 1
        pass_over_unread(state)
        position.next_phase = Phase.GATHERING
    return None


def should_iterate(state: ResearchState) -> bool:
    """Return true if actionable gaps remain and an iteration is left."""
    return bool(actionable_gaps(state)) and state.work.iteration < state.resolution.limits.max_iterations


def actionable_gaps(state: ResearchState) -> list[Gap]:
    """Return the open gaps severe enough for another search; unaddressable ones are no longer open."""
    floor = SEVERITY_ORDER[state.resolution.limits.severity_floor]
    return [gap for gap in state.evidence.unaddressed_gaps() if SEVERITY_ORDER[gap.severity] >= floor]


def stop_reason_after_synthesis(state: ResearchState) -> StopReason:
    """Return the reason why a run completes after its last phase."""
    if not state.evidence.unaddressed_gaps():
        return StopReason.NO_OPEN_GAPS
    if not actionable_gaps(state):
        return StopReason.NO_ACTIONABLE_GAPS
    if state.work.iteration >= state.resolution.limits.max_iterations:
        return StopReason.MAX_ITERATIONS
    return StopReason.COVERAGE_SUFFICIENT
