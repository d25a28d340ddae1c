"""Real pools over a small web on loopback, for tests that start whole runs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pydantic import SecretStr
from temporalio.client import Client

from contracts.names import POOLS
from tests.fakes.messages_api import MessagesApi
from tests.fakes.web_world import WebWorld
from tests.integration.runs import QUESTION
from workers.composition import compose
from workers.pools import run_pools
from workers.settings.loading import Settings
from workers.settings.models import EndpointSettings, ModelsSettings
from workers.settings.sections import UNVERSIONED, NotifySettings, WebSettings, WorkersSettings


def model_settings(models: MessagesApi) -> dict[str, Any]:
    large = {"default": EndpointSettings(window=200_000)}
    return {
        "models": ModelsSettings(default="good", base_url=models.base_url, endpoints=large),
        "anthropic_api_key": SecretStr("planted"),
    }


@asynccontextmanager
async def web_workers(
    client: Client,
    home: Path,
    world: WebWorld,
    models: MessagesApi | None = None,
    notify: NotifySettings | None = None,
    **search: Any,
) -> AsyncIterator[None]:
    """All pools as a process composes them, their web being the world, their models those of an endpoint."""
    given = {"SEARXNG_URL": world.searxng_url, **search}
    addresses = {name: value for name, value in given.items() if name.endswith("_URL")}
    others = {name: value for name, value in given.items() if name not in addresses}
    settings = Settings(
        home=home,
        temporal_variables={"TEMPORAL_ADDRESS": "elsewhere"},
        workers=WorkersSettings(build_id=UNVERSIONED),
        web=WebSettings(allow_hosts=world.allow_hosts),
        notify=notify or NotifySettings(),
        search_addresses=addresses,
        search_keys=others,
        **(model_settings(models) if models else {}),
    )
    async with compose(settings, client) as contents, run_pools(client, contents, tuple(POOLS)):
        yield


def over_the_web(*providers: str, **more: Any) -> dict[str, Any]:
    return {"query": QUESTION, "search": {"providers": list(providers or ["searxng"])}, **more}
