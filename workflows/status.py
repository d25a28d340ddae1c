"""The state of a run or of an agent in a few figures."""

from collections.abc import Sequence
from typing import Final

from contracts.agents import progress_of_agent
from contracts.outcome import HOOK, PERSON, AgentProgress, Awaited, Progress, ResearchStatus
from contracts.plan import PlanAnswer
from contracts.request import Constraints
from contracts.state import ResearchState
from contracts.texts import as_markdown, plural
from contracts.tokens import total_of
from contracts.vocabulary import AgentStatus, NodeKind, NodeStatus
from workflows.phases.checking import with_verification
from workflows.run.context import elapsed_seconds
from workflows.strategies import strategy_of

QUESTION_CHARACTERS: Final = 400
WAITS: Final = 3
MOST_AGENTS: Final = 12
AGENT_MARKS: Final = {
    AgentStatus.QUEUED: "○",
    AgentStatus.RUNNING: "▸",
    AgentStatus.DONE: "✔",
    AgentStatus.CUT_OFF: "■",
    AgentStatus.FAILED: "✖",
}
MARKS = {
    NodeStatus.PENDING: "○",
    NodeStatus.EXECUTING: "▸",
    NodeStatus.COMPLETED: "✔",
    NodeStatus.FAILED: "✖",
    NodeStatus.SKIPPED: "–",
}


def status_of(state: ResearchState, now: float) -> ResearchStatus:
    """The state in a few figures; the same function serves running workflows and stored sessions."""
    resolved = state.resolved
    limit = resolved.limits.deadline_seconds if resolved else 0.0
    ended = state.result is not None
    elapsed = state.usage.active_seconds if ended else elapsed_seconds(state, now)
    last = state.decisions[-1] if state.decisions else None
    return ResearchStatus(
        research_id=resolved.research_id if resolved else "",
        query=resolved.query if resolved else "",
        status=state.status,
        phase=state.phase,
        iteration=state.iteration,
        limits=resolved.limits if resolved else None,
        max_iterations=resolved.limits.max_iterations if resolved else 1,
        strategy=resolved.strategy if resolved else "supervisor",
        progress=with_verification(strategy_of(resolved.strategy).progress(state), state) if resolved else Progress(),
        agents=[progress_of_agent(record) for record in state.agents],
        engine=resolved.engine.value if resolved else "",
        corpus=resolved.corpus.name if resolved and resolved.corpus else None,
        egress=resolved.egress if resolved else "",
        estimate=resolved.estimate.words() if resolved and resolved.estimate else "",
        web=resolved.web if resolved else False,
        providers=resolved.providers if resolved else [],
        waiting=None if ended else state.waiting,
        outline=state.plan.outline,
        objections=state.plan.objections,
        counts=state.counts(),
        usage=state.usage,
        usage_by_role=state.usage_by_role,
        usage_by_phase=state.usage_by_phase,
        fidelity=total_of(state.fidelity.values()) if state.fidelity else None,
        verification=state.result.verification if state.result else state.verification.summary,
        elapsed_seconds=max(0.0, round(elapsed, 1)) if resolved else 0.0,
        deadline_seconds=limit,
        last_decision=f"{last.action}: {last.rationale}".strip(": ") if last else "",
        last_failure=state.last_failure,
        degraded=state.degraded,
        guidance=[each for each in state.guidance if each.origin in (PERSON, HOOK)],
        outcome=state.result.outcome if state.result else None,
        stop_reason=state.result.stop_reason if state.result else None,
        started_at=state.started_at,
        ended_at=state.result.ended_at if state.result else None,
    )


