"""Circuit breaker: no worker calls an endpoint for a while after it failed several times in a row."""

from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from typing import Final, TypeVar

from cachetools import TTLCache
from pydantic import BaseModel, ConfigDict

from providers.errors import (
    AnswerUnusable,
    NotConfigured,
    ProviderError,
    RateLimited,
    Rejected,
    SharedStateUnavailable,
    Unavailable,
)
from providers.interfaces import SharedStore
from providers.shared.compare_and_swap import Agreement, Change, dump_state, load_state
from providers.shared.store_keys import quote_part

FAILURES_TO_OPEN: Final = 5
WINDOW_SECONDS: Final = 120.0
"""Failures longer apart than this are not consecutive."""
OPEN_SECONDS: Final = 30.0
PROBE_LEASE_SECONDS: Final = 60.0
"""A probe whose worker was killed makes room for another after so long."""
KEPT_SECONDS: Final = 600.0
CLOCK_SECONDS: Final = 5.0
BELIEVED_SECONDS: Final = 0.5
MOST_ENDPOINTS: Final = 1_000

T = TypeVar("T")


class CircuitState(StrEnum):
    """Whether an endpoint is asked."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"
    """One call finds out whether it works again."""


class Circuit(BaseModel):
    """What workers share about an endpoint; without failures there is nothing to share."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    failures: int = 0
    failed_at: float = 0.0
    opened_at: float | None = None
    probe_until: float = 0.0


def circuit_state(circuit: Circuit, now: float) -> CircuitState:
    """Where a circuit stands."""
    if circuit.opened_at is None:
        return CircuitState.CLOSED
    return CircuitState.OPEN if now < circuit.opened_at + OPEN_SECONDS else CircuitState.HALF_OPEN


def allow_call(circuit: Circuit, now: float) -> tuple[Circuit, bool]:
    """Return whether the endpoint may be called now; half open, one call may as the probe."""
    state = circuit_state(circuit, now)
    if state is not CircuitState.HALF_OPEN:
        return circuit, state is CircuitState.CLOSED
    if now < circuit.probe_until:
        return circuit, False
    return circuit.model_copy(update={"probe_until": now + PROBE_LEASE_SECONDS}), True


def record_outcome(circuit: Circuit, now: float, ok: bool | None) -> Circuit:
    """Record the outcome of a call. Any success closes the circuit; a failure opens it again while it is half open.

    None says nothing of the endpoint, and lets another call be the probe.
    """
    if ok is None:
        return circuit.model_copy(update={"probe_until": 0.0})
    if ok:
        return Circuit()
    state = circuit_state(circuit, now)
    if state is CircuitState.OPEN:  # of a call that was begun before: nothing new
        return circuit
    consecutive = now - circuit.failed_at <= WINDOW_SECONDS
    failures = circuit.failures + 1 if consecutive else 1
    opens = state is CircuitState.HALF_OPEN or failures >= FAILURES_TO_OPEN
    return Circuit(failures=failures, failed_at=now, opened_at=now if opens else None)


def judge_outcome(error: ProviderError | None) -> bool | None:
    """Return what to report of a call: True if the endpoint works, False if not, None if the call does not show it.

    A refusal for speed (429) has its own limit. A key that is missing or wrong is this worker's own configuration:
    other workers may have a valid one, so it opens no shared circuit.
    """
    if error is None or isinstance(error, AnswerUnusable):
        return True
    if isinstance(error, Unavailable) and not isinstance(error, SharedStateUnavailable):
        return False
    if isinstance(error, Rejected) and not isinstance(error, NotConfigured):
        return True
    return None


class CircuitBreaker:
    """Circuits of endpoints by name, over a shared store; while that cannot be used, each worker keeps its own.

    A circuit that was closed a moment ago is not read again: the calls of a
    busy worker would otherwise read the store twice each.
    """

    def __init__(self, store: SharedStore, *, believed_seconds: float = BELIEVED_SECONDS) -> None:
        self._agreement = Agreement(store)
        self._well: TTLCache[str, bool] = TTLCache(MOST_ENDPOINTS, believed_seconds)

    async def allow(self, name: str) -> bool:
        """Return whether the endpoint may be called now; the caller then must `report`."""
        if self._is_believed_well(name):
            return True
        try:
            return await self._changed(name, allow_call)
        except RateLimited:  # another worker's call is the probe
            return False

    async def report(self, name: str, ok: bool | None) -> None:
        """Record how a call ended; see `judge_outcome`."""
        if ok is not False and self._is_believed_well(name):
            return  # there is nothing that it could mend
        with suppress(RateLimited):  # other workers report on the same endpoint right now
            await self._changed(name, lambda circuit, now: (record_outcome(circuit, now, ok), None))

    async def state(self, name: str) -> CircuitState:
        """Where the circuit stands."""
        return await self._agreement.read(_key(name), lambda value, now: circuit_state(_circuit(value, now), now))

    def _is_believed_well(self, name: str) -> bool:
        return name in self._well

    async def _changed(self, name: str, change: Callable[[Circuit, float], tuple[Circuit, T]]) -> T:
        def decide(value: bytes | None, now: float, _: bool) -> Change[tuple[Circuit, T]]:
            circuit, result = change(_circuit(value, now), now)
            return Change(_bytes(circuit), (circuit, result), KEPT_SECONDS)

        circuit, result = (await self._agreement.change(_key(name), decide)).result
        if circuit == Circuit():
            self._well[name] = True
        else:
            self._well.pop(name, None)
        return result


def _key(name: str) -> str:
    return f"circuits/{quote_part(name)}"


def _bytes(circuit: Circuit) -> bytes | None:
    return None if circuit == Circuit() else dump_state(circuit)


def _circuit(value: bytes | None, now: float) -> Circuit:
    """Return the stored circuit; an invalid value and a time in the future count as none."""
    circuit = load_state(Circuit, value)
    return Circuit() if circuit.failed_at > now + CLOCK_SECONDS else circuit
