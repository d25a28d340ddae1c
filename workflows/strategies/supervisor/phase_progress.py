"""How far a run of the strategy `supervisor` is. Pure."""

from typing import Final

from contracts.outcome import Mark, Progress, UnitProgress
from contracts.state import ResearchState
from contracts.texts import plural
from contracts.vocabulary import Phase
from workflows.strategies.supervisor.supervisor_position import read_position

LABELS: Final = {
    Phase.PLANNING: "plan",
    Phase.GATHERING: "gather",
    Phase.ANALYSIS: "analyze",
    Phase.SYNTHESIS: "write",
    Phase.REFINEMENT: "refine",
}
"""The phases in the order of the loop; planning belongs to the first iteration alone."""


def progress_of(state: ResearchState) -> Progress:
    """The phases of the current iteration: those before the position are done, the others wait."""
    order = list(LABELS)
    place = order.index(read_position(state).next_phase)
    last = state.resolved.limits.max_iterations if state.resolved else 1
    # A run that a person did not let begin has a result and no report.
    reported = state.result is not None and state.result.files is not None
    units = []
    for number, phase in enumerate(order):
        done = number < place or (number == place and bool(state.open_pauses)) or reported
        running = number == place and not done and state.phase is not None and state.result is None
        mark = Mark.DONE if done else Mark.RUNNING if running else Mark.WAITING
        detail = phase_summary(state, phase) if done else ""
        units.append(UnitProgress(name=phase, label=LABELS[phase], mark=mark, detail=detail))
    return Progress(summary=f"iteration {state.iteration} of {last}", units=units)


def phase_summary(state: ResearchState, phase: Phase) -> str:
    """What a phase has brought, in a few words."""
    return {
        Phase.PLANNING: f"{len(state.plan.sub_queries)} sub-queries",
        Phase.GATHERING: f"{plural(len(state.readable_sources()), 'source')} read",
        Phase.ANALYSIS: f"{plural(len(state.findings), 'finding')}, {plural(len(state.unaddressed_gaps()), 'gap')}",
        Phase.SYNTHESIS: f"{state.draft.word_count if state.draft else 0} words",
        Phase.REFINEMENT: plural(len(state.pending_sub_queries()), "follow-up query"),
    }[phase]
