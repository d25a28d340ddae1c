"""Draw the status of a run, for the live view and for `status`: a line for each fact, and one for its end."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from rich.console import Group, RenderableType
from rich.text import Text

from client.view.words import (
    agent_words,
    duration,
    elapsed_at,
    ending_words,
    fidelity_words,
    local_time,
    pasteable,
    printable,
    providers_words,
    usage_words,
    waits_of,
)
from contracts.outcome import Mark, ResearchResult, ResearchStatus
from contracts.texts import plural
from contracts.tokens import Band
from contracts.vocabulary import NATURAL_STOPS, AgentStatus, Outcome

SIGNS: Final = {Mark.WAITING: "○", Mark.RUNNING: "▸", Mark.DONE: "✔", Mark.FAILED: "✖"}
STYLES: Final = {Mark.WAITING: "dim", Mark.RUNNING: "bold cyan", Mark.DONE: "green", Mark.FAILED: "red"}
AGENT_MARKS: Final = {
    AgentStatus.QUEUED: Mark.WAITING,
    AgentStatus.RUNNING: Mark.RUNNING,
    AgentStatus.DONE: Mark.DONE,
    AgentStatus.CUT_OFF: Mark.FAILED,
    AgentStatus.FAILED: Mark.FAILED,
}
ENDINGS: Final = {
    Outcome.COMPLETED: ("✔", "bold green"),
    Outcome.PARTIAL: ("◐", "bold yellow"),
    Outcome.EMPTY: ("○", "bold yellow"),
    Outcome.CANCELLED: ("■", "bold yellow"),
}
SHOWN_WAITS: Final = 5  # lines
NOT_LIVE: Final = ("searching", "started", "decided")
"""Lines that the live view has no room for."""


@dataclass(frozen=True)
class Frame:
    """The surroundings of a live view."""

    web_address: str | None = None
    notice: str = ""
    """A message of the watcher itself: the server is being restarted, the run is being cancelled."""
    hint: str = ""


class Row(NamedTuple):
    """A line of a status."""

    label: str
    text: str
    style: str = ""
    sign: str = " "

    def line(self) -> str:
        """Give the line as plain text."""
        return f"{self.sign} {self.label:<10} {printable(self.text)}".rstrip()


def render_live(status: ResearchStatus | None, news: Sequence[str], frame: Frame, now: datetime) -> RenderableType:
    """Draw the whole live view; `news` are the newest lines of the log."""
    if status is None:
        rows = [Row("", "waiting for the first answer of a worker", "dim")]
    else:
        hidden = NOT_LIVE if _is_shortened(status) else (*NOT_LIVE, "shown")
        rows = [row for row in status_rows(status, now) if row.label not in hidden]
    if frame.web_address:
        rows.append(Row("web UI", frame.web_address, "dim"))
    lines = [(row.line(), row.style) for row in rows]
    lines += [(line, "dim") for line in news]
    lines += [(printable(frame.notice), "bold yellow")] if frame.notice else []
    drawn = [Text(line, style=style, no_wrap=True, overflow="ellipsis") for line, style in lines]
    return Group(*drawn, *([Text(printable(frame.hint), style="dim")] if frame.hint else []))  # commands stay whole


def _is_shortened(status: ResearchStatus) -> bool:
    return status.fidelity is not None and status.fidelity.band is not Band.FULL


def status_rows(status: ResearchStatus, now: datetime) -> list[Row]:
    """Give everything that is known of a run, a line for each fact."""
    begun, counts = status.engine != "", status.counts
    documents = counts.documents_searched
    searched = f" ({plural(documents, 'document')})" if status.corpus and documents is not None else ""
    corpus = f"corpus {status.corpus}{searched}" if status.corpus else ""
    limit = f" of {duration(status.deadline_seconds)}" if status.deadline_seconds else ""
    found = f"{plural(counts.sources, 'source')}, {plural(counts.findings, 'finding')}"
    rows = [
        Row("run", f"{status.research_id}  {status.status.value.replace('_', ' ')}"),
        Row("queued", f"place {status.queue_place} of {status.queue_length}" if status.queue_place else ""),
        Row("question", status.query, "bold"),
        Row("with", " · ".join(filter(None, (status.strategy, status.engine, corpus))) if begun else ""),
        Row("text", status.egress),
        Row("expected", status.estimate),
        Row("searching", providers_words(status.providers) if status.web else ""),
        Row("started", local_time(status.started_at)),
        Row("time", duration(elapsed_at(status, now)) + limit if begun or status.elapsed_seconds else ""),
        Row("used", usage_words(status) if begun else ""),
        Row("shown", fidelity_words(status.fidelity), "yellow" if _is_shortened(status) else ""),
        *_work(status),
        *_waits(status, now),
        Row("found", f"{found}, {plural(counts.gaps_open, 'open gap')}" if begun else ""),
        Row("decided", status.last_decision.replace("_", " ")),
        *(Row("guidance", f"{each.origin}: “{each.text}”") for each in status.guidance),
        Row("failed", status.last_failure, "red"),
        Row("ended", _ended(status)),
    ]
    return [row for row in rows if row.text or row.sign != " "]


def _work(status: ResearchStatus) -> Iterable[Row]:
    """Give a line for each unit of the strategy, and for each agent."""
    for unit in status.progress.units:
        of = f"iteration {status.iteration} of {status.max_iterations}" if status.max_iterations > 1 else ""
        parts = (of if unit.mark is Mark.RUNNING else "", unit.detail)
        yield Row(unit.label, " · ".join(filter(None, parts)), STYLES[unit.mark], SIGNS[unit.mark])
    for level, agent in (each for top in status.agents for each in top.with_all_below()):
        mark, indent = AGENT_MARKS[agent.status], "  " * (level - 1)
        yield Row(f"{indent}{agent.id}", f"{agent_words(agent)}: {agent.task}", STYLES[mark], SIGNS[mark])


def _waits(status: ResearchStatus, now: datetime) -> Iterable[Row]:
    """Give the open question to a person with the commands that answer it, and the calls under way."""
    waiting = status.waiting if status.outcome is None else None
    if waiting is not None:
        yield Row("asked", f"{waiting.describe()}, until {local_time(waiting.expires_at)}", "bold yellow")
        for heading in status.outline:
            yield Row("", f"§ {heading}", "yellow")
        for question in waiting.questions:
            yield Row("", question, "yellow")
        for objection in status.objections:
            yield Row("", f"too wide: {objection.line()}", "yellow")
        if waiting.phrase and not status.objections:  # a narrow terminal cuts the command that ends with it
            yield Row("", f"phrase: {waiting.phrase}", "bold yellow")
        for way in waiting.ways(status.research_id):
            yield Row("", pasteable(way), "yellow")
    waits = waits_of(status, now)
    more = [f"and {len(waits) - SHOWN_WAITS} more"] if len(waits) > SHOWN_WAITS else []
    for place, wait in enumerate([*waits[:SHOWN_WAITS], *more]):
        yield Row("" if place else "waiting", wait, "cyan")


def _ended(status: ResearchStatus) -> str:
    if status.stop_reason is None:
        return ""
    when = f"{local_time(status.ended_at)}: " if status.ended_at else ""
    natural = status.outcome is Outcome.PARTIAL and status.stop_reason in NATURAL_STOPS
    return when + ("see the limitations in the report" if natural else status.stop_reason.text)


def render_ending(result: ResearchResult) -> Text:
    """Draw the end of a run in one line."""
    sign, style = ENDINGS.get(result.outcome, ("✖", "bold red"))
    return Text(f"{sign} {ending_words(result)}", style=style)
