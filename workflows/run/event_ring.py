"""The ring of events: bounded, in the state, without any cost in history."""

from typing import Any

from contracts.outcome import Event, EventPage
from contracts.state import ResearchState

RING_SIZE = 400
PAGE_SIZE = 200
TEXT_CHARACTERS = 300


def add_event(state: ResearchState, kind: str, time: str, text: str, data: dict[str, Any]) -> Event:
    """Append an event; the oldest leaves when the ring is full."""
    state.event_count += 1
    event = Event(seq=state.event_count, type=kind, time=time, text=text[:TEXT_CHARACTERS], data=data)
    state.events.append(event)
    if len(state.events) > RING_SIZE:
        del state.events[: len(state.events) - RING_SIZE]
    return event


def page_after(state: ResearchState, after: int) -> EventPage:
    """The oldest events after a sequence number, and the cursor for the next call."""
    events = [event for event in state.events if event.seq > after][:PAGE_SIZE]
    return EventPage(events=events, next=events[-1].seq if events else max(after, 0))
