"""The current details of a run, in Markdown, for the web UI."""

from contracts.display_text import as_markdown
from contracts.state import ResearchState
from contracts.vocabulary import NodeStatus

MARKS = {
    NodeStatus.PENDING: "○",
    NodeStatus.EXECUTING: "▸",
    NodeStatus.COMPLETED: "✔",
    NodeStatus.FAILED: "✖",
    NodeStatus.SKIPPED: "–",
}


def details_markdown(state: ResearchState, now: float) -> str:
    """Phase, iteration, counts, sub-queries, last decision: what a person wants to know at a glance."""
    resolved = state.resolved
    if resolved is None:
        return "preparing"
    elapsed = max(0.0, now - state.clock_started_at)
    head = (
        f"**{state.status.value}** · {state.phase or 'starting'} · "
        f"iteration {state.iteration} of {resolved.limits.max_iterations} · "
        f"{elapsed:.0f} of {resolved.limits.deadline_seconds:.0f} s"
    )
    figures = (
        f"{len(state.readable_sources())} sources · {len(state.findings)} findings · "
        f"{len(state.unaddressed_gaps())} open gaps · {state.usage.model_calls} model calls"
    )
    lines = [head, "", figures, ""]
    lines += [f"- {MARKS[query.status]} {_shown(query.text, 150)}" for query in state.plan.nodes[:10]]
    if state.decisions:
        last = state.decisions[-1]
        lines += ["", f"Last decision: {last.agent} – {_shown(f'{last.action} {last.rationale}', 250)}"]
    if state.last_failure:
        lines += ["", f"Last failure: {_shown(state.last_failure, 300)}"]
    return "\n".join(lines)


def _shown(text: str, characters: int) -> str:
    return as_markdown(text, characters, 4 * characters)
