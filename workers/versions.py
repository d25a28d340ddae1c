"""Versions of the workflow code in a cluster: a worker deployment of Temporal, in which each run keeps to its version.

The pool `workflows` of each build is a version of one deployment. A run is pinned to the version that began it; new
runs get the current version. Activities have no versions: their arguments only ever gain fields with defaults.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from importlib.metadata import entry_points
from typing import Final, TypeVar

import structlog
from temporalio.api.deployment.v1 import WorkerDeploymentInfo
from temporalio.api.enums.v1 import RoutingConfigUpdateState, TaskQueueType, WorkerDeploymentVersionStatus
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    DescribeTaskQueueRequest,
    DescribeWorkerDeploymentRequest,
    SetWorkerDeploymentCurrentVersionRequest,
    SetWorkerDeploymentRampingVersionRequest,
)
from temporalio.client import Client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import WorkerDeploymentConfig

import contracts
import workflows
from contracts.names import DEEP_RESEARCH, DEPLOYMENT, UPGRADE, WORKFLOWS_QUEUE
from contracts.strategies import ENTRY_POINTS
from workers.dev_server import ServerError
from workers.resolution_inputs import digest_of, product_version
from workers.settings.loading import Settings
from workers.settings.sections import UNVERSIONED

T = TypeVar("T")

RPC_TIMEOUT: Final = timedelta(seconds=30)
"""The deployment is a workflow of the server itself, which answers late while the server is busy."""
POLLER_SECONDS: Final = 75.0
"""A long poll lasts at most a minute."""
ROUTING_SECONDS: Final = 10.0
"""Time in which all partitions of the queue learn which version is current; one server takes a second."""
WAIT_SECONDS: Final = 0.2
OF_VERSION: Final = 'TemporalWorkerDeploymentVersion="{}:{}"'
OPEN_RUNS_OF: Final = f'WorkflowType="{DEEP_RESEARCH}" AND ExecutionStatus="Running" AND {{}}'
MAX_TOLD: Final = 5_000
"""Most runs that one command asks to move."""
NO_DEPLOYMENTS: Final = {RPCStatusCode.UNIMPLEMENTED, RPCStatusCode.PERMISSION_DENIED}
"""Answers of a server that is too old for worker deployments, and of one where they are switched off."""

logger = structlog.get_logger(__name__)


class VersionsUnavailableError(ServerError):
    """The server has no worker deployments, or this account may not change them."""


@dataclass(frozen=True)
class Version:
    """One version of the workflow code, as the server has it."""

    build_id: str
    status: str
    """`current`, `ramping`, `draining`, `drained` or `inactive`."""
    workers: int
    """Workers that poll for its tasks."""
    open_runs: int
    """Its open runs; their agents end with them."""
    ramp_percent: float = 0.0
    """Share of new runs that it gets while it is ramping."""


# --- the version of this process --------------------------------------------------------------------------------------
@cache
def own_build_id() -> str:
    """Return the version of this product with a digest of what workflows import, and of installed strategies.

    A build id of Temporal may have letters, digits, dots, underscores and hyphens.
    """
    strategies = sorted(
        f"{entry.name}={entry.value} {entry.dist.version if entry.dist else ''}"
        for entry in entry_points(group=ENTRY_POINTS)
    )
    digest = digest_of((contracts, workflows), extra="\n".join(strategies))
    return re.sub(r"[^A-Za-z0-9._-]", "-", f"{product_version()}-{digest}")


def build_id_of(settings: Settings) -> str:
    """Return the build id of this process's workflows; empty for one without versions, as with the dev server."""
    if settings.workers.build_id == UNVERSIONED:
        return ""
    if settings.workers.build_id is None:
        return own_build_id() if settings.uses_cluster else ""
    return settings.workers.build_id


def deployment_config(build_id: str) -> WorkerDeploymentConfig:
    """Return the configuration of a worker whose runs keep to its version.

    The behaviour is the worker's: declared by a workflow, it would fail each task of a worker without versions.
    """
    return WorkerDeploymentConfig(
        version=WorkerDeploymentVersion(DEPLOYMENT, build_id),
        use_worker_versioning=True,
        default_versioning_behavior=VersioningBehavior.PINNED,
    )


async def usable_build_id(client: Client, settings: Settings, *, takes_over: bool = False) -> str:
    """Return the build id under which this process may poll for workflows; empty if the server has no versions.

    Makes it the current version if there is none, because until then no worker gets a run; with `takes_over` also if
    the current one has no workers. Raises `ServerError`.
    """
    build_id = build_id_of(settings)
    if not build_id:
        return ""
    try:
        current = await ensure_current(client, build_id, takes_over=takes_over)
    except VersionsUnavailableError as error:
        logger.warning("worker.notice", text=str(error))
        return ""
    except RPCError as error:
        status = error.status.name.lower()
        raise ServerError(f"the server does not say which version is current ({status}): start again") from None
    if current != build_id:
        text = f"new runs go to version {current}: to have them come here, research workers promote {build_id}"
        logger.warning("worker.notice", text=text)
    return build_id


async def ensure_current(client: Client, build_id: str, *, takes_over: bool = False) -> str:
    """Make a version the current one if there is none, or (`takes_over`) none with workers; return the current one.

    Raises `VersionsUnavailableError`, `RPCError`.
    """
    current = (await describe_deployment(client)).routing_config.current_deployment_version.build_id
    if current and (current == build_id or not takes_over or (await pollers_by_version(client)).get(current)):
        return current
    await set_current(client, build_id, allow_no_workers=True)
    return build_id


