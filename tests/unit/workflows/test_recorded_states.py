"""What the pure rules say of many states that differ in one thing each, against a recorded table.

`python -m tests.unit.workflows.test_recorded_states` records. Read the difference before you record.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from contracts.agents import AgentRecord, AgentTask, TaskResult
from contracts.decisions import Exclusion, Guidance
from contracts.outcome import Citation
from contracts.plan import Plan, PlanNode
from contracts.presets import preset
from contracts.request import Depth
from contracts.sources import Candidate
from contracts.state import ResearchState
from contracts.usage import Usage
from contracts.vocabulary import (
    AgentStatus,
    Confidence,
    EngineKind,
    GapKind,
    GapStatus,
    GatePolicy,
    NodeKind,
    NodeStatus,
    Outcome,
    Phase,
    Quality,
    Severity,
    SourceStatus,
    StopReason,
)
from tests.fakes import states
from workflows.phases.counts import counts_of
from workflows.phases.hook_view import hook_view
from workflows.rules import endings, sub_queries
from workflows.rules.report_check import report_issues
from workflows.rules.unworked_endings import outcome_without_work
from workflows.run.web_ui_details import details_markdown
from workflows.run_status import status_of
from workflows.strategies.orchestrator import task_nodes
from workflows.strategies.orchestrator.orchestrator_progress import progress_of as cycles_of
from workflows.strategies.reflective import step_decision, step_progress, steps
from workflows.strategies.supervisor import gates, iteration, phase_progress, reflection_prompts

FILE = Path(__file__).parent / "recorded_states" / "rules.txt"
QUESTION = "How does the engine prevent wraparound?"
NOW = 1_795_262_400.0
LIMITS = preset("supervisor", Depth.MEDIUM)
STEP_LIMITS = preset("reflective", Depth.MEDIUM)
Change = Callable[[ResearchState], object]


def shown(value: Any) -> Any:
    """A value as JSON can hold it."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_defaults=True)
    if isinstance(value, (list, tuple)):
        return [shown(each) for each in value]
    if isinstance(value, (set, frozenset)):
        return sorted(shown(each) for each in value)
    if isinstance(value, dict):
        return {str(key): shown(each) for key, each in value.items()}
    if hasattr(value, "__dataclass_fields__"):
        return {name: shown(getattr(value, name)) for name in value.__dataclass_fields__}
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def line(value: Any) -> str:
    """A value in one line."""
    return json.dumps(shown(value), ensure_ascii=False)


# --- states ----------------------------------------------------------------------------------------------------------
def base() -> ResearchState:
    """Four sub-queries, steps and a task, sources, findings and gaps of each kind, and a draft."""
    first = states.sub_query(
        "How does a vacuum freeze rows?", finding_count=2, result_count=4, new_source_count=2, facet="how"
    )
    second = states.sub_query(QUESTION, finding_count=1, result_count=1, duplicate_count=1)
    failed = states.sub_query("Which settings are there?", status=NodeStatus.FAILED, error="SearchRejected")
    skipped = states.sub_query("What does it cost?", status=NodeStatus.SKIPPED, status_reason=sub_queries.ENOUGH)
    step = PlanNode(id="step-1", text="Find out how it works", kind=NodeKind.STEP, needs_search=False, finding_count=1)
    step = step.model_copy(update={"status": NodeStatus.COMPLETED, "facet": "research"})
    later = step.model_copy(update={"id": "step-2", "text": "Find out what fails"})
    task = PlanNode(
        id="agent-1", text="How often is it vacuumed?", kind=NodeKind.TASK, needs_search=False, parent="step-1", depth=1
    )
    task = task.model_copy(update={"status": NodeStatus.COMPLETED, "finding_count": 1})
    good = states.source("corpus:manual/a", title="Vacuum", sub_query_ids=[first.id])
    plain = states.source(
        "https://b.test/x", title="Locks", quality=Quality.MEDIUM, sub_query_ids=[first.id, second.id]
    )
    lost = states.source("https://c.test/x", title="Gone", status=SourceStatus.FAILED, status_reason="not_found")
    hinted = states.source("https://d.test/x", title="Hint", status=SourceStatus.SNIPPET_ONLY, analyzed=False)
    findings = [
        states.finding("Rows are frozen.", source_ids=[good.id], evidence_ids=["ev-1"], sub_query_id=first.id),
        states.finding(
            "Locks do not help.",
            source_ids=[plain.id],
            evidence_ids=["ev-2"],
            sub_query_id=first.id,
            confidence=Confidence.MEDIUM,
        ),
        states.finding(
            "It is said to be slow.", source_ids=[plain.id], sub_query_id=second.id, confidence=Confidence.LOW
        ),
    ]
    findings[2] = findings[2].model_copy(update={"contradicts": [findings[1].id]})
    return states.state(
        resolved=states.resolved(query=QUESTION, limits=LIMITS),
        phase=Phase.ANALYSIS,
        plan=states.plan(first, second, failed, skipped, step, later, task),
        sources=states.sources(good, plain, lost, hinted),
        findings=findings,
        gaps=[
            states.gap("What do settings do?", origin=f"sub_query:{failed.id}"),
            states.gap("Do locks help?", kind=GapKind.CONTRADICTION, severity=Severity.CRITICAL, priority=2),
            states.gap("What of backups?", status=GapStatus.ADDRESSED),
            states.gap("Who says so?", status=GapStatus.UNADDRESSABLE, severity=Severity.MINOR),
        ],
        draft=states.draft(),
        citations=[Citation(number=1, source_id=good.id)],
        usage=Usage(model_calls=3, input_tokens=900, output_tokens=100, cost_usd=0.25, searches=3, reads=3),
        deadline_at=NOW + 900,
        clock_started_at=NOW - 60,
        analyzed_sub_queries=[first.id],
        candidates=[Candidate(sub_query_id=first.id, hit=states.hit("https://e.test/x", 1))],
        guidance=[Guidance(origin="person", text="Be brief.", phase=Phase.GATHERING)],
    )  # fmt: skip


