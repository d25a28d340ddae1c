"""The driver: runs a strategy unit by unit, and always ends with exactly one outcome.

After each unit the driver, not the strategy, handles the pause, the limits and the checkpoint.
"""

import asyncio

from temporalio.exceptions import ActivityError

from contracts.names import RECORDS_QUEUE
from contracts.sentences import Message
from contracts.state import OpenPause, Unit
from contracts.vocabulary import Action, Outcome, RunStatus, StopReason
from workflows.phases.closing import close
from workflows.phases.pauses import HumanGate, reflect
from workflows.rules.endings import result_without_work
from workflows.run.calls import CANCEL_SAVE_SECONDS, call_options, describe_failure, explain, is_cancelled, is_outage
from workflows.run.inbox import Interrupted
from workflows.run.research_run import ResearchRun
from workflows.strategies.protocol import Finished, Strategy


class Driver:
    """One run under one strategy."""

    def __init__(self, run: ResearchRun, strategy: Strategy, *, stored: bool = False) -> None:
        """`stored` is true if the session store already has this session; else it is saved when the run starts."""
        self._run = run
        self._strategy = strategy
        self._gate = HumanGate(run)
        self._stored = stored
        self._reflecting: asyncio.Task[None] | None = None
        """The reflection made beside the current unit."""

    async def conduct(self) -> Outcome:
        """Run to the end and close with a report; a cancelled run saves its session and raises."""
        run = self._run
        if run.state.people.waiting is None:
            run.state.work.status = RunStatus.RUNNING
        run.clock.set_alarm()
        if not self._stored:
            run.checkpoints.save_in_background()
        try:
            reason = await self.work()
            run.end_work()
            run.inbox.closing = True
            self._gate.end()
            run.clock.cancel_alarm()
            if reason is StopReason.BUDGET_TIME and run.resolved.on_deadline == "abort":
                run.state.work.status = RunStatus.TIMED_OUT
                run.note_end(Outcome.TIMED_OUT, "timed out; the session is kept")
                await run.checkpoints.settle()  # no save of an older state may follow
                await run.checkpoints.save(closed=True)
                return Outcome.TIMED_OUT
            state = run.state
            if (result := result_without_work(state, reason, run.now_text())) is not None:
                # The plan was rejected or not approved, or questions were not answered in time; the plan is saved.
                state.work.result = result
                state.work.status = RunStatus(result.outcome.value)
                run.note_end(result.outcome, f"{result.outcome.value}: {reason.text}")
                await run.checkpoints.settle()
                await run.checkpoints.save(closed=True)
                return result.outcome
            return await close(run, reason, self._strategy.write_early)
        except (asyncio.CancelledError, ActivityError) as error:
            if isinstance(error, asyncio.CancelledError) or is_cancelled(error):
                await self._save_cancelled()
            raise
        finally:
            run.clock.cancel_alarm()
            run.checkpoints.abandon()

    async def work(self) -> StopReason:
        """Step until the strategy finishes or the work ends early, and return the reason."""
        try:
            while (reason := await self.step()) is None:
                pass
        except Interrupted as interrupted:
            return interrupted.reason
        except ActivityError as error:
            if not is_outage(error):
                raise
            # The call used up the time for work, so it is named as the cause.
            work = error.activity_type.replace("_", " ")
            note = Message("work_failed", work=work, reason=explain(error), detail=describe_failure(error))
            self._run.branch_failed(note)
            return StopReason.PROVIDER_OUTAGE
        return reason

    async def step(self) -> StopReason | None:
        """Do one unit and its pause, and return the stop reason once the strategy has finished.

        A pause that a resumed session left open is concluded first. Raises `Interrupted`.
        """
        run = self._run
        state = self._run.state
        drafted = state.evidence.draft
        run.inbox.check_interruption()
        if state.work.open_pause is None and not await self._gate.wait_for_approval():
            self._strategy.replan(state)
        run.take_steering()
        if state.work.open_pause is None:
            unit = await self._advance()
            if isinstance(unit, Finished):
                return unit.reason
            has_pending = state.work.pending_reflection is not None
            if has_pending:
                state.work.open_pause = OpenPause(unit=unit)
            else:
                state.work.open_pause = self._strategy.evaluate(run, unit)
        opened = state.work.open_pause
        pause = None
        if (pending := state.work.pending_reflection) is not None:
            await (self._reflecting or reflect(run, pending))
            self._reflecting = None
            pause = self._strategy.take_reflection(run, pending)
            state.work.pending_reflection = None
            if pause is None:
                opened = state.work.open_pause = self._strategy.evaluate(run, opened.unit)
        if pause is None:
            if not opened.beside:
                await reflect(run, opened)
            pause = await self._strategy.pause(run, opened)
            state.work.pending_reflection = opened if opened.beside else None
        state.work.pause = pause
        state.work.open_pause = None
        run.inbox.check_interruption()
        # A new draft is saved at once: it is served only when the stored session names it, and later calls send diffs.
        run.checkpoints.save_in_background(at_once=state.evidence.draft is not drafted)
        if opened.unit.iteration_ended and pause.action in (Action.ITERATE, Action.PROCEED):
            await run.hooks.continue_as_new()
        return None

    async def _advance(self) -> Unit | Finished:
        """Do the next unit, and beside it the reflection on the one before, if that is pending."""
        run = self._run
        pending = self._run.state.work.pending_reflection
        if pending is None or pending.reflection is not None:
            return await self._strategy.advance(run)
        reflecting = self._reflecting = asyncio.ensure_future(reflect(run, pending))
        is_done = False
        try:
            unit = await self._strategy.advance(run)
            is_done = True
        finally:
            if not is_done:
                self._reflecting = None
                reflecting.cancel()
                await run.host.settle([reflecting])
        return unit

    async def _save_cancelled(self) -> None:
        run = self._run
        run.end_work()
        run.checkpoints.abandon()
        # The report may just have been written; without its result the run can be resumed.
        run.state.work.result = None
        run.state.work.status = RunStatus.CANCELLED
        run.note_end(Outcome.CANCELLED, "cancelled; the session is kept")
        await self.save_at_the_end()

    async def save_at_the_end(self) -> None:
        """Save once, within five seconds; if that fails, the last checkpoint remains and the run still ends."""
        run = self._run
        run.end_work()
        operation = run.operation("save-at-the-end")
        options = call_options(RECORDS_QUEUE, operation, "save the session at the end", first=True)
        try:
            await run.checkpoints.save(closed=True, options=options.within(CANCEL_SAVE_SECONDS))
        except (ActivityError, ValueError):  # ValueError: the state cannot be stored as JSON
            run.state.work.last_failure = (
                f"{run.state.work.last_failure} (the session could not be saved at the end)".strip()
            )
