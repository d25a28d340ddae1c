"""Endpoints that keep failing are left alone: what the engine needs of circuits, and those of one process."""

import time
from collections.abc import Callable
from typing import Protocol

from providers.shared.circuit_breaker import Circuit, CircuitState, allow_call, circuit_state, record_outcome


class Circuits(Protocol):
    """Circuits by the name of a service. Where workers share them, see `providers.shared.circuit_breaker`."""

    async def allow(self, name: str) -> bool:
        """Whether the service may be asked now. Who is told yes must `report`."""
        ...

    async def report(self, name: str, ok: bool | None) -> None:
        """Tell how a call ended; null if it says nothing about the service."""
        ...

    async def state(self, name: str) -> CircuitState:
        """Where the circuit stands."""
        ...


class LocalCircuits:
    """Circuits of this process alone."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._circuits: dict[str, Circuit] = {}

    async def allow(self, name: str) -> bool:
        """Whether the service may be asked now."""
        self._circuits[name], allows = allow_call(self._circuits.get(name, Circuit()), self._clock())
        return allows

    async def report(self, name: str, ok: bool | None) -> None:
        """Tell how a call ended."""
        self._circuits[name] = record_outcome(self._circuits.get(name, Circuit()), self._clock(), ok)

    async def state(self, name: str) -> CircuitState:
        """Where the circuit stands."""
        return circuit_state(self._circuits.get(name, Circuit()), self._clock())
