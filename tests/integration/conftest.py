"""The real development server from the wheel, one for all tests of this tier, and workers that run real activities."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Plugin, Worker

from contracts.names import POOLS
from tests.fakes.world import World
from tests.integration.runs import BUILD_ID
from tests.integration.server_homes import give_port, kill_server
from workers.dev_server import GO_SETTINGS, SERVER_SETTINGS, detach_server, find_binary
from workers.pools import PoolContents, build_worker, set_deadlock_timeout
from workers.temporal import DATA_CONVERTER

FAST = [part for setting in SERVER_SETTINGS for part in ("--dynamic-config-value", setting)]
"""Options with which a server does at once what it would wait a moment with."""


@pytest_asyncio.fixture
async def server_home(tmp_path: Path) -> AsyncIterator[Path]:
    """A home folder whose server is stopped afterwards, whatever happened."""
    home = tmp_path / "a home ü"
    give_port(home)
    yield home
    detach_server(home)
    kill_server(home)


@dataclass
class Server:
    """Where the shared development server listens."""

    address: str


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def server() -> AsyncIterator[Server]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in GO_SETTINGS.items():
            patch.setenv(name, value)
        environment = await WorkflowEnvironment.start_local(
            dev_server_existing_path=str(find_binary()), dev_server_extra_args=FAST
        )
    async with environment:
        yield Server(environment.client.service_client.config.target_host)


@pytest_asyncio.fixture
async def client(server: Server) -> Client:
    return await Client.connect(server.address, data_converter=DATA_CONVERTER)


def pools_of(world: World) -> PoolContents:
    """The activities of a world by pool, as the composition root gives them."""
    from contracts.strategies import declared_roles
    from workflows.registry import WORKFLOWS

    by_name = {implementation.__name__: implementation for implementation in world.activities()}
    return PoolContents(
        workflows=WORKFLOWS,
        activities={
            "models": [by_name[role.activity] for role in declared_roles()],
            "search": [by_name["check_providers"], by_name["search"]],
            "reading": [by_name["read_source"]],
            "records": [
                by_name[name]
                for name in (
                    *("prepare_research", "prepare_agent", "save_session", "read_document", "render_report"),
                    *(
                        "take_turn",
                        "describe_research",
                        "preview_research",
                        "extract_claims",
                        "finalize_verification",
                        "apply_corrections",
                        "join_report",
                        "apply_report_updates",
                        "split_draft",
                    ),
                )
            ],
        },
    )


@asynccontextmanager
async def running_workers(
    client: Client,
    world: World,
    pools: tuple[str, ...] = tuple(POOLS),
    *,
    replaying: bool = False,
    plugins: Sequence[Plugin] = (),
) -> AsyncIterator[None]:
    """Workers of these pools; a replaying workflow worker has no cache, so that every task replays the history."""
    contents = replace(pools_of(world), plugins=plugins)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(world.close)
        for pool in pools:
            replays = replaying and pool == "workflows"
            worker = _replaying(client, contents) if replays else build_worker(pool, client, contents)
            await stack.enter_async_context(worker)
        yield


def _replaying(client: Client, contents: PoolContents) -> Worker:
    from workers.pools import workflow_runner

    worker = Worker(
        client,
        task_queue=POOLS["workflows"],
        workflows=list(contents.workflows),
        workflow_runner=workflow_runner(),
        max_cached_workflows=0,
        plugins=contents.plugins,
        build_id=BUILD_ID,
    )
    set_deadlock_timeout(worker)
    return worker
