"""Bring the indexes of a worker's corpora up to date before it takes work."""

import asyncio
import time
from collections.abc import Callable

import structlog

from providers.errors import ProviderError
from providers.interfaces import IndexProgress
from providers.search.corpus import CorpusLibrary

NEEDS_INDEXES = frozenset({"search", "reading", "records"})
"""Pools that read the indexes; `records` resolves requests by them."""
PROGRESS_SECONDS = 5.0

logger = structlog.get_logger(__name__)


async def refresh_corpora(library: CorpusLibrary) -> None:
    """Index every corpus that is configured or registered, one after the other; only changed files are read.

    A corpus that cannot be indexed (its folder is gone) is logged, and a run that names it fails; the worker serves the
    other corpora. Processes that start together wait for each other's indexes.
    """
    for name in library.names():
        started = time.monotonic()
        logger.info("corpus.refreshing", corpus=name)
        try:
            snapshot = await library.refresh(name, _progress_logger(name, time.monotonic))
        except ProviderError as error:
            logger.warning("corpus.not_refreshed", corpus=name, reason=str(error))
            continue
        logger.info(
            "corpus.ready",
            corpus=name,
            documents=snapshot.files,
            skipped=snapshot.skipped,
            seconds=round(time.monotonic() - started, 2),
        )
        await asyncio.sleep(0)


def _progress_logger(name: str, clock: Callable[[], float]) -> Callable[[IndexProgress], None]:
    """A callback that logs the progress of an index every few seconds."""
    logged_at = clock()

    def log_progress(progress: IndexProgress) -> None:
        nonlocal logged_at
        if clock() - logged_at >= PROGRESS_SECONDS:
            logged_at = clock()
            logger.info("corpus.progress", corpus=name, done=progress.done, total=progress.total)

    return log_progress
