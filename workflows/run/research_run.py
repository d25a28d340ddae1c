"""The facade that strategies program against: ask a role, gather, pause, note. It composes small parts."""

from collections.abc import Sequence
from typing import Any, TypeVar

from contracts.agents import AT_ONCE, AgentTask, TaskResult
from contracts.canary import STEERED_NOTE
from contracts.outcome import Moment
from contracts.roles import RoleAnswer, RoleInput, RoleSpec
from contracts.state import ResearchState
from contracts.tool_turns import ToolTurnInput, TurnResult
from contracts.vocabulary import EngineKind
from workflows.run.checkpoints import Checkpoints
from workflows.run.context import RunContext, Watchers
from workflows.run.host import Host
from workflows.run.inbox import Inbox
from workflows.run.role_calls import RoleCaller
from workflows.run.spawning import Agents

I = TypeVar("I", bound=RoleInput)
O = TypeVar("O", bound=RoleAnswer)
T = TypeVar("T", bound=ToolTurnInput)
U = TypeVar("U", bound=TurnResult)


class ResearchRun(RunContext):
    """One run, with the roles that work for it."""

    def __init__(
        self,
        state: ResearchState,
        inbox: Inbox,
        host: Host,
        watchers: Watchers | None = None,
        stored: dict[str, Any] | None = None,
    ) -> None:
        """`stored` is the snapshot of the state that the session store has already."""
        super().__init__(state, inbox, host, watchers)
        self.checkpoints = Checkpoints(self, stored)
        self._caller = RoleCaller(self)
        self.agents = Agents(self, self._caller, self.checkpoints)

    async def ask(
        self, role: RoleSpec[I, O], step: str, request: I, engine: EngineKind | None = None, at: Moment | None = None
    ) -> O:
        """Have a role do its work: repaired once, then done by the deterministic fallback (marked `degraded`).

        `step` is the logical operation without the iteration (`plan`, `analyze/sq-…`). `request` holds what this role
        needs; ids, engine, model, date, language, guidance and canary are added here. `at` is the moment that the
        call belongs to, if not this one. Raises `Interrupted`, and `Unanswered` for a role without a fallback.
        """
        return await self._caller.ask(role, step, request, engine, at or self.moment())

    async def turn(
        self, role: RoleSpec[T, U], step: str, request: T, engine: EngineKind | None = None, at: Moment | None = None
    ) -> U:
        """Have a role with tools take one turn: as `ask`, with a longer transcript and checked calls for an answer.

        The first turn has no transcript and the fields that the role's prompt opens with; each later one has the
        transcript of the turn before and an answer to each of its calls. Raises as `ask` does.
        """
        output = await self._caller.ask(role, step, request, engine, at or self.moment())
        self.state.note_entry(output.transcript.hash)
        if output.steered:
            self.degrade(STEERED_NOTE)
        return output

    async def spawn(self, tasks: Sequence[AgentTask], at_once: int = AT_ONCE) -> list[TaskResult]:
        """Have agents work on tasks, so many side by side as `at_once`; what each brought back, in task order.

        What they found is in the state then. A task whose agent is over is not given again. An agent never raises: one
        that failed, was cut off or was not waited for has a result that says so. Raises `Interrupted` once the run is
        to end, and `asyncio.CancelledError` where it is cancelled, after what the agents had was taken over.
        """
        return await self.agents.spawn(tasks, at_once)