def setting(**changes: Any) -> Change:
    """Fields of the state."""
    return lambda state: [setattr(state, name, value) for name, value in changes.items()]


def resolving(**changes: Any) -> Change:
    """Fields of the resolved request."""

    def change(state: ResearchState) -> None:
        assert state.resolved is not None
        state.resolved = state.resolved.model_copy(update=changes)

    return change


def limiting(**changes: Any) -> Change:
    """Limits."""
    return resolving(limits=LIMITS.model_copy(update=changes))


def node(place: int, **changes: Any) -> Change:
    """One node of the plan."""

    def change(state: ResearchState) -> None:
        nodes = list(state.plan.nodes)
        nodes[place] = nodes[place].model_copy(update=changes)
        state.plan = state.plan.model_copy(update={"nodes": nodes})

    return change


def source(place: int, **changes: Any) -> Change:
    """One source."""

    def change(state: ResearchState) -> None:
        name = list(state.sources)[place]
        state.sources = {**state.sources, name: state.sources[name].model_copy(update=changes)}

    return change


def listed(field: str, place: int, **changes: Any) -> Change:
    """One item of a list of the state."""

    def change(state: ResearchState) -> None:
        items = list(getattr(state, field))
        items[place] = items[place].model_copy(update=changes)
        setattr(state, field, items)

    return change


def drafting(characters: int = 1_000, **changes: Any) -> Change:
    """Fields of the draft."""
    return lambda state: setattr(state, "draft", states.draft(characters, **changes))


def both(*changes: Change) -> Change:
    """One after the other."""
    return lambda state: [change(state) for change in changes]


def with_sources(number: int, **changes: Any) -> Change:
    """So many sources of one kind."""
    made = [
        states.source(f"https://s{place}.test/x", **{"title": f"Page {place}", **changes}) for place in range(number)
    ]
    return setting(sources=states.sources(*made))


def _result(reason: StopReason = StopReason.NO_OPEN_GAPS) -> TaskResult:
    return TaskResult(agent_id="agent-1", stop_reason=reason, finding_ids=["f-Rows are f"], problem="cut short")


def _agent(status: AgentStatus, result: TaskResult | None = None) -> AgentRecord:
    task = AgentTask(id="agent-1", text="How often is it vacuumed?", strategy="agent")
    return AgentRecord(task=task, status=status, result=result, workflow_id="r-test/agent-1", starts=1)


