"""Which version of the workflow code a process polls as, and what it asks of the server."""

from pathlib import Path
from typing import Any

import pytest
from temporalio.api.deployment.v1 import RoutingConfig, WorkerDeploymentInfo, WorkerDeploymentVersion
from temporalio.api.workflowservice.v1 import DescribeWorkerDeploymentResponse
from temporalio.common import VersioningBehavior
from temporalio.service import RPCError, RPCStatusCode

from workers.settings.loading import Settings, SettingsError, load_settings
from workers.settings.sections import WorkersSettings
from workers.versions import build_id_of, deployment_config, ensure_current, own_build_id, usable_build_id

CLUSTER = {"TEMPORAL_ADDRESS": "elsewhere:7233"}


class Service:
    """A server that answers what it is given; a `busy` one answers those alone who have the SDK try again."""

    def __init__(self, current: str = "", status: RPCStatusCode | None = None, *, busy: bool = False) -> None:
        self.current = current
        self.busy = busy
        self.status = status
        self.made_current: list[str] = []

    async def describe_worker_deployment(
        self, request: Any, *, retry: bool = False, **_: Any
    ) -> DescribeWorkerDeploymentResponse:
        self._answer(retry)
        if self.status is not None:
            raise RPCError("no", self.status, b"")
        routing = RoutingConfig(current_deployment_version=WorkerDeploymentVersion(build_id=self.current))
        return DescribeWorkerDeploymentResponse(worker_deployment_info=WorkerDeploymentInfo(routing_config=routing))

    def _answer(self, retry: bool) -> None:
        if self.busy and not retry:
            raise RPCError("another change is under way", RPCStatusCode.RESOURCE_EXHAUSTED, b"")

    async def set_worker_deployment_current_version(self, request: Any, *, retry: bool = False, **_: Any) -> None:
        self._answer(retry)
        assert request.allow_no_pollers
        self.made_current.append(request.build_id)
        self.current = request.build_id


class Server:
    """A client of that server."""

    namespace = "default"

    def __init__(self, **answers: Any) -> None:
        self.workflow_service = Service(**answers)


def settings(**values: Any) -> Settings:
    return Settings(home=Path("unused"), **values)


def test_a_cluster_has_versions_and_the_dev_server_none_unless_one_is_named() -> None:
    """By default the version of the product with a digest of the code; `unversioned` switches versions off."""
    named = WorkersSettings(build_id="one")
    off = WorkersSettings(build_id="unversioned")
    assert build_id_of(settings()) == ""
    assert build_id_of(settings(temporal_variables=CLUSTER)) == own_build_id()
    assert build_id_of(settings(workers=named)) == "one"
    assert build_id_of(settings(temporal_variables=CLUSTER, workers=off)) == ""


def test_a_run_is_pinned_by_its_worker() -> None:
    """The behaviour is the worker's; a workflow that declared it would fail on workers without versions."""
    config = deployment_config("one")
    assert (config.version.build_id, config.use_worker_versioning) == ("one", True)
    assert config.default_versioning_behavior is VersioningBehavior.PINNED


async def test_a_version_becomes_current_where_none_is_and_replaces_no_other() -> None:
    """Until a version is current no worker gets a run; which of several it is, a person decides."""
    empty, taken = Server(), Server(current="other")
    assert await ensure_current(empty, "one") == "one"  # type: ignore[arg-type]
    assert await ensure_current(taken, "one") == "other"  # type: ignore[arg-type]
    assert (empty.workflow_service.made_current, taken.workflow_service.made_current) == (["one"], [])


async def test_workers_that_start_at_once_do_not_end_while_the_server_is_busy() -> None:
    """The first of a cluster changes the deployment, and the server puts off all others for a second."""
    server = Server(busy=True)
    assert await usable_build_id(server, settings(temporal_variables=CLUSTER)) == own_build_id()  # type: ignore[arg-type]


@pytest.mark.parametrize("status", [RPCStatusCode.UNIMPLEMENTED, RPCStatusCode.PERMISSION_DENIED])
async def test_a_server_without_worker_deployments_gets_workers_without_versions(status: RPCStatusCode) -> None:
    """They work as before; the log has one line on what an upgrade then needs."""
    assert await usable_build_id(Server(status=status), settings(temporal_variables=CLUSTER)) == ""  # type: ignore[arg-type]


def test_a_build_id_that_temporal_would_refuse_is_refused(tmp_path: Path) -> None:
    """A build id has letters, digits, dots, underscores and hyphens; the message names the variable."""
    with pytest.raises(SettingsError, match="RESEARCH_BUILD_ID"):
        load_settings(environment={"RESEARCH_BUILD_ID": "registry:5000/image"}, user_folder=tmp_path)
    named = load_settings(environment={"RESEARCH_BUILD_ID": "2026-11-29"}, user_folder=tmp_path)
    assert named.workers.build_id == "2026-11-29"
