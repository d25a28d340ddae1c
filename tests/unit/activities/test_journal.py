"""What a run is told of who shares the journal of its paid calls."""

from typing import Any

from activities.journal import AWAY, BACK, CallJournal
from contracts import roles
from providers.interfaces import EngineAnswer, EngineTask
from providers.models import answers
from tests.unit.activities.scripted import MemoryCalls, ScriptedEngine, plan_input

PLANNER: roles.RoleSpec[Any, Any] = roles.PLANNER
PLAN = roles.PlannerAnswer(
    research_brief="A brief.",
    sub_queries=[roles.SubQuery(query="what is vacuum"), roles.SubQuery(query="what is wraparound")],
)


class Bench:
    """A journal whose store is shared or not, as the test says."""

    def __init__(self, most_told: int = 100) -> None:
        self.calls = MemoryCalls()
        self.engine = ScriptedEngine(PLAN)
        self.journal = CallJournal(self.calls, answers, most_told=most_told)

    async def told(self, number: int, run: str = "r-1", *, alone: bool) -> list[str]:
        """What a call tells, while this machine is alone or is not."""
        self.calls.degraded = alone
        request = plan_input(research_id=run, operation=f"plan/{number}")
        task = EngineTask(PLANNER, request, {}, "system", f"prompt {number}", "planner@1")
        answer: EngineAnswer = await self.journal.answer(self.engine, task)
        return answer.warnings


async def test_each_run_is_told_once_that_its_machine_is_alone() -> None:
    """Once when it begins and once when it is over, for each run; nothing while nothing changes (F16)."""
    bench = Bench()
    assert await bench.told(1, alone=False) == []
    assert await bench.told(2, alone=True) == [AWAY]
    assert await bench.told(3, alone=True) == []
    assert await bench.told(4, "r-2", alone=True) == [AWAY]
    assert await bench.told(5, alone=False) == [BACK]
    assert await bench.told(6, alone=False) == []
    assert await bench.told(7, alone=True) == [AWAY]


async def test_what_a_lost_attempt_told_is_told_again() -> None:
    """An answer that is handed out again says so again: nobody saw the first one. It is not part of the answer."""
    bench = Bench()
    assert await bench.told(1, alone=True) == [AWAY]
    assert await bench.told(1, alone=True) == [AWAY]
    assert await bench.told(1, alone=False) == []
    assert len(bench.engine.tasks) == 1


async def test_the_runs_that_were_told_are_forgotten_some_day() -> None:
    """An outage of days with many runs takes no more memory than a short one."""
    bench = Bench(most_told=2)
    for run in ("r-1", "r-2", "r-3"):
        assert await bench.told(1, run, alone=True) == [AWAY]
    assert await bench.told(2, "r-3", alone=True) == []
    assert await bench.told(2, "r-1", alone=True) == [AWAY]
