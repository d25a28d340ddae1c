"""A whole pause at once, for tests that drive a strategy without the driver."""

from contracts.outcome import Pause
from contracts.state import Unit
from workflows.phases.pauses import reflect
from workflows.run.research_run import ResearchRun
from workflows.strategies.supervisor.supervisor_strategy import SupervisorStrategy


async def pause_after(run: ResearchRun, phase: str, *, can_change: bool) -> Pause:
    """Evaluate, reflect, call the hook, decide, record: one after the other."""
    strategy = SupervisorStrategy()
    opened = strategy.evaluate(run, Unit(name=phase, can_change=can_change))
    await reflect(run, opened)
    run.state.work.pause = await strategy.pause(run, opened)
    return run.state.work.pause
