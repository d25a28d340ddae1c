"""What a run needs of the engine underneath: a clock, calls and waiting.

The one seam between orchestration and Temporal. Tests drive strategies through an in-process host, so that every
unit can be stopped, stored and rebuilt without a server.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

from temporalio import workflow
from temporalio.common import Priority, RawValue

from workflows.run.activity_options import CallOptions
from workflows.run.payloads import plain

T = TypeVar("T")


class Host(Protocol):
    """The engine, as a run sees it."""

    def now(self) -> datetime:
        """The workflow's own clock: the same on replay."""
        ...

    async def execute(self, activity: str, argument: Any, result_type: type[T], options: CallOptions) -> T:
        """Run an activity by name. Raises `temporalio.exceptions.ActivityError`."""
        ...

    async def execute_hook(self, activity: str, arguments: list[Any], options: CallOptions) -> Any:
        """Run an operator's think-pause hook with several arguments; whatever it answers.

        Raises `temporalio.exceptions.ActivityError`, ValueError for an answer that cannot be read.
        """
        ...

    async def wait_until(self, predicate: Callable[[], bool]) -> None:
        """Return as soon as the predicate holds."""
        ...

    async def sleep(self, seconds: float) -> None:
        """A durable timer."""
        ...

    async def settle(self, tasks: list["asyncio.Task[Any]"]) -> None:
        """Wait until all tasks are done, whatever they end with."""
        ...


class TemporalHost:
    """The host inside a workflow."""

    def __init__(self, priority: int | None = None) -> None:
        self._priority = Priority(priority_key=priority) if priority else Priority.default
        self._used: dict[str, int] = {}

    def now(self) -> datetime:
        """The workflow clock."""
        return workflow.now()

    async def execute(self, activity: str, argument: Any, result_type: type[T], options: CallOptions) -> T:
        """Schedule one activity."""
        result: T = await self._start(activity, [argument], result_type, options)
        return result

    async def execute_hook(self, activity: str, arguments: list[Any], options: CallOptions) -> Any:
        """Schedule a hook."""
        return plain(await self._start(activity, arguments, RawValue, options))

    async def wait_until(self, predicate: Callable[[], bool]) -> None:
        """A durable wait."""
        await workflow.wait_condition(predicate)

    async def sleep(self, seconds: float) -> None:
        """A durable timer."""
        await workflow.sleep(timedelta(seconds=seconds))

    async def settle(self, tasks: list["asyncio.Task[Any]"]) -> None:
        """Wait in a deterministic way."""
        if tasks:
            await workflow.wait(tasks)

    def _unused(self, operation: str) -> str:
        """The operation as an activity id. A cancelled activity may still hold it, so a later one gets a number."""
        count = self._used.get(operation, 0) + 1
        self._used[operation] = count
        return operation if count == 1 else f"{operation}#{count}"

    def _start(self, activity: str, arguments: list[Any], result_type: type, options: CallOptions) -> Awaitable[Any]:
        return workflow.execute_activity(
            activity,
            args=arguments,
            result_type=result_type,
            task_queue=options.task_queue,
            activity_id=self._unused(options.activity_id),
            start_to_close_timeout=options.start_to_close,
            schedule_to_close_timeout=options.schedule_to_close,
            heartbeat_timeout=options.heartbeat,
            retry_policy=options.retry,
            summary=options.summary,
            priority=self._priority,
            cancellation_type=workflow.ActivityCancellationType.TRY_CANCEL,
        )
