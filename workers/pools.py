"""Worker pools: one Temporal worker per task queue, sized for what it waits for."""

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from temporalio.client import Client
from temporalio.worker import PollerBehaviorAutoscaling, Worker

from contracts.names import POOLS
from workers.sandbox import workflow_runner

WORKFLOWS = "workflows"
CACHED_WORKFLOWS = 500
"""More than run at once on one machine; a cached run costs well under a megabyte."""
WORKFLOW_TASKS = 40
GRACE = timedelta(seconds=10)
"""How long a stopping worker lets its activities finish; then they are cancelled and run again elsewhere."""
HEARTBEAT_THROTTLE = timedelta(seconds=1)
"""Lets a cancellation reach an activity in about a second; the SDK's default takes 7 to 23 s."""
MOST_POLLERS = 20

DEFAULT_SLOTS: Mapping[str, int] = {"models": 200, "search": 32, "reading": 32, "records": 16}
"""Activities at once per worker; fixed, because CPU and memory say nothing of a provider's quota.

A model call only waits: a run makes one per sub-query at a time, so a worker holds some forty runs without queueing.
"""


class UnknownPoolError(ValueError):
    """No pool of that name."""


@dataclass(frozen=True)
class PoolContents:
    """What the pools of a process run."""

    workflows: Sequence[type] = ()
    activities: Mapping[str, Sequence[Callable[..., Any]]] = field(default_factory=dict)
    """By pool name."""
    slots: Mapping[str, int] = field(default_factory=dict)
    """Overrides of `DEFAULT_SLOTS` by pool name."""


def chosen_pools(names: str | None) -> tuple[str, ...]:
    """`models,search` → the pools, each once, in the usual order; null or empty means all.

    Raises `UnknownPoolError`.
    """
    wanted = {name.strip() for name in (names or "").split(",") if name.strip()}
    unknown = sorted(wanted - POOLS.keys())
    if unknown:
        raise UnknownPoolError(f"no pool is called {unknown[0]}: there are {', '.join(POOLS)}")
    return tuple(name for name in POOLS if not wanted or name in wanted)


def build_worker(pool: str, client: Client, contents: PoolContents, *, grace: timedelta = GRACE) -> Worker:
    """The worker of one pool. Raises `UnknownPoolError`, ValueError for a pool that has nothing to run."""
    if pool not in POOLS:
        raise UnknownPoolError(f"no pool is called {pool}")
    identity = f"{pool}-{os.getpid()}@{socket.gethostname()}"
    if pool == WORKFLOWS:
        return Worker(
            client,
            task_queue=POOLS[pool],
            identity=identity,
            workflows=list(contents.workflows),
            workflow_runner=workflow_runner(),
            max_cached_workflows=CACHED_WORKFLOWS,
            max_concurrent_workflow_tasks=WORKFLOW_TASKS,
            graceful_shutdown_timeout=grace,
        )
    slots = contents.slots.get(pool, DEFAULT_SLOTS[pool])
    pollers = PollerBehaviorAutoscaling(minimum=1, maximum=min(MOST_POLLERS, slots), initial=min(2, slots))
    return Worker(
        client,
        task_queue=POOLS[pool],
        identity=identity,
        activities=list(contents.activities.get(pool, ())),
        max_concurrent_activities=slots,
        activity_task_poller_behavior=pollers,
        max_heartbeat_throttle_interval=HEARTBEAT_THROTTLE,
        graceful_shutdown_timeout=grace,
    )
