"""The budget: reserved before each model call, settled after it. Pure functions of limits, usage and reservations.

A call may start only if its reservation fits on top of usage, calls in flight and the reserve for the report. No limit
is exceeded, because no call may use more than its reservation (`contracts.call_sizes`). A call gets all that its role
may use if that fits, else what it likely uses; if that does not fit beside calls in flight, it waits for them; if it
does not fit without them, it gets a part of it, down to `MIN_PART`.
"""

import math
from collections import Counter
from dataclasses import dataclass
from itertools import count
from typing import Final

from contracts.addresses import short_hash
from contracts.outcome import Usage
from contracts.resolved import EffectiveLimits, ModelPrice
from contracts.roles import RoleInput
from contracts.state import ResearchState
from contracts.tokens import TokenShare
from contracts.vocabulary import StopReason

REPORT_CALLS: Final = 2
"""Of a limit of calls, for the synthesis: writing and one repair."""
SYNTHESIS_SHARE: Final = 0.35
"""Largest share of a limit reserved for the synthesis, so that small limits leave something for research."""
CHECKING_CALLS: Final = 3
"""Of a limit of calls, for checking the report."""
CHECKING_SHARE: Final = 0.15
"""Largest share of each limit reserved for checking the report's claims with a model."""
CORRECTING_SHARE: Final = 0.05
"""Largest share of each limit reserved for correcting what the check finds doubtful."""
MIN_PART: Final = 0.3
"""Smallest part of its likely size that a call is made with."""
TOLERANCE_USD: Final = 1e-9
"""Sums of money are inexact in binary floating point."""
OF_ONE_ATTEMPT: Final = {"time_limit_seconds", "reserved_input_tokens", "reserved_output_tokens", "shorten"}
"""Fields of a call that do not identify its answer."""
MAX_PAID_FAILURES: Final = 200
"""Limit per session, so that a session resumed many times stays small."""


@dataclass(frozen=True)
class Reservation:
    """The most that a call may use; `cost_usd` is 0 if the price is unknown, so no cost can be reserved."""

    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: "Reservation") -> "Reservation":
        return Reservation(self.calls + other.calls, self.tokens + other.tokens, self.cost_usd + other.cost_usd)

    def unexplained_by(self, usage: Usage) -> "Reservation":
        """Return the part that stays reserved after the call: all that an answer without token counts may cost."""
        if usage.tokens or not usage.model_calls:
            return NOTHING
        return Reservation(0, self.tokens, self.cost_usd)


NOTHING: Final = Reservation()


def reservation(size: Usage, price: ModelPrice | None) -> Reservation:
    """Return the reservation for one call of at most this size at its tier's price."""
    return Reservation(1, size.tokens, size.max_usd(price) or 0.0)


def report_reserve(limits: EffectiveLimits, size: Usage, price: ModelPrice | None) -> Reservation:
    """Return the reserve for writing a report of this likely size, within each limit."""
    calls = REPORT_CALLS
    tokens = size.tokens
    cost = size.max_usd(price) or 0.0
    if limits.max_model_calls is not None:
        # One call is reserved for the report, however small the limit.
        calls = min(calls, max(1, int(limits.max_model_calls * SYNTHESIS_SHARE)))
    if limits.max_tokens is not None:
        tokens = min(tokens, int(limits.max_tokens * SYNTHESIS_SHARE))
    if limits.max_cost_usd is not None:
        cost = min(cost, limits.max_cost_usd * SYNTHESIS_SHARE)
    return Reservation(calls, tokens, cost)


def check_reserve(limits: EffectiveLimits, size: Usage, price: ModelPrice | None, count: int) -> Reservation:
    """Return the reserve for checking a report's claims in `count` calls of a likely size, within each limit."""
    if limits.max_model_calls is None:
        calls = CHECKING_CALLS
    else:
        calls = int(limits.max_model_calls * CHECKING_SHARE)
    return Reservation(
        min(CHECKING_CALLS, calls),
        min(count * size.tokens, int((limits.max_tokens or 0) * CHECKING_SHARE)),
        min(count * (size.max_usd(price) or 0.0), (limits.max_cost_usd or 0.0) * CHECKING_SHARE),
    )


def correction_reserve(limits: EffectiveLimits, size: Usage, price: ModelPrice | None, count: int) -> Reservation:
    """Return the reserve for `count` calls of a likely size that correct a report, beside that for its checks."""
    return Reservation(
        0,
        min(count * size.tokens, int((limits.max_tokens or 0) * CORRECTING_SHARE)),
        min(count * (size.max_usd(price) or 0.0), (limits.max_cost_usd or 0.0) * CORRECTING_SHARE),
    )


