"""The one clock of a run: its deadline, its alarm, and the time for which it stands still to wait for a person."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from contracts.resolved import EffectiveLimits
from contracts.state import ResearchState
from contracts.vocabulary import StopReason
from workflows.run.host import Host
from workflows.run.inbox import Inbox


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
