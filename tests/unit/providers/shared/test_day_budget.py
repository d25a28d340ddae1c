"""The money of a day: reserved by runs, spent by their calls, free again after them, and never promised twice."""

import asyncio
from collections.abc import Collection
from pathlib import Path

import pytest

from contracts.ceilings import Budgets
from providers.errors import ProviderError, SharedStateUnavailable
from providers.shared.day_budget import DAY_SECONDS, KEY, DayBudget
from providers.shared.stores.sqlite_store import SqliteSharedStore
from tests.fakes.shared_stores import MemorySharedStore

NOON = 20_000 * DAY_SECONDS + DAY_SECONDS / 2


class Day:
    """Budgets of a store with a clock, and the runs that a server lists."""

    def __init__(self, usd_per_day: float | None = None, **tenants: float) -> None:
        self.now = NOON
        self.open: list[str] = []
        self.answers = True
        self.store = MemorySharedStore(lambda: self.now)
        self.budgets = Budgets(usd_per_day=usd_per_day, tenants=tenants)
        self.budget = self.of("default")

    def of(self, namespace: str) -> DayBudget:
        return DayBudget(self.store, self.budgets, namespace, self._open_runs)

    async def _open_runs(self) -> Collection[str]:
        if not self.answers:
            raise ProviderError("the server is away")
        return self.open

    async def take(self, run: str, usd: float | None, tenant: str = "lab", *, cuts: bool = False) -> float | None:
        self.open.append(run)
        return (await self.budget.reserve(run, tenant, usd, cuts=cuts))[0]

    async def left(self, tenant: str = "") -> float:
        together, by_tenant = await self.budget.look()
        return by_tenant[tenant].left if tenant else together.left


async def test_a_run_that_needs_more_than_is_left_gets_nothing_or_what_is_left() -> None:
    """The tighter of both budgets counts, and a refusal names it with what is left, and when the next day begins."""
    day = Day(10.0, lab=3.0)
    assert await day.take("r-1", 2.0) == 2.0
    assert await day.take("r-2", 2.0) is None
    granted, lacking = await day.budget.reserve("r-3", "lab", 2.0, cuts=True)
    assert (granted, lacking and lacking.place) == (1.0, "budgets.tenants.lab")
    assert await day.take("r-4", 9.0, "other") is None
    _, lacking = await day.budget.reserve("r-4", "other", 9.0, cuts=False)
    assert lacking is not None
    assert (lacking.place, lacking.left, lacking.reserved, lacking.runs) == ("budgets.usd_per_day", 7.0, 3.0, 2)
    assert lacking.returns_in == DAY_SECONDS / 2
    assert await day.take("r-5", 1.0, cuts=True) is None  # nothing is left of the tenant's money
    assert await day.take("r-6", 0.0) == 0.0  # a run without paid calls needs none


async def test_what_calls_cost_moves_from_reserved_to_spent() -> None:
    """The rest of a reservation is free after the run, what was spent stays counted, and a resume counts nothing twice."""
    day = Day(5.0)
    await day.take("r-1", 3.0)
    await day.budget.charge("r-1", "lab", 1.25)
    assert await day.left() == 2.0
    await day.budget.release("r-1")
    assert await day.left() == 3.75
    await day.take("r-1", 1.75)  # resumed: its limit of 3.00 less what it has spent
    assert await day.left() == 2.0
    assert await day.take("r-1", 1.75) == 1.75  # asked again, as after a lost answer
    assert await day.left() == 2.0
    await day.budget.charge("r-1", "lab", 2.0)  # more than was reserved, which is counted as well
    assert await day.left() == 1.75


async def test_a_calls_tenant_is_that_of_its_runs_reservation() -> None:
    """What a call names is its own word; a call of a run without a reservation counts by it, and is not lost."""
    day = Day(5.0, lab=2.0, other=2.0)
    await day.take("r-1", 2.0)
    await day.budget.charge("r-1", "other", 0.5)
    await day.budget.charge("r-unknown", "other", 0.25)
    together, by_tenant = await day.budget.look()
    assert {name: money.spent for name, money in by_tenant.items()} == {"lab": 0.5, "other": 0.25}
    assert together.spent == 0.75


async def test_a_killed_runs_money_is_free_for_the_next_one() -> None:
    """Only of runs of this namespace, only once the server lists it no more, and not of those that just began."""
    day = Day(4.0)
    await day.take("r-1", 2.0)
    await day.of("elsewhere").reserve("r-1", "lab", 1.0, cuts=False)
    day.open.clear()
    assert await day.take("r-2", 3.0) is None
    day.now += 31
    day.answers = False
    assert await day.take("r-2", 3.0) is None
    day.answers = True
    assert await day.take("r-2", 3.0) == 3.0
    assert await day.left() == 0.0


async def test_a_new_day_forgets_what_was_spent_and_keeps_what_is_reserved() -> None:
    """A run over midnight spends of the new day what it had left; a clock set back gives nothing again."""
    day = Day(5.0)
    await day.take("r-1", 4.0)
    await day.budget.charge("r-1", "lab", 1.0)
    day.now += DAY_SECONDS / 2
    assert await day.left() == 2.0
    await day.budget.charge("r-1", "lab", 1.0)
    assert await day.left() == 2.0
    day.now -= 3_600
    assert await day.left() == 2.0
    day.now += 3_600 + DAY_SECONDS
    assert await day.left() == 3.0


async def test_a_run_without_a_limit_gets_one_or_nothing() -> None:
    """Where money is limited, no run is without a limit; where it is not, nothing is changed."""
    assert await Day(5.0).take("r-1", None) is None
    assert await Day(5.0).take("r-1", None, cuts=True) == 5.0
    assert await Day(other=5.0).take("r-1", None) is None
    _, lacking = await Day(other=5.0).budget.reserve("r-1", "lab", None, cuts=False)
    assert lacking is None


async def test_two_processes_never_promise_the_same_money(tmp_path: Path) -> None:
    """Of twenty runs that start at once in two processes, as many get their dollar as there are dollars."""
    stores = [SqliteSharedStore(tmp_path / "shared.sqlite3", durable=False) for _ in range(2)]

    async def none_lost() -> list[str]:
        return [f"r-{number}" for number in range(20)]

    budgets = [DayBudget(store, Budgets(usd_per_day=7.0), "default", none_lost) for store in stores]
    taken = await asyncio.gather(
        *(budgets[number % 2].reserve(f"r-{number}", "lab", 1.0, cuts=False) for number in range(20))
    )
    assert sum(granted is not None for granted, _ in taken) == 7
    for store in stores:
        await store.close()


@pytest.mark.parametrize("value", [b"nothing", b"\xff", b'{"day": "x"}', b'{"schema":0,"day":1}'])
async def test_a_damaged_value_is_refused_with_its_remedy(value: bytes) -> None:
    """What was spent is not forgotten in silence: no run gets money until the operator has restored or deleted the value."""
    day = Day(5.0)
    await day.store.swap(KEY, None, value)
    refusal = "the money of the day in the shared store cannot be read: restore .* budgets/day, or delete that key"
    with pytest.raises(SharedStateUnavailable, match=refusal):
        await day.take("r-1", 5.0)
    assert (await day.store.get(KEY)).value == value
    await day.store.swap(KEY, value, None)
    assert await day.take("r-1", 5.0) == 5.0
