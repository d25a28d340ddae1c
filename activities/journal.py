"""Paid calls through the call store: no answered call is paid for again, and no call in flight is made twice."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, Final

import structlog

from activities.failures import count, is_attempt_lost
from contracts.outcome import Usage
from providers.errors import AnswerUnusable, ProviderError
from providers.interfaces import Engine, EngineAnswer, EngineTask
from providers.models import answers
from providers.shared.paid_calls import CallLease, CallStore
from providers.shared.shared_value import CANCELLED_AGAIN_SECONDS, running

LEASE_SECONDS: Final = 12.0  # below the heartbeat timeout of 15 s, after which the server starts the next attempt
RENEW_SECONDS: Final = 4.0

Charge = Callable[[str, str, float], Coroutine[Any, Any, None]]
"""Counts US dollars of a run (id and tenant) against its day. Raises `ProviderError`."""

log = structlog.get_logger()


@dataclass(frozen=True, eq=False)
class CallJournal:
    """Makes paid calls under a lease, and stores each answer before returning it."""

    calls: CallStore
    charge: Charge | None = None
    """Counts the US dollars of a paid call of a run and its tenant; None: they are not counted."""
    renew_seconds: float = RENEW_SECONDS

    async def answer(self, engine: Engine, task: EngineTask) -> EngineAnswer:
        """Return the stored answer to this exact request, else a new one; unusable ones, also paid, are stored too.

        Raises the errors of the engine, `CallInFlight` while another attempt has the lease, `ContentCorrupt` if the
        stored answer cannot be read.
        """
        request = task.input
        # The key is the request, not its purpose: a run never pays for the same request twice.
        key = f"{request.tenant}/{request.research_id}/{answers.request_fingerprint(task)}"
        begun = await self.calls.begin(key, request.research_id, LEASE_SECONDS)
        if isinstance(begun, str):
            count("research_journal_hits", "Model calls that were answered from the journal and not paid again")
            return self._read_stored(begun, task)
        async with running(self._renew(begun)):
            return await self._call_engine(engine, task, begun)

    def _read_stored(self, stored: str, task: EngineTask) -> EngineAnswer:
        """Read a stored answer. One that another operation of the run paid for costs nothing more."""
        operation, _, text = stored.partition("\n")
        same = operation == task.input.operation
        try:
            answer = answers.answer_from_json(text, task.role)
        except AnswerUnusable as error:
            error.usage = error.usage if same else Usage()
            raise
        if same:
            return answer
        return replace(answer, usage=Usage())

    async def _call_engine(self, engine: Engine, task: EngineTask, lease: CallLease) -> EngineAnswer:
        try:
            answer = await _outlast_attempt(engine.answer(task))
        except AnswerUnusable as error:
            await self._write(lease, task, error)
            await count_cost(self.charge, task.input.research_id, task.input.tenant, error.usage)
            raise
        except BaseException:
            try:
                await _finish(self.calls.release(lease))
            except ProviderError as error:
                log.warning("journal.lease_not_released", error=type(error).__name__)
            raise
        if not await self._write(lease, task, answer):
            answer.warnings.append("the answer could not be stored: a lost attempt would pay for it again")
        await count_cost(self.charge, task.input.research_id, task.input.tenant, answer.usage)
        return answer

    async def _write(self, lease: CallLease, task: EngineTask, answer: EngineAnswer | AnswerUnusable) -> bool:
        """Store a paid answer. Return false if the store fails: the answer is still usable."""
        try:
            text = f"{task.input.operation}\n{answers.answer_to_json(answer)}"
            await _finish(self.calls.finish(lease, text))
        except ProviderError as error:
            log.warning("journal.answer_not_stored", error=type(error).__name__)
            return False
        return True

    async def _renew(self, lease: CallLease) -> None:
        while True:
            await asyncio.sleep(self.renew_seconds)
            try:
                await self.calls.renew(lease, LEASE_SECONDS)
            except ProviderError as error:
                # Let the paid call finish: abandoning it would certainly lose the answer.
                log.warning("journal.lease_not_renewed", error=type(error).__name__)


async def count_cost(charge: Charge | None, research_id: str, tenant: str, usage: Usage) -> None:
    """Count what a paid call of a run has cost, if it is counted; a failure of the store is logged."""
    if charge is None or not usage.known_cost_usd:
        return
    try:
        await _finish(charge(research_id, tenant, usage.known_cost_usd))
    except ProviderError as error:
        log.warning("budget.call_not_counted", error=type(error).__name__)


async def _outlast_attempt(call: Coroutine[Any, Any, EngineAnswer]) -> EngineAnswer:
    """Make a call, and finish it even if the server gives up its attempt: the next one then finds its answer stored.

    A loaded machine may send no heartbeat for 15 s; the call is on its way all the same, and may be answered already.
    Raises the cancellation where the run or the worker ends.
    """
    task = asyncio.ensure_future(call)
    try:
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not await is_attempt_lost():
                raise
        log.warning("journal.attempt_lost")
        return await asyncio.shield(task)
    finally:
        while not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=CANCELLED_AGAIN_SECONDS)


async def _finish(work: Coroutine[Any, Any, None]) -> None:
    """Finish the work even if this task is cancelled, then raise the cancellation."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise
