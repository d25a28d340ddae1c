"""Calls of one role by another, as the table of who may call whom allows them."""

from collections.abc import Sequence
from typing import TypeVar

from contracts.agents import AgentTask, TaskResult
from contracts.recursive_roles import may_call
from contracts.roles import RoleAnswer, RoleInput, RoleSpec
from contracts.vocabulary import EngineKind
from workflows.run.research_run import ResearchRun

I = TypeVar("I", bound=RoleInput)
O = TypeVar("O", bound=RoleAnswer)


class CallNotAllowed(Exception):
    """One role may not call another one: it costs the branch, never the run."""


def check_call(run: ResearchRun, caller: str, role: str) -> None:
    """Record a call that the table does not allow as a failed branch. Raises `CallNotAllowed` for it."""
    if not may_call(caller, role):
        note = f"{caller} may not call {role}: this branch ends here"
        run.branch_failed(note)
        raise CallNotAllowed(note)


async def spawn_for(run: ResearchRun, caller: str, tasks: Sequence[AgentTask], at_once: int) -> list[TaskResult]:
    """Have agents work on tasks for a role; each is called by the name of its strategy.

    Raises `CallNotAllowed`, and as `ResearchRun.spawn` does.
    """
    for strategy in dict.fromkeys(task.strategy for task in tasks):
        check_call(run, caller, strategy)
    return await run.spawn(tasks, at_once, caller=caller)


async def ask_for(
    run: ResearchRun, caller: str, role: RoleSpec[I, O], step: str, fields: I, engine: EngineKind | None = None
) -> O:
    """Have a role do its work for another one. Raises `CallNotAllowed`, and as `ResearchRun.ask` does."""
    check_call(run, caller, role.name)
    return await run.ask(role, step, fields.model_copy(update={"caller": caller}), engine)