def refusal(
    limits: EffectiveLimits, used: Usage, reserved: Reservation, wanted: Reservation, reserve: Reservation = NOTHING
) -> StopReason | None:
    """Return the limit that the request would exceed, if any; only known costs count, including those of searches.

    `reserved` is reserved for calls in flight, `reserve` for the report.
    """
    needed = reserved + wanted + reserve
    if limits.max_model_calls is not None and used.model_calls + needed.calls > limits.max_model_calls:
        return StopReason.BUDGET_CALLS
    if limits.max_tokens is not None and used.tokens + needed.tokens > limits.max_tokens:
        return StopReason.BUDGET_TOKENS
    if limits.max_cost_usd is not None and used.known_cost_usd + needed.cost_usd > limits.max_cost_usd + TOLERANCE_USD:
        return StopReason.BUDGET_COST
    return None


def part_that_fits(
    size: Usage, tokens: float, cost_usd: float, price: ModelPrice | None, *, whole_input: bool
) -> Usage | None:
    """Return the largest part of a call's size that fits into the rest of a budget; None if it is below `MIN_PART`.

    `tokens` and `cost_usd` are the rest; infinity is no limit. With `whole_input` only the output is smaller.
    """
    output = float(size.output_tokens)
    if whole_input:
        output = min(output, tokens - size.input_tokens)
        if price is not None and price.output:
            output = min(output, (cost_usd * 1_000_000 - size.input_tokens * price.input) / price.output)
        part = output / size.output_tokens
    else:
        part = min(1.0, tokens / size.tokens, cost_usd / (size.max_usd(price) or math.inf))
        output *= part
    if not part >= MIN_PART:
        return None
    tokens_in = size.input_tokens if whole_input else int(size.input_tokens * part)
    return Usage(input_tokens=tokens_in, output_tokens=int(output))


class Reservations:
    """Reservations of one run: for calls in flight, and for calls that ended without reporting their usage."""

    def __init__(self) -> None:
        self._under_way: dict[int, tuple[Reservation, TokenShare]] = {}
        self.unexplained = NOTHING
        """Possible usage of abandoned calls, which may be billed."""
        self.unexplained_tokens = Counter[TokenShare]()
        self._numbers = count()
        self.changes = 0
        """Number of reservations that ended."""

    @property
    def under_way(self) -> bool:
        """Return true if a call or an agent has a reservation."""
        return bool(self._under_way)

    @property
    def total(self) -> Reservation:
        """Return everything reserved, which another call must not use."""
        return sum((reserved for reserved, _ in self._under_way.values()), self.unexplained)

    @property
    def total_tokens(self) -> dict[TokenShare, int]:
        """Return the tokens of all reservations, by share."""
        total = self.unexplained_tokens.copy()
        for reserved, share in self._under_way.values():
            total[share] += reserved.tokens
        return dict(total)

    def open(self, wanted: Reservation, share: TokenShare) -> int:
        """Reserve for a call that counts towards a token share; return the number that closes the reservation."""
        number = next(self._numbers)
        self._under_way[number] = wanted, share
        return number

    def close(self, number: int, left: Reservation) -> None:
        """End a reservation, except for `left`, whose use is unknown."""
        _, share = self._under_way.pop(number)
        self.unexplained = self.unexplained + left
        self.unexplained_tokens[share] += left.tokens
        self.changes += 1


def account(state: ResearchState, role: str, usage: Usage) -> None:
    """Add a role's usage in the current phase; searches and reads count for the gatherer (`AgentRole.GATHERER`)."""
    phase = state.work.phase or ""
    state.accounts.usage = state.accounts.usage.plus(usage)
    state.accounts.usage_by_role[role] = state.accounts.usage_by_role.get(role, Usage()).plus(usage)
    state.accounts.usage_by_phase[phase] = state.accounts.usage_by_phase.get(phase, Usage()).plus(usage)


def account_failure(state: ResearchState, role: str, request: RoleInput, usage: Usage) -> None:
    """Add the cost of an unusable answer once; a resumed run gets the same answer from the journal."""
    answer = f"{request.operation}:{short_hash(request.compact_json(exclude=OF_ONE_ATTEMPT))}"
    if answer not in state.accounts.paid_failures and usage != Usage():
        account(state, role, usage)
        note_repeated(state, role, request, usage)
        state.accounts.paid_failures = [*state.accounts.paid_failures, answer][-MAX_PAID_FAILURES:]


def note_repeated(state: ResearchState, role: str, request: RoleInput, usage: Usage) -> None:
    """Note a paid answer of an agent by name, and its usage if an earlier start of the agent has brought it, too.

    The journal gives an answer again with all its figures; an equal request that is paid anew has others.
    """
    if state.work.task is None or usage == Usage():
        return
    accounts = state.accounts
    asked = request.compact_json(exclude=OF_ONE_ATTEMPT)
    name = short_hash(request.operation, asked, usage.input_tokens, usage.output_tokens, usage.cost_usd)
    if name in accounts.answers_counted:
        accounts.repeated_by_role[role] = accounts.repeated_by_role.get(role, Usage()).plus(usage)
    else:
        accounts.answers_counted = [*accounts.answers_counted, name]
