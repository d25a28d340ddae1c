"""Workers inside the command's own process, as long as it needs them."""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TextIO

from client.cli.command_context import CommandContext
from client.handle import ResearchClient
from contracts.names import POOLS
from workers.composition import compose
from workers.pools import PoolGroup, run_pools
from workers.process import end_if_stalled
from workers.telemetry import configure_logging

GRACE = timedelta(seconds=2)
"""A command that ends has a closed run: only other people's work could be going on, and that is taken up again."""
LOG_BYTES = 5_000_000


@asynccontextmanager
async def workers_here(
    context: CommandContext, client: ResearchClient, pools: Sequence[str] = tuple(POOLS)
) -> AsyncIterator[PoolGroup]:
    """Run pools beside the block; they log to a file, because the terminal shows the run."""
    async with (
        end_if_stalled(log_to_file(context)),
        compose(context.settings, client.temporal, pools) as contents,
        run_pools(client.temporal, contents, pools, grace=GRACE) as group,
    ):
        yield group


def log_to_file(context: CommandContext) -> TextIO:
    """Send logs to `logs/research.log` below the data folder; an older one is kept once."""
    path = context.settings.home / "logs" / "research.log"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if path.exists() and path.stat().st_size > LOG_BYTES:
        path.replace(path.with_suffix(".old.log"))
    stream = path.open("a", encoding="utf-8")
    configure_logging("json", logging.INFO, secrets=context.settings.secrets(), stream=stream)
    return stream
