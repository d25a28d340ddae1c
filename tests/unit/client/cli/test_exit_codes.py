"""Exit codes."""

import pytest

from client.cli.command_errors import exit_code
from contracts.vocabulary import Outcome, StopReason


@pytest.mark.parametrize(
    ("outcome", "reason", "code"),
    [
        (Outcome.COMPLETED, StopReason.NO_OPEN_GAPS, 0),
        (Outcome.PARTIAL, StopReason.USER_STOPPED, 3),
        (Outcome.FAILED, StopReason.PROVIDER_OUTAGE, 4),
        (Outcome.CANCELLED, StopReason.USER_CANCELLED, 5),
        (Outcome.TIMED_OUT, StopReason.BUDGET_TIME, 6),
        (Outcome.EMPTY, StopReason.NO_EVIDENCE, 8),
        (Outcome.REFUSED, StopReason.INVALID_INPUT, 2),
        (Outcome.REFUSED, StopReason.NO_PROVIDERS, 7),
        (Outcome.REFUSED, StopReason.INTERNAL_ERROR, 4),
    ],
)
def test_each_ending_has_its_code(outcome: Outcome, reason: StopReason, code: int) -> None:
    """Scripts rely on these numbers (interfaces, section 2)."""
    assert exit_code(outcome, reason) == code


@pytest.mark.parametrize("outcome", Outcome)
@pytest.mark.parametrize("reason", StopReason)
def test_no_ending_is_without_a_code(outcome: Outcome, reason: StopReason) -> None:
    """Only a completed run is a success."""
    assert (exit_code(outcome, reason) == 0) == (outcome is Outcome.COMPLETED)