def details_markdown(
    state: ResearchState,
    now: float,
    question: str = "",
    awaiting: Sequence[Awaited] = (),
    queued: ResearchStatus | None = None,
) -> str:
    """Question, phase, cost, calls under way, sub-queries, last decision: the overview for a person.

    `question` is that of a run which is not resolved yet, `queued` the status of one that waits for its turn.
    """
    resolved = state.resolved
    asked = _show(resolved.query if resolved else question, QUESTION_CHARACTERS)
    waits = [f"waiting for: {each.what} (since {each.since[11:19]} UTC)" for each in awaiting[:WAITS]]
    if len(awaiting) > WAITS:
        waits.append(f"and for {len(awaiting) - WAITS} more")
    if resolved is None:
        stands = f"queued · place {queued.queue_place} of {queued.queue_length}" if queued else "preparing"
        return "\n\n".join(part for part in (f"**{asked}**" if asked else "", stands, *waits) if part)
    elapsed = max(0.0, elapsed_seconds(state, now) - state.active_seconds_before)
    head = (
        f"**{state.status.value}** · {state.phase or 'starting'} · "
        f"iteration {state.iteration} of {resolved.limits.max_iterations} · "
        f"{elapsed:.0f} of {resolved.limits.deadline_seconds:.0f} s"
    )
    figures = (
        f"{plural(len(state.readable_sources()), 'source')} · {plural(len(state.findings), 'finding')} · "
        f"{plural(len(state.unaddressed_gaps()), 'open gap')} · {plural(state.usage.model_calls, 'model call')} · "
        f"{_cost(state)}"
    )
    lines = [f"**{asked}**", "", head, "", *_asked_of_person(state), figures, ""]
    lines += [line for wait in waits for line in (wait, "")]
    # Where the work is done in steps, these tell more than their many searches.
    steps = [node for node in state.plan.nodes if node.kind is NodeKind.STEP]
    lines += [f"- {MARKS[node.status]} {_show(node.text, 150)}" for node in (steps or state.plan.nodes)[:10]]
    lines += _outline_lines(state)
    agents = [each for record in state.agents for each in progress_of_agent(record).with_all_below()]
    lines += [_agent_line(level, agent) for level, agent in agents[-MOST_AGENTS:]]
    if state.decisions:
        last = state.decisions[-1]
        lines += ["", f"Last decision: {last.agent} – {_show(f'{last.action} {last.rationale}', 250)}"]
    if state.last_failure:
        lines += ["", f"Last failure: {_show(state.last_failure, 300)}"]
    return "\n".join(lines)


def _outline_lines(state: ResearchState) -> list[str]:
    """Return the headings of the report, with the words under each once it grows, assumptions, and objections."""
    lengths, plan = state.draft.words_by_section if state.draft else {}, state.plan
    headings = [
        f"{_show(text, 120)} ({plural(lengths[text], 'word') if lengths[text] else 'empty'})"
        if text in lengths
        else _show(text, 120)
        for text in plan.outline
    ]
    shown = (("Outline", headings), ("Assumptions", [_show(text, 120) for text in plan.assumptions]))
    lines = [line for label, texts in shown if texts for line in ("", f"{label}: {' · '.join(texts)}")]
    if objections := plan.open_objections:
        lines += ["", "Too wide:", *(f"- {_show(one.line(), 500)}" for one in objections)]
    return lines


def _agent_line(level: int, agent: AgentProgress) -> str:
    """An agent with its task and the workflow that shows it."""
    is_over = agent.status not in (AgentStatus.QUEUED, AgentStatus.RUNNING)
    brought = f" · {plural(agent.counts.findings, 'finding')}" if is_over else ""
    where = f" · workflow `{agent.workflow_id}`" if agent.workflow_id else ""
    indent = "  " * (level - 1)
    return f"{indent}- {AGENT_MARKS[agent.status]} {agent.id}{brought}{where}: {_show(agent.task, 120)}"


def _asked_of_person(state: ResearchState) -> list[str]:
    """Return the question to a person, and the commands that answer it."""
    waiting, resolved = state.waiting, state.resolved
    if waiting is None or resolved is None or state.result is not None:
        return []
    until = waiting.expires_at[:16].replace("T", " ")
    lines = [f"**waiting for {waiting.describe()}**, until {until} UTC", ""]
    lines += [f"{place}. {_show(question, 300)}" for place, question in enumerate(waiting.questions, start=1)]
    lines += ["", *(f"    {way}" for way in waiting.ways(resolved.research_id)), ""]
    return lines


def _cost(state: ResearchState) -> str:
    cap = state.resolved.limits.max_cost_usd if state.resolved else None
    if state.usage.cost_usd is None and not state.usage.known_cost_usd:
        return "cost unknown"
    cost = f"{state.usage.known_cost_usd:.2f} USD" + (" and more" if state.usage.cost_usd is None else "")
    return cost if cap is None else f"{cost} of at most {cap:.2f}"


def _show(text: str, characters: int) -> str:
    return as_markdown(text, characters, 4 * characters)


def plan_of(state: ResearchState) -> PlanAnswer:
    """Return the plan of a run, and the open question to a person."""
    return PlanAnswer(
        version=state.plan.version,
        approved_version=state.approved_version,
        waiting=None if state.result else state.waiting,
        brief=state.plan.brief,
        nodes=state.plan.nodes,
        sub_queries=state.plan.parts,
        outline=state.plan.outline,
        questions=state.plan.questions,
        assumptions=state.plan.assumptions,
        objections=state.plan.objections,
        constraints=state.resolved.constraints if state.resolved else Constraints(),
    )
