"""The common parts of a run: its state, inbox, host, clock and records."""

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from contracts.canary import contains_canary, exposes_private_text
from contracts.evidence import ASKED_BY_PERSON, SearchHit, Source
from contracts.exclusions import is_excluded
from contracts.outcome import PERSON, AgentDecision, Event, EventPage, GateIssue, Guidance, Moment
from contracts.plan import Plan, PlanNode
from contracts.presets import with_choice
from contracts.request import Approve
from contracts.resolved import EffectiveLimits, ResolvedResearch
from contracts.roles import ProposedGap
from contracts.state import ResearchState
from contracts.texts import plural
from contracts.vocabulary import Action, AgentRole, EngineKind, StopReason
from workflows.rules.gaps import open_gaps
from workflows.run.host import Host, abandon
from workflows.run.inbox import Inbox, Interrupted

T = TypeVar("T")

MAX_DECISIONS: Final = 500
MAX_GUIDANCE: Final = 20
"""In the state of a run."""
GUIDANCE_OF_CALL: Final = 6
"""About the guidance that one round of think-pauses gives."""
MAX_EVENTS: Final = 400
EVENTS_OF_PAGE: Final = 200
EVENT_CHARACTERS: Final = 300


class RunContext:
    """State, inbox, host and resolved request of one run, and what is recorded of it."""

    def __init__(self, state: ResearchState, inbox: Inbox, host: Host, watchers: "Watchers | None" = None) -> None:
        self.state = state
        self.inbox = inbox
        self.host = host
        self.clock = Clock(state, inbox, host)
        self.watchers = watchers or Watchers()

    @property
    def resolved(self) -> ResolvedResearch:
        """Return the resolved request."""
        return self.state.resolution

    @property
    def is_permitted(self) -> bool:
        """True if searches and reads may leave this machine: no approval is needed, or a plan was approved."""
        return self.resolved.gates.approve is Approve.NONE or bool(self.state.approved_version)

    # --- time ------------------------------------------------------------------------------------------------------
    def now_text(self) -> str:
        """The workflow's clock as ISO 8601."""
        return self.host.now().isoformat(timespec="milliseconds")

    def choose_limits(self, choice: str) -> None:
        """Go on under the limits of a choice that the request left open; the deadline counts from the start.

        Nothing happens for a choice that the request does not leave open, or once one was made.
        """
        chosen = self.resolved.choices.get(choice)
        if chosen is None:
            return
        if not self.state.limits_fixed:
            self.clock.fix_limits(chosen)
        # A history that started anew was given the request's own limits again, and keeps its deadline.
        self.state.resolved = with_choice(self.resolved, choice)

    # --- calls -----------------------------------------------------------------------------------------------------
    def moment(self) -> Moment:
        """Return where the run stands now, with what a role that is asked now would hear."""
        state = self.state
        return Moment(phase=state.phase, iteration=state.iteration, guidance=newest(state.guidance, GUIDANCE_OF_CALL))

    def operation(self, step: str, iteration: int | None = None) -> str:
        """A logical operation id: `step/iteration`, with its repetition in this session."""
        base = f"{step}/{iteration or self.state.iteration}"
        count = self.state.operations.get(base, 0)
        return self.scoped(base if count == 0 else f"{base}/again-{count + 1}")

    def scoped(self, name: str) -> str:
        """The name of a call: an agent's begins with the agent's own, so that no two agents have one operation."""
        return f"{self.state.scope}/{name}" if self.state.scope else name

    def operation_done(self, step: str, iteration: int | None = None) -> None:
        """The step was carried out: asking for it once more is another operation.

        A step that was cut off keeps its id, so that a resumed run finds the answer in the call store.
        """
        base = f"{step}/{iteration or self.state.iteration}"
        self.state.operations[base] = self.state.operations.get(base, 0) + 1

    async def within_limits(self, work: Coroutine[Any, Any, T]) -> T:
        """Await work until it is done, the time for work is over or a person stops the run.

        Raises `Interrupted` after the work has been cancelled; a cancelled run cancels the work, too.
        """
        task = asyncio.ensure_future(work)
        try:
            await self.host.wait_until(lambda: task.done() or self.inbox.interruption is not None)
        except asyncio.CancelledError:
            await abandon(self.host, [task])
            raise
        if task.done():
            return task.result()
        await abandon(self.host, [task])
        raise Interrupted(self.inbox.interruption or StopReason.INTERNAL_ERROR)

    # --- guidance --------------------------------------------------------------------------------------------------
    def guide(self, origin: str, text: str, phase: str | None) -> None:
        """Give the next phase something to go by."""
        if text.strip():
            given = Guidance(origin=origin, phase=phase, text=text.strip()[:2_000])
            self.state.guidance = with_guidance(self.state.guidance, given)
            self.note("guidance.given", f"{origin}: {given.text}", origin=origin)

    def steer(self, text: str) -> None:
        """Pass a person's message on to the roles; once there is a plan it is searched for as well."""
        self.guide(PERSON, text, self.state.phase)
        self._open_request(text)

    def take_advice(self, origin: str, text: str, phase: str) -> None:
        """Pass the operator's advice on to the roles; without a model, which could weigh it, it is searched for."""
        self.guide(origin, text, phase)
        if self.resolved.engine is EngineKind.EXTRACTIVE:
            self._open_request(text)

    def _open_request(self, text: str) -> None:
        state = self.state
        if not state.plan.nodes or not text.strip():
            return  # the planner reads the guidance
        draft = ProposedGap(description=f"Asked while running: {text[:300]}", suggested_queries=[text], kind="question")
        for gap in open_gaps(state, [draft], ASKED_BY_PERSON):
            state.gaps = [*state.gaps, gap]
            self.decide(
                AgentRole.SUPERVISOR, "gap_opened", gap.description, {"gap_id": gap.id}, {"status": gap.status.value}
            )

    def is_excluded(self, found: Source | SearchHit) -> bool:
        """Return true for a source that the request excludes."""
        return is_excluded(found.title, found.url, self.resolved.exclude)

    # --- plan ------------------------------------------------------------------------------------------------------
    def draft_plan(self, brief: str, nodes: list[PlanNode]) -> None:
        """Put a new version of the plan in the place of the one that there is."""
        self.state.plan = Plan(version=self.state.plan.version + 1, brief=brief, nodes=nodes)
        count, part = len(self.state.plan.parts), "sub-query" if self.state.plan.sub_queries else "step"
        self.note("plan.drafted", plural(count, part), count=count, version=self.state.plan.version)

    def retries(self, phase: str) -> bool:
        """Return whether the last pause wants a phase done again."""
        pause = self.state.pause
        return pause is not None and pause.phase == phase and pause.action is Action.RETRY

    def issues(self, phase: str) -> list[GateIssue]:
        """Return why a phase is done again, by its gate or else by the reflection on it; empty the first time."""
        if not self.retries(phase) or self.state.pause is None:
            return []
        gates = [gate for gate in self.state.gates if gate.phase == phase]
        found = gates[-1].issues if gates else []
        return found or [GateIssue(code="reflection", message=self.state.pause.rationale)]

    # --- records ---------------------------------------------------------------------------------------------------
    def note(self, kind: str, text: str, /, **data: Any) -> None:
        """Tell those who watch. What an agent does has the agent's place in its run."""
        if self.state.task is not None:
            data = {"scope": self.state.scope, **self.state.task.placement, **data}
        add_event(self.state, kind, self.now_text(), text, data)
        self.watchers.changed(self)

    def decide(
        self,
        agent: str,
        action: str,
        rationale: str = "",
        inputs: dict[str, Any] | None = None,
        outputs: dict[str, Any] | None = None,
        at: Moment | None = None,
    ) -> int:
        """Append to the decision log; `at` is where the run stood when what is decided upon was found out.

        The number of the entry. A full log counts what it does not take.
        """
        number = len(self.state.decisions) + self.state.decisions_dropped + 1
        decision = AgentDecision(
            seq=number,
            agent=agent,
            action=action,
            phase=at.phase if at else self.state.phase,
            iteration=at.iteration if at else self.state.iteration,
            rationale=rationale[:500],
            inputs=inputs or {},
            outputs=outputs,
            timestamp=self.now_text(),
        )
        if len(self.state.decisions) < MAX_DECISIONS:
            self.state.decisions.append(decision)
        else:
            self.state.decisions_dropped += 1
        text = ": ".join(part for part in (agent, action.replace("_", " "), rationale) if part)
        self.note("decision.recorded", text, agent=agent, action=action)
        return number

    def decided(self, number: int, outputs: dict[str, Any]) -> None:
        """Add to a decision what came of it."""
        log = self.state.decisions
        if number <= len(log):
            log[number - 1] = log[number - 1].model_copy(update={"outputs": outputs})

    def exposes_private_text(self, url: str) -> bool:
        """Return whether an address contains private words: the canary of the run, or words of a person."""
        earlier = [turn_text for turn in self.resolved.context for turn_text in (turn.question, turn.answer)]
        private = [self.resolved.system_prompt or "", *earlier]
        public = [self.resolved.query, *(query.text for query in self.state.plan.nodes)]
        return exposes_private_text(url, self.resolved.canary, private, public)

    def contains_canary(self, query: str) -> bool:
        """Return true if a query contains the canary."""
        return contains_canary(query, self.resolved.canary)

    def degrade(self, note: str) -> None:
        """Record that something is less good than asked for; the report says so."""
        if note not in self.state.degraded:
            self.state.degraded.append(note[:300])
            self.note("status", f"degraded: {note}", level="warning")

    def branch_failed(self, note: str) -> None:
        """Record that a part of the work failed: the outcome cannot be `completed` any more."""
        if note not in self.state.failed_branches:
            self.state.failed_branches.append(note[:300])
        self.state.last_failure = note[:300]


