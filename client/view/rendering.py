"""From the live view to what a terminal shows, and to plain lines where there is none."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from client.run_results import lacks_something
from client.view.live_view import LiveView, PhaseLine, TaskLine, elapsed_at, seconds_left, task_progress, waits_at
from client.view.one_line import OneLine
from contracts.outcome import AgentProgress, Counts, Mark, ResearchResult, ResearchStatus, Usage
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
OUTCOME_STYLES: Final = {
    Outcome.COMPLETED: "bold green",
    Outcome.PARTIAL: "bold yellow",
    Outcome.EMPTY: "bold yellow",
    Outcome.CANCELLED: "bold yellow",
}
OUTCOME_SIGNS: Final = {Outcome.COMPLETED: "✔", Outcome.PARTIAL: "◐", Outcome.EMPTY: "○", Outcome.CANCELLED: "■"}
LABEL_WIDTH: Final = 9
REMARK_WIDTH: Final = 12


@dataclass(frozen=True)
class Frame:
    """What a live view shows beside the run itself."""

    research_id: str
    question: str
    web_address: str | None = None
    now: datetime | None = None
    """The time of this machine, with its zone; None before there is anything to tell of."""
    notice: str = ""
    """What the watcher itself has to say: the server is being restarted, the run is being cancelled."""
    hint: str = ""


def printable(text: str) -> str:
    """One line without control characters: titles and questions are foreign text and must not drive a terminal."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def local_time(time: str) -> str:
    """`2026-11-22 21:16 CET`: the time of this machine, with its zone; nothing for no time."""
    try:
        return f"{datetime.fromisoformat(time).astimezone():%Y-%m-%d %H:%M %Z}"
    except ValueError:
        return ""


