"""The indexes of a worker's corpora, brought up to date before it takes work."""

import asyncio
import time
from collections.abc import Callable

import structlog

from providers.errors import ProviderError
from providers.interfaces import IndexProgress
from providers.search.corpus import CorpusLibrary

NEEDS_INDEXES = frozenset({"search", "reading", "records"})
"""Pools that read the indexes: a run is resolved by what they hold."""
TOLD_EVERY_SECONDS = 5.0

logger = structlog.get_logger(__name__)


async def refresh_corpora(library: CorpusLibrary) -> None:
    """Index every corpus that is configured or registered, one after the other; only changed files are read.

    A corpus that cannot be indexed (its folder is gone) is told in the log and left to the runs that name it: a worker
    serves other corpora, too. Several processes that start together wait for each other's indexes.
    """
    for name in library.names():
        started = time.monotonic()
        logger.info("corpus.refreshing", corpus=name)
        try:
            snapshot = await library.refresh(name, _teller(name, time.monotonic))
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


def _teller(name: str, clock: Callable[[], float]) -> Callable[[IndexProgress], None]:
    """A callback that logs how far an index is, every few seconds."""
    told = clock()

    def tell(progress: IndexProgress) -> None:
        nonlocal told
        if clock() - told >= TOLD_EVERY_SECONDS:
            told = clock()
            logger.info("corpus.progress", corpus=name, done=progress.done, total=progress.total)

    return tell
