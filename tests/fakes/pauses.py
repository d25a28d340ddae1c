"""A whole pause at once, for tests that drive a strategy without the driver."""

from contracts.outcome import Pause
from contracts.state import Unit
from workflows.phases.pause import reflect
from workflows.run.research_run import ResearchRun
from workflows.strategies.supervisor.phase_pause import conclude, evaluate_phase


async def pause_after(run: ResearchRun, phase: str, *, can_change: bool) -> Pause:
    """Evaluate, reflect, let the hook speak, decide, record: one after the other."""
    opened = evaluate_phase(run, Unit(name=phase, can_change=can_change))
    await reflect(run, opened)
    return await conclude(run, opened)
