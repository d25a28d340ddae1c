"""The state of a run or of an agent in a few figures."""

from contracts.agents import progress_of_agent
from contracts.outcome import HOOK, PERSON, Progress, ResearchStatus
from contracts.state import ResearchState
from workflows.phases.checking import with_verification
from workflows.run.clock import elapsed_seconds
from workflows.strategies import strategy_of


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
        web=resolved.web if resolved else False,
        providers=resolved.providers if resolved else [],
        advice=resolved.advice if resolved else [],
        waiting=None if ended else state.waiting,
        counts=state.counts(),
        usage=state.usage,
        usage_by_role=state.usage_by_role,
        usage_by_phase=state.usage_by_phase,
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
