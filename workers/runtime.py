"""Pools in one process: start them, watch them, drain them."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

import structlog
from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.worker import Worker

from workers.pools import GRACE, PoolContents, build_worker

HEALTH_TIMEOUT = timedelta(seconds=2)

logger = structlog.get_logger(__name__)


@dataclass(frozen=True)
class PoolHealth:
    """Whether a pool's worker runs (`alive`), and whether it can get work now (`ready`)."""

    alive: bool
    ready: bool


class PoolGroup:
    """The running pools of a process."""

    def __init__(self, client: Client, workers: dict[str, Worker]) -> None:
        self._client = client
        self._workers = workers
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @property
    def pools(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(self._workers)

    def start(self) -> None:
        """Start polling."""
        for pool, worker in self._workers.items():
            self._tasks[pool] = asyncio.create_task(worker.run(), name=f"pool-{pool}")

    async def health(self) -> dict[str, PoolHealth]:
        """State of each pool by name."""
        reachable = await self._engine_answers()
        return {
            pool: PoolHealth(not task.done(), reachable and self._workers[pool].is_running)
            for pool, task in self._tasks.items()
        }

    async def failure(self) -> None:
        """Return never, unless a worker ends by itself. Raises what ended it."""
        done, _ = await asyncio.wait(self._tasks.values(), return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    async def stop(self) -> None:
        """Take no new work, let activities finish within the grace time, then cancel them. Raises a worker's error."""
        running = [worker for pool, worker in self._workers.items() if not self._tasks[pool].done()]
        await asyncio.gather(*(worker.shutdown() for worker in running), return_exceptions=True)
        results = await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        errors = [result for result in results if isinstance(result, Exception)]
        if errors:
            raise errors[0]

    async def _engine_answers(self) -> bool:
        try:
            return await self._client.service_client.check_health(timeout=HEALTH_TIMEOUT)
        except RPCError:
            return False


@asynccontextmanager
async def running_pools(
    client: Client, contents: PoolContents, pools: Sequence[str], *, grace: timedelta = GRACE
) -> AsyncIterator[PoolGroup]:
    """Run pools while the block runs, and drain them afterwards, also when the block is cancelled."""
    group = PoolGroup(client, {pool: build_worker(pool, client, contents, grace=grace) for pool in pools})
    group.start()
    logger.info("pools.started", pools=list(group.pools))
    try:
        yield group
    finally:
        logger.info("pools.draining", pools=list(group.pools), grace_seconds=grace.total_seconds())
        await group.stop()
        logger.info("pools.stopped", pools=list(group.pools))


@contextlib.contextmanager
def stop_signals() -> Iterator[asyncio.Event]:
    """An event that the first SIGTERM or SIGINT sets; the second one ends the process at once."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    names = (signal.SIGTERM, signal.SIGINT)

    def on_signal() -> None:
        stop.set()
        for name in names:
            loop.remove_signal_handler(name)
            signal.signal(name, signal.SIG_DFL)

    for name in names:
        loop.add_signal_handler(name, on_signal)
    try:
        yield stop
    finally:
        for name in names:
            loop.remove_signal_handler(name)


async def until_stopped(group: PoolGroup, stop: asyncio.Event) -> None:
    """Wait for the stop signal. Raises the error of a worker that ended before it."""
    waiting = {asyncio.create_task(stop.wait()), asyncio.create_task(group.failure())}
    try:
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
