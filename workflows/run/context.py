"""The base of a run: its state, inbox, host, clock and records."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from contracts.canary import contains_canary, exposes_private_text
from contracts.evidence import ASKED_BY_PERSON, Gap, SearchHit, Source
from contracts.exclusions import is_excluded
from contracts.gaps import SettledGap
from contracts.outcome import MODEL, PERSON, AgentDecision, Event, EventPage, GateIssue, Guidance
from contracts.plan import Plan, PlanNode
from contracts.presets import with_choice
from contracts.recursive_roles import ACTS_AS, MAY_CALL, may_call
from contracts.resolved import ResolvedResearch
from contracts.roles import ProposedGap
from contracts.sentences import bounded
from contracts.state import PACKED_EVENTS, ResearchState
from contracts.texts import plural, shorten
from contracts.vocabulary import FAILURES, Action, AgentRole, EngineKind, GapStatus, Outcome, StopReason
from workflows.rules.gaps import open_gaps, settle_gaps, with_gaps
from workflows.run.host import Host, abandon, afterwards
from workflows.run.inbox import CallNotAllowed, Inbox, Interrupted

T = TypeVar("T")

MAX_DECISIONS: Final = 500
MAX_GUIDANCE: Final = 20
"""Per run."""
MAX_CALL_REQUESTS: Final = 6
"""Latest requests of people shown to one call."""
MAX_CALL_ADVICE: Final = 3
"""Lines of advice of models and hooks in one call."""
MAX_EVENTS: Final = PACKED_EVENTS
MAX_PAGE_EVENTS: Final = 200
EVENT_CHARACTERS: Final = 300
MAX_NOTE: Final = 300
"""Characters of a note on a fault that is no sentence of the product."""


class RunContext:
    """State, inbox, host, request and records of one run: what agents, budget and checkpoints see of it.

    They are parts of `ResearchRun`, which alone makes calls, so that none of them depends on itself.
    """

    def __init__(self, state: ResearchState, inbox: Inbox, host: Host, hooks: "Hooks | None" = None) -> None:
        self.state = state
        self.inbox = inbox
        self.host = host
        self.clock = Clock(state, inbox, host)
        self.hooks = hooks or Hooks()
        self.is_prepared = True
        """False until the run's own resolution is stored: until then calls have what follows from it in their input."""

    @property
    def resolved(self) -> ResolvedResearch:
        """Return the resolved request."""
        return self.state.resolution

    @property
    def is_permitted(self) -> bool:
        """Return true if searches and reads may leave this machine: no approval is needed, or it was given."""
        return not self.state.needs_approval

    def take_resolution(self, entry: str) -> None:
        """Let calls refer to the stored resolution of this hash."""
        self.state.work.resolved_entry = entry
        self.state.evidence.note_entry(entry)
        self.is_prepared = True

    # --- time ------------------------------------------------------------------------------------------------------
    def now_text(self) -> str:
        """Return the workflow's time as ISO 8601."""
        return self.host.now().isoformat(timespec="milliseconds")

    def choose_limits(self, choice: str) -> None:
        """Switch, once, to the limits of a choice that the request left open; elapsed time still counts."""
        state = self.state
        resolved = self.resolved
        chosen = self.resolved.choices.get(choice)
        if chosen is None:
            return
        if not state.clock.limits_fixed:
            state.clock.limits_fixed = True
            state.clock.deadline_at += chosen.deadline_seconds - resolved.limits.deadline_seconds
        # After continue-as-new the resolution has the request's own limits again, but the deadline is unchanged.
        state.work.resolved = with_choice(resolved, choice)
        self.clock.set_alarm()

    # --- calls -----------------------------------------------------------------------------------------------------
    def operation(self, step: str) -> str:
        """Return a logical operation id, `step/iteration`, with a suffix for repetitions in this session."""
        base = f"{step}/{self.state.work.iteration}"
        count = self.state.accounts.operations.get(base, 0)
        return self.scoped(base if count == 0 else f"{base}/again-{count + 1}")

    def scoped(self, name: str) -> str:
        """Return the name of a call, prefixed in an agent with the agent's id, so that agents share no operation."""
        if self.state.scope:
            return f"{self.state.scope}/{name}"
        return name

    def operation_done(self, step: str) -> None:
        """Give the next repetition of a step a new operation id.

        A step that was cut off reuses its id, so that a resumed run finds the answer in the call store.
        """
        base = f"{step}/{self.state.work.iteration}"
        self.state.accounts.operations[base] = self.state.accounts.operations.get(base, 0) + 1

    async def within_limits(self, work: Coroutine[Any, Any, T]) -> T:
        """See `within_limits`."""
        return await within_limits(self.host, self.inbox, work)

    @asynccontextmanager
    async def time_limit(self, seconds: float) -> AsyncIterator[None]:
        """Interrupt the run after `seconds` seconds, and clear the interruption at the end of the block."""
        alarm = asyncio.ensure_future(self.clock.ring_after(seconds, "time for the report"))
        try:
            yield
        finally:
            alarm.cancel()
            self.inbox.clear()

    # --- guidance --------------------------------------------------------------------------------------------------
    def guide(self, origin: str, text: str, phase: str | None, role: str = "") -> None:
        """Add guidance for the next phase; a model addresses it to a role."""
        if text.strip():
            iteration = self.state.work.iteration if origin == MODEL else 0
            words = shorten(text.strip(), 2_000)
            guidance = Guidance(origin=origin, phase=phase, role=role, iteration=iteration, text=words)
            self.state.people.guidance = with_guidance(self.state.people.guidance, guidance)
            self.note("guidance.given", f"{origin}: {guidance.text}", origin=origin)

    def steer(self, text: str, origin: str = PERSON, phase: str | None = None) -> None:
        """Pass a text from a person or an operator's hook on to the roles; once there is a plan, also search for it.

        With a model, a hook's text is only guidance, because the model can weigh it.
        """
        state = self.state
        self.guide(origin, text, phase or state.work.phase)
        weighed = origin != PERSON and self.resolved.engine is EngineKind.MODEL
        if weighed or not state.work.plan.nodes or not text.strip():
            return  # the planner reads the guidance
        draft = ProposedGap(
            description=f"Asked while running: {shorten(text, 300)}", suggested_queries=[text], kind="question"
        )
        for gap in open_gaps(state, [draft], ASKED_BY_PERSON):
            state.evidence.gaps = with_gaps(state, [gap])
            outputs = {"status": gap.status.value}
            self.decide(AgentRole.SUPERVISOR, "gap_opened", gap.description, {"gap_id": gap.id}, outputs)

    def take_steering(self) -> None:
        """Pass on a person's messages since the last unit."""
        while self.inbox.steering:
            self.steer(self.inbox.steering.pop(0))

    def end_work(self) -> None:
        """Take what a person has written since the last unit, and record the time, before the state is saved."""
        self.take_steering()
        self.record_time()

    def record_time(self) -> None:
        """Record the active seconds so far as usage."""
        seconds = round(self.clock.elapsed_seconds(), 3)
        self.state.accounts.usage = self.state.accounts.usage.with_fields(active_seconds=seconds)

    def is_excluded(self, item: Source | SearchHit) -> bool:
        """Return true for a source excluded by the request."""
        return is_excluded(item.title, item.url, self.resolved.exclude)

    # --- gaps ------------------------------------------------------------------------------------------------------
    def settle_gaps(self, settled: Iterable[SettledGap], role: str) -> None:
        """Close the gaps that a role calls answered or repeated, and record each."""
        statuses = {gap.id: gap.status for gap in self.state.evidence.gaps}
        self.state.evidence.gaps = settle_gaps(self.state, settled)
        for gap in self.state.evidence.gaps:
            if gap.status is not statuses[gap.id]:
                self.record_gap(gap, role)

    def record_gap(self, gap: Gap, role: str) -> None:
        """Record a role's new status of a gap, in the decision log and for watchers."""
        self.decide(role, f"gap_{gap.status.value}", gap.description, {"gap_id": gap.id}, gap.settlement)
        kind = "gap.closed" if gap.status is GapStatus.ADDRESSED else "status"
        self.note(kind, f"gap {gap.status.value}: {gap.description}", gap_id=gap.id)

    # --- plan ------------------------------------------------------------------------------------------------------
    def draft_plan(self, brief: str, nodes: list[PlanNode], **parts: Any) -> None:
        """Replace the plan with a new version; `parts` are its other fields."""
        plan = self.state.work.plan = Plan(version=self.state.work.plan.version + 1, brief=brief, nodes=nodes, **parts)
        count = len(plan.parts)
        part = "sub-query" if plan.sub_queries else "step"
        self.note("plan.drafted", plural(count, part), count=count, **plan.texts())

    def retries(self, phase: str) -> bool:
        """Return whether the last pause requires a retry of a phase."""
        pause = self.state.work.pause
        return pause is not None and pause.phase == phase and pause.action is Action.RETRY

    def issues(self, phase: str) -> list[GateIssue]:
        """Return why a phase is retried, from its gate or else from the reflection on it; empty the first time."""
        if not self.retries(phase) or self.state.work.pause is None:
            return []
        if self.state.work.pause.issues is not None:
            return self.state.work.pause.issues
        issues = next((gate.issues for gate in reversed(self.state.work.gates) if gate.phase == phase), [])
        return issues or [GateIssue(code="reflection", message=self.state.work.pause.rationale)]

    # --- records ---------------------------------------------------------------------------------------------------
    def note(self, kind: str, text: str, /, **data: Any) -> None:
        """Add an event for watchers; an agent's events include its place in its run."""
        if self.state.work.task is not None:
            inputs = self.state.work.task.given
            position = {name: inputs[name] for name in ("turn", "branch") if isinstance(inputs.get(name), int)}
            data = {"scope": self.state.scope, **position, **data}
        add_event(self.state, kind, self.now_text(), text, data)
        self.hooks.changed()

    def note_end(self, outcome: Outcome, text: str) -> None:
        """Add the final event for watchers; a failure first adds a status event of level `error`."""
        add_end(self.state, self.now_text(), outcome, text)
        self.hooks.changed()

    def decide(
        self,
        agent: str,
        action: str,
        rationale: str,
        inputs: dict[str, Any] | None = None,
        outputs: dict[str, Any] | None = None,
    ) -> int:
        """Append to the decision log and return the entry's number; a full log only counts new entries."""
        state = self.state
        number = len(state.people.decisions) + state.people.decisions_dropped + 1
        if len(state.people.decisions) < MAX_DECISIONS:
            decision = AgentDecision(
                seq=number,
                agent=agent,
                action=action,
                phase=state.work.phase,
                iteration=state.work.iteration,
                rationale=rationale[:500],
                inputs=inputs or {},
                outputs=outputs,
                timestamp=self.now_text(),
            )
            state.people.decisions.append(decision)
        else:
            state.people.decisions_dropped += 1
        # The rationale for another iteration is a complete sentence.
        if rationale and action == "decide_iteration":
            name = ""
        else:
            name = action.replace("_", " ")
        text = ": ".join(part for part in (agent, name, rationale) if part)
        self.note("decision.recorded", text, agent=agent, action=action)
        return number

    def decided(self, number: int, outputs: dict[str, Any]) -> None:
        """Add the outputs to a logged decision."""
        log = self.state.people.decisions
        if 0 < number <= len(log):
            log[number - 1] = log[number - 1].with_fields(outputs=outputs)

    def check_call(self, caller: str, role: str) -> None:
        """Raise `CallNotAllowed` for a call that `MAY_CALL` forbids, and record it as a failed branch.

        A caller missing from the table may call any role, because external strategies have their own roles.
        """
        if ACTS_AS.get(caller, caller) in MAY_CALL and not may_call(caller, role):
            refused = CallNotAllowed(caller, role)
            self.branch_failed(refused.note)
            raise refused

    def count_calls(self, caller: str, role: str, number: int = 1) -> None:
        """Count calls of one role by another; no effect without a caller."""
        if caller:
            calls = dict(self.state.accounts.calls.get(caller, {}))
            calls[role] = calls.get(role, 0) + number
            self.state.accounts.calls = {**self.state.accounts.calls, caller: calls}

    def exposes_private_text(self, url: str) -> bool:
        """Return whether a URL contains private text: the run's canary, its system prompt or earlier turns."""
        earlier = [turn_text for turn in self.resolved.context for turn_text in (turn.question, turn.answer)]
        private = [self.resolved.system_prompt or "", *earlier]
        public = [self.resolved.query, *self.resolved.protected_sources]
        public += [query.text for query in self.state.work.plan.nodes]
        return exposes_private_text(url, self.resolved.canary, private, public)

    def contains_canary(self, query: str) -> bool:
        """Return true if a query contains the canary."""
        return contains_canary(query, self.resolved.canary)

    def degrade(self, note: str) -> None:
        """Record a degradation, which the report lists."""
        if note not in self.state.work.degraded:
            self.state.work.degraded.append(bounded(note, MAX_NOTE))
            self.note("status", note, level="warning")

    def branch_failed(self, note: str) -> None:
        """Record that a part of the work failed; the outcome can then no longer be `completed`."""
        if note not in self.state.work.failed_branches:
            self.state.work.failed_branches.append(bounded(note, MAX_NOTE))
        self.state.work.last_failure = bounded(note, MAX_NOTE)


