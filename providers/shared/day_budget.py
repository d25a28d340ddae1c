"""The money of a day (UTC): what runs have spent, and what they may still spend, in total and by tenant.

A run reserves the rest of its cost limit before its first call; each paid call moves its price from what is reserved to
what is spent; the rest of a reservation ends with the run, or with its disappearance from the server. All of it is one
value, so that two runs at once cannot reserve the same money.
"""

import math
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel

from contracts.base import CheckedModel
from contracts.ceilings import Budgets
from providers.errors import ProviderError
from providers.interfaces import SharedStore
from providers.schemas import DAY
from providers.shared.shared_value import SharedValue

KEY: Final = "budgets/day"
DAY_SECONDS: Final = 86_400.0
STORED_SECONDS: Final = 40 * DAY_SECONDS  # longer than a run waits for a person
GRACE_SECONDS: Final = 30.0
"""Time allowed for the server to list a new run."""
MONEY_DIGITS: Final = 10

OpenRuns = Callable[[], Awaitable[Collection[str]]]
"""Returns the ids of all open runs of a namespace. Raises `ProviderError` if the server does not answer."""


class ReservedMoney(CheckedModel):
    """What a run may still spend, in US dollars."""

    tenant: str
    usd: float
    since: float
    """Time of the reservation, in seconds since the epoch by the store's clock."""


class DayState(BaseModel):
    """A day's money in US dollars."""

    day: int = 0
    """Days since the epoch (UTC)."""
    spent: dict[str, float] = {}
    """By tenant."""
    runs: dict[str, ReservedMoney] = {}
    """By namespace and id of a run."""


@dataclass(frozen=True)
class MoneyLeft:
    """What a tenant has of a day, in US dollars."""

    limit: float | None
    """None: no budget."""
    spent: float
    reserved: float
    runs: int
    """Runs that have something reserved."""
    place: str
    """Key of the configuration that sets the limit."""
    returns_in: float
    """Seconds until the next day begins."""

    @property
    def left(self) -> float:
        """Return what another run may reserve; infinity without a budget."""
        if self.limit is None:
            return math.inf
        return max(0.0, round(self.limit - self.spent - self.reserved, MONEY_DIGITS))


