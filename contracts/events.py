"""Progress events: a bounded ring in the workflow, read by the query `events(after)`."""

from typing import Any

from contracts.base import Contract


class Event(Contract):
    """One thing that happened, for those who watch."""

    seq: int
    type: str
    """Dotted name of C.7: `phase.started`, `source.added`, `gate.evaluated`, …"""
    time: str
    text: str = ""
    """One line for a person."""
    data: dict[str, Any] = {}


class EventPage(Contract):
    """Answer of the query `events(after)`: at most 200 events and the cursor for the next call."""

    events: list[Event] = []
    next: int = 0
