"""Draw the status of a run for a terminal: units of work, agents, calls under way, newest events, and the end."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from client.view.words import (
    agent_words,
    duration,
    elapsed_at,
    ending_words,
    printable,
    usage_words,
    waits_of,
)
from contracts.outcome import AgentProgress, Mark, ResearchResult, ResearchStatus, UnitProgress
from contracts.texts import plural
from contracts.vocabulary import AgentStatus, Outcome

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


@dataclass(frozen=True)
class Frame:
    """The surroundings of a live view."""

    research_id: str
    question: str
    web_address: str | None = None
    notice: str = ""
    """A message of the watcher itself: the server is being restarted, the run is being cancelled."""
    hint: str = ""


def one_line(text: Text) -> Text:
    """Have a text cut at the width of the terminal."""
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def render_live(status: ResearchStatus | None, news: Sequence[str], frame: Frame, now: datetime) -> RenderableType:
    """Draw the whole live view; `news` are the newest lines of the log."""
    rows: list[RenderableType] = [_columns((Text(printable(frame.question), "bold"), Text(frame.research_id, "dim")))]
    if status is None:
        rows.append(Text("waiting for the first answer of a worker", style="dim"))
    else:
        rows += [*_about(status, frame, now), Text(), *_units(status), *map(_agent, status.agents)]
        rows += [Text(), *_remarks(status, now)]
    rows += [one_line(Text(line, style="dim")) for line in news]
    if frame.notice:
        rows.append(one_line(Text(printable(frame.notice), style="bold yellow")))
    if frame.hint:
        rows.append(Text(printable(frame.hint), style="dim"))
    return Group(*rows)


def render_ending(result: ResearchResult) -> Text:
    """Draw the end of a run in one line."""
    sign, style = ENDINGS.get(result.outcome, ("✖", "bold red"))
    return Text(f"{sign} {ending_words(result)}", style=style)


def _about(status: ResearchStatus, frame: Frame, now: datetime) -> list[RenderableType]:
    """Draw what runs where, and how much time and money it has used."""
    corpus = f"corpus {status.corpus}" if status.corpus else ""
    if corpus and status.counts.documents_searched is not None:
        corpus += f" ({plural(status.counts.documents_searched, 'document')})"
    kind = " · ".join(part for part in (status.strategy, status.engine, corpus, status.egress) if part)
    clock = duration(elapsed_at(status, now))
    if status.deadline_seconds:
        clock += f" of {duration(status.deadline_seconds)}"
    used = Text(clock + (f"   ·   {usage_words(status)}" if status.engine else ""), style="dim")
    if frame.web_address:
        # The whole address is long: a terminal that knows links opens it, elsewhere the front page is a step away.
        front = "/".join(frame.web_address.split("/")[:3])
        used.append("   ·   web UI ").append(front, f"link {frame.web_address}")
    return [one_line(Text(printable(kind), style="dim")), one_line(used)]


def _units(status: ResearchStatus) -> list[RenderableType]:
    """Draw the units of the strategy: a line each, and those to come on one line."""
    to_come = [unit for unit in status.progress.units if unit.mark is Mark.WAITING]
    lines = [_unit(unit, status) for unit in status.progress.units if unit.mark is not Mark.WAITING]
    if to_come and status.outcome is None:
        lines.append(one_line(Text("   ".join(f"○ {unit.label}" for unit in to_come), style="dim")))
    return lines


def _unit(unit: UnitProgress, status: ResearchStatus) -> RenderableType:
    parts = [unit.detail]
    if unit.mark is Mark.RUNNING and status.max_iterations > 1:
        parts.insert(0, f"iteration {status.iteration} of {status.max_iterations}")
    detail = " · ".join(part for part in parts if part)
    return _columns((Text(f"{SIGNS[unit.mark]} {unit.label:<9} {printable(detail)}", STYLES[unit.mark]), Text()))


def _agent(agent: AgentProgress) -> RenderableType:
    mark = AGENT_MARKS[agent.status]
    task = Text(f"    {SIGNS[mark]} {agent.id}  ", STYLES[mark]).append(printable(agent.task), "default")
    return _columns((task, Text(agent_words(agent), "dim")))


def _columns(cells: tuple[Text, Text]) -> RenderableType:
    """Draw a text that may be cut, and one at the right margin that is not."""
    grid = Table.grid(expand=True, padding=(0, 1, 0, 0))
    grid.add_column(ratio=1)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_row(one_line(cells[0]), cells[1])
    return grid


def _remarks(status: ResearchStatus, now: datetime) -> list[RenderableType]:
    """Draw open questions and calls, figures so far, and the last failure."""
    remarks: list[tuple[str, str, str]] = []
    waiting = status.waiting if status.outcome is None else None
    if waiting is not None:
        remarks.append(("waiting for", f"{waiting.describe()}: {waiting.ways(status.research_id)[0]}", "bold yellow"))
        remarks += [("", question, "yellow") for question in waiting.questions]
    waits = waits_of(status, now)
    remarks += [("waiting for" if not place else "", wait, "cyan") for place, wait in enumerate(waits[:SHOWN_WAITS])]
    if len(waits) > SHOWN_WAITS:
        remarks.append(("", f"and {len(waits) - SHOWN_WAITS} more", "cyan"))
    counts = status.counts
    if counts.sources or counts.findings:
        found = (
            plural(counts.sources, "source"),
            plural(counts.findings, "finding"),
            plural(counts.gaps_open, "open gap"),
        )
        remarks.append(("so far", " · ".join(found), ""))
    if status.last_failure:
        remarks.append(("failed", status.last_failure, "red"))
    return [
        one_line(Text(f"{label + ':' if label else '':<12} ").append(printable(text), style))
        for label, text, style in remarks
    ]
