"""From events to the lines of a log: what tells a person something, each thing once."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from client.view.decision_wording import decision_words, text_of
from client.view.live_view import LiveView, elapsed_at, waits_at
from client.view.rendering import duration, printable, waits_words
from contracts.outcome import Event
from contracts.texts import plural, shorten
from contracts.vocabulary import NATURAL_STOPS, Outcome

SILENT_SECONDS: Final = 10.0
"""After so long without news a line says where the run stands."""
SILENT_SECONDS_OF_WAITS: Final = 600.0
"""The same while a person is waited for, which may take days: the clock of the run stands still."""
LONGEST_LINE: Final = 240
LONGEST_STATEMENT: Final = 199
"""An event has 200 signs of a statement, wherever they end."""
AND_MORE: Final = re.compile(r" \(and \d+ more\)$")


@dataclass
class PlainLines:
    """Chooses and words the lines; remembers what was said since the phase began."""

    _said: set[str] = field(default_factory=set)

    def of(self, events: Iterable[Event]) -> list[str]:
        """The lines of these events, with the clock time of this machine in front."""
        lines = []
        for event in events:
            if event.type == "phase.started":
                self._said.clear()
            words = shorten(printable(words_of(event)), LONGEST_LINE)
            thing = AND_MORE.sub("", words)
            if words and thing not in self._said:
                self._said.add(thing)
                lines.append(f"{local_clock(event.time)} {words}".lstrip())
        return lines


def words_of(event: Event) -> str:
    """What an event tells a person; nothing for one that repeats another. An unknown event speaks for itself."""
    wording = WORDINGS.get(event.type)
    return (event.text or event.type) if wording is None else wording(event)


def describe_standing(view: LiveView, clock: datetime) -> str:
    """Where a run stands, for a line after a while without news."""
    status = view.status
    if status is None:
        return f"{clock:%H:%M:%S} waiting for the first answer of a worker"
    phase = status.phase or status.status.value
    if status.waiting is not None:
        way = status.waiting.ways(status.research_id)[0]
        return f"{clock:%H:%M:%S} … waiting for {printable(status.waiting.describe())}: {way}"
    parts = [f"{phase}, {duration(elapsed_at(status, clock))} of {duration(status.deadline_seconds)}"]
    parts += [plural(status.counts.sources, "source"), plural(status.counts.findings, "finding")]
    if status.usage.model_calls:
        parts.append(plural(status.usage.model_calls, "model call"))
    if waits := waits_at(status, clock):
        parts.append(f"waiting for {waits_words(waits)}")
    return f"{clock:%H:%M:%S} … {' · '.join(map(printable, parts))}"


def local_clock(time: str) -> str:
    """`10:11:12` in the time zone of this machine; nothing for an event without a time."""
    try:
        return f"{datetime.fromisoformat(time).astimezone():%H:%M:%S}"
    except ValueError:
        return ""


def _phase_finished(event: Event) -> str:
    summary = text_of(event, "summary")
    return f"{text_of(event, 'phase')} done: {summary}" if summary else event.text


def _decision(event: Event) -> str:
    words = decision_words(event)
    return f"{text_of(event, 'agent')}: {words}" if words else ""


def _gate(event: Event) -> str:
    """What a gate asks for is news; its points are no verdict, and are left out."""
    issues = event.data.get("issues")
    if event.data.get("valid", True):
        return ""
    if not isinstance(issues, list):
        return event.text
    if not issues:
        return ""
    return f"quality check of the {text_of(event, 'phase') or 'phase'}: {'; '.join(map(str, issues))}"


def _guidance(event: Event) -> str:
    """What the rules ask for, the gate has said already."""
    return "" if text_of(event, "origin") == "rules" else event.text


def _task_finished(event: Event) -> str:
    return event.text if event.data.get("error") else ""


def _finding(event: Event) -> str:
    statement, count = text_of(event, "statement"), event.data.get("count")
    if not statement:
        return event.text
    more = f" (and {count - 1} more)" if isinstance(count, int) and count > 1 else ""
    return f"finding: {shorten(statement, LONGEST_STATEMENT)}{more}"


def _status(event: Event) -> str:
    """A remark on a single search is told by its reads; warnings and changes of gaps are news."""
    return "" if "found" in event.data else event.text


def _finished(event: Event) -> str:
    """A partial run that did all its work lacks something: that no gap is open would say the contrary."""
    outcome, _, reason = event.text.partition(": ")
    if outcome == Outcome.PARTIAL and reason in NATURAL_STOPS:
        return "partial: the report says what it lacks"
    return event.text.replace("_", " ")


def _silent(event: Event) -> str:
    del event
    return ""


WORDINGS: Final[dict[str, Callable[[Event], str]]] = {
    "phase.finished": _phase_finished,
    "plan.drafted": _silent,
    # The sum of them is told at the end.
    "claim.verified": _silent,
    "verification.summary": _silent,
    "report.updated": _silent,
    "decision.recorded": _decision,
    "gate.evaluated": _gate,
    "guidance.given": _guidance,
    "task.finished": _task_finished,
    "finding.added": _finding,
    "status": _status,
    "run.finished": _finished,
}