async def within_limits(host: Host, inbox: Inbox, work: Coroutine[Any, Any, T]) -> T:
    """Await work; if the time is up or a person stops the run, cancel it and raise `Interrupted`."""
    task = asyncio.ensure_future(work)
    try:
        await host.wait_until(lambda: task.done() or inbox.interruption is not None)
    except asyncio.CancelledError:
        await abandon(host, [task])
        raise
    if task.done():
        return task.result()
    await abandon(host, [task])
    raise Interrupted(inbox.interruption or StopReason.INTERNAL_ERROR)


async def _do_nothing() -> None:
    """Do nothing: the default hook for hosts without workflows."""


@dataclass(frozen=True)
class Hooks:
    """The steps of a run that only its workflow can do."""

    changed: Callable[[], None] = lambda: None
    """Called after every event."""
    enter_phase: Callable[[], None] = lambda: None
    """Called when a phase starts, and at the end."""
    continue_as_new: Callable[[], Awaitable[None]] = _do_nothing
    """Called at boundaries and before each wait; may continue as new."""
    wait_for_turn: Callable[[], Awaitable[object]] = _do_nothing
    """Called after a wait for a person, because another run may have taken this run's slot."""
    check_providers: Callable[[], Awaitable[None]] = _do_nothing
    """Called once, before the first search. Raises `Interrupted`, or a failure if no provider is available."""
    notify_waiting: Callable[[], Awaitable[None]] = _do_nothing
    """Called when a wait for a person begins."""


