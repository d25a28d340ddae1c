"""Shared parts of strategies that work unit by unit: pauses, events, marks, plan steps, and the report."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from typing import Any, Final, Self, TypeVar

from contracts.addresses import short_hash
from contracts.agents import AgentRecord
from contracts.evidence import ASKED_BY_PERSON, Gap
from contracts.outcome import Mark, Pause, UnitProgress
from contracts.plan import CHOSEN_BY_AGENT, PlanNode
from contracts.state import OpenPause, Position, ResearchState
from contracts.texts import shorten
from contracts.vocabulary import LIMITS, NATURAL_STOPS, Action, EngineKind, NodeKind, Phase, StopReason
from workflows.phases.pauses import call_hook
from workflows.rules.endings import report_issues
from workflows.rules.sub_queries import ENOUGH
from workflows.run.research_run import ResearchRun
from workflows.strategies.protocol import Strategy

T = TypeVar("T")

CALL_A_TOOL: Final = "Nothing was done, because no tool was called. Text alone has no effect: call a tool."


class UnitName(StrEnum):
    """The units of a strategy; a member's second value is an optional short label for live views."""

    label: str

    def __new__(cls, name: str, label: str = "") -> Self:
        """Create a member whose label is its name by default."""
        unit = str.__new__(cls, name)
        unit._value_ = name
        unit.label = label or name
        return unit


class UnitPosition(Position):
    """Base position of strategies that work unit by unit."""

    next_unit: str = ""
    finished: bool = False
    rewritten: bool = False
    """True once the report has had its only retry."""
    skipped: list[str] = []
    """Ids of steps judged unnecessary; a resumed run skips them too."""


class UnitStrategy(Strategy):
    """A strategy whose position names the next unit."""

    position: type[UnitPosition]
    planning: str
    """Name of the planning unit."""

    def __init_subclass__(cls) -> None:
        """Raise TypeError for a position that does not say whose it is."""
        super().__init_subclass__()
        position = vars(cls).get("position")
        if position is not None and not hasattr(position, "NAME"):
            raise TypeError(f"{position.__name__} needs `NAME: ClassVar[str]`, the name of the strategy")

    async def pause(self, run: ResearchRun, opened: OpenPause) -> Pause:
        """Call the hook and move on; a report with issues is retried once if the run has a model."""
        position = self.position.of(run.state)
        name = opened.unit.name
        await call_hook(run, name, f"The unit {name} is done: {self.progress(run.state).summary}")
        if position.next_unit != Phase.SYNTHESIS:
            return await self.move_on(run, name)
        issues = report_issues(run.state)
        if issues and not position.rewritten and run.resolved.engine is EngineKind.MODEL:
            position.rewritten = True
            reasons = "; ".join(issue.message for issue in issues)
            return Pause(phase=name, action=Action.RETRY, rationale=reasons[:500])
        position.finished = True
        return Pause(phase=name, action=Action.COMPLETE)

    @abstractmethod
    async def move_on(self, run: ResearchRun, name: str) -> Pause:
        """Set the next unit, after any but the report, and return the pause between the two."""

    def replan(self, state: ResearchState) -> None:
        """Plan again, with the person's message as guidance."""
        position = self.position.of(state)
        position.next_unit = self.planning
        position.finished = False


async def carry_out(
    run: ResearchRun,
    name: str,
    work: Callable[[ResearchRun], Awaitable[T]],
    summary: Callable[[], str],
    *,
    label: str = "",
    title: str = "",
    **data: Any,
) -> T:
    """Do one unit between its two events, and return the result of `work`. Raises `Interrupted`.

    `label` is the short name for live views, `title` the text of the first event, both the name by default; `data` are
    additional fields of that event.
    """
    run.state.work.phase = name
    run.hooks.enter_phase()
    iteration = run.state.work.iteration
    run.note("phase.started", title or name, phase=name, label=label or name, iteration=iteration, **data)
    result = await work(run)
    run.note("phase.finished", f"{name} done: {summary()}".removesuffix(": "), phase=name, summary=summary())
    return result


def unit_mark(index: int, current: int, *, finished: bool, started: bool) -> Mark:
    """Return the mark of the unit at index `index` while the one at `current` is next."""
    if finished or index < current:
        return Mark.DONE
    if index == current and started:
        return Mark.RUNNING
    return Mark.WAITING


def unit_progress(state: ResearchState, position: UnitPosition, unit: UnitName, summary: str) -> UnitProgress:
    """Return the progress of a unit that occurs once, with its summary once it is done."""
    order = list[str](type(unit))
    index = order.index(unit)
    current = order.index(position.next_unit)
    mark = unit_mark(index, current, finished=position.finished, started=state.work.phase is not None)
    return UnitProgress(name=unit, label=unit.label, mark=mark, detail=summary if mark is Mark.DONE else "")


# --- steps ---------------------------------------------------------------------------------------------------------
def step_node(
    text: str, *, facet: str = "", description: str = "", iteration: int = 1, request: Gap | None = None
) -> PlanNode:
    """Return a step as a node without its own search; `request` is the person's request that it serves, if any."""
    return PlanNode(
        id="step-" + short_hash(iteration, text),
        text=shorten(text, 500),
        kind=NodeKind.STEP,
        needs_search=False,
        facet=facet,
        expected_contribution=shorten(description, 500),
        iteration=iteration,
        origin=f"gap:{request.id}" if request else "plan",
        rationale=shorten(request.description, 300) if request else "",
    )


def unplanned_requests(state: ResearchState) -> list[Gap]:
    """Return the open gaps requested by a person that no step of the plan pursues yet."""
    pursued = {node.gap_id for node in state.work.plan.nodes}
    return [gap for gap in state.evidence.unaddressed_gaps() if gap.origin == ASKED_BY_PERSON and gap.id not in pursued]


def skip_steps(state: ResearchState, position: UnitPosition, steps: Sequence[PlanNode] = ()) -> None:
    """Skip these steps and those skipped before, because the findings answer the question."""
    position.skipped += [step.id for step in steps]
    skipped = [step for step in state.work.plan.steps if step.id in position.skipped]
    state.work.plan = state.work.plan.with_nodes(*(step.skipped(ENOUGH) for step in skipped))


# --- remaining work --------------------------------------------------------------------------------------------------
def planned_queries(state: ResearchState) -> list[PlanNode]:
    """Return the plan's queries that were not added by an agent and need a search, in order."""
    return [query for query in state.work.plan.sub_queries if query.origin != CHOSEN_BY_AGENT and not query.sections]


def is_unfinished(record: AgentRecord | None) -> bool:
    """Return true for an agent with unfinished work: it failed, was cut short, or had a failed branch."""
    result = record.result if record is not None and record.is_over else None
    return result is None or bool(result.is_stub or result.problem or result.failed_branches)


def limit_of_agents(state: ResearchState) -> StopReason | None:
    """Return the limit that cut the first agent short; None if none did."""
    reasons = (record.result.stop_reason for record in state.work.agents if record.result is not None)
    return next((reason for reason in reasons if reason in LIMITS), None)


def reason_without_findings(state: ResearchState) -> StopReason:
    """Return the stop reason of agents without findings; an early end does not show a lack of sources."""
    reasons = [record.result.stop_reason for record in state.work.agents if record.result is not None]
    return next((reason for reason in reasons if reason not in NATURAL_STOPS), StopReason.NO_ACTIONABLE_GAPS)
