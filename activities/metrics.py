"""Counters of calls, for the metrics of the worker that makes them."""

from typing import Final

from temporalio import activity

CALL_FAILURES: Final = "research_call_failures"
REFUSALS: Final = "research_refusals"
JOURNAL_HITS: Final = "research_journal_hits"

DESCRIPTIONS: Final = {
    CALL_FAILURES: "Attempts that failed, by activity, type, and whether the call was given up",
    REFUSALS: "Calls that a service refused because there were too many, by service",
    JOURNAL_HITS: "Model calls that were answered from the journal and not paid again",
}


def count(name: str, **attributes: str | bool) -> None:
    """Count one; nothing happens outside of an activity."""
    if activity.in_activity():
        activity.metric_meter().create_counter(name, DESCRIPTIONS[name]).add(1, attributes)
