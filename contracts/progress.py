"""How far a run is, in the terms of its strategy: what status, live view, web UI and report draw."""

from enum import StrEnum
from typing import Any

from contracts.base import Contract


class Mark(StrEnum):
    """How far a unit of work is."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class UnitProgress(Contract):
    """One unit of work: a phase, a step, an agent."""

    name: str
    """As events call it."""
    label: str
    """A verb or noun of at most nine characters, for a narrow column."""
    mark: Mark = Mark.WAITING
    detail: str = ""


class Progress(Contract):
    """The units of the strategy in the order in which they are worked on, and where the run stands in one line."""

    summary: str = ""
    units: list[UnitProgress] = []


class Awaited(Contract):
    """A call that is under way."""

    what: str
    """One line for a person: `analyze: How are backups made?`, as Markdown escapes it."""
    since: str
    """When it was asked for, by the run's clock, ISO 8601."""


class Event(Contract):
    """One thing that happened, for watchers."""

    seq: int
    type: str
    """A dotted name: `phase.started`, `source.added`, `gate.evaluated`, …"""
    time: str
    text: str = ""
    """One line for a person."""
    data: dict[str, Any] = {}


class EventPage(Contract):
    """Answer of the query `events(after)`: at most 200 events and the cursor for the next call."""

    events: list[Event] = []
    next: int = 0
