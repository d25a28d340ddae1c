"""The status of a run or agent, summarized from its state."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from contracts.agents import agent_progress
from contracts.outcome import HOOK, PERSON, AgentProgress, Awaited, ResearchStatus, Usage
from contracts.plan import PlanAnswer
from contracts.request import Constraints
from contracts.state import ResearchState
from contracts.texts import as_markdown, plural
from contracts.tokens import sum_totals
from contracts.vocabulary import AWAITING, AgentStatus, NodeKind, NodeStatus
from workflows.phases.checking import with_verification
from workflows.run.context import elapsed_seconds
from workflows.strategies import load_strategy

QUESTION_CHARACTERS: Final = 400
MAX_SHOWN_WAITS: Final = 3
MAX_SHOWN_AGENTS: Final = 12
AGENT_MARKS: Final = {
    AgentStatus.QUEUED: "○",
    AgentStatus.RUNNING: "▸",
    AgentStatus.DONE: "✔",
    AgentStatus.CUT_OFF: "■",
    AgentStatus.FAILED: "✖",
}
MARKS: Final = {
    NodeStatus.PENDING: "○",
    NodeStatus.EXECUTING: "▸",
    NodeStatus.COMPLETED: "✔",
    NodeStatus.FAILED: "✖",
    NodeStatus.SKIPPED: "–",
}


def build_status(state: ResearchState, now: float) -> ResearchStatus:
    """Return the status of a running run or a stored session."""
    work = state.work
    accounts = state.accounts
    result = work.result
    status = ResearchStatus(
        research_id="",
        query="",
        status=work.status,
        phase=work.phase,
        iteration=work.iteration,
        agents=[agent_progress(record) for record in work.agents],
        waiting=state.people.waiting if work.status in AWAITING else None,
        outline=work.plan.outline,
        questions=work.plan.questions,
        assumptions=work.plan.assumptions,
        objections=work.plan.objections,
        counts=state.counts(),
        usage=accounts.usage,
        usage_by_role=accounts.usage_by_role,
        usage_by_phase=accounts.usage_by_phase,
        fidelity=sum_totals(accounts.fidelity.values()) if accounts.fidelity else None,
        verification=result.verification if result else state.evidence.verification.summary,
        last_decision=_describe_last_decision(state),
        last_failure=work.last_failure,
        degraded=work.degraded,
        guidance=[item for item in state.people.guidance if item.origin in (PERSON, HOOK)],
        outcome=result.outcome if result else None,
        stop_reason=result.stop_reason if result else None,
        started_at=state.clock.started_at,
        ended_at=result.ended_at if result else None,
    )
    resolved = work.resolved
    if resolved is None:
        return status
    is_timed = state.clock.clock_started_at and not result
    if is_timed:
        elapsed = elapsed_seconds(state, now)
    else:
        elapsed = accounts.usage.active_seconds
    return status.of_request(
        resolved,
        progress=with_verification(load_strategy(resolved.strategy).progress(state), state),
        elapsed_seconds=max(0.0, round(elapsed, 1)),
    )


def _describe_last_decision(state: ResearchState) -> str:
    if not state.people.decisions:
        return ""
    last = state.people.decisions[-1]
    return f"{last.action}: {last.rationale}".strip(": ")


def details_markdown(
    state: ResearchState,
    now: float,
    question: str = "",
    awaiting: Sequence[Awaited] = (),
    queued: ResearchStatus | None = None,
) -> str:
    """Return the overview in the web UI: question, phase, cost, calls in flight, sub-queries and last decision.

    `question` is used until the run is resolved; `queued` is the status of a queued run.
    """
    resolved = state.work.resolved
    title = f"**{_show(resolved.query if resolved else question, QUESTION_CHARACTERS)}**"
    waits = [f"waiting for: {call.what} (since {call.since[11:19]} UTC)" for call in awaiting[:MAX_SHOWN_WAITS]]
    if len(awaiting) > MAX_SHOWN_WAITS:
        waits.append(f"and for {len(awaiting) - MAX_SHOWN_WAITS} more")
    if resolved is None:
        phase = "preparing"
        if queued:
            phase = f"queued · place {queued.queue_place} of {queued.queue_length}"
        return "\n\n".join((title, phase, *waits))
    elapsed = max(0.0, elapsed_seconds(state, now) - state.clock.active_seconds_before)
    head = (
        f"**{state.work.status.value}** · {state.work.phase or 'starting'} · "
        f"iteration {state.work.iteration} of {resolved.limits.max_iterations} · "
        f"{elapsed:.0f} of {resolved.limits.deadline_seconds:.0f} s"
    )
    figures = " · ".join(
        (
            plural(len(state.evidence.readable_sources()), "source"),
            plural(len(state.evidence.findings), "finding"),
            plural(len(state.evidence.unaddressed_gaps()), "open gap"),
            plural(state.accounts.usage.model_calls, "model call"),
            _cost(state.accounts.usage, resolved.limits.max_cost_usd),
        )
    )
    lines = [title, "", head, "", *_question_lines(state), figures, ""]
    lines += [line for wait in waits for line in (wait, "")]
    # Steps, if there are any, are more informative than their many searches.
    steps = [node for node in state.work.plan.nodes if node.kind is NodeKind.STEP]
    lines += [f"- {MARKS[node.status]} {_show(node.text, 150)}" for node in (steps or state.work.plan.nodes)[:10]]
    lines += _plan_lines(state)
    agents = [entry for record in state.work.agents for entry in agent_progress(record).walk()]
    lines += [_agent_line(level, agent) for level, agent in agents[-MAX_SHOWN_AGENTS:]]
    if state.people.decisions:
        last = state.people.decisions[-1]
        lines += ["", f"Last decision: {last.agent} – {_show(f'{last.action} {last.rationale}', 250)}"]
    if state.work.last_failure:
        lines += ["", f"Last failure: {_show(state.work.last_failure, 300)}"]
    return "\n".join(lines)


def _plan_lines(state: ResearchState) -> list[str]:
    """Return the report's headings (with word counts once there is a draft), assumptions and objections."""
    lengths = state.evidence.draft_sections
    plan = state.work.plan
    headings = []
    for text in plan.outline:
        heading = _show(text, 120)
        if text in lengths:
            heading += f" ({plural(lengths[text], 'word') if lengths[text] else 'empty'})"
        headings.append(heading)
    lists = (("Outline", headings), ("Assumptions", [_show(text, 120) for text in plan.assumptions]))
    lines = [line for label, texts in lists if texts for line in ("", f"{label}: {' · '.join(texts)}")]
    if objections := plan.open_objections:
        lines += ["", "Too wide:", *(f"- {_show(objection.line(), 500)}" for objection in objections)]
    return lines


