"""A worker process for containers and service managers: `python -m workers --pool models,search`."""

import argparse
import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import structlog

from workers.composition import compose, product_version
from workers.engine_files import EngineError
from workers.health import health_endpoint
from workers.pools import UnknownPoolError, chosen_pools
from workers.runtime import PoolGroup, leave, running_pools, stop_signals, until_stopped
from workers.settings import Settings, SettingsError, load_settings
from workers.telemetry import LogFormat, configure_logging, metrics_address, temporal_runtime
from workers.temporal import open_connection

USAGE = 2
FAILED = 4

logger = structlog.get_logger("workers")


@dataclass(frozen=True)
class ProcessOptions:
    """What a process serves besides its pools; a null port serves nothing, 0 takes a free one."""

    host: str = "127.0.0.1"
    health_port: int | None = None
    metrics_port: int | None = None


@asynccontextmanager
async def worker_process(settings: Settings, pools: Sequence[str], options: ProcessOptions) -> AsyncIterator[PoolGroup]:
    """Connect, compose and run pools with health and metrics while the block runs.

    Raises `EngineError` if there is no engine, OSError if a port is taken.
    """
    logger.info("worker.configured", version=product_version(), pools=list(pools), configuration=settings.describe())
    for notice in settings.notices():
        logger.warning("worker.notice", text=notice)
    metrics = None if options.metrics_port is None else metrics_address(options.host, options.metrics_port)
    connection = await open_connection(settings, runtime=temporal_runtime(metrics))
    logger.info("worker.connected", engine=connection.address, digest=settings.digest(), metrics=metrics)
    async with (
        compose(settings, connection.client, pools) as contents,
        running_pools(connection.client, contents, pools) as group,
    ):
        if options.health_port is None:
            yield group
        else:
            async with health_endpoint(group.health, options.host, options.health_port) as address:
                logger.info("worker.health", address=address)
                yield group


def secrets_of(settings: Settings) -> list[str]:
    """Every value that no log may show."""
    held = [settings.anthropic_api_key, settings.redis_url, settings.temporal_variables.get("TEMPORAL_API_KEY")]
    return [secret.get_secret_value() for secret in held if secret is not None]


async def run(settings: Settings, pools: Sequence[str], options: ProcessOptions) -> None:
    """Run until SIGTERM or SIGINT, then drain. Raises what ends a worker before that."""
    with stop_signals() as stop:
        async with worker_process(settings, pools, options) as group:
            await until_stopped(group, stop)


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m workers", description="Run worker pools until SIGTERM.")
    parser.add_argument("--pool", help="workflows,models,search,reading,records; all without it")
    parser.add_argument("--log-format", choices=("json", "console"), default="json")
    parser.add_argument("--host", default="127.0.0.1", help="where health and metrics listen")
    parser.add_argument("--health-port", type=int, help="serve /healthz and /livez; 0 takes a free port")
    parser.add_argument("--metrics-port", type=int, help="serve Prometheus metrics; 0 takes a free port")
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> int:
    """Run the process; its exit code."""
    options = arguments(given)
    form: LogFormat = options.log_format
    try:
        settings, pools = load_settings(), chosen_pools(options.pool)
    except (SettingsError, UnknownPoolError) as error:
        sys.stderr.write(f"{error}\n")
        return USAGE
    configure_logging(form, logging.INFO, secrets=secrets_of(settings))
    try:
        asyncio.run(run(settings, pools, ProcessOptions(options.host, options.health_port, options.metrics_port)))
    except (EngineError, OSError) as error:
        logger.error("worker.cannot_run", reason=str(error))  # noqa: TRY400  a sentence for people, no traceback
        return FAILED
    return 0


if __name__ == "__main__":
    leave(main())