class Watchers:
    """Told after every event; the workflow shows details and search attributes, tests need nothing."""

    def changed(self, run: "RunContext") -> None:
        """Something happened."""

    async def enter_phase(self, run: "RunContext") -> None:
        """A new phase began."""


def elapsed_seconds(state: ResearchState, now: float) -> float:
    """Active seconds of a session at `now` (seconds since the epoch); waiting for a person does not count."""
    return state.active_seconds_before + (state.clock_stopped_at or now) - state.clock_started_at


class Clock:
    """Counts the time of one run; all of it is in the state, so another process counts on."""

    def __init__(self, state: ResearchState, inbox: Inbox, host: Host) -> None:
        self._state = state
        self._inbox = inbox
        self._host = host
        self._alarm: asyncio.Task[None] | None = None

    def elapsed_seconds(self) -> float:
        """Active seconds of this session so far."""
        return elapsed_seconds(self._state, self._host.now().timestamp())

    def remaining_seconds(self) -> float:
        """Seconds until the report must be there."""
        return self._state.deadline_at - (self._state.clock_stopped_at or self._host.now().timestamp())

    def remaining_work_seconds(self) -> float:
        """Seconds until the work must give way to writing: the reserve is kept for the report."""
        reserve = 0.0 if self._inbox.closing or self._state.resolved is None else self._limits.reserve_seconds
        return self.remaining_seconds() - reserve

    def set_alarm(self) -> None:
        """Have the work end when it must give way to writing: the one durable timer of a run that works."""
        self.cancel_alarm()
        if not self._state.clock_stopped_at:
            self._alarm = asyncio.ensure_future(self._ring())

    def cancel_alarm(self) -> None:
        """Let the work go on as long as it likes."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stand still for the block; then the deadline is as far away as before, and the alarm is set again."""
        state = self._state
        self.cancel_alarm()
        state.clock_stopped_at = state.clock_stopped_at or self._host.now().timestamp()
        left = False
        try:
            yield
        except GeneratorExit:
            # The workflow leaves this worker's memory: nothing of it may ask the engine any more.
            left = True
            raise
        finally:
            if not left:
                self._go_on()

    def _go_on(self) -> None:
        state = self._state
        waited = self._host.now().timestamp() - state.clock_stopped_at
        state.clock_stopped_at = 0.0
        state.clock_started_at += waited
        state.deadline_at += waited
        self.set_alarm()

    def fix_limits(self, limits: EffectiveLimits) -> None:
        """Change the limits once after the start, when it is known what the run is to be; the time used stays used.

        Raises ValueError the second time.
        """
        state = self._state
        if state.limits_fixed or state.resolved is None:
            raise ValueError("the limits of a run are fixed once")
        state.limits_fixed = True
        state.deadline_at += limits.deadline_seconds - self._limits.deadline_seconds
        state.resolved = state.resolved.model_copy(update={"limits": limits})
        self.set_alarm()

    @property
    def _limits(self) -> EffectiveLimits:
        return self._state.resolution.limits

    async def _ring(self) -> None:
        await self._host.sleep(max(0.0, self.remaining_work_seconds()), "until the report must be written")
        self._inbox.interrupt(StopReason.BUDGET_TIME)


