"""A host without a server: runs activity implementations directly, so that strategies can be stopped after every unit."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio.exceptions import ActivityError, ApplicationError

from contracts.agents import AgentRequest, TaskResult
from workflows.research_agent import AgentDriver
from workflows.run.calls import CallOptions
from workflows.run.host import Host

BUSY_TURNS = 5
"""Turns of the event loop, after an activity ended, in each of which conditions are looked at: what it changes is seen."""
LOOK_SECONDS = 0.002
"""Time between looks while nothing ends, for what a test changes from outside."""
IDLE_TURNS = 50
"""Turns of the event loop, after the last activity ended, in which whoever has something to do begins it."""
Implementation = Callable[..., Awaitable[Any]]


class InProcessHost(Host):
    """Runs named activities in the test's own loop; the clock moves only when the test moves it."""

    def __init__(self, implementations: Mapping[str, Implementation]) -> None:
        self.implementations = dict(implementations)
        self.calls: list[tuple[str, str]] = []
        self.clock = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
        self.agents: list[AgentRequest] = []
        self.agents_ended: list[str] = []
        self.agents_at_once = 0
        """Most agents that were at work at one time."""
        self._working = 0
        self._sleepers: list[tuple[datetime, asyncio.Event]] = []
        self._waiting: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []
        self._next_look: asyncio.Handle | None = None
        self._busy_turns = BUSY_TURNS

    def now(self) -> datetime:
        return self.clock

    async def execute(self, spec: Any, argument: Any, options: CallOptions) -> Any:
        return await self._run(spec.name, [argument], options)

    async def execute_hook(self, activity: str, arguments: list[Any], options: CallOptions) -> Any:
        return await self._run(activity, arguments, options)

    async def _run(self, activity: str, arguments: list[Any], options: CallOptions) -> Any:
        self.calls.append((activity, options.activity_id))
        await asyncio.sleep(0)
        try:
            return await self.implementations[activity](*arguments)
        except ApplicationError as error:
            raise activity_error(activity, error) from error
        finally:
            self._look_soon()

    async def run_agent(self, request: AgentRequest, workflow_id: str) -> TaskResult:
        """The same driver, in this process; what goes to and fro is JSON, as between workflows."""
        del workflow_id
        asked = AgentRequest.model_validate_json(request.model_dump_json())
        self.agents.append(asked)
        self._working += 1
        self.agents_at_once = max(self.agents_at_once, self._working)
        try:
            result = await AgentDriver(asked, self).conduct()
        finally:
            self._working -= 1
            self.agents_ended.append(request.task.id)
        return TaskResult.model_validate_json(result.model_dump_json())

    async def wait_until(self, predicate: Callable[[], bool]) -> None:
        """One look serves all who wait: many tasks that each look by themselves are a good part of the work of a run."""
        if not predicate():
            waiting = (predicate, asyncio.get_running_loop().create_future())
            self._waiting.append(waiting)
            try:
                self._plan_look()
                await waiting[1]
            finally:
                self._waiting.remove(waiting)
        # As in a workflow, the callbacks of a task that has ended run before whoever waits for it continues.
        await asyncio.sleep(0)

    def wake(self) -> None:
        """Let everybody who waits look again."""
        for predicate, bell in self._waiting:
            if not bell.done() and predicate():
                bell.set_result(None)

    def _look_soon(self) -> None:
        self._busy_turns = BUSY_TURNS
        if self._next_look is not None:
            self._next_look.cancel()
            self._next_look = None
        self._plan_look()

    def _plan_look(self) -> None:
        if self._next_look is None and self._waiting:
            loop = asyncio.get_running_loop()
            busy = self._busy_turns > 0
            self._next_look = loop.call_soon(self._look) if busy else loop.call_later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        self._next_look = None
        self._busy_turns -= 1
        self.wake()
        self._plan_look()

    async def sleep(self, seconds: float, summary: str = "") -> None:
        sleeper = (self.clock + timedelta(seconds=seconds), asyncio.Event())
        self._sleepers.append(sleeper)
        try:
            await sleeper[1].wait()
        finally:
            self._sleepers.remove(sleeper)

    async def until_asleep(self, end: datetime) -> None:
        """Wait until somebody sleeps until this moment: work in threads has ended then."""
        while all(due != end or bell.is_set() for due, bell in self._sleepers):
            await asyncio.sleep(0.001)

    async def advance(self, seconds: float) -> None:
        """Let time pass: who sleeps no longer than that wakes up, and everybody has a moment to react.

        Whoever is about to sleep begins to before it does, or would sleep for as long from the new time on.
        """
        for _ in range(20):
            await asyncio.sleep(0)
        self.clock += timedelta(seconds=seconds)
        for due, bell in self._sleepers:
            if due <= self.clock:
                bell.set()
        for _ in range(20):
            self.wake()
            await asyncio.sleep(0)

    async def settle(self, tasks: list["asyncio.Task[Any]"]) -> None:
        if tasks:
            await asyncio.wait(tasks)


class TimedHost(InProcessHost):
    """Lets activities take time, and time pass by itself: as soon as nothing is being done it is the next moment."""

    def __init__(self, implementations: Mapping[str, Implementation], takes: Callable[[str, Any], float]) -> None:
        """`takes` says how many seconds an activity lasts, by its name and its argument."""
        super().__init__(implementations)
        self._takes = takes
        self._at_work = 0
        self._idle_turns = 0
        """Turns of the event loop since the last activity ended."""

    async def _run(self, activity: str, arguments: list[Any], options: CallOptions) -> Any:
        await self.sleep(self._takes(activity, arguments[0]))
        self._at_work += 1
        try:
            return await super()._run(activity, arguments, options)
        finally:
            self._at_work -= 1
            self._idle_turns = 0

    async def pass_time(self, run: "asyncio.Future[Any]") -> None:
        """Let the next moment come whenever no activity was at work for `IDLE_TURNS` turns in a row."""
        while not run.done():
            self.wake()
            may_begin = not self._at_work and self._idle_turns < IDLE_TURNS
            await asyncio.sleep(0 if may_begin else 0.001)
            self._idle_turns += 1
            if self._sleepers and not self._at_work and self._idle_turns > IDLE_TURNS:
                next_moment = min(due for due, _ in self._sleepers)
                await self.advance(max(0.0, (next_moment - self.clock).total_seconds()))
                self._idle_turns = 0


def activity_error(activity: str, cause: BaseException) -> ActivityError:
    """The error that a workflow sees when an activity failed for good."""
    error = ActivityError(
        "activity failed",
        scheduled_event_id=1,
        started_event_id=2,
        identity="test",
        activity_type=activity,
        activity_id="1",
        retry_state=None,
    )
    error.__cause__ = cause
    return error