# --- the versions of a cluster ----------------------------------------------------------------------------------------
async def describe_deployment(client: Client) -> WorkerDeploymentInfo:
    """Return the deployment, an empty one before its first version. Raises `VersionsUnavailableError`, `RPCError`."""
    request = DescribeWorkerDeploymentRequest(namespace=client.namespace, deployment_name=DEPLOYMENT)
    try:
        answer = await _call(
            client.workflow_service.describe_worker_deployment(request, retry=True, timeout=RPC_TIMEOUT)
        )
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return WorkerDeploymentInfo()
        raise
    return answer.worker_deployment_info


async def _call(answer: Awaitable[T]) -> T:
    """Await the answer to a call about the deployment. Raises `VersionsUnavailableError`, `RPCError`."""
    try:
        return await answer
    except RPCError as error:
        if error.status not in NO_DEPLOYMENTS:
            raise
        raise VersionsUnavailableError(
            "this server has no worker deployments, or this account may not use them: workers run without versions, "
            "and open runs must be drained before workflow code is upgraded"
        ) from None


async def pollers_by_version(client: Client) -> dict[str, int]:
    """Return the number of workers polling for workflows, by build id; empty for those without. Raises `RPCError`."""
    request = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=WORKFLOWS_QUEUE),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    )
    answer = await client.workflow_service.describe_task_queue(request, timeout=RPC_TIMEOUT)
    cutoff = time.time() - POLLER_SECONDS
    found: dict[str, set[str]] = {}
    for poller in answer.pollers:
        if poller.last_access_time.seconds >= cutoff:
            found.setdefault(poller.deployment_options.build_id, set()).add(poller.identity)
    return {build_id: len(identities) for build_id, identities in found.items()}


async def list_versions(client: Client) -> list[Version]:
    """List the versions that matter: all but those that are drained and have no workers; the current one first.

    Raises `VersionsUnavailableError`, `RPCError`.
    """
    deployment = await describe_deployment(client)
    pollers = await pollers_by_version(client)
    versions = []
    for summary in deployment.version_summaries:
        build_id = summary.deployment_version.build_id
        status = WorkerDeploymentVersionStatus.Name(summary.status).rpartition("_")[2].lower()
        counted = await client.count_workflows(OPEN_RUNS_OF.format(OF_VERSION.format(DEPLOYMENT, build_id)))
        ramp = deployment.routing_config.ramping_version_percentage if status == "ramping" else 0.0
        version = Version(build_id, status, pollers.get(build_id, 0), counted.count, ramp)
        if version.workers or version.open_runs or status in ("current", "ramping"):
            versions.append(version)
    return sorted(versions, key=lambda version: (version.status != "current", version.status, version.build_id))


async def unserved_runs(client: Client, versions: Sequence[Version], limit: int) -> dict[str, list[str]]:
    """Return the ids of open runs whose version has no workers, by build id; at most `limit` of each.

    Agents go with their run and are not among them. Raises `RPCError`.
    """
    unserved = {}
    for version in versions:
        if version.open_runs and not version.workers:
            query = OPEN_RUNS_OF.format(OF_VERSION.format(DEPLOYMENT, version.build_id))
            unserved[version.build_id] = [run.id async for run in client.list_workflows(query, limit=limit)]
    return unserved


async def set_current(client: Client, build_id: str, *, allow_no_workers: bool = False) -> None:
    """Give new runs to a version, and return when each partition of the queue does. Raises as `describe_deployment`."""
    request = SetWorkerDeploymentCurrentVersionRequest(
        namespace=client.namespace,
        deployment_name=DEPLOYMENT,
        build_id=build_id,
        allow_no_pollers=allow_no_workers,
    )
    await _call(client.workflow_service.set_worker_deployment_current_version(request, retry=True, timeout=RPC_TIMEOUT))
    await _until_routed(client)


async def set_ramp(client: Client, build_id: str, percent: float) -> None:
    """Give a share of new runs (percent) to a version; 0 ends the ramp. Raises as `describe_deployment`."""
    request = SetWorkerDeploymentRampingVersionRequest(
        namespace=client.namespace,
        deployment_name=DEPLOYMENT,
        build_id=build_id if percent else "",
        percentage=percent,
    )
    await _call(client.workflow_service.set_worker_deployment_ramping_version(request, retry=True, timeout=RPC_TIMEOUT))
    await _until_routed(client)


async def _until_routed(client: Client) -> None:
    end = time.monotonic() + ROUTING_SECONDS
    in_progress = RoutingConfigUpdateState.ROUTING_CONFIG_UPDATE_STATE_IN_PROGRESS
    while time.monotonic() < end:
        if (await describe_deployment(client)).routing_config_update_state != in_progress:
            return
        await asyncio.sleep(WAIT_SECONDS)


async def ask_to_move(client: Client, build_ids: Collection[str]) -> int:
    """Ask the open runs of versions to move to the current one at their next pause; return how many were asked.

    Raises `RPCError`.
    """
    asked = 0
    for build_id in build_ids:
        query = OPEN_RUNS_OF.format(OF_VERSION.format(DEPLOYMENT, build_id))
        async for run in client.list_workflows(query, limit=MAX_TOLD):
            try:
                await client.get_workflow_handle(run.id, run_id=run.run_id).signal(UPGRADE, rpc_timeout=RPC_TIMEOUT)
            except RPCError as error:
                if error.status is not RPCStatusCode.NOT_FOUND:  # it has ended or moved
                    raise
            else:
                asked += 1
    return asked