# --- guidance and events -------------------------------------------------------------------------------------------
def with_guidance(known: Sequence[Guidance], new: Guidance) -> list[Guidance]:
    """Add guidance and return the newest; repeated guidance moves to the end."""
    others = [one for one in known if (one.origin, one.text) != (new.origin, new.text)]
    return newest([*others, new], MAX_GUIDANCE)


def newest(known: Sequence[Guidance], most: int) -> list[Guidance]:
    """Return at most so many of the newest in their order; a person's guidance is dropped last."""
    of_person = [place for place, one in enumerate(known) if one.origin == PERSON][-most:]
    others = [place for place, one in enumerate(known) if one.origin != PERSON]
    room = most - len(of_person)
    return [known[place] for place in sorted((*of_person, *(others[-room:] if room else ())))]


def add_event(state: ResearchState, kind: str, time: str, text: str, data: dict[str, Any]) -> None:
    """Append an event to the ring in the state; it costs nothing in the history."""
    state.event_count += 1
    state.events.append(Event(seq=state.event_count, type=kind, time=time, text=text[:EVENT_CHARACTERS], data=data))
    del state.events[:-MAX_EVENTS]


def page_after(state: ResearchState, after: int) -> EventPage:
    """Return the oldest events after a sequence number, and the cursor for the next call."""
    events = [event for event in state.events if event.seq > after][:EVENTS_OF_PAGE]
    return EventPage(events=events, next=events[-1].seq if events else max(after, 0))