def duration(seconds: float) -> str:
    """`0:07`, `12:30`, `1:05:00`."""
    minutes, rest = divmod(int(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def money(status: ResearchStatus) -> str:
    """What the run has cost so far, and what it may cost at most, in words."""
    usage = status.usage
    cap = status.limits.max_cost_usd if status.limits else None
    cost = _cost(usage) + (f" of at most {cap:.2f}" if cap is not None and usage.known_cost_usd else "")
    if status.engine == "extractive" and not usage.model_calls:
        return f"{cost} (no model)" if usage.known_cost_usd or usage.cost_usd is None else "cost 0.00 (no model)"
    calls = plural(usage.model_calls, "model call")
    return f"{calls} · {usage.tokens:,} tokens · {cost}"


def queue_words(status: ResearchStatus) -> str:
    """The place of a run that waits for its turn; empty for one that goes on."""
    if status.queue_place is None:
        return ""
    return f"queued: place {status.queue_place} of {status.queue_length}; its clock starts when it begins"


def _cost(usage: Usage) -> str:
    """The cost as far as it is known."""
    if usage.cost_usd is not None:
        return f"cost {usage.cost_usd:.2f} USD"
    known = usage.known_cost_usd
    return f"cost {known:.2f} USD and what has no known price" if known else "cost unknown"


def render_live(view: LiveView, frame: Frame) -> RenderableType:
    """The whole live view."""
    rows: list[RenderableType] = [_heading(frame), *_about(view, frame), Text()]
    waiting: list[PhaseLine] = []
    for line in view.phases:
        if line.mark is Mark.WAITING:
            waiting.append(line)
            continue
        rows.append(_phase(line, view))
        if line.phase == view.tasks_phase:
            rows.extend(_task(task) for task in view.tasks)
    rows.extend(_agent(agent) for agent in (view.status.agents if view.status and not view.finished else ()))
    if waiting and not view.finished:
        rows.append(OneLine(Text("   ".join(f"○ {line.label}" for line in waiting), style="dim")))
    rows.append(Text())
    rows.extend(_remarks(view, frame))
    if frame.notice:
        rows.append(OneLine(Text(printable(frame.notice), style="bold yellow")))
    if frame.hint:
        rows.append(OneLine(Text(frame.hint, style="dim")))
    return Group(*rows)


def render_ending(result: ResearchResult) -> Text:
    """How the run ended, in one line."""
    counts, sign = result.counts, OUTCOME_SIGNS.get(result.outcome, "✖")
    took = f" in {_took(result)}" if result.usage.active_seconds else ""
    parts = [f"{sign} {result.outcome.value.replace('_', ' ')}{took}"]
    if result.outcome in (Outcome.COMPLETED, Outcome.PARTIAL):
        parts += [
            f"{plural(counts.sources_cited, 'source')} cited",
            f"{plural(counts.passages_cited, 'passage')} quoted",
        ]
        parts.append(f"{plural(counts.gaps_open, 'gap')} stated")
    if result.outcome is Outcome.EMPTY:
        documents = counts.documents_searched
        parts.append("nothing answers" if documents is None else f"nothing answers in {plural(documents, 'document')}")
    if result.outcome is not Outcome.COMPLETED and not lacks_something(result):
        parts.append(result.stop_reason.value.replace("_", " "))
    return Text(" · ".join(parts), style=OUTCOME_STYLES.get(result.outcome, "bold red"))


def _took(result: ResearchResult) -> str:
    seconds = result.usage.active_seconds
    return f"{seconds:.0f} s" if seconds < 120 else duration(seconds)


def _heading(frame: Frame) -> RenderableType:
    grid = Table.grid(expand=True)
    grid.add_column(ratio=1)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_row(OneLine(Text(printable(frame.question), style="bold")), Text(f" {frame.research_id}", style="dim"))
    return grid


def _about(view: LiveView, frame: Frame) -> list[RenderableType]:
    status = view.status
    if status is None:
        return [Text("waiting for the first answer of a worker", style="dim")]
    elapsed = status.elapsed_seconds if frame.now is None else elapsed_at(status, frame.now)
    corpus = f"corpus {status.corpus}" if status.corpus else ""
    if corpus and status.counts.documents_searched is not None:
        corpus += f" ({plural(status.counts.documents_searched, 'document')})"
    kind = " · ".join(part for part in (status.strategy, status.engine, corpus, status.egress) if part)
    limit = f" of {duration(status.deadline_seconds)}" if status.deadline_seconds else ""
    clock = f"{duration(elapsed)}{limit}"
    left = seconds_left(view, elapsed)
    if left is not None:
        clock += f", about {rough(left)} left (an estimate)"
    used = money(status) if status.engine else ""  # unknown until the run is resolved
    run = Text("   ·   ".join(part for part in (clock, used) if part), style="dim")
    if frame.web_address:
        # The whole address is long; a terminal that knows links opens it, elsewhere the front page is a step away.
        front = "/".join(frame.web_address.split("/")[:3])
        run.append("   ·   web UI ").append(front, f"link {frame.web_address}")
    return [OneLine(Text(printable(kind), style="dim")), OneLine(run)]


def _phase(line: PhaseLine, view: LiveView) -> RenderableType:
    label = Text(f"{SIGNS[line.mark]} {line.label:<{LABEL_WIDTH}}", style=STYLES[line.mark])
    detail = line.detail
    if line.mark is Mark.RUNNING:
        settled, total = task_progress(view)
        of_all = f"{settled} of {total}" if line.phase == view.tasks_phase and total else ""
        detail = " · ".join(part for part in (f"iteration {line.iteration}", of_all, detail) if part)
    grid = Table.grid(expand=True, padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(ratio=1)
    grid.add_column(justify="right", no_wrap=True)
    gate = Text(f"gate {line.gate}" if line.gate else "", style="green" if line.gate_valid else "yellow")
    if line.seconds is not None:
        gate.append(f"   {line.seconds:.1f} s", style="dim")
    grid.add_row(label, OneLine(Text(printable(detail))), gate)
    return grid


def _task(task: TaskLine) -> RenderableType:
    grid = Table.grid(expand=True, padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(ratio=3)
    grid.add_column(ratio=2)
    sign = Text(f"    {SIGNS[task.mark]}", style=STYLES[task.mark])
    grid.add_row(sign, OneLine(Text(printable(task.text))), OneLine(Text(printable(task.detail), style="dim")))
    return grid


def agent_words(agent: AgentProgress) -> str:
    """What an agent does or has brought, in one line: `running, looking · 3 sources · 5 findings`."""
    stands = agent.status.value.replace("_", " ") + (f", {agent.phase}" if agent.phase else "")
    amount = [plural(agent.counts.sources, "source"), plural(agent.counts.findings, "finding")]
    told = amount if agent.counts.sources or agent.counts.findings else []
    return " · ".join([stands, *told, *([printable(agent.problem)] if agent.problem else [])])


def _agent(agent: AgentProgress) -> RenderableType:
    mark = AGENT_MARKS[agent.status]
    grid = Table.grid(expand=True, padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(ratio=3)
    grid.add_column(ratio=2)
    sign = Text(f"    {SIGNS[mark]} {agent.id}", style=STYLES[mark])
    detail = OneLine(Text(agent_words(agent), style="dim"))
    grid.add_row(sign, OneLine(Text(printable(agent.task))), detail)
    return grid


def _remarks(view: LiveView, frame: Frame) -> list[RenderableType]:
    remarks: list[tuple[str, str, str]] = []
    if view.guidance:
        remarks.append((_speaker(view.guidance_origin), view.guidance, "italic"))
    elif view.decision:
        remarks.append((view.decision_agent or "supervisor", view.decision, "italic"))
    remarks += [
        (label, text, style)
        for label, text, style in (
            ("newest", view.newest, ""),
            ("skipped", view.skipped, "yellow"),
            ("warning", view.warning, "yellow"),
            ("failed", view.failure, "red"),
        )
        if text
    ]
    counts = view.status.counts if view.status else Counts()
    if counts.sources or counts.findings:
        amount = [
            plural(counts.sources, "source"),
            plural(counts.findings, "finding"),
            plural(counts.gaps_open, "open gap"),
        ]
        remarks.insert(0, ("so far", " · ".join(amount), ""))
    asked = view.status.waiting if view.status and not view.finished else None
    if asked is not None and view.status is not None:
        ways = asked.ways(view.status.research_id)
        remarks.insert(0, ("waiting for", f"{asked.describe()}: {ways[0]}", "bold yellow"))
        remarks[1:1] = [("", question, "yellow") for question in asked.questions]
    waits = waits_at(view.status, frame.now) if view.status and frame.now and not view.finished else []
    if waits:
        remarks.insert(0, ("waiting for", waits_words(waits), "cyan"))
    return [
        OneLine(Text(f"{label + ':' if label else '':<{REMARK_WIDTH}} ").append(printable(text), style))
        for label, text, style in remarks
    ]


def waits_words(waits: Sequence[tuple[str, float]]) -> str:
    """The longest wait, and how many others there are."""
    what, seconds = waits[0]
    more = f" (and {len(waits) - 1} more)" if len(waits) > 1 else ""
    return f"{duration(seconds)} {what}{more}"


def rough(seconds: float) -> str:
    """`40 s`, `3 min`, `2 h`: as exact as an estimate is."""
    if seconds < 90:
        return f"{max(10, round(seconds, -1)):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5_400 else f"{seconds / 3_600:.0f} h"


def _speaker(origin: str) -> str:
    return "you" if origin == "person" else "supervisor"
