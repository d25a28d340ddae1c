"""Who may ask a host now: pure decisions, all by the store's clock."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

MOST_AT_ONCE: Final = 2
"""Requests to one host at the same time, of all workers together."""
LONGEST_DELAY_SECONDS: Final = 10.0
"""A site may ask for no more time between requests."""
LEASE_SECONDS: Final = 12.0
"""Renewed while the request is being made: a holder that was killed is in nobody's way for longer."""
GRACE_SECONDS: Final = 5.0
"""So much later than told a holder may come and still have its place."""
EARLY_SECONDS: Final = 0.02
FIRST_WAIT_SECONDS: Final = 1.0
"""A guess of how long a request takes."""
WAIT_GROWTH: Final = 1.5
MOST_GROWTHS: Final = 5
MOST_WAITING: Final = 200
LONGEST_WAIT_SECONDS: Final = 300.0
CLOCK_SECONDS: Final = 5.0


class HostLease(NamedTuple):
    """One request that is being made."""

    id: str
    until: float


class Waiting(NamedTuple):
    """A holder in line: when it comes back, and how often it came in vain."""

    holder: str
    at: float
    told: int


class HostState(BaseModel):
    """What workers share about one host. Times are seconds since the epoch by the store's clock."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    changed_at: float = 0.0
    last_start: float = 0.0
    leases: tuple[HostLease, ...] = ()
    line: tuple[Waiting, ...] = ()
    """In the order of asking."""


@dataclass(frozen=True)
class Visiting:
    """A request that wants to go. `lease` names this very attempt, `holder` the operation that it belongs to."""

    holder: str
    lease: str
    delay_seconds: float = 0.0
    """What the site asks for between the starts of requests."""
    most_at_once: int = MOST_AT_ONCE


def visited(state: HostState, now: float, visiting: Visiting) -> tuple[HostState, float]:
    """The state, and how many seconds the request must wait: 0 if it goes now."""
    state = current(state, now)
    ahead = _ahead(state.line, visiting.holder)
    if _may_go(state, now, visiting, len(ahead)):
        lease = HostLease(visiting.lease, now + LEASE_SECONDS)
        line = tuple(waiting for waiting in state.line if waiting.holder != visiting.holder)
        return state.model_copy(update={"last_start": now, "leases": (*state.leases, lease), "line": line}), 0.0
    mine = next((waiting for waiting in state.line if waiting.holder == visiting.holder), None)
    if mine is not None and mine.at > now + EARLY_SECONDS:
        return state, mine.at - now
    told = 0 if mine is None else mine.told + 1
    at = min(_next_try(state, now, visiting, ahead, told), now + LONGEST_WAIT_SECONDS)
    if mine is None and len(state.line) >= MOST_WAITING:
        return state, at - now
    entry = Waiting(visiting.holder, at, told)
    line = (
        (*state.line, entry) if mine is None else tuple(entry if waiting == mine else waiting for waiting in state.line)
    )
    return state.model_copy(update={"line": line}), at - now


def kept_up(state: HostState, now: float, lease: str) -> HostState:
    """A request goes on: its lease begins anew, also one that ran out while its worker could not tell."""
    others = tuple(entry for entry in state.leases if entry.id != lease)
    return state.model_copy(update={"leases": (*others, HostLease(lease, now + LEASE_SECONDS))})


def left(state: HostState, lease: str) -> HostState:
    """A request has ended."""
    return state.model_copy(update={"leases": tuple(entry for entry in state.leases if entry.id != lease)})


def current(state: HostState, now: float) -> HostState:
    """Without leases that ran out and places that nobody came for."""
    if state.changed_at > now + CLOCK_SECONDS:  # kept by another clock
        return HostState(changed_at=now)
    leases = tuple(lease for lease in state.leases if lease.until > now)
    line = tuple(waiting for waiting in state.line if waiting.at + GRACE_SECONDS >= now)
    return state.model_copy(update={"changed_at": now, "leases": leases, "line": line})


def host_state_to_bytes(state: HostState) -> bytes:
    """As it is kept in the store."""
    return state.model_dump_json(exclude_defaults=True).encode()


def host_state_from_bytes(value: bytes | None) -> HostState:
    """Inverse of `host_state_to_bytes`; what is no state counts as none, for anybody might have written it."""
    if value is None:
        return HostState()
    try:
        return HostState.model_validate_json(value)
    except ValidationError:
        return HostState()


def _ahead(line: tuple[Waiting, ...], holder: str) -> tuple[Waiting, ...]:
    for index, waiting in enumerate(line):
        if waiting.holder == holder:
            return line[:index]
    return line


def _delay(visiting: Visiting) -> float:
    return max(0.0, min(LONGEST_DELAY_SECONDS, visiting.delay_seconds))


def _may_go(state: HostState, now: float, visiting: Visiting, ahead: int) -> bool:
    delay = _delay(visiting)
    free = visiting.most_at_once - len(state.leases)
    if delay > 0:  # one start after the other: whoever is ahead comes first
        return ahead == 0 and free > 0 and now >= state.last_start + delay
    return ahead < free


def _next_try(state: HostState, now: float, visiting: Visiting, ahead: tuple[Waiting, ...], told: int) -> float:
    rounds = 1 + len(ahead) // visiting.most_at_once
    wait = FIRST_WAIT_SECONDS * WAIT_GROWTH ** min(told, MOST_GROWTHS)
    delay = _delay(visiting)
    if delay == 0:
        return now + rounds * wait
    start = state.last_start + delay * (1 + len(ahead))
    after = ahead[-1].at + delay if ahead else start
    taken = now + wait if len(state.leases) >= visiting.most_at_once else now + FIRST_WAIT_SECONDS
    return max(start, after, taken)
