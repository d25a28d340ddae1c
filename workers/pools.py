"""Worker pools: one Temporal worker per task queue, sized for its kind of work, and the pools of one process."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import structlog
from temporalio.bridge.proto.workflow_activation import WorkflowActivation, WorkflowActivationJob
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.worker import (
    CustomSlotSupplier,
    FixedSizeSlotSupplier,
    Plugin,
    PollerBehaviorAutoscaling,
    SlotMarkUsedContext,
    SlotPermit,
    SlotReleaseContext,
    SlotReserveContext,
    Worker,
    WorkerTuner,
    WorkflowInstance,
    WorkflowInstanceDetails,
)
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions
from temporalio.workflow import Info

from contracts.base import build_validators
from contracts.failures import EVENTS_AFTER_TASK
from contracts.names import MODULE_PREFIX, POOLS
from contracts.packages import PackageFault
from workers.resolution_inputs import product_version
from workers.versions import deployment_config

WORKFLOWS = "workflows"
CACHED_WORKFLOWS = 500  # more than run at once on one machine; a cached run takes well under a megabyte
WORKFLOW_TASKS = 40
COMMON_WORKFLOW_TASKS = 4
"""Tasks at once that come from the common queue: starts, and runs whose worker has ended."""
DEFAULT_SLOTS: Mapping[str, int] = {"models": 200, "search": 32, "reading": 32, "records": 16}
"""Concurrent activities per worker; fixed, because processor and memory load do not reflect a provider's quota.

Model calls only wait: 200 slots serve about forty runs without queueing.
"""
DRAIN_TIMES: Mapping[str, timedelta] = {
    "workflows": timedelta(seconds=10),
    "models": timedelta(minutes=3),
    "search": timedelta(seconds=30),
    "reading": timedelta(seconds=30),
    "records": timedelta(seconds=30),
}
"""Time that a stopping worker gives its activities before it cancels them; a model's answer is paid for."""
STICKY_TIMEOUT = timedelta(seconds=2.5)
"""Time that a run's task waits for the worker that has it cached; after a crash, it delays a cancellation."""
HEARTBEAT_THROTTLE = timedelta(seconds=1)
"""Heartbeats are sent as activities make them; with the SDK's default, a cancellation takes 7 to 23 s to arrive."""
MIN_POLLERS = 8
MAX_POLLERS = 20
"""Tasks come in bursts, one page per hit; a task without a waiting poller goes through the server's database."""
HEALTH_TIMEOUT = timedelta(seconds=2)
DEADLOCK_SECONDS = 60.0
"""Time after which a workflow task that does not yield is reported as a deadlock.

A loaded machine can exceed the SDK's 2 s; the SDK then ends the run's tasks in a second thread while the first still
has them, and the run hangs until its worker restarts (decision 0041). The server times the task out after 10 s.
"""

logger = structlog.get_logger(__name__)


class UnknownPoolError(ValueError):
    """There is no pool of that name."""


@dataclass(frozen=True)
class PoolContents:
    """Workflows and activities of the pools of a process."""

    workflows: Sequence[type] = ()
    activities: Mapping[str, Sequence[Callable[..., Any]]] = field(default_factory=dict)
    """Activities by pool name."""
    slots: Mapping[str, int] = field(default_factory=dict)
    """Overrides of `DEFAULT_SLOTS` by pool name."""
    mark: str = ""
    """Suffix of the workers' identity: equal for equal settings (`Settings.mark`), plus a sign for those of one run."""
    plugins: Sequence[Plugin] = ()
    """Plug-ins of every worker."""
    build_id: str = ""
    """Version that the pool `workflows` polls as; empty for one without versions."""


@dataclass(frozen=True)
class PoolHealth:
    """State of a pool: its worker runs (`alive`), and can get work now (`ready`)."""

    alive: bool
    ready: bool


def choose_pools(names: str | None) -> tuple[str, ...]:
    """Parse a list like `models,search` into pools in the usual order; None: all. Raises `UnknownPoolError`."""
    chosen = {name.strip() for name in (names or "").split(",") if name.strip()}
    unknown = sorted(chosen - POOLS.keys())
    if unknown:
        raise UnknownPoolError(f"no pool is called {unknown[0]}: there are {', '.join(POOLS)}")
    return tuple(name for name in POOLS if not chosen or name in chosen)