CHANGES: dict[str, Change] = {
    "locks are left out": setting(exclusions=[Exclusion(subject="freeze rows", origin="person")]),
    "as it is": lambda _: None,
    "nothing": lambda state: [setattr(state, field, type(getattr(state, field))()) for field in ("sources", "findings", "gaps", "candidates")],
    "no findings": setting(findings=[]),
    "no findings, a branch failed": setting(findings=[], failed_branches=["search for a: rejected"]),
    "one finding": lambda state: setattr(state, "findings", state.findings[:1]),
    "no gaps": setting(gaps=[]),
    "no draft": setting(draft=None),
    "a branch failed": setting(failed_branches=["analysis of a: no answer"]),
    "degraded": setting(degraded=["one", "two"], limitations=["It is old."]),
    "no plan": setting(plan=Plan()),
    "no brief": lambda state: setattr(state, "plan", state.plan.model_copy(update={"brief": " "})),
    "no resolution": setting(resolved=None),
    "by a model": resolving(engine=EngineKind.MODEL),
    "over the web": resolving(web=True),
    "advisory": resolving(gates=states.resolved().gates.model_copy(update={"policy": GatePolicy.ADVISORY})),
    "reflective": resolving(strategy="reflective", limits=STEP_LIMITS),
    "orchestrator": resolving(strategy="orchestrator", limits=preset("orchestrator", Depth.MEDIUM)),
    "analyzed by rules": setting(engine_by_role={"analyzer": "extractive"}),
    "analyzed by a model": setting(engine_by_role={"analyzer": "model"}),
    "a direct answer": drafting(direct=True),
    "an empty draft": drafting(0),
    "not answered": drafting(answers_question=False, unanswered="no passage names it"),
    "without headings": drafting(has_headings=False),
    "without citations": drafting(evidence_ids=[]),
    "an earlier draft": drafting(iteration=0),
    "hasty": setting(hasty_analyses=[states.sub_query("How does a vacuum freeze rows?").id]),
    "another question": resolving(query="What else?"),
    **{f"draft of {number}": drafting(number) for number in (1, 499, 500, 501, 5_000)},
    **{f"phase {phase.value}": setting(phase=phase) for phase in Phase},
    **{f"iteration {number}": setting(iteration=number) for number in (2, 3, 4)},
    **{f"at most {number} iterations": limiting(max_iterations=number) for number in (1, 2)},
    **{f"at most {number} sub-queries": limiting(max_sub_queries=number) for number in (1, 3, 4, 5)},
    **{f"at most {number} sources": limiting(max_sources=number, max_sources_per_query=number) for number in (1, 2, 3)},
    **{f"from {severity.value} on": limiting(severity_floor=severity) for severity in Severity},
    **{f"{number} good sources": with_sources(number) for number in (0, 1, 2, 3, 4, 7)},
    **{f"{number} sources, medium": with_sources(number, quality=Quality.MEDIUM) for number in (2, 3)},
    "sources not analyzed": with_sources(3, analyzed=False),
    "sources of one title": with_sources(3, title="The same work on vacuuming"),
    **{f"lost: {why}": source(1, status=SourceStatus.FAILED, status_reason=why) for why in (*endings.LOST, "not_found")},
    **{f"node {place} {status.value}": node(place, status=status) for place in (0, 1, 4, 5, 6) for status in NodeStatus},
    **{f"node {place} without findings": node(place, finding_count=0) for place in (0, 1, 4, 6)},
    **{f"node 5 {status.value} without findings": node(5, status=status, finding_count=0) for status in NodeStatus},
    "node 1 without findings, its gap stated": both(node(1, finding_count=0, stated_gaps=["gap-x"])),
    "node 0 without findings, its gap stated": both(node(0, finding_count=0, stated_gaps=["gap-x"])),
    "node 0 closes a gap": lambda state: node(0, gap_id=state.gaps[0].id)(state),
    "skipped for another reason": node(3, status_reason="the time was over"),
    "a short sub-query": node(0, text="Vacuuming"),
    "a sub-query of ten": node(0, text="Vacuuming?"),
    "a follow-up": node(0, origin="gap:gap-1", gap_id="gap-1", status=NodeStatus.PENDING),
    **{f"gap 0 {status.value}": listed("gaps", 0, status=status) for status in GapStatus},
    **{f"gap 1 {severity.value}": listed("gaps", 1, severity=severity) for severity in Severity},
    **{f"gap 0 of kind {kind.value}": listed("gaps", 0, kind=kind) for kind in GapKind},
    **{f"finding 0 {sure.value}": listed("findings", 0, confidence=sure) for sure in Confidence},
    "no source named": listed("findings", 0, source_ids=[]),
    "a source of low quality": source(0, quality=Quality.LOW),
    "a source of unknown quality": source(0, quality=Quality.UNKNOWN),
    **{f"source 0 {status.value}": source(0, status=status) for status in SourceStatus},
    "source 0 not analyzed": source(0, analyzed=False),
    "nothing used": setting(usage=Usage()),
    "cost unknown": setting(usage=Usage(model_calls=2, cost_usd=None)),
    "waiting to be closed": setting(ending=None, result=None),
    "an agent at work": setting(agents=[_agent(AgentStatus.RUNNING)]),
    **{f"an agent {status.value}": setting(agents=[_agent(status, _result())]) for status in AgentStatus},
    **{f"an agent ended by {reason.value}": setting(agents=[_agent(AgentStatus.DONE, _result(reason))])
       for reason in (StopReason.BUDGET_CALLS, StopReason.BUDGET_TIME, StopReason.USER_STOPPED)},
}  # fmt: skip


