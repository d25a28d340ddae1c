"""The limits of outside services as one object: permits that all workers share."""

import secrets
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from hashlib import blake2s
from typing import Any, Final, TypeVar

from providers.errors import AnswerUnusable, RateLimited, SharedStateUnavailable, StorageFull
from providers.interfaces import SharedStore
from providers.shared.compare_and_swap import Agreed, Agreement, Change, Scope, dump_state, load_state
from providers.shared.own_part import OwnPart
from providers.shared.rate_rules import (
    SHORTEST_WAIT_SECONDS,
    CallRequest,
    Granted,
    MustWait,
    Refusal,
    give_back_probe,
    record_answer,
    record_refusal,
    request_call,
    settle_tokens,
)
from providers.shared.rates import (
    ALONE,
    UNLIMITED,
    RateState,
    ServiceLimits,
    adopt_clock,
    limits_for_one,
    ttl_of_state,
)
from providers.shared.refusal_memory import RefusalMemory, keep_aftermath
from providers.shared.shielded_tasks import ShieldedTasks
from providers.shared.store_keys import quote_part
from providers.shared.stores.memory_store import steady_time

T = TypeVar("T")

REFUSAL_TRIES: Final = 5


@dataclass
class CallPermit:
    """One call that the limits allow."""

    asking: CallRequest
    granted_at: float
    among: Scope
    probe: bool
    tokens: int

    def used(self, tokens: int) -> None:
        """Tell how many tokens the call really took."""
        self.tokens = max(0, tokens)