def build_worker(pool: str, client: Client, contents: PoolContents, *, grace: timedelta | None = None) -> Worker:
    """Create a pool's worker, which drains for `grace`, else for its pool's time.

    Raises ValueError without content, and `PackageFault` for a strategy of a package that workflows cannot load.
    """
    common: dict[str, Any] = {
        "task_queue": POOLS[pool],
        "identity": f"{pool}-{os.getpid()}@{socket.gethostname()}/{contents.mark}",
        "graceful_shutdown_timeout": DRAIN_TIMES[pool] if grace is None else grace,
        "plugins": contents.plugins,
    }
    if pool == WORKFLOWS and contents.build_id:
        common["deployment_config"] = deployment_config(contents.build_id)
    else:
        common["build_id"] = product_version()  # by default the SDK reads the code of all loaded modules, for 0.1 s
    if pool == WORKFLOWS:
        with _faults_of_packages():
            worker = Worker(
                client,
                workflows=list(contents.workflows),
                workflow_runner=workflow_runner(),
                max_cached_workflows=CACHED_WORKFLOWS,
                tuner=workflow_tuner(),
                sticky_queue_schedule_to_start_timeout=STICKY_TIMEOUT,
                **common,
            )
        set_deadlock_timeout(worker)
        return worker
    slots = contents.slots.get(pool, DEFAULT_SLOTS[pool])
    minimum = min(MIN_POLLERS, slots)
    maximum = min(MAX_POLLERS, slots)
    return Worker(
        client,
        activities=list(contents.activities.get(pool, ())),
        max_concurrent_activities=slots,
        activity_task_poller_behavior=PollerBehaviorAutoscaling(minimum=minimum, maximum=maximum, initial=minimum),
        max_heartbeat_throttle_interval=HEARTBEAT_THROTTLE,
        **common,
    )


@contextmanager
def _faults_of_packages() -> Iterator[None]:
    """Raise the `PackageFault` in place of the SDK's error, which says only that a workflow cannot be loaded."""
    try:
        yield
    except RuntimeError as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, PackageFault):
            cause = cause.__cause__ or cause.__context__
        if cause is None:
            raise
        raise cause from None


class WorkflowSlots(CustomSlotSupplier):
    """Slots for workflow tasks, of which tasks from the common queue take a few only.

    A run under way has its tasks in a queue of its worker; in the common queue are starts, which take longest. Without
    a limit hundreds of starts take all slots, and runs whose deadlines pass wait for seconds.
    """

    def __init__(self, slots: int, common_slots: int) -> None:
        self._slots = asyncio.Semaphore(slots)
        self._common_slots = asyncio.Semaphore(common_slots)

    async def reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit:
        """Wait for a slot: of a start also for one of the few of the common queue."""
        permit = _WorkflowPermit(is_common=not ctx.is_sticky)
        if permit.is_common:
            await self._common_slots.acquire()
        try:
            await self._slots.acquire()
        except asyncio.CancelledError:
            if permit.is_common:
                self._common_slots.release()
            raise
        return permit

    def try_reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit | None:
        """Return no slot for eager tasks: the server sends none to workflows."""
        del ctx
        return None

    def mark_slot_used(self, ctx: SlotMarkUsedContext) -> None:
        """Do nothing: a reserved slot is a used one."""

    def release_slot(self, ctx: SlotReleaseContext) -> None:
        """Free a slot."""
        self._slots.release()
        if isinstance(ctx.permit, _WorkflowPermit) and ctx.permit.is_common:
            self._common_slots.release()


class _WorkflowPermit(SlotPermit):
    def __init__(self, *, is_common: bool) -> None:
        super().__init__()
        self.is_common = is_common


def workflow_tuner() -> WorkerTuner:
    """Create the slots of a workflow worker; it runs no activities."""
    none = FixedSizeSlotSupplier(1)
    return WorkerTuner.create_composite(
        workflow_supplier=WorkflowSlots(WORKFLOW_TASKS, COMMON_WORKFLOW_TASKS),
        activity_supplier=none,
        local_activity_supplier=none,
        nexus_supplier=none,
    )


