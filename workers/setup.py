"""Prepare a cluster for runs: `python -m workers.setup`. Repeating it changes nothing."""

import argparse
import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar

from google.protobuf.duration_pb2 import Duration
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.workflowservice.v1 import (
    DescribeNamespaceRequest,
    RegisterNamespaceRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from workers.dev_server import ServerError
from workers.process_exit import leave
from workers.settings.loading import Flags, Settings, SettingsError, load_settings
from workers.temporal import (
    CALL_TIMEOUT,
    SEARCH_ATTRIBUTES,
    ServerUnreachableError,
    connect,
    register_search_attributes,
)

T = TypeVar("T")

RETENTION_DAYS = 30
"""How long a cluster keeps a closed run, like the dev server."""
WAIT_SECONDS = 120.0
"""A starting server answers within a minute; its cache of a new namespace takes some seconds more."""
POLL_SECONDS = 0.5
USAGE = 2
FAILED = 4

PASSING = {RPCStatusCode.NOT_FOUND, RPCStatusCode.ALREADY_EXISTS, RPCStatusCode.UNAVAILABLE}
"""Answers of a server whose parts do not all know yet what was just created, by this set-up or another one."""
TYPE_NAMES = {
    IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD: "Keyword",
    IndexedValueType.INDEXED_VALUE_TYPE_DOUBLE: "Double",
}
NOT_ALLOWED = {RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNAUTHENTICATED, RPCStatusCode.UNIMPLEMENTED}


class SetupError(ServerError):
    """The cluster could not be prepared; the message names what is left to do."""


@dataclass(frozen=True)
class SetupResult:
    """What a set-up changed; a second one changes nothing."""

    namespace: str
    created: bool = False
    retention: timedelta = timedelta(days=RETENTION_DAYS)
    """Of the namespace as it is: one that was there before keeps its own."""
    attributes_added: frozenset[str] = frozenset()

    def lines(self) -> list[str]:
        """The result as text for a person."""
        change = "created" if self.created else "there already"
        added = f"added {', '.join(sorted(self.attributes_added))}" if self.attributes_added else "as they should be"
        days = self.retention / timedelta(days=1)
        return [
            f"namespace {self.namespace}: {change}; it keeps closed runs for {days:g} {'day' if days == 1 else 'days'}",
            f"search attributes: {added}",
        ]


async def set_up(
    settings: Settings, retention: timedelta = timedelta(days=RETENTION_DAYS), wait_seconds: float = WAIT_SECONDS
) -> SetupResult:
    """Set up namespace and search attributes, waiting for a server that is just starting.

    Raises `SetupError`, `ServerUnreachableError` if the server does not answer in time.
    """
    end = time.monotonic() + wait_seconds
    client = await _retry(partial(connect, settings), end)
    try:
        created, kept = await _retry(partial(ensure_namespace, client, retention), end)
        added = await ensure_attributes(client, end)
    except RPCError as error:
        raise _explain_refusal(client.namespace, retention, error.status) from None
    return SetupResult(client.namespace, created, kept, frozenset(added))


async def ensure_namespace(client: Client, retention: timedelta) -> tuple[bool, timedelta]:
    """Create the client's namespace if it is missing; whether it was, and how long it keeps closed runs.

    A namespace that somebody else made, perhaps for other programs too, stays as it is. Raises `RPCError`.
    """
    service, wanted = client.workflow_service, Duration()
    wanted.FromTimedelta(retention)
    try:
        request = DescribeNamespaceRequest(namespace=client.namespace)
        described = await service.describe_namespace(request, timeout=CALL_TIMEOUT)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        register = RegisterNamespaceRequest(namespace=client.namespace, workflow_execution_retention_period=wanted)
        await service.register_namespace(register, timeout=CALL_TIMEOUT)
        return True, retention
    return False, described.config.workflow_execution_retention_ttl.ToTimedelta()


async def ensure_attributes(client: Client, end: float) -> set[str]:
    """Add the missing search attributes and wait until the server lists them; the names added.

    Raises `SetupError` if they are not listed at `end` (monotonic clock), `RPCError`.
    """
    added: set[str] = set()
    while missing := await _retry(partial(register_search_attributes, client), end):
        added |= missing
        if time.monotonic() > end:
            raise SetupError(f"the server does not list these search attributes yet: {', '.join(sorted(missing))}")
        await asyncio.sleep(POLL_SECONDS)
    return added


async def _retry(step: Callable[[], Awaitable[T]], end: float) -> T:
    """Repeat a step while the server is starting. Raises `RPCError`, `ServerUnreachableError` at `end`."""
    while True:
        try:
            return await step()
        except (RPCError, ServerUnreachableError) as error:
            if (isinstance(error, RPCError) and error.status not in PASSING) or time.monotonic() > end:
                raise
        await asyncio.sleep(POLL_SECONDS)


def _explain_refusal(namespace: str, retention: timedelta, status: RPCStatusCode) -> SetupError:
    kinds = ", ".join(f"{name} ({TYPE_NAMES[kind]})" for name, kind in SEARCH_ATTRIBUTES.items())
    if status is RPCStatusCode.ALREADY_EXISTS:
        return SetupError(f"one of these search attributes exists with another type: {kinds}")
    if status not in NOT_ALLOWED:
        return SetupError(f"the server refused to be set up: {status.name.lower()}")
    return SetupError(
        f"this account may not set up the server ({status.name.lower()}). Ask its operator to create the "
        f"namespace {namespace} with a retention of {retention.days} days and these search attributes: {kinds}"
    )


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m workers.setup", description="Prepare the cluster that TEMPORAL_ADDRESS names; safe to repeat."
    )
    parser.add_argument(
        "--retention-days",
        type=int,
        default=RETENTION_DAYS,
        help="how long a namespace that is made here keeps closed runs",
    )
    parser.add_argument("--config", type=Path, help="a research.toml to read over the user's own")
    parser.add_argument("--wait-seconds", type=float, default=WAIT_SECONDS, help="for a server that is just starting")
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> int:
    """Set up the cluster and print the result; the exit code."""
    options = arguments(given)
    try:
        settings = load_settings(Flags(config=options.config))
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return USAGE
    if not settings.uses_cluster:
        sys.stderr.write("TEMPORAL_ADDRESS is not set: the dev server sets itself up\n")
        return USAGE
    try:
        prepared = asyncio.run(set_up(settings, timedelta(days=options.retention_days), options.wait_seconds))
    except ServerError as error:
        sys.stderr.write(f"{error}\n")
        return FAILED
    sys.stdout.write("".join(f"{line}\n" for line in prepared.lines()))
    return 0


if __name__ == "__main__":
    leave(main())
