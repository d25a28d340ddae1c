"""The status of a run or agent, summarized from its state."""

from collections.abc import Sequence
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
    """Return the status of a running run or a stored session.

    Fields come from the same names in state, plan and resolution, except those set here.
    """
    resolved, result = state.resolved, state.result
    fields = dict(state) | dict(state.plan) | (dict(resolved) if resolved else {"research_id": "", "query": ""})
    fields |= {
        "agents": [agent_progress(record) for record in state.agents],
        "waiting": state.waiting if state.status in AWAITING else None,
        "counts": state.counts(),
        "fidelity": sum_totals(state.fidelity.values()) if state.fidelity else None,
        "verification": result.verification if result else state.verification.summary,
        "guidance": [item for item in state.guidance if item.origin in (PERSON, HOOK)],
    }
    if resolved is not None:
        elapsed = elapsed_seconds(state, now) if state.clock_started_at and not result else state.usage.active_seconds
        fields |= {
            "max_iterations": resolved.limits.max_iterations,
            "progress": with_verification(load_strategy(resolved.strategy).progress(state), state),
            "engine": resolved.engine.value,
            "corpus": resolved.corpus.name if resolved.corpus else None,
            "estimate": resolved.estimate.words() if resolved.estimate else "",
            "elapsed_seconds": max(0.0, round(elapsed, 1)),
            "deadline_seconds": resolved.limits.deadline_seconds,
        }
    if state.decisions:
        last = state.decisions[-1]
        fields["last_decision"] = f"{last.action}: {last.rationale}".strip(": ")
    if result is not None:
        fields |= {"outcome": result.outcome, "stop_reason": result.stop_reason, "ended_at": result.ended_at}
    return ResearchStatus.model_validate(fields)


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
    resolved = state.resolved
    title = f"**{_show(resolved.query if resolved else question, QUESTION_CHARACTERS)}**"
    waits = [f"waiting for: {call.what} (since {call.since[11:19]} UTC)" for call in awaiting[:MAX_SHOWN_WAITS]]
    if len(awaiting) > MAX_SHOWN_WAITS:
        waits.append(f"and for {len(awaiting) - MAX_SHOWN_WAITS} more")
    if resolved is None:
        phase = f"queued · place {queued.queue_place} of {queued.queue_length}" if queued else "preparing"
        return "\n\n".join((title, phase, *waits))
    elapsed = max(0.0, elapsed_seconds(state, now) - state.active_seconds_before)
    head = (
        f"**{state.status.value}** · {state.phase or 'starting'} · "
        f"iteration {state.iteration} of {resolved.limits.max_iterations} · "
        f"{elapsed:.0f} of {resolved.limits.deadline_seconds:.0f} s"
    )
    figures = (
        f"{plural(len(state.readable_sources()), 'source')} · {plural(len(state.findings), 'finding')} · "
        f"{plural(len(state.unaddressed_gaps()), 'open gap')} · {plural(state.usage.model_calls, 'model call')} · "
        f"{_cost(state.usage, resolved.limits.max_cost_usd)}"
    )
    lines = [title, "", head, "", *_question_lines(state), figures, ""]
    lines += [line for wait in waits for line in (wait, "")]
    # Steps, if there are any, are more informative than their many searches.
    steps = [node for node in state.plan.nodes if node.kind is NodeKind.STEP]
    lines += [f"- {MARKS[node.status]} {_show(node.text, 150)}" for node in (steps or state.plan.nodes)[:10]]
    lines += _plan_lines(state)
    agents = [entry for record in state.agents for entry in agent_progress(record).walk()]
    lines += [_agent_line(level, agent) for level, agent in agents[-MAX_SHOWN_AGENTS:]]
    if state.decisions:
        last = state.decisions[-1]
        lines += ["", f"Last decision: {last.agent} – {_show(f'{last.action} {last.rationale}', 250)}"]
    if state.last_failure:
        lines += ["", f"Last failure: {_show(state.last_failure, 300)}"]
    return "\n".join(lines)


def _plan_lines(state: ResearchState) -> list[str]:
    """Return the report's headings (with word counts once there is a draft), assumptions and objections."""
    lengths, plan = state.draft.words_by_section if state.draft else {}, state.plan
    headings = [
        f"{_show(text, 120)} ({plural(lengths[text], 'word') if lengths[text] else 'empty'})"
        if text in lengths
        else _show(text, 120)
        for text in plan.outline
    ]
    lists = (("Outline", headings), ("Assumptions", [_show(text, 120) for text in plan.assumptions]))
    lines = [line for label, texts in lists if texts for line in ("", f"{label}: {' · '.join(texts)}")]
    if objections := plan.open_objections:
        lines += ["", "Too wide:", *(f"- {_show(objection.line(), 500)}" for objection in objections)]
    return lines


def _agent_line(level: int, agent: AgentProgress) -> str:
    """Return a line for an agent, with its task and workflow id."""
    is_over = agent.status not in (AgentStatus.QUEUED, AgentStatus.RUNNING)
    findings = f" · {plural(agent.counts.findings, 'finding')}" if is_over else ""
    location = f" · workflow `{agent.workflow_id}`" if agent.workflow_id else ""
    indent = "  " * (level - 1)
    return f"{indent}- {AGENT_MARKS[agent.status]} {agent.id}{findings}{location}: {_show(agent.task, 120)}"


def _question_lines(state: ResearchState) -> list[str]:
    """Return the open question to a person, and the commands that answer it."""
    waiting, resolved = state.waiting, state.resolved
    if waiting is None or resolved is None or state.status not in AWAITING:
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
    return cost if limit is None else f"{cost} of at most {limit:.2f}"


def _show(text: str, characters: int) -> str:
    return as_markdown(text, characters, 4 * characters)


def build_plan(state: ResearchState) -> PlanAnswer:
    """Return the plan of a run, and the open question to a person."""
    fields = dict(state.plan) | {
        "approved_version": state.approved_version,
        "waiting": state.waiting if state.status in AWAITING else None,
        "sub_queries": state.plan.parts,
        "constraints": state.resolved.constraints if state.resolved else Constraints(),
        "estimate": state.resolved.estimate.words() if state.resolved and state.resolved.estimate else "",
    }
    return PlanAnswer.model_validate(fields)
