"""Where a resumed run of the strategy `supervisor` goes on. Pure."""

from contracts.state import ResearchState
from contracts.vocabulary import Action, Phase
from workflows.strategies.supervisor.iteration import should_iterate
from workflows.strategies.supervisor.supervisor_position import position_of


def reposition(state: ResearchState, *, redo_analysis: bool) -> None:
    """An unfinished phase is done again; a finished run is decided again under the new limits.

    A run that was interrupted after its last phase goes on to its end.
    """
    before = position_of(state).next_phase
    _move(state, redo_analysis=redo_analysis)
    if position_of(state).next_phase != before or redo_analysis:
        state.open_pauses = []


def _move(state: ResearchState, *, redo_analysis: bool) -> None:
    position, pause = position_of(state), state.pause
    if not state.plan.nodes:
        position.next_phase, state.pause = Phase.PLANNING, None
    elif state.pending_sub_queries() and position.next_phase != Phase.PLANNING:
        position.next_phase, state.pause = Phase.GATHERING, None
    elif redo_analysis:
        position.next_phase, state.pause = Phase.ANALYSIS, None
    elif pause is not None and pause.phase == position.next_phase and pause.action is Action.COMPLETE:
        if should_iterate(state) and pause.phase == Phase.SYNTHESIS:
            state.pause = pause.model_copy(update={"action": Action.ITERATE})
        elif state.ending is not None:
            position.next_phase, state.pause = Phase.SYNTHESIS, None
