"""The strategy `supervisor` with a fault of the product in it: what a defect in workflow code does to a run."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from contracts.state import Unit
from contracts.strategies import declaration
from contracts.vocabulary import Phase
from tests.toy import declared
from workflows.run.research_run import ResearchRun
from workflows.strategies import Finished
from workflows.strategies.supervisor.decisions import SupervisorPosition
from workflows.strategies.supervisor.supervisor_strategy import SupervisorStrategy

FAILS = 7
"""The value of `max_parallel` that brings the fault out: limits are what a resumed run may change."""


class FailingStrategy(SupervisorStrategy):
    """Raises what no code expects when gathering is over, for as long as the limits of the run say so."""

    async def advance(self, run: ResearchRun) -> Unit | Finished:
        unit = await super().advance(run)
        if run.resolved.limits.max_parallel == FAILS and SupervisorPosition.of(run.state).next_phase == Phase.GATHERING:
            raise KeyError("words of a page that nobody may see")
        return unit


class ReorderedStrategy(SupervisorStrategy):
    """Another order of calls than the one that histories hold: what a bad deploy does."""

    async def advance(self, run: ResearchRun) -> Unit | Finished:
        run.operation_done("plan")
        return await super().advance(run)


@contextmanager
def failing_strategy() -> Iterator[str]:
    """Declare the failing strategy for as long as the context lasts; its name."""
    implementation = f"{FailingStrategy.__module__}:{FailingStrategy.__name__}"
    failing = replace(declaration("supervisor"), name="failing", implementation=implementation)
    with declared(failing):
        yield failing.name