def elapsed_seconds(state: ResearchState, now: float) -> float:
    """Return a session's active seconds at `now` (seconds since the epoch); waits for a person do not count."""
    return state.clock.active_seconds_before + (state.clock.clock_stopped_at or now) - state.clock.clock_started_at


class Clock:
    """Measures the time of one run; its data is in the state, so another process can continue it."""

    def __init__(self, state: ResearchState, inbox: Inbox, host: Host) -> None:
        self._state = state
        self._inbox = inbox
        self._host = host
        self._alarm: asyncio.Task[None] | None = None

    def elapsed_seconds(self) -> float:
        """Return the active seconds of this session so far."""
        return elapsed_seconds(self._state, self._host.now().timestamp())

    def remaining_seconds(self) -> float:
        """Return the seconds until the report is due."""
        return self._state.clock.deadline_at - (self._state.clock.clock_stopped_at or self._host.now().timestamp())

    def remaining_work_seconds(self) -> float:
        """Return the seconds until research must end, so that the reserve is left for writing the report."""
        resolved = self._state.work.resolved
        reserve = resolved.limits.reserve_seconds if resolved and not self._inbox.closing else 0.0
        return self.remaining_seconds() - reserve

    def set_alarm(self) -> None:
        """Schedule the end of research with the only durable timer of a working run."""
        self.cancel_alarm()
        if not self._state.clock.clock_stopped_at:
            seconds = self.remaining_work_seconds()
            self._alarm = asyncio.ensure_future(self.ring_after(seconds, "time for research, without that for writing"))

    def cancel_alarm(self) -> None:
        """Cancel the timer, so that nothing interrupts the run."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop the clock during the block; afterwards the same time remains, with a new alarm."""
        state = self._state
        self.cancel_alarm()
        state.clock.clock_stopped_at = state.clock.clock_stopped_at or self._host.now().timestamp()
        with afterwards(self._go_on):
            yield

    def _go_on(self) -> None:
        state = self._state
        waited = self._host.now().timestamp() - state.clock.clock_stopped_at
        state.clock.clock_stopped_at = 0.0
        state.clock.clock_started_at += waited
        state.clock.deadline_at += waited
        self.set_alarm()

    async def ring_after(self, seconds: float, why: str) -> None:
        """Interrupt the run after `seconds` seconds."""
        await self._host.sleep(max(0.0, seconds), why)
        self._inbox.interrupt(StopReason.BUDGET_TIME)