class SharedLimiter:
    """Implements `Limiter` over a shared store.

    Where the shared store cannot be used, each worker keeps to the part of every limit that was its own before, and to
    the rate that went well where none is configured: never to no limit. A pause that a worker has seen it keeps, also
    if the store loses it or its clock jumps. Nothing here sleeps: a call that must wait gets `retry_after`.
    """

    def __init__(
        self,
        store: SharedStore,
        limits_by_service: Mapping[str, ServiceLimits],
        *,
        share_when_degraded: float = 0.25,
        alone: ServiceLimits = ALONE,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """`share_when_degraded`, above 0 and at most 1, is the least; `clock` shows seconds and never jumps.

        `alone` is the least where nothing is configured. Raises `ValueError`.
        """
        if not 0 < share_when_degraded <= 1:
            raise ValueError("a share is above 0 and at most 1")
        self._clock = steady_time() if clock is None else clock
        self._agreement = Agreement(store, self._clock)
        self._limits = dict(limits_by_service)
        self._alone = alone
        self._part = OwnPart(self._clock, share_when_degraded)
        self._memory = RefusalMemory(self._clock)
        self._tasks = ShieldedTasks()

    @asynccontextmanager
    async def permit(self, service: str, holder: str, tokens: int = 0) -> AsyncIterator[CallPermit]:
        """Allow one call for the time of the block. Raises `RateLimited` before it when the call must wait."""

        def undo(permit: CallPermit) -> Coroutine[Any, Any, None]:
            return self._end_call(service, replace(permit, tokens=0), was_answered=False)

        permit = await self._tasks.acquire(self._request(service, _asking(holder, tokens)), undo)
        try:
            yield permit
        except RateLimited as error:
            seconds = await self._tasks.finish(self._record_refusal(service, permit, error.retry_after))
            told = RateLimited(str(error), retry_after=seconds)
            told.usage, told.service = error.usage, service
            raise told from error
        except AnswerUnusable:
            await self._tasks.finish(self._end_call(service, permit, was_answered=True))
            raise
        except BaseException:
            # Whether the service answered is not known: it proves nothing about its limit.
            await self._tasks.finish(self._end_call(service, permit, was_answered=False))
            raise
        else:
            await self._tasks.finish(self._end_call(service, permit, was_answered=True))

    async def close(self) -> None:
        """Wait for what cancelled calls left to be settled."""
        await self._tasks.close()

    def _limits_of(self, service: str, alone: bool) -> ServiceLimits:
        limits = self._limits.get(service, UNLIMITED)
        if not alone:
            return limits
        return limits_for_one(limits, self._part.share(service), self._part.best_minute(service), self._alone)

    async def _request(self, service: str, asking: CallRequest) -> CallPermit:
        def decision(state: RateState, now: float, alone: bool) -> tuple[RateState, Granted | MustWait]:
            return request_call(state, now, asking, self._limits_of(service, alone))

        agreed = await self._decide(service, asking, decision)
        if isinstance(agreed.result, MustWait):
            raise RateLimited(f"{service} is asked as often as it allows", retry_after=agreed.result.seconds)
        granted = agreed.result
        return CallPermit(asking, granted.at, agreed.among, granted.probe, asking.tokens)

    async def _end_call(self, service: str, permit: CallPermit, *, was_answered: bool) -> None:
        if not permit.probe and not self._to_settle(service, permit):
            return

        def decide(value: bytes | None, now: float) -> Change[None]:
            limits = self._limits_of(service, permit.among.alone)
            state = _state(value, now)
            state = settle_tokens(state, now, limits, estimated=permit.asking.tokens, used=permit.tokens)
            name = permit.asking.permit
            state = record_answer(state, now, name) if was_answered else give_back_probe(state, name)
            return _change(state, now, limits, None)

        with suppress(SharedStateUnavailable, StorageFull, RateLimited):  # what is not settled runs out by itself
            await self._agreement.change_among(permit.among, _key(service), decide)

    def _to_settle(self, service: str, permit: CallPermit) -> bool:
        limits = self._limits_of(service, permit.among.alone)
        return limits.tokens_per_minute is not None and permit.tokens != permit.asking.tokens

    async def _record_refusal(self, service: str, permit: CallPermit, retry_after: float | None) -> float:
        def decision(state: RateState, now: float, alone: bool) -> tuple[RateState, MustWait]:
            limits = self._limits_of(service, alone)
            # Granted by one clock and refused by another: then it counts as begun before the last decrease.
            granted_at = permit.granted_at if alone == permit.among.alone else 0.0
            state = settle_tokens(state, now, limits, estimated=permit.asking.tokens, used=0)
            return record_refusal(state, now, permit.asking, Refusal(retry_after, granted_at), limits)

        for _ in range(REFUSAL_TRIES):
            with suppress(RateLimited):  # contention: the refusal still has to be recorded
                return (await self._decide(service, permit.asking, decision)).result.seconds
        return max(SHORTEST_WAIT_SECONDS, retry_after or 0.0)

    async def _decide(
        self, service: str, asking: CallRequest, decision: Callable[[RateState, float, bool], tuple[RateState, T]]
    ) -> Agreed[T]:
        """Decide with what this worker knows of refusals besides, and remember what is known then."""
        began = self._clock()

        def decide(value: bytes | None, now: float, alone: bool) -> Change[tuple[RateState, T]]:
            state = self._memory.add_known_refusals(service, _state(value, now), now, began=began, name=asking.permit)
            state, result = decision(state, now, alone)
            seen = keep_aftermath(state, now, self._clock())
            return _change(state, now, self._limits_of(service, alone), (seen, result))

        agreed = await self._agreement.change(_key(service), decide)
        seen, result = agreed.result
        self._memory.keep(service, seen)
        if agreed.among is Scope.ALL and isinstance(result, Granted):
            self._part.granted(service, sum(entry.amount for entry in seen.recent))
        return Agreed(result, agreed.among)


def _key(service: str) -> str:
    return f"limits/{quote_part(service)}"


def _state(value: bytes | None, now: float) -> RateState:
    return adopt_clock(load_state(RateState, value), now)


def _asking(holder: str, tokens: int) -> CallRequest:
    # A holder's name may be long and hold what a user chose: only its hash is shared.
    name = blake2s(holder.encode("utf-8", "surrogatepass"), digest_size=9).hexdigest()
    return CallRequest(holder=name, permit=secrets.token_hex(6), tokens=max(0, tokens))


def _change(state: RateState, now: float, limits: ServiceLimits, result: T) -> Change[T]:
    return Change(dump_state(state), result, ttl_of_state(state, now, limits))