def begin_day(state: DayState, now: float) -> None:
    """Forget what was spent on earlier days; what runs have reserved goes on. A clock set back forgets nothing."""
    today = int(now // DAY_SECONDS)
    if today > state.day:
        state.spent = {}
    state.day = today


def money_of(state: DayState, budgets: Budgets, tenant: str | None, now: float, *, without: str = "") -> MoneyLeft:
    """Return the money of a tenant, None: of all together; `without` is a run that does not count."""
    runs = [run.usd for name, run in state.runs.items() if name != without and tenant in (None, run.tenant)]
    spent = [usd for name, usd in state.spent.items() if tenant in (None, name)]
    return MoneyLeft(
        limit=budgets.usd_per_day if tenant is None else budgets.tenants.get(tenant),
        spent=round(sum(spent), MONEY_DIGITS),
        reserved=round(sum(runs), MONEY_DIGITS),
        runs=len(runs),
        place="budgets.usd_per_day" if tenant is None else f"budgets.tenants.{tenant}",
        returns_in=DAY_SECONDS - now % DAY_SECONDS,
    )


def reserve(
    state: DayState, budgets: Budgets, run: str, tenant: str, usd: float | None, now: float, *, cuts: bool
) -> tuple[float | None, MoneyLeft | None]:
    """Reserve for a run; return what it has, None for nothing, and the budget that lacks the rest, if one does.

    `usd` is the rest of its cost limit, None without a limit. With `cuts` a run gets what is left. An earlier
    reservation of the run is replaced.
    """
    begin_day(state, now)
    both = (money_of(state, budgets, name, now, without=run) for name in (tenant, None))
    tightest = min(both, key=lambda money: money.left)
    granted = usd
    if (math.inf if usd is None else usd) > tightest.left:
        if not cuts or tightest.left <= 0:
            return None, tightest
        granted = tightest.left
    state.runs[run] = ReservedMoney(tenant=tenant, usd=granted or 0.0, since=now)
    return granted, None if granted == usd else tightest


def charge(state: DayState, run: str, tenant: str, usd: float, now: float) -> None:
    """Count money that a run has spent; its tenant is that of its reservation, if it has one."""
    begin_day(state, now)
    entry = state.runs.get(run)
    if entry is not None:
        tenant = entry.tenant
        state.runs[run] = entry.with_fields(usd=max(0.0, round(entry.usd - usd, MONEY_DIGITS)))
    state.spent[tenant] = round(state.spent.get(tenant, 0.0) + usd, MONEY_DIGITS)


def forget_lost(state: DayState, namespace: str, open_runs: Collection[str] | None, now: float) -> None:
    """End the reservations of a namespace's runs that are not open, except those that just began; None: not known."""
    if open_runs is None:
        return
    prefix = f"{namespace}/"
    state.runs = {
        name: run
        for name, run in state.runs.items()
        if not name.startswith(prefix) or name.removeprefix(prefix) in open_runs or now - run.since <= GRACE_SECONDS
    }


async def read_day(store: SharedStore) -> DayState | None:
    """Return the money of a day as it is stored; None if there is none. Raises the errors of the store."""
    return await SharedValue(store, DayState, DAY, None).read(KEY)


class DayBudget:
    """The money of a day in a shared store. Every method raises the errors of the store."""

    def __init__(self, store: SharedStore, budgets: Budgets, namespace: str, open_runs: OpenRuns) -> None:
        self.budgets = budgets
        self._days = SharedValue(store, DayState, DAY, STORED_SECONDS)
        self._namespace = namespace
        self._open_runs = open_runs

    async def reserve(
        self, research_id: str, tenant: str, usd: float | None, *, cuts: bool, is_trial: bool = False
    ) -> tuple[float | None, MoneyLeft | None]:
        """Reserve for a run (see `reserve`); what lost runs have reserved ends before less than all is granted.

        With `is_trial` nothing is reserved, and the result is what the run would get.
        """
        run = f"{self._namespace}/{research_id}"

        def step(state: DayState, now: float) -> tuple[DayState, tuple[float | None, MoneyLeft | None]]:
            forget_lost(state, self._namespace, open_runs, now)
            tried = state.model_copy(deep=True) if is_trial else state
            return state, reserve(tried, self.budgets, run, tenant, usd, now, cuts=cuts)

        open_runs: Collection[str] | None = None
        result = await self._days.update(KEY, step)
        if result[1] is not None:
            with suppress(ProviderError):
                open_runs = await self._open_runs()
                result = await self._days.update(KEY, step)
        return result

    async def charge(self, research_id: str, tenant: str, usd: float) -> None:
        """Count what a paid call of a run costs."""
        run = f"{self._namespace}/{research_id}"

        def step(state: DayState, now: float) -> tuple[DayState, None]:
            charge(state, run, tenant, usd, now)
            return state, None

        await self._days.update(KEY, step)

    async def release(self, research_id: str) -> None:
        """End the reservation of a run; what it has spent stays counted."""

        def step(state: DayState, now: float) -> tuple[DayState, None]:
            begin_day(state, now)
            state.runs.pop(f"{self._namespace}/{research_id}", None)
            return state, None

        await self._days.update(KEY, step)

    async def look(self) -> tuple[MoneyLeft, dict[str, MoneyLeft]]:
        """Return the money of all tenants together, and by tenant that has a budget, money or runs of its own."""

        def step(state: DayState, now: float) -> tuple[DayState, tuple[MoneyLeft, dict[str, MoneyLeft]]]:
            begin_day(state, now)
            tenants = {*self.budgets.tenants, *state.spent, *(run.tenant for run in state.runs.values())}
            own = {name: money_of(state, self.budgets, name, now) for name in sorted(tenants)}
            return state, (money_of(state, self.budgets, None, now), own)

        return await self._days.update(KEY, step)
