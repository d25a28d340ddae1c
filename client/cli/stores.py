"""What a command reads and writes without a server: sessions, documents, corpora, the journal of calls."""

import os
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from providers.interfaces import (
    CallStore,
    ContentStore,
    ExtractedDocument,
    IsolatedCalls,
    Notebooks,
    Reader,
    SessionStore,
)
from providers.isolation.killable_calls import KillableCalls
from providers.isolation.pool import SubprocessPool
from providers.search.corpus import CorpusDefinition, CorpusLibrary, ingest_file
from providers.search.corpus.published import open_published
from providers.storage.content import ObstoreContentStore
from providers.storage.sessions import SESSIONS, RecordSessionStore
from providers.storage.stored_notebooks import StoredNotebooks
from providers.storage.stored_records import Records, open_records
from workers.settings.loading import Settings

CHILDREN = max(1, min(4, os.cpu_count() or 1))


class Stores:
    """Opened on demand, closed together."""

    def __init__(self, settings: Settings, stack: AsyncExitStack) -> None:
        self._settings = settings
        self._stack = stack
        self._sessions: SessionStore | None = None
        self._content: ContentStore | None = None
        self._library: CorpusLibrary | None = None
        self._calls: CallStore | None = None
        self._pool: SubprocessPool | None = None
        self._web: Reader | None = None

    @property
    def sessions(self) -> SessionStore:
        """The sessions of runs, the same ones as of a worker."""
        if self._sessions is None:
            self._sessions = RecordSessionStore(self.records(SESSIONS))
        return self._sessions

    def records(self, kind: str) -> Records:
        """Small records, where every host that shares the runs finds them."""
        return open_records(self._settings.content_url, self._settings.home, kind)

    @property
    def content(self) -> ContentStore:
        """The content store."""
        if self._content is None:
            self._content = ObstoreContentStore(
                self._settings.content_url or self._settings.home / "content", dates_puts=True
            )
        return self._content

    @property
    def notebooks(self) -> Notebooks:
        """The notebooks of runs, in the content store."""
        return StoredNotebooks(self.content)

    async def calls(self) -> CallStore:
        """The journal of calls, the same one as of a worker. Raises `NotConfigured`, `StorageFull`."""
        if self._calls is None:
            from workers.shared_state import open_shared_state  # noqa: PLC0415  most commands need no journal

            self._calls = (await self._stack.enter_async_context(open_shared_state(self._settings))).calls
        return self._calls

    async def corpora(self) -> CorpusLibrary:
        """The corpora of the configuration and those that were registered here."""
        if self._library is None:
            definitions = [
                CorpusDefinition(name=name, **corpus.model_dump(exclude_none=True))
                for name, corpus in self._settings.corpus.items()
            ]
            self._library = CorpusLibrary(
                self._settings.home / "corpora",
                await self._children(),
                definitions,
                open_published(self._settings.content_url, self._settings.home),
            )
        return self._library

    async def ingest(self, path: Path) -> ExtractedDocument:
        """Read one file as a corpus would. Raises `SourceUnreadable`."""
        return await ingest_file(await self._children(), path)

    async def web(self) -> Reader:
        """The reader of http and https URLs, the same one as of a worker."""
        if self._web is None:
            from workers.resolution_inputs import product_version  # noqa: PLC0415  most commands need no web
            from workers.web_reader import open_web_reader  # noqa: PLC0415

            reader = open_web_reader(self._settings, await self._children(), product_version())
            self._web = await self._stack.enter_async_context(reader)
        return self._web

    async def isolated(self) -> IsolatedCalls:
        """Processes for work on texts from outside."""
        return KillableCalls(await self._children())

    async def _children(self) -> SubprocessPool:
        if self._pool is None:
            self._pool = await self._stack.enter_async_context(SubprocessPool(CHILDREN))
        return self._pool


@asynccontextmanager
async def open_stores(settings: Settings) -> AsyncIterator[Stores]:
    """Stores that open what is used and close it at the end."""
    async with AsyncExitStack() as stack:
        yield Stores(settings, stack)


KEPT_SECONDS: Final = 3_600.0


def record_deleted_histories(home: Path, run_ids: Iterable[str]) -> None:
    """Remember deleted histories by the server's run id; forget those of long ago."""
    folder = home / "deleted"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for run_id in run_ids:
        (folder / run_id).touch()
    oldest = time.time() - KEPT_SECONDS
    for path in folder.iterdir():
        if path.stat().st_mtime < oldest:
            path.unlink(missing_ok=True)


def read_deleted_histories(home: Path) -> set[str]:
    """Run ids of histories that were deleted a short while ago."""
    folder = home / "deleted"
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()
