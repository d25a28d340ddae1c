"""The stores of a process as its configuration has them: those of workers, and those of commands."""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from providers.isolation.pool import SubprocessPool
from providers.storage.content import ObstoreContentStore
from providers.storage.content_archive import RecordArchive
from providers.storage.sessions import SESSIONS, RecordSessionStore
from providers.storage.stored_notebooks import Notebooks
from providers.storage.stored_records import open_records
from workers.settings.loading import Settings

if TYPE_CHECKING:
    from providers.search.corpus.library import CorpusLibrary

CHILD_PROCESSES: Final = max(1, min(4, os.cpu_count() or 1))
"""Child processes for work on text from outside."""
CONTENT_FOLDER: Final = "content"


@dataclass(frozen=True)
class FileStores:
    """The content of a home or an object store: texts and sessions. Nothing of it must be closed."""

    content: ObstoreContentStore
    notebooks: Notebooks
    archive: RecordArchive
    sessions: RecordSessionStore


def open_stores(settings: Settings) -> FileStores:
    """Open the stores of texts and sessions. Raises `NotConfigured`, `StorageFull` or OSError."""
    keyring = settings.keyring
    content = ObstoreContentStore(settings.content_url or settings.home / CONTENT_FOLDER, keyring)
    return FileStores(
        content=content,
        notebooks=Notebooks(content),
        archive=RecordArchive(settings.content_url, settings.home, settings.tokens.research_archive_dir, keyring),
        sessions=RecordSessionStore(open_records(settings.content_url, settings.home, SESSIONS, keyring)),
    )


def open_corpora(settings: Settings, children: SubprocessPool) -> "CorpusLibrary":
    """Open the corpora of the configuration and those registered here; their documents are read in `children`."""
    from providers.search.corpus.folders import CorpusDefinition  # noqa: PLC0415  half a second
    from providers.search.corpus.library import open_library  # noqa: PLC0415  half a second

    definitions = [
        CorpusDefinition(name=name, **corpus.model_dump(exclude_none=True)) for name, corpus in settings.corpus.items()
    ]
    corpora = settings.home / "corpora"
    return open_library(settings.content_url, settings.home, corpora, children, definitions, settings.keyring)
