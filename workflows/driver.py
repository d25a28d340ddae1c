"""The driver: drives a strategy unit by unit, and always ends with one honest outcome.

After each unit the driver, not the strategy, sees to the pause, the limits and the checkpoint.
"""

import asyncio

from temporalio.exceptions import ActivityError

from contracts.outcome import Pause, ResearchResult
from contracts.request import OnDeadline
from contracts.vocabulary import Action, Outcome, RunStatus, StopReason
from workflows.phases.asking import AroundWaits, Person, approval_is_due
from workflows.phases.closing import close
from workflows.phases.counts import counts_of
from workflows.phases.pause import reflect
from workflows.rules.unworked_endings import explain_unworked, outcome_without_work
from workflows.run.activity_options import cancel_save_options
from workflows.run.call_errors import describe_failure, is_cancelled, is_outage, reason_of
from workflows.run.inbox import Interrupted
from workflows.run.research_run import ResearchRun
from workflows.strategies.protocol import Finished, Strategy


class Driver:
    """One run under one strategy."""

    def __init__(
        self,
        run: ResearchRun,
        strategy: Strategy,
        around: AroundWaits | None = None,
        *,
        stored: bool = False,
    ) -> None:
        """`stored` says that the session store knows this session already."""
        self._run = run
        self._strategy = strategy
        self._around = around or AroundWaits()
        self._person = Person(run, self._around)
        self._stored = stored
        self._reflecting: dict[str, asyncio.Task[None]] = {}
        """By unit: its reflection, under way or done."""

    async def conduct(self) -> Outcome:
        """Run to the end and close with a report. A cancelled run saves its session and raises."""
        run = self._run
        if run.state.waiting is None:
            run.state.status = RunStatus.RUNNING
        run.clock.set_alarm()
        if not self._stored:
            # From the beginning there is something to go on from: a run that is terminated finds its paid answers.
            run.checkpoints.save_in_background()
        try:
            reason = await self.work()
            run.clock.cancel_alarm()
            # No save of an older state may come after the last one.
            await run.checkpoints.settle()
            run.inbox.closing = True
            if reason is StopReason.BUDGET_TIME and run.resolved.on_deadline is OnDeadline.ABORT:
                return await self._abort()
            if (outcome := outcome_without_work(run.state, reason)) is not None:
                return await self._end_unworked(outcome, reason)
            return await close(run, reason)
        except (asyncio.CancelledError, ActivityError) as error:
            if isinstance(error, ActivityError) and not is_cancelled(error):
                raise
            await self._keep_cancelled()
            raise
        finally:
            run.clock.cancel_alarm()
            run.checkpoints.abandon()

    async def keep_failed(self) -> None:
        """Save the session of a run that failed, if that is possible at all; else the last checkpoint remains."""
        try:
            await self._save_at_the_end("save-failed", "the session could not be saved when the run failed")
        except ValueError:
            self._run.state.last_failure += " (its state cannot be stored)"

    async def work(self) -> StopReason:
        """Step until the strategy has finished or something ends the work early; why it is over."""
        try:
            while True:
                reason = await self.step()
                if reason is not None:
                    return reason
        except Interrupted as interrupted:
            return interrupted.reason
        except ActivityError as error:
            if not is_outage(error):
                raise
            # The time for work is over, and the last thing that it waited for is named.
            self._run.branch_failed(f"{error.activity_type}: {reason_of(error)}: {describe_failure(error)}")
            return StopReason.PROVIDER_OUTAGE
        finally:
            # An answer that is still under way at the end has nobody to hear it; its pause stays open.
            await self._run.abandon(list(self._reflecting.values()))

    async def step(self) -> StopReason | None:
        """One unit with its pause; the pause stays open where the strategy lets the next unit begin meanwhile.

        The reason once the strategy has finished. Raises `Interrupted`.
        """
        state = self._run.state
        self._check_interruption()
        self._await_approval()
        if not state.open_pauses and not await self._person.has_agreed():
            self._strategy.replan(state)
        self._take_steering()
        if not state.open_pauses or state.open_pauses[-1].meanwhile is not None:
            self._reflect()
            done = await self._strategy.advance(self._run)
            if isinstance(done, Finished):
                return done.reason
            state.open_pauses.append(self._strategy.evaluate(self._run, done))
            self._await_approval()
        self._reflect()
        last = state.open_pauses[-1]
        if last.meanwhile is not None:
            self._run.checkpoints.save_in_background()
            return None
        pause = await self._conclude()
        self._check_interruption()
        self._run.checkpoints.save_in_background()
        if last.unit.iteration_ended and pause.action in (Action.ITERATE, Action.PROCEED):
            await self._around.start_history_anew()
        return None

    def _reflect(self) -> None:
        """Ask what open pauses want to know, all at once: none of them waits for another."""
        for opened in self._run.state.open_pauses:
            if opened.unit.name not in self._reflecting:
                self._reflecting[opened.unit.name] = asyncio.ensure_future(reflect(self._run, opened))

    async def _conclude(self) -> Pause:
        """Conclude the open pauses in the order of their units, whichever answer came first."""
        state = self._run.state
        await self._run.host.settle(list(self._reflecting.values()))
        while True:
            opened = state.open_pauses[0]
            self._reflecting[opened.unit.name].result()
            pause = await self._strategy.pause(self._run, opened)
            # A retry makes void what was done since.
            state.open_pauses = [] if pause.action is Action.RETRY else state.open_pauses[1:]
            if not state.open_pauses:
                self._reflecting.clear()
                return pause

    def _await_approval(self) -> None:
        """Let no unit begin beside the pause of a plan that a person has yet to approve."""
        if approval_is_due(self._run.state):
            for opened in self._run.state.open_pauses:
                opened.meanwhile = None

    def _check_interruption(self) -> None:
        if self._run.inbox.interruption is not None:
            raise Interrupted(self._run.inbox.interruption)

    def _take_steering(self) -> None:
        """What people asked for since the last unit holds from here on."""
        run = self._run
        while run.inbox.steering:
            run.steer(run.inbox.steering.pop(0))

    async def _abort(self) -> Outcome:
        """`on_deadline: abort`: save and stop, without a report."""
        self._run.state.status = RunStatus.TIMED_OUT
        self._run.note("run.finished", "timed out; the session is kept", outcome=Outcome.TIMED_OUT.value)
        await self._run.checkpoints.save(closed=True)
        return Outcome.TIMED_OUT

    async def _end_unworked(self, outcome: Outcome, reason: StopReason) -> Outcome:
        """A person did not let the work begin: save and stop, without a report; the plan is kept."""
        run, state = self._run, self._run.state
        explained = explain_unworked(reason, run.resolved.research_id)
        state.usage = state.usage.model_copy(update={"active_seconds": round(run.elapsed_seconds(), 3)})
        state.result = ResearchResult(
            research_id=run.resolved.research_id,
            outcome=outcome,
            stop_reason=reason,
            counts=counts_of(state),
            usage=state.usage,
            degraded=state.degraded,
            failed_branches=state.failed_branches,
            limitations=[explained],
            resumable=True,
            started_at=state.started_at,
            ended_at=run.now_text(),
            metadata=run.resolved.metadata,
        )
        state.status = RunStatus(outcome.value)
        run.note("run.finished", f"{outcome.value}: {reason.value}", outcome=outcome.value)
        await run.checkpoints.save(closed=True)
        return outcome

    async def _keep_cancelled(self) -> None:
        """Keep the state, with one save of at most five seconds."""
        run = self._run
        run.checkpoints.abandon()
        # The report may just have been written: without its result the run can go on, and says what it is.
        run.state.result = None
        run.state.status = RunStatus.CANCELLED
        run.note("run.finished", "cancelled; the session is kept", outcome=Outcome.CANCELLED.value)
        await self._save_at_the_end("save-cancelled", "the session could not be saved while cancelling")

    async def _save_at_the_end(self, step: str, otherwise: str) -> None:
        """One save of at most five seconds; the run ends even if nobody can save."""
        run = self._run
        try:
            await run.checkpoints.save(closed=True, options=cancel_save_options(run.operation(step)))
        except ActivityError:
            run.state.last_failure = otherwise
