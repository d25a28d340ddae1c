"""Prepares a cluster for runs: `python -m durable_research.workers.setup`. Idempotent."""

import argparse
import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar

from google.protobuf.duration_pb2 import Duration
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, RegisterNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from contracts.names import COST_ATTRIBUTE, KEYWORD_ATTRIBUTES
from workers.dev_server import ServerError
from workers.own_process import exit_process
from workers.settings.loading import Flags, Settings, SettingsError, load_settings
from workers.temporal import CALL_TIMEOUT, ServerUnreachableError, open_connection, register_search_attributes
from workers.versions import VersionsUnavailableError, build_id_of, ensure_current

T = TypeVar("T")

RETENTION_DAYS = 30  # of closed runs in a cluster, as in the dev server
WAIT_SECONDS = 120.0  # a starting server needs up to a minute, its namespace cache some seconds more
POLL_SECONDS = 0.5
USAGE = 2
FAILED = 4

TRANSIENT_STATUSES = {RPCStatusCode.NOT_FOUND, RPCStatusCode.ALREADY_EXISTS, RPCStatusCode.UNAVAILABLE}
"""Transient errors while new objects, of this or a concurrent setup, propagate through the server."""
ATTRIBUTES = ", ".join([*(f"{name} (Keyword)" for name in KEYWORD_ATTRIBUTES), f"{COST_ATTRIBUTE} (Double)"])


class SetupError(ServerError):
    """The cluster could not be prepared; the message names the remaining step."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Set up the cluster, print the result and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m durable_research.workers.setup",
        description="Prepare the cluster that TEMPORAL_ADDRESS names; safe to repeat.",
    )
    parser.add_argument("--retention-days", type=int, default=RETENTION_DAYS, help="for a namespace that is made here")
    parser.add_argument("--config", type=Path, help="a research.toml to read over the user's own")
    parser.add_argument("--wait-seconds", type=float, default=WAIT_SECONDS, help="for a server that is just starting")
    options = parser.parse_args(arguments)
    try:
        settings = load_settings(Flags(config=options.config))
        if not settings.uses_cluster:
            raise SettingsError("TEMPORAL_ADDRESS is not set: the dev server sets itself up")  # noqa: TRY301
        lines = asyncio.run(set_up(settings, timedelta(days=options.retention_days), options.wait_seconds))
    except (SettingsError, ServerError) as error:
        sys.stderr.write(f"{error}\n")
        if isinstance(error, SettingsError):
            return USAGE
        return FAILED
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


async def set_up(
    settings: Settings, retention: timedelta = timedelta(days=RETENTION_DAYS), wait_seconds: float = WAIT_SECONDS
) -> list[str]:
    """Set up a server that may be starting, and describe it. Raises `SetupError`, `ServerUnreachableError`."""
    end = time.monotonic() + wait_seconds
    client = (await _retry(partial(open_connection, settings), end)).client
    added: set[str] = set()
    try:
        created = await _retry(partial(ensure_namespace, client, retention), end)
        version = await _retry(partial(_ensure_version, client, build_id_of(settings)), end)
        while missing := await _retry(partial(register_search_attributes, client), end):
            added |= missing
            if time.monotonic() > end:
                raise SetupError(f"the server does not list these search attributes yet: {', '.join(sorted(missing))}")
            await asyncio.sleep(POLL_SECONDS)
    except RPCError as error:
        if error.status is RPCStatusCode.ALREADY_EXISTS:
            raise SetupError(f"one of these search attributes exists with another type: {ATTRIBUTES}") from None
        raise SetupError(
            f"the server refused to be set up ({error.status.name.lower()}). Ask its operator to create the namespace "
            f"{client.namespace} with a retention of {retention.days} days and these search attributes: {ATTRIBUTES}"
        ) from None
    return [
        f"namespace {client.namespace}: {'created' if created else 'there already'}",
        f"search attributes: {', '.join(sorted(added)) + ' added' if added else 'as they should be'}",
        version,
    ]


async def _ensure_version(client: Client, build_id: str) -> str:
    """Make the version of this program the current one if there is none; describe the result. Raises `RPCError`."""
    if not build_id:
        return "version of the workflow code: none"
    try:
        current = await ensure_current(client, build_id)
    except VersionsUnavailableError as error:
        return f"version of the workflow code: {error}"
    if current == build_id:
        return f"version of the workflow code: {build_id} is current"
    promote = f"research workers promote {build_id}"
    return f"version of the workflow code: {current} is current; once workers of {build_id} run: {promote}"


async def ensure_namespace(client: Client, retention: timedelta) -> bool:
    """Create the client's namespace if it is missing; return whether it was created. Raises `RPCError`."""
    service = client.workflow_service
    period = Duration()
    period.FromTimedelta(retention)
    try:
        await service.describe_namespace(DescribeNamespaceRequest(namespace=client.namespace), timeout=CALL_TIMEOUT)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        register = RegisterNamespaceRequest(namespace=client.namespace, workflow_execution_retention_period=period)
        await service.register_namespace(register, timeout=CALL_TIMEOUT)
        return True
    return False


async def _retry(step: Callable[[], Awaitable[T]], end: float) -> T:
    """Repeat a step while the server is starting. Raises `RPCError`, `ServerUnreachableError` at `end`."""
    while True:
        try:
            return await step()
        except (RPCError, ServerUnreachableError) as error:
            if (isinstance(error, RPCError) and error.status not in TRANSIENT_STATUSES) or time.monotonic() > end:
                raise
        await asyncio.sleep(POLL_SECONDS)


if __name__ == "__main__":
    exit_process(main())
