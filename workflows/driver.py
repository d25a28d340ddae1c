"""The driver: drives a strategy unit by unit, and always ends with one honest outcome.

After each unit the driver, not the strategy, sees to the pause, the limits and the checkpoint.
"""

import asyncio
from collections.abc import Awaitable, Callable

from temporalio.exceptions import ActivityError

from contracts import activities
from contracts.activities import SaveRequest
from contracts.request import OnDeadline
from contracts.vocabulary import Action, Outcome, RunStatus, StopReason
from workflows.phases.closing import close
from workflows.run.activity_options import cancel_save_options, record_options
from workflows.run.call_errors import is_cancelled
from workflows.run.inbox import Interrupted
from workflows.run.research_run import ResearchRun
from workflows.strategies.protocol import Finished, Strategy

UNSAVED = "a checkpoint could not be saved"


class Driver:
    """One run under one strategy."""

    def __init__(
        self,
        run: ResearchRun,
        strategy: Strategy,
        at_boundary: Callable[[], Awaitable[None]] | None = None,
        *,
        stored: bool = False,
    ) -> None:
        """`stored` says that the session store knows this session already."""
        self._run = run
        self._strategy = strategy
        self._at_boundary = at_boundary
        self._stored = stored
        self._checkpoint: asyncio.Task[None] | None = None

    async def conduct(self) -> Outcome:
        """Run to the end and close with a report. A cancelled run saves its session and raises."""
        run = self._run
        run.state.status = RunStatus.RUNNING
        alarm = asyncio.ensure_future(self._alarm())
        if not self._stored:
            # From the beginning there is something to go on from: a run that is terminated finds its paid answers.
            self._checkpoint = asyncio.ensure_future(save(run, closed=False))
        try:
            reason = await self._work()
            alarm.cancel()
            # No save of an older state may come after the last one.
            await self._checkpoint_done()
            run.inbox.closing = True
            if reason is StopReason.BUDGET_TIME and run.resolved.on_deadline is OnDeadline.ABORT:
                return await self._abort()
            return await close(run, reason)
        except (asyncio.CancelledError, ActivityError) as error:
            if isinstance(error, ActivityError) and not is_cancelled(error):
                raise
            await self._cancelled()
            raise
        finally:
            alarm.cancel()
            if self._checkpoint is not None:
                self._checkpoint.cancel()

    async def keep_failed(self) -> None:
        """Save the session of a run that failed, if that is possible at all; else the last checkpoint remains."""
        try:
            await self._save_at_the_end("save-failed", "the session could not be saved when the run failed")
        except ValueError:
            self._run.state.last_failure += " (its state cannot be stored)"

    async def _work(self) -> StopReason:
        """Advance until the strategy has finished or something ends the work early."""
        try:
            while True:
                self._take_steering()
                if self._run.state.unit_done is None:
                    done = await self._strategy.advance(self._run)
                    if isinstance(done, Finished):
                        return done.reason
                    self._run.state.unit_done = done
                unit = self._run.state.unit_done
                pause = await self._strategy.pause(self._run, unit)
                self._run.state.unit_done = None
                self._check_interruption()
                # A run that completes here is saved when it closes.
                if unit.iteration_ended and pause.action is Action.ITERATE:
                    await self._boundary()
        except Interrupted as interrupted:
            return interrupted.reason

    async def _alarm(self) -> None:
        """The one durable timer of a run: rings when the work must give way to writing."""
        await self._run.host.sleep(max(0.0, self._run.remaining_work_seconds()), "until the report must be written")
        self._run.inbox.interrupt(StopReason.BUDGET_TIME)

    def _check_interruption(self) -> None:
        if self._run.inbox.interruption is not None:
            raise Interrupted(self._run.inbox.interruption)

    def _take_steering(self) -> None:
        """What people asked for becomes guidance, and a question to search for once there is a plan."""
        run = self._run
        while run.inbox.steering:
            run.steer(run.inbox.steering.pop(0))

    async def _boundary(self) -> None:
        """Save in the background; the history may start anew only once the session is saved."""
        await self._checkpoint_done()
        self._checkpoint = asyncio.ensure_future(save(self._run, closed=False))
        if self._at_boundary is not None:
            await self._at_boundary()

    async def checkpoint_now(self) -> bool:
        """Have the newest state saved before the history starts anew; whether it is."""
        await self._checkpoint_done()
        try:
            await save(self._run, closed=False)
        except ActivityError as error:
            if is_cancelled(error):
                raise
            self._run.degrade(UNSAVED)
            return False
        return True

    async def _checkpoint_done(self) -> None:
        if self._checkpoint is None:
            return
        await self._run.host.settle([self._checkpoint])
        if not self._checkpoint.cancelled() and isinstance(self._checkpoint.exception(), ActivityError):
            self._run.degrade(UNSAVED)
        self._checkpoint = None

    async def _abort(self) -> Outcome:
        """`on_deadline: abort`: save and stop, without a report."""
        self._run.state.status = RunStatus.TIMED_OUT
        self._run.note("run.finished", "timed out; the session is kept", outcome=Outcome.TIMED_OUT.value)
        await save(self._run, closed=True)
        return Outcome.TIMED_OUT

    async def _cancelled(self) -> None:
        """Keep the state, with one save of at most five seconds."""
        run = self._run
        # The report may just have been written: without its result the run can go on, and says what it is.
        run.state.result = None
        run.state.status = RunStatus.CANCELLED
        run.note("run.finished", "cancelled; the session is kept", outcome=Outcome.CANCELLED.value)
        await self._save_at_the_end("save-cancelled", "the session could not be saved while cancelling")

    async def _save_at_the_end(self, step: str, otherwise: str) -> None:
        """One save of at most five seconds; the run ends even if nobody can save."""
        run = self._run
        options = cancel_save_options(run.operation(step))
        try:
            await run.host.execute(activities.save_session, _save_request(run, closed=True), options)
        except ActivityError:
            run.state.last_failure = otherwise


async def save(run: ResearchRun, *, closed: bool) -> None:
    """Write a checkpoint of the session."""
    options = record_options(run.operation("save"), "save the session")
    request = _save_request(run, closed=closed)
    await run.host.execute(activities.save_session, request, options)


def _save_request(run: ResearchRun, *, closed: bool) -> SaveRequest:
    resolved = run.resolved
    return SaveRequest(
        research_id=resolved.research_id, tenant=resolved.tenant, packed_state=run.state.pack(), closed=closed
    )