class PoolGroup:
    """The running pools of a process."""

    def __init__(self, client: Client, workers: Mapping[str, Worker]) -> None:
        """Start polling."""
        self._client = client
        self._workers = workers
        self._tasks = {pool: asyncio.create_task(worker.run(), name=f"pool-{pool}") for pool, worker in workers.items()}

    async def health(self) -> dict[str, PoolHealth]:
        """Return the state of each pool by name."""
        try:
            reachable = await self._client.service_client.check_health(timeout=HEALTH_TIMEOUT)
        except RPCError:
            reachable = False
        return {
            pool: PoolHealth(not task.done(), reachable and self._workers[pool].is_running)
            for pool, task in self._tasks.items()
        }

    def running(self) -> frozenset[str]:
        """Return the pools that have not ended."""
        return frozenset(pool for pool, task in self._tasks.items() if not task.done())

    async def failure(self) -> None:
        """Wait until a worker ends on its own. Raises the error that ended it."""
        done, _ = await asyncio.wait(self._tasks.values(), return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    async def stop(self) -> None:
        """Stop polling, let activities finish within their pool's time, then cancel them. Raises a worker's error."""
        running = self.running()
        stopping = (worker.shutdown() for pool, worker in self._workers.items() if pool in running)
        await asyncio.gather(*stopping, return_exceptions=True)
        results = await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result


@asynccontextmanager
async def run_pools(
    client: Client, contents: PoolContents, pools: Sequence[str], *, drain: Mapping[str, timedelta] = DRAIN_TIMES
) -> AsyncIterator[PoolGroup]:
    """Run pools during the block, and drain them afterwards, even if the block is cancelled.

    `drain` is the time of each pool to finish what it works on.
    """
    group = PoolGroup(client, {pool: build_worker(pool, client, contents, grace=drain[pool]) for pool in pools})
    logger.info("pools.started", pools=list(pools))
    try:
        yield group
    finally:
        longest = max(drain[pool] for pool in pools)
        logger.info("pools.draining", pools=list(pools), grace_seconds=longest.total_seconds())
        await group.stop()
        logger.info("pools.stopped", pools=list(pools))


# --- the sandbox of workflow code -------------------------------------------------------------------------------------
def _passing(prefix: str) -> Iterator[str]:
    yield f"{prefix}contracts"
    for name in ("rules", "run", "phases", "messages", "status", "registry"):
        yield f"{prefix}workflows.{name}"
    for name in ("protocol", "units", "supervisor", "reflective", "orchestrator", "living", "recursive"):
        yield f"{prefix}workflows.strategies.{name}"


# By both names: a strategy of a package uses the public one also where the product runs from its repository.
PASSTHROUGH_MODULES: Sequence[str] = (
    *_passing(MODULE_PREFIX),
    *_passing("durable_research."),
    "durable_research.checkout",
)
"""Modules that pass through the workflow sandbox besides the standard library, temporalio and pydantic.

The sandbox reimports all others for each run, which took 17 ms for all of ours. `tests/architecture` checks that these
modules use only what the sandbox permits.
"""


class _Runner(SandboxedWorkflowRunner):
    """The SDK's runner, with instances of ours."""

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        return CheckedInstance(super().create_instance(det))


class CheckedInstance(WorkflowInstance):
    """An instance of a workflow that refuses events after the last workflow task, and has no payload contexts.

    To answer a query about an uncached run, the SDK applies such events as well, with the time of the last task, and
    caches the run: its next decisions may then differ from the history for good (decision 0042). The failure is the
    answer to the query and evicts the run; an exception would do the same and log its frames.
    """

    def __init__(self, inner: WorkflowInstance) -> None:
        self._inner = inner
        self._time = 0
        self._length = 0

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        """Handle an activation, and fail for events that no workflow task has handled yet."""
        time = act.timestamp.ToNanoseconds()
        if time == self._time and act.history_length > self._length and any(map(_is_event, act.jobs)):
            refusal = WorkflowActivationCompletion()
            refusal.failed.failure.message = EVENTS_AFTER_TASK
            refusal.failed.failure.application_failure_info.type = "EventsAfterTask"
            return refusal
        self._time = time
        self._length = act.history_length
        return self._inner.activate(act)

    def get_serialization_context(self, command_info: object) -> None:
        """Return none: our codec needs none, and the SDK compiles and runs code for it seven times per activity."""
        del command_info

    def get_external_store_context(self, command_info: object) -> Any:
        """Return none, for the same reason; only external storage uses it."""
        del command_info

    def get_info(self) -> Info:
        """Return the workflow's info."""
        return self._inner.get_info()

    def get_thread_id(self) -> int | None:
        """Return the thread that runs the workflow, for the report of a deadlock."""
        return self._inner.get_thread_id()


def _is_event(job: WorkflowActivationJob) -> bool:
    return job.WhichOneof("variant") not in ("query_workflow", "remove_from_cache")


def workflow_runner() -> SandboxedWorkflowRunner:
    """Create the runner for all workflow workers and the replay tests."""
    build_validators()
    return _Runner(restrictions=SandboxRestrictions.default.with_passthrough_modules(*PASSTHROUGH_MODULES))


def set_deadlock_timeout(worker: Worker) -> None:
    """Set the deadlock timeout of workflow tasks, for which temporalio 1.35 has no option.

    It is the only private attribute of the SDK that this product touches.
    """
    workflow_worker = worker._workflow_worker  # noqa: SLF001
    assert workflow_worker is not None
    workflow_worker._deadlock_timeout_seconds = DEADLOCK_SECONDS  # type: ignore[assignment]  # noqa: SLF001
