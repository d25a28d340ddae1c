"""What a command reads and writes without a server: sessions, documents, corpora, the journal of calls."""

import os
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from client.cli.errors import CommandError
from client.cli.report_files import write_atomically
from contracts.documents import DocumentRef
from providers.interfaces import CallStore, ContentStore, ExtractedDocument, IsolatedCalls, Reader, SessionStore
from providers.isolated_calls import KillableCalls
from providers.search.corpus import CorpusDefinition, CorpusLibrary, ingest_file
from providers.storage.content import ObstoreContentStore
from providers.storage.sessions import FileSessionStore
from providers.subprocess_pool import SubprocessPool
from workers.settings.loading import Settings

CHILDREN = max(1, min(4, os.cpu_count() or 1))


class Stores:
    """Opened on demand, closed together."""

    def __init__(self, settings: Settings, stack: AsyncExitStack) -> None:
        self._settings = settings
        self._stack = stack
        self.sessions: SessionStore = FileSessionStore(settings.home / "sessions")
        self._content: ContentStore | None = None
        self._library: CorpusLibrary | None = None
        self._calls: CallStore | None = None
        self._pool: SubprocessPool | None = None
        self._web: Reader | None = None

    @property
    def content(self) -> ContentStore:
        """The content store."""
        if self._content is None:
            self._content = ObstoreContentStore(self._settings.content_url or self._settings.home / "content")
        return self._content

    async def calls(self) -> CallStore:
        """The journal of calls, the same one as of a worker. Raises `NotConfigured`, `StorageFull`."""
        if self._calls is None:
            from workers.shared_state import shared_state  # noqa: PLC0415  most commands need no journal

            self._calls = (await self._stack.enter_async_context(shared_state(self._settings))).calls
        return self._calls

    async def corpora(self) -> CorpusLibrary:
        """The corpora of the configuration and those that were registered here."""
        if self._library is None:
            definitions = [
                CorpusDefinition(name=name, **corpus.model_dump(exclude_none=True))
                for name, corpus in self._settings.corpus.items()
            ]
            self._library = CorpusLibrary(self._settings.home / "corpora", await self._children(), definitions)
        return self._library

    async def ingest(self, path: Path) -> ExtractedDocument:
        """Read one file as a corpus would. Raises `SourceUnreadable`."""
        return await ingest_file(await self._children(), path)

    async def web(self) -> Reader:
        """The reader of http and https URLs, the same one as of a worker."""
        if self._web is None:
            from workers.resolution_inputs import product_version  # noqa: PLC0415  most commands need no web
            from workers.web_reader import web_reader  # noqa: PLC0415

            reader = web_reader(self._settings, await self._children(), product_version())
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


NOTE: Final = TypeAdapter(list[DocumentRef])
ENDING: Final = ".json"


def note_documents(home: Path, research_id: str, documents: Iterable[DocumentRef]) -> None:
    """Write down what a run leaves behind, beside what an earlier run of its id did. Raises `CommandError`, OSError."""
    path = _notes_folder(home) / f"{research_id}{ENDING}"
    known = {each.hash: each for each in (*(_read_note(path) if path.exists() else ()), *documents)}
    if known:
        write_atomically(path, NOTE.dump_json(list(known.values())))


def read_noted_documents(home: Path) -> dict[str, list[DocumentRef]]:
    """What each deleted run has left behind. Raises `CommandError` for a damaged note."""
    folder = _notes_folder(home)
    paths = sorted(folder.glob(f"[!.]*{ENDING}")) if folder.is_dir() else []
    return {path.name.removesuffix(ENDING): _read_note(path) for path in paths}


def forget_documents(home: Path, research_ids: Iterable[str]) -> None:
    """Remove the notes of these runs, whose documents are gone or used by other runs."""
    for research_id in research_ids:
        (_notes_folder(home) / f"{research_id}{ENDING}").unlink(missing_ok=True)


def _notes_folder(home: Path) -> Path:
    return home / "left-behind"


def _read_note(path: Path) -> list[DocumentRef]:
    try:
        return NOTE.validate_json(path.read_bytes())
    except ValueError:
        raise CommandError(f"{path} is damaged: remove it, then try again") from None
