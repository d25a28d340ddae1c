"""Exit codes of the command: stable, scripts rely on them."""

from enum import IntEnum

from contracts.vocabulary import Outcome, StopReason


class ExitCode(IntEnum):
    """What the command's end means."""

    COMPLETED = 0
    INTERNAL = 1
    """An internal error, or an audit that found a difference."""
    USAGE = 2
    PARTIAL = 3
    FAILED = 4
    CANCELLED = 5
    TIMED_OUT = 6
    NOTHING_TO_WORK_WITH = 7
    EMPTY = 8
    STOOD_STILL = 12
    """The watchdog ended a process that did nothing any more (`workers.watchdog.EXIT_CODE`)."""


BY_OUTCOME = {
    Outcome.COMPLETED: ExitCode.COMPLETED,
    Outcome.PARTIAL: ExitCode.PARTIAL,
    Outcome.EMPTY: ExitCode.EMPTY,
    Outcome.CANCELLED: ExitCode.CANCELLED,
    Outcome.TIMED_OUT: ExitCode.TIMED_OUT,
    Outcome.FAILED: ExitCode.FAILED,
}
BY_REFUSAL = {
    StopReason.INVALID_INPUT: ExitCode.USAGE,
    StopReason.NO_PROVIDERS: ExitCode.NOTHING_TO_WORK_WITH,
    StopReason.NO_EVIDENCE: ExitCode.NOTHING_TO_WORK_WITH,
}


def exit_code(outcome: Outcome, stop_reason: StopReason) -> ExitCode:
    """The code of a run's ending."""
    if outcome is Outcome.REFUSED:
        return BY_REFUSAL.get(stop_reason, ExitCode.FAILED)
    return BY_OUTCOME[outcome]
