"""What a watcher has seen of a run: events folded into one value. Pure, so that every view shows the same."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from client.view.decision_wording import decision_words, text_of
from contracts.outcome import Event, Mark, ResearchStatus
from contracts.texts import from_markdown

SMALLEST_SHARE: Final = 0.2
"""Of the work: before this much is done no time can be told."""


@dataclass(frozen=True)
class PhaseLine:
    """One unit of the strategy, such as a phase of the current iteration."""

    phase: str
    label: str = ""
    mark: Mark = Mark.WAITING
    iteration: int = 1
    detail: str = ""
    gate: str = ""
    gate_valid: bool = True
    started: str = ""
    seconds: float | None = None


@dataclass(frozen=True)
class TaskLine:
    """One sub-query."""

    id: str
    text: str
    mark: Mark = Mark.RUNNING
    detail: str = ""


@dataclass(frozen=True)
class LiveView:
    """All that a live view shows; `status` is the newest answer of the query of that name."""

    status: ResearchStatus | None = None
    phases: tuple[PhaseLine, ...] = ()
    """The units of the strategy in their order, as far as `status` and events have told."""
    tasks: tuple[TaskLine, ...] = ()
    tasks_phase: str = ""
    """The unit that the tasks belong to."""
    decision: str = ""
    decision_agent: str = ""
    guidance: str = ""
    guidance_origin: str = ""
    newest: str = ""
    newest_is_finding: bool = False
    skipped: str = ""
    failure: str = ""
    warning: str = ""
    finished: str = ""
    cursor: int = 0
    """Sequence number of the last event folded in."""

    @property
    def iteration(self) -> int:
        """The newest iteration that any phase has reached."""
        return max((line.iteration for line in self.phases), default=1)


def fold(view: LiveView, events: Iterable[Event]) -> LiveView:
    """The view after these events; events that were folded before change nothing, unknown types only the cursor."""
    for event in events:
        if event.seq <= view.cursor:
            continue
        step = STEPS.get(event.type)
        view = replace(view if step is None else step(view, event), cursor=event.seq)
    return view


def with_status(view: LiveView, status: ResearchStatus) -> LiveView:
    """The view with a newer status; its failure is shown unless events told a later one."""
    known = {line.phase: line for line in view.phases}
    told = [
        known[unit.name]
        if unit.name in known and known[unit.name].mark is not Mark.WAITING
        else PhaseLine(unit.name, unit.label, unit.mark, status.iteration, unit.detail)
        for unit in status.progress.units
    ]
    names = {unit.name for unit in status.progress.units}
    phases = (*told, *(line for line in view.phases if line.phase not in names))
    return replace(view, status=status, phases=phases, failure=view.failure or status.last_failure)


def task_progress(view: LiveView) -> tuple[int, int]:
    """How many of the sub-queries of this iteration are settled, and how many there are."""
    return sum(task.mark is not Mark.RUNNING for task in view.tasks), len(view.tasks)


def elapsed_at(status: ResearchStatus, now: datetime) -> float:
    """Seconds that a run has worked by now: its own clock stands still between two things that happen in it."""
    if status.outcome is not None or not status.as_of or status.waiting is not None:
        return status.elapsed_seconds
    return status.elapsed_seconds + _since(status.as_of, now)


def waits_at(status: ResearchStatus, now: datetime) -> list[tuple[str, float]]:
    """What a run waits for and for how many seconds by now, the longest wait first."""
    if status.outcome is not None:
        return []
    waits = [(from_markdown(each.what), _since(each.since, now)) for each in status.awaiting]
    return sorted(waits, key=lambda wait: -wait[1])


def seconds_left(view: LiveView, elapsed: float) -> float | None:
    """An estimate of how long a run will still take: as if each unit took as long as those before it.

    None while too little is done to tell. Never more than the deadline leaves.
    """
    status = view.status
    if status is None or status.outcome is not None or not view.phases:
        return None
    settled, total = task_progress(view)
    inside = settled / total if total and any(_runs_tasks(line, view) for line in view.phases) else 0.0
    done = sum(line.mark is Mark.DONE for line in view.phases) + inside
    share = (status.iteration - 1 + done / len(view.phases)) / status.max_iterations
    if share < SMALLEST_SHARE or share >= 1:
        return None
    left = elapsed * (1 - share) / share
    return min(left, max(0.0, status.deadline_seconds - elapsed)) if status.deadline_seconds else left


def _runs_tasks(line: PhaseLine, view: LiveView) -> bool:
    return line.mark is Mark.RUNNING and line.phase == view.tasks_phase


def _since(time: str, now: datetime) -> float:
    """Seconds since an instant; 0 for one that lies ahead, because two clocks never agree."""
    try:
        return max(0.0, (now - datetime.fromisoformat(time)).total_seconds())
    except (ValueError, TypeError):
        return 0.0


def _phase_started(view: LiveView, event: Event) -> LiveView:
    phase = text_of(event, "phase")
    if not phase:
        return view
    iteration = _number(event, "iteration") or _iteration_in(event.text)
    place = next((number for number, line in enumerate(view.phases) if line.phase == phase), len(view.phases))
    label = text_of(event, "label") or (view.phases[place].label if place < len(view.phases) else phase)
    detail = "again" if event.data.get("again") else ""
    again = PhaseLine(phase, label, Mark.RUNNING, iteration, started=event.time, detail=detail)
    later = tuple(PhaseLine(line.phase, line.label, iteration=iteration) for line in view.phases[place + 1 :])
    tasks = () if phase == view.tasks_phase else view.tasks
    return replace(view, phases=(*view.phases[:place], again, *later), tasks=tasks)


def _phase_finished(view: LiveView, event: Event) -> LiveView:
    def finish(line: PhaseLine) -> PhaseLine:
        seconds = _seconds_between(line.started, event.time)
        return replace(line, mark=Mark.DONE, detail=text_of(event, "summary") or event.text, seconds=seconds)

    return _on_phase(view, event, finish)


def _gate(view: LiveView, event: Event) -> LiveView:
    score, valid = event.data.get("score"), bool(event.data.get("valid", True))
    shown = f"{round(score, 1):g}/10" if isinstance(score, int | float) else ""
    if not valid:
        issues = event.data.get("issues")
        shown = f"failed: {issues[0]}" if isinstance(issues, list) and issues else "failed"
    return _on_phase(view, event, lambda line: replace(line, gate=shown, gate_valid=valid))


def _task(mark: Mark, detail: Callable[[Event], str]) -> "Step":
    def step(view: LiveView, event: Event) -> LiveView:
        name = text_of(event, "sub_query_id") or event.text
        known = next((task for task in view.tasks if task.id == name), None)
        text = text_of(event, "text") or (known.text if known else event.text)
        line = TaskLine(name, text, mark, detail(event))
        if known is None:
            running = next((each.phase for each in view.phases if each.mark is Mark.RUNNING), view.tasks_phase)
            earlier = view.tasks if running == view.tasks_phase else ()
            return replace(view, tasks=(*earlier, line), tasks_phase=running)
        return replace(view, tasks=tuple(line if task is known else task for task in view.tasks))

    return step


def _task_failed(view: LiveView, event: Event) -> LiveView:
    marked = _task(Mark.FAILED, lambda failed: text_of(failed, "error") or failed.text)(view, event)
    return replace(marked, failure=event.text or text_of(event, "error"))


def _describe_found(event: Event) -> str:
    parts = [f"{count} {key}" for key in ("found", "new") if (count := _number(event, key)) is not None]
    if duplicates := _number(event, "duplicates"):
        parts.append("1 duplicate" if duplicates == 1 else f"{duplicates} duplicates")
    return " · ".join(parts) or event.text


def _source_added(view: LiveView, event: Event) -> LiveView:
    found = view.newest if view.newest_is_finding else f"read: {text_of(event, 'title') or event.text}"
    return replace(view, newest=found)


def _source_failed(view: LiveView, event: Event) -> LiveView:
    title, kind = text_of(event, "title"), text_of(event, "kind")
    return replace(view, skipped=f"{title} ({kind})" if title and kind else event.text)


def _finding_added(view: LiveView, event: Event) -> LiveView:
    return replace(view, newest=text_of(event, "statement") or event.text, newest_is_finding=True)


def _decision(view: LiveView, event: Event) -> LiveView:
    words = decision_words(event)
    return replace(view, decision=words, decision_agent=text_of(event, "agent")) if words else view


def _guidance(view: LiveView, event: Event) -> LiveView:
    origin = text_of(event, "origin")
    return replace(view, guidance=event.text.removeprefix(f"{origin}: "), guidance_origin=origin)


def _status(view: LiveView, event: Event) -> LiveView:
    return replace(view, warning=event.text) if text_of(event, "level") in ("warning", "error") else view


def _finish(view: LiveView, event: Event) -> LiveView:
    phases = tuple(replace(line, mark=Mark.FAILED) if line.mark is Mark.RUNNING else line for line in view.phases)
    return replace(view, finished=text_of(event, "outcome") or event.text, phases=phases)


Step = Callable[[LiveView, Event], LiveView]
STEPS: Final[dict[str, Step]] = {
    "phase.started": _phase_started,
    "phase.finished": _phase_finished,
    "gate.evaluated": _gate,
    "decision.recorded": _decision,
    "task.started": _task(Mark.RUNNING, lambda _: ""),
    "task.finished": _task(Mark.DONE, _describe_found),
    "task.failed": _task_failed,
    "source.added": _source_added,
    "source.failed": _source_failed,
    "finding.added": _finding_added,
    "budget.warning": lambda view, event: replace(view, warning=event.text),
    "guidance.given": _guidance,
    "status": _status,
    "run.finished": _finish,
}


def _on_phase(view: LiveView, event: Event, change: Callable[[PhaseLine], PhaseLine]) -> LiveView:
    phase = text_of(event, "phase")
    return replace(view, phases=tuple(change(line) if line.phase == phase else line for line in view.phases))


def _iteration_in(text: str) -> int:
    """The number at the end of "gathering, iteration 2"; 1 without one."""
    number = text.rpartition(" ")[2]
    return int(number) if number.isdecimal() else 1


def _number(event: Event, key: str) -> int | None:
    value = event.data.get(key)
    return int(value) if isinstance(value, int | float) else None


def _seconds_between(start: str, end: str) -> float | None:
    try:
        return max(0.0, (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds())
    except (ValueError, TypeError):
        return None
