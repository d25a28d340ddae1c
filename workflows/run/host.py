"""What a run needs of the engine underneath: a clock, calls and waiting.

The one seam between orchestration and Temporal. Tests drive strategies through an in-process host, so that every
unit can be stopped, stored and rebuilt without a server.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar, get_type_hints

from temporalio import workflow
from temporalio.common import Priority, RawValue

from contracts.names import FAIRNESS_KEY_CHARACTERS
from contracts.progress import Awaited
from contracts.roles import RoleInput, RoleOutput, RoleSpec
from workflows.run.activity_options import CallOptions
from workflows.run.payloads import plain

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
A = TypeVar("A")
A_contra = TypeVar("A_contra", contravariant=True)
I = TypeVar("I", bound=RoleInput)
O = TypeVar("O", bound=RoleOutput)


FIRST = 1
"""The server's highest priority: what brings a run to its end goes before what would begin something."""


class Stub(Protocol[A_contra, T_co]):
    """A typed signature of `contracts.activities`: its name is the activity's name."""

    __name__: str

    def __call__(self, request: A_contra, /) -> Awaitable[T_co]:
        """Never run: the worker runs the implementation of the same name."""
        ...


class Host(Protocol):
    """The engine, as a run sees it."""

    def now(self) -> datetime:
        """The workflow's own clock: the same on replay."""
        ...

    async def execute(self, stub: Stub[A, T], argument: A, options: CallOptions) -> T:
        """Run the activity that a typed stub declares. Raises `temporalio.exceptions.ActivityError`."""
        ...

    async def execute_role(self, role: RoleSpec[I, O], request: I, options: CallOptions) -> O:
        """Run a role's activity. Raises `temporalio.exceptions.ActivityError`."""
        ...

    async def execute_hook(self, activity: str, arguments: list[Any], options: CallOptions) -> Any:
        """Run an operator's think-pause hook with several arguments; whatever it answers.

        Raises `temporalio.exceptions.ActivityError`, ValueError for an answer that cannot be read.
        """
        ...

    async def wait_until(self, predicate: Callable[[], bool]) -> None:
        """Return as soon as the predicate holds."""
        ...

    async def sleep(self, seconds: float, summary: str = "") -> None:
        """A durable timer; the summary names it in the web UI."""
        ...

    async def settle(self, tasks: list["asyncio.Task[Any]"]) -> None:
        """Wait until all tasks are done, whatever they end with."""
        ...


class TemporalHost:
    """The host inside a workflow."""

    def __init__(
        self, priority: int | None = None, tenant: str = "", changed: Callable[[], None] = lambda: None
    ) -> None:
        """The run gives its calls the fairness key of its tenant itself: not every client that starts runs does.

        `changed` is called when a call begins and when it ends.
        """
        fairness = tenant[:FAIRNESS_KEY_CHARACTERS]
        self._priority = Priority(priority_key=priority, fairness_key=fairness)
        self._first = Priority(priority_key=FIRST, fairness_key=fairness)
        self._used: dict[str, int] = {}
        self._awaiting: dict[str, Awaited] = {}
        self._changed = changed

    def awaiting(self) -> list[Awaited]:
        """The calls under way, oldest first."""
        return list(self._awaiting.values())

    def now(self) -> datetime:
        """The workflow clock."""
        return workflow.now()

    async def execute(self, stub: Stub[A, T], argument: A, options: CallOptions) -> T:
        """Schedule one activity."""
        result: T = await self._start(stub.__name__, [argument], get_type_hints(stub)["return"], options)
        return result

    async def execute_role(self, role: RoleSpec[I, O], request: I, options: CallOptions) -> O:
        """Schedule a role's activity."""
        result: O = await self._start(role.activity, [request], role.output, options)
        return result

    async def execute_hook(self, activity: str, arguments: list[Any], options: CallOptions) -> Any:
        """Schedule a hook."""
        return plain(await self._start(activity, arguments, RawValue, options))

    async def wait_until(self, predicate: Callable[[], bool]) -> None:
        """A durable wait."""
        await workflow.wait_condition(predicate)

    async def sleep(self, seconds: float, summary: str = "") -> None:
        """A durable timer."""
        await workflow.sleep(timedelta(seconds=seconds), summary=summary or None)

    async def settle(self, tasks: list["asyncio.Task[Any]"]) -> None:
        """Wait in a deterministic way."""
        if tasks:
            await workflow.wait(tasks)

    def _unused_id(self, operation: str) -> str:
        """The operation as an activity id. A cancelled activity may still hold it, so a later one gets a number."""
        count = self._used.get(operation, 0) + 1
        self._used[operation] = count
        return operation if count == 1 else f"{operation}#{count}"

    async def _start(self, activity: str, arguments: list[Any], result_type: type, options: CallOptions) -> Any:
        name = self._unused_id(options.activity_id)
        self._awaiting[name] = Awaited(what=options.summary, since=self.now().isoformat(timespec="milliseconds"))
        self._changed()
        left = False
        try:
            return await workflow.execute_activity(
                activity,
                args=arguments,
                result_type=result_type,
                task_queue=options.task_queue,
                activity_id=name,
                start_to_close_timeout=options.start_to_close,
                schedule_to_close_timeout=options.schedule_to_close,
                heartbeat_timeout=options.heartbeat,
                retry_policy=options.retry,
                summary=options.summary,
                priority=self._first if options.first else self._priority,
                cancellation_type=workflow.ActivityCancellationType.TRY_CANCEL,
            )
        except GeneratorExit:
            # The workflow leaves this worker's memory: nothing of it may ask the engine any more.
            left = True
            raise
        finally:
            del self._awaiting[name]
            if not left:
                self._changed()