# --- guidance and events -------------------------------------------------------------------------------------------
def with_guidance(known: Sequence[Guidance], new: Guidance) -> list[Guidance]:
    """Add guidance and return the latest; repeated guidance moves to the end."""
    others = [item for item in known if (item.origin, item.role, item.text) != (new.origin, new.role, new.text)]
    return newest([*others, new], MAX_GUIDANCE)


def newest(known: Sequence[Guidance], limit: int) -> list[Guidance]:
    """Return at most `limit` of the latest items in order; a person's guidance is dropped last."""
    order = sorted(range(len(known)), key=lambda index: (known[index].origin == PERSON, index))
    return [known[index] for index in sorted(order[-limit:])]


def guidance_for(known: Sequence[Guidance], role: str, iteration: int) -> list[Guidance]:
    """Return the guidance that a call of a role is shown: what people ask for, and the newest of any other origin.

    A model's guidance is omitted if it addresses another role or is older than the last iteration, and for a refiner
    older than this one: what it says was searched for. What is not of people is at most `MAX_CALL_ADVICE` lines.
    """
    oldest = iteration if role == AgentRole.REFINER else iteration - 1
    people = newest([item for item in known if item.origin == PERSON], MAX_CALL_REQUESTS)
    others = dict[str, Guidance]()
    for item in known:
        if item.origin != PERSON and item.role in ("", role) and not 0 < item.iteration < oldest:
            others.pop(item.origin, None)  # so that the newest are last
            others[item.origin] = item
    chosen = [*people, *list(others.values())[-MAX_CALL_ADVICE:]]
    return [item for item in known if item in chosen]


def add_event(state: ResearchState, kind: str, time: str, text: str, data: dict[str, Any]) -> None:
    """Append an event to the state's ring buffer; it adds no history event."""
    state.people.event_count += 1
    state.people.events.append(
        Event(seq=state.people.event_count, type=kind, time=time, text=text[:EVENT_CHARACTERS], data=data)
    )
    del state.people.events[:-MAX_EVENTS]


def add_end(state: ResearchState, time: str, outcome: Outcome, text: str) -> None:
    """Append the final event of a run; a failure first gets a status event of level `error`."""
    if outcome in FAILURES:
        add_event(state, "status", time, text, {"level": "error"})
    add_event(state, "run.finished", time, text, {"outcome": outcome.value})


def page_after(state: ResearchState, after: int) -> EventPage:
    """Return the oldest events after a sequence number, and the cursor for the next call."""
    events = [event for event in state.people.events if event.seq > after][:MAX_PAGE_EVENTS]
    return EventPage(events=events, next=events[-1].seq if events else max(after, 0))