# --- rules -----------------------------------------------------------------------------------------------------------
REASONS = (StopReason.NO_OPEN_GAPS, StopReason.USER_STOPPED, StopReason.BUDGET_TIME, StopReason.BUDGET_COST)
RULES: dict[str, Callable[[ResearchState], Any]] = {
    **{f"outcome, {why.value}": lambda state, why=why: endings.outcome_of(QUESTION, state, why) for why in REASONS},
    **{f"limitations, {why.value}": lambda state, why=why: endings.limitations_of(QUESTION, state, why) for why in REASONS[:2]},
    **{f"without work, {why.value}": lambda state, why=why: outcome_without_work(state, why) for why in REASONS},
    "stop reason": lambda state: [endings.stop_reason_of(state, why) for why in REASONS],
    "completeness": lambda state: [endings.completeness_of(state, each) for each in (Outcome.COMPLETED, Outcome.PARTIAL)],
    "unanswered": lambda state: endings.find_unanswered(QUESTION, state),
    "issues": report_issues,
    **{f"gate of {phase.value}": lambda state, phase=phase: gates.evaluate(phase, state) for phase in Phase},
    **{f"mendable in {phase.value}": lambda state, phase=phase: [
        issue.code for issue in iteration.mendable(state, gates.evaluate(phase, state))] for phase in Phase},
    **{f"after {phase.value}": lambda state, phase=phase: [
        iteration.decide(state, gates.evaluate(phase, state), None, can_change=can) for can in (True, False)] for phase in Phase},
    "meanwhile": lambda state: [
        iteration.decision_meanwhile(state, gates.evaluate(phase, state), can_change=True) for phase in Phase],
    "iterate": lambda state: [iteration.should_iterate(state), [gap.id for gap in iteration.actionable_gaps(state)]],
    "why it ends": iteration.stop_reason_after_synthesis,
    "prompts": lambda state: [reflection_prompts.reflection_prompt(phase, state) for phase in Phase],
    "phases": lambda state: [phase_progress.progress_of(state), *(phase_progress.phase_summary(state, each) for each in Phase)],
    "steps": step_progress.progress_of,
    "cycles": cycles_of,
    "status": lambda state: status_of(state, NOW),
    "details": lambda state: details_markdown(state, NOW),
    "details of a question": lambda state: details_markdown(state, NOW, "What is it?"),
    "hook": hook_view,
    "counts": counts_of,
    "steps left": lambda state: [step.id for step in steps.pending_steps(state.plan)],
    "may adjust": lambda state: [step_decision.may_adjust(state, STEP_LIMITS), step_decision.fewest_steps(state, STEP_LIMITS)],
    "summaries": steps.summaries_of,
    "unserved": lambda state: [step.id for step in task_nodes.unserved(state.plan)],
    "resumed": lambda state: [[node.id, node.status] for node in task_nodes.as_resumed(state, ["step-2"]).nodes],
    "after agents": lambda state: [
        [node.id, node.status, node.finding_count] for node in task_nodes.with_steps_after(state.plan, {"agent-1": ["step-2"]}).nodes],
    "spent": task_nodes.spent_limit,
    "to analyze": lambda state: [query.id for query in sub_queries.queries_to_analyze(state)],
    "sources left": lambda state: sub_queries.sources_left(state, LIMITS),
    "unread": lambda state: [one.hit.url for one in [*sub_queries.unread_candidates(state, LIMITS), *sub_queries.unread_hits(state)]],
}  # fmt: skip


def said(rule: Callable[[ResearchState], Any], state: ResearchState) -> str:
    """What a rule says, in one line."""
    try:
        return line(rule(state))
    except (ValueError, AttributeError, AssertionError, KeyError) as error:
        return f"raises {error!r}"


def table() -> str:
    """What each rule says of the plain state, and of each other one where that is something else."""
    plain = {name: said(rule, base()) for name, rule in RULES.items()}
    lines = [f"{name}: {value}" for name, value in plain.items()]
    for name, change in CHANGES.items():
        lines.append(name)
        for rule_name, rule in RULES.items():
            state = base()
            change(state)
            value = said(rule, state)
            if value != plain[rule_name]:
                lines.append(f"  {rule_name}: {value}")
    return "\n".join(lines) + "\n"


def test_what_rules_say_of_states_is_what_was_recorded() -> None:
    """Outcomes, gates, decisions, progress and what is shown are, word for word, what they were."""
    assert table().splitlines() == FILE.read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(table(), encoding="utf-8")
