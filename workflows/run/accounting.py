"""Writing down what was used: in total, by role and by phase, each paid answer once."""

from contracts.addresses import short_hash
from contracts.base import Contract
from contracts.outcome import Usage
from contracts.state import ResearchState

MOST_PAID_FAILURES = 200
"""Unfinished operations have few answers; a session that is resumed for ever still stays small."""


def account(state: ResearchState, role: str, usage: Usage, phase: str | None = None) -> None:
    """Add what a role used in a phase (the current one), so that roles and phases each sum up to the total.

    Searches and reads are the gatherer's (`AgentRole.GATHERER`).
    """
    phase = phase or state.phase or ""
    state.usage = state.usage.plus(usage)
    state.usage_by_role[role] = state.usage_by_role.get(role, Usage()).plus(usage)
    state.usage_by_phase[phase] = state.usage_by_phase.get(phase, Usage()).plus(usage)


def account_failure(state: ResearchState, role: str, answer: str, usage: Usage, phase: str | None = None) -> None:
    """Add what an unusable answer cost, unless it is told again.

    An operation that was cut off is asked again when the run is resumed, and its stored answer is told once more.
    """
    if answer in state.paid_failures or usage == Usage():
        return
    account(state, role, usage, phase)
    state.paid_failures = [*state.paid_failures, answer][-MOST_PAID_FAILURES:]


def answer_key(operation: str, request: Contract) -> str:
    """Names the answer to this very request of an operation; how long it may take does not decide an answer."""
    content = request.model_dump_json(exclude={"time_limit_seconds"})
    return f"{operation}:{short_hash(content)}"


def forget_failures(state: ResearchState, operation: str) -> None:
    """The operation is finished: it is never asked again, so its unusable answers are not told again."""
    prefixes = (f"{operation}:", f"{operation}/repair:")
    state.paid_failures = [item for item in state.paid_failures if not item.startswith(prefixes)]