def _agent_line(level: int, agent: AgentProgress) -> str:
    """Return a line for an agent, with its task and workflow id."""
    is_over = agent.status not in (AgentStatus.QUEUED, AgentStatus.RUNNING)
    findings = ""
    if is_over:
        findings = f" · {plural(agent.counts.findings, 'finding')}"
    location = f" · workflow `{agent.workflow_id}`" if agent.workflow_id else ""
    indent = "  " * (level - 1)
    return f"{indent}- {AGENT_MARKS[agent.status]} {agent.id}{findings}{location}: {_show(agent.task, 120)}"


def _question_lines(state: ResearchState) -> list[str]:
    """Return the open question to a person, and the commands that answer it."""
    waiting = state.people.waiting
    resolved = state.work.resolved
    if waiting is None or resolved is None or state.work.status not in AWAITING:
        return []
    until = waiting.expires_at[:16].replace("T", " ")
    lines = [f"**waiting for {waiting.describe()}**, until {until} UTC", ""]
    lines += [f"{number}. {_show(question, 300)}" for number, question in enumerate(waiting.questions, start=1)]
    lines += ["", *(f"    {way}" for way in waiting.ways(resolved.research_id)), ""]
    return lines


def _cost(usage: Usage, limit: float | None) -> str:
    if usage.cost_usd is None and not usage.known_cost_usd:
        return "cost unknown"
    cost = f"{usage.known_cost_usd:.2f} USD" + (" and more" if usage.cost_usd is None else "")
    if limit is None:
        return cost
    return f"{cost} of at most {limit:.2f}"


@lru_cache(maxsize=256)  # the overview is written after each burst of events, mostly of the same texts
def _show(text: str, characters: int) -> str:
    return as_markdown(text, characters, 4 * characters)


def build_plan(state: ResearchState) -> PlanAnswer:
    """Return the plan of a run, and the open question to a person."""
    fields = dict(state.work.plan) | {
        "approved_version": state.people.approved_version,
        "waiting": state.people.waiting if state.work.status in AWAITING else None,
        "sub_queries": state.work.plan.parts,
        "constraints": state.work.resolved.constraints if state.work.resolved else Constraints(),
        "estimate": state.work.resolved.estimate.words()
        if state.work.resolved and state.work.resolved.estimate
        else "",
    }
    return PlanAnswer.model_validate(fields)
