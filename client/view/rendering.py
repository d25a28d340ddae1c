"""From the live view to what a terminal shows, and to plain lines where there is none."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from client.view.live_view import LiveView, PhaseLine, TaskLine, task_progress
from contracts.outcome import ResearchResult, ResearchStatus
from contracts.progress import Mark
from contracts.usage import Usage
from contracts.vocabulary import Outcome

SIGNS: Final = {Mark.WAITING: "○", Mark.RUNNING: "▸", Mark.DONE: "✔", Mark.FAILED: "✖"}
STYLES: Final = {Mark.WAITING: "dim", Mark.RUNNING: "bold cyan", Mark.DONE: "green", Mark.FAILED: "red"}
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
    elapsed_seconds: float = 0.0
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
    """What the run has cost so far, in words."""
    usage = status.usage
    cost = _cost(usage)
    if status.engine == "extractive" and not usage.model_calls:
        return f"{cost} (no model)" if usage.known_cost_usd or usage.cost_usd is None else "cost 0.00 (no model)"
    calls = plural(usage.model_calls, "model call")
    return f"{calls} · {usage.tokens:,} tokens · {cost}"


def _cost(usage: Usage) -> str:
    """The cost as far as it is known."""
    if usage.cost_usd is not None:
        return f"cost {usage.cost_usd:.2f} USD"
    known = usage.known_cost_usd
    return f"cost {known:.2f} USD and what has no known price" if known else "cost unknown"


def plural(count: int, noun: str) -> str:
    """`1 gap`, `2 gaps`, `3 sub-queries`."""
    many = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else many}"


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
    if waiting and not view.finished:
        rows.append(Text("   ".join(f"○ {line.label}" for line in waiting), style="dim"))
    rows.append(Text())
    rows.extend(_remarks(view))
    if frame.notice:
        rows.append(Text(printable(frame.notice), style="bold yellow"))
    if frame.hint:
        rows.append(_cut(Text(frame.hint, style="dim")))
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
    if result.outcome is not Outcome.COMPLETED:
        parts.append(result.stop_reason.value.replace("_", " "))
    return Text(" · ".join(parts), style=OUTCOME_STYLES.get(result.outcome, "bold red"))


def _took(result: ResearchResult) -> str:
    seconds = result.usage.active_seconds
    return f"{seconds:.0f} s" if seconds < 120 else duration(seconds)


def _heading(frame: Frame) -> RenderableType:
    grid = Table.grid(expand=True)
    grid.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    grid.add_column(justify="right", no_wrap=True)
    grid.add_row(Text(printable(frame.question), style="bold"), Text(frame.research_id, style="dim"))
    return grid


def _about(view: LiveView, frame: Frame) -> list[Text]:
    status = view.status
    if status is None:
        return [Text(f"{duration(frame.elapsed_seconds)} · waiting for the first answer of a worker", style="dim")]
    corpus = f"corpus {status.corpus}" if status.corpus else ""
    if corpus and status.counts.documents_searched is not None:
        corpus += f" ({plural(status.counts.documents_searched, 'document')})"
    kind = " · ".join(part for part in (status.strategy, status.engine, corpus, status.egress) if part)
    limit = f" of {duration(status.deadline_seconds)}" if status.deadline_seconds else ""
    clock = f"{duration(frame.elapsed_seconds)}{limit}"
    used = money(status) if status.engine else ""  # unknown until the run is resolved
    run = Text("   ·   ".join(part for part in (clock, used) if part), style="dim")
    if frame.web_address:
        # The whole address is long; a terminal that knows links opens it, elsewhere the front page is a step away.
        front = "/".join(frame.web_address.split("/")[:3])
        run.append("   ·   web UI ").append(front, f"link {frame.web_address}")
    return [_cut(Text(printable(kind), style="dim")), _cut(run)]


def _phase(line: PhaseLine, view: LiveView) -> RenderableType:
    label = Text(f"{SIGNS[line.mark]} {line.label:<{LABEL_WIDTH}}", style=STYLES[line.mark])
    detail = line.detail
    if line.mark is Mark.RUNNING:
        settled, total = task_progress(view)
        of_all = f"{settled} of {total}" if line.phase == view.tasks_phase and total else ""
        detail = " · ".join(part for part in (f"iteration {line.iteration}", of_all, detail) if part)
    grid = Table.grid(expand=True, padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    grid.add_column(justify="right", no_wrap=True)
    gate = Text(f"gate {line.gate}" if line.gate else "", style="green" if line.gate_valid else "yellow")
    if line.seconds is not None:
        gate.append(f"   {line.seconds:.1f} s", style="dim")
    grid.add_row(label, Text(printable(detail)), gate)
    return grid


def _task(task: TaskLine) -> RenderableType:
    grid = Table.grid(expand=True, padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(ratio=3, no_wrap=True, overflow="ellipsis")
    grid.add_column(ratio=2, no_wrap=True, overflow="ellipsis")
    sign = Text(f"    {SIGNS[task.mark]}", style=STYLES[task.mark])
    grid.add_row(sign, Text(printable(task.text)), Text(printable(task.detail), style="dim"))
    return grid


def _remarks(view: LiveView) -> list[Text]:
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
    if view.sources or view.findings:
        amount = [plural(view.sources, "source"), plural(view.findings, "finding"), plural(view.gaps, "open gap")]
        remarks.insert(0, ("so far", " · ".join(amount), ""))
    return [
        _cut(Text(f"{label + ':':<{REMARK_WIDTH}}").append(printable(text), style)) for label, text, style in remarks
    ]


def _speaker(origin: str) -> str:
    return "you" if origin == "person" else "supervisor"


def _cut(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ellipsis"
    return text
