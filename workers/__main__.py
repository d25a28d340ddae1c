"""A worker process for containers and service managers: `python -m workers --pool models,search`."""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

import structlog

from providers.errors import ProviderError
from workers.dev_server.server_files import ServerError
from workers.pools import UnknownPoolError, choose_pools
from workers.private_files import keep_files_private
from workers.process import PortUnusableError, ProcessOptions, run
from workers.process_exit import leave, run_to_end
from workers.settings.loading import Flags, SettingsError, load_settings
from workers.telemetry import LogFormat, configure_logging

USAGE = 2
FAILED = 4

logger = structlog.get_logger("workers")


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m workers", description="Run worker pools until SIGTERM.")
    parser.add_argument("--pool", help="workflows,models,search,reading,records; all without it")
    parser.add_argument("--config", type=Path, help="a research.toml, in place of the working directory's")
    parser.add_argument("--log-format", choices=("json", "console"), default="json")
    parser.add_argument("--host", default="127.0.0.1", help="where health and metrics listen")
    parser.add_argument("--health-port", type=int, help="serve /healthz and /livez; 0 takes a free port")
    parser.add_argument("--metrics-port", type=int, help="serve Prometheus metrics; 0 takes a free port")
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> int:
    """Run the process; its exit code."""
    options = arguments(given)
    keep_files_private()
    form: LogFormat = options.log_format
    try:
        settings, pools = load_settings(Flags(config=options.config)), choose_pools(options.pool)
    except (SettingsError, UnknownPoolError) as error:
        sys.stderr.write(f"{error}\n")
        return USAGE
    configure_logging(form, logging.INFO, secrets=settings.secrets())
    try:
        served = ProcessOptions(options.host, options.health_port, options.metrics_port, log_format=form)
        run_to_end(run(settings, pools, served))
    except (ServerError, ProviderError, PortUnusableError, OSError) as error:
        logger.error("worker.cannot_run", reason=str(error))  # noqa: TRY400  a sentence for people, no traceback
        return FAILED
    return 0


if __name__ == "__main__":
    leave(main())
