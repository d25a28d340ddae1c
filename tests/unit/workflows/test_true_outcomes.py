"""Outcomes that are true: what was read is used, and what was not done is named."""

from typing import Any

import pytest

from contracts.vocabulary import Outcome, StopReason
from tests.fakes import states
from tests.unit.workflows.test_supervisor_strategy import QUESTION
from workflows.rules.endings import limitations_of, outcome_of


@pytest.mark.parametrize(
    "fault",
    [{"characters": 50}, {"has_headings": False}, {"unresolved_markers": ["ev-unknown"]}, {"evidence_ids": []}],
    ids=["short", "no headings", "removed citation", "no citation"],
)
def test_a_report_that_fails_its_check_is_not_completed(fault: dict[str, Any]) -> None:
    """However often it was written: the run is partial, and the limitations say why (C0-24)."""
    query = states.sub_query("a question of the plan", finding_count=1)
    made = states.state(plan=states.plan(query), findings=[states.finding("an answer")], draft=states.draft())
    assert outcome_of(QUESTION, made, StopReason.NO_OPEN_GAPS) is Outcome.COMPLETED
    made.draft = states.draft(**fault)
    assert outcome_of(QUESTION, made, StopReason.NO_OPEN_GAPS) is Outcome.PARTIAL
    lines = limitations_of(QUESTION, made, StopReason.NO_OPEN_GAPS)
    assert any(line.startswith("The report did not pass its check: ") for line in lines)
