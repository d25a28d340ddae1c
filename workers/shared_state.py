"""State shared by all workers: in Redis, or in one SQLite file."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from providers.interfaces import SharedStore
from providers.shared.answer_spool import AnswerSpool, ReservedRoom
from providers.shared.cache import Cache
from providers.shared.paid_calls import CallLocks, CallStore
from providers.shared.run_queue import QueueLimits, TenantPlaces
from providers.shared.shared_value import running
from providers.shared.stores.encrypted_store import EncryptedSharedStore
from providers.shared.stores.sqlite_store import SqliteSharedStore
from workers.settings.loading import Settings

SHARED_FILE: Final = "shared.sqlite3"  # in RESEARCH_HOME, shared by the workers of one machine without Redis

ROOM_FILE: Final = "shared.reserve"  # beside it: room for paid answers
SPOOL_FOLDER: Final = "answers"  # beside it: paid answers that the store did not take yet
LOCKS_FOLDER: Final = "calls"  # beside it: empty files that are locked while calls are made


@dataclass(frozen=True)
class SharedState:
    """The journal, the cache and the store; opened by `open_shared_state`, which also closes them."""

    calls: CallStore
    cache: Cache
    store: SharedStore
    """For limits, politeness and the queue of runs."""
    spool: AnswerSpool


def queue_limits(settings: Settings) -> QueueLimits:
    """Return how many runs may be active and wait, in total and by tenant."""
    runs = settings.runs
    tenants = {name: TenantPlaces(own.at_once, own.queued) for name, own in runs.tenants.items()}
    return QueueLimits(runs.at_once, runs.at_once_per_tenant, runs.queued, runs.queued_per_tenant, tenants)


@asynccontextmanager
async def open_shared_state(settings: Settings) -> AsyncIterator[SharedState]:
    """Open the shared state for the block, even without reaching Redis. Raises `NotConfigured` and `StorageFull`."""
    keyring = settings.keyring
    spool = AnswerSpool(settings.home / SPOOL_FOLDER, ReservedRoom(settings.home / ROOM_FILE), keyring)
    locks = CallLocks(settings.home / LOCKS_FOLDER)
    async with AsyncExitStack() as stack:
        if settings.redis_url is not None:
            from providers.shared.stores.redis_store import RedisSharedStore  # noqa: PLC0415  a tenth of startup

            redis = RedisSharedStore(settings.redis_url.get_secret_value())
            store: SharedStore = EncryptedSharedStore(redis, keyring)
            stack.push_async_callback(store.close)
            calls = CallStore(store, spool=spool, locks=locks)
        else:
            path = settings.home / SHARED_FILE
            journal = EncryptedSharedStore(SqliteSharedStore(path, durable=True), keyring)
            store = EncryptedSharedStore(SqliteSharedStore(path, durable=False), keyring)
            for each in (journal, store):
                stack.push_async_callback(each.close)
            await journal.get("opened")  # reports an unusable file now instead of during a run
            calls = CallStore(journal, store, spool=spool, locks=locks)
        await stack.enter_async_context(running(calls.deliver_always()))
        yield SharedState(calls, Cache(store), store, spool)
