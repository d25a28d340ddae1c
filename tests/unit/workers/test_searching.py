"""The search pool: whom a run can ask, and whose answers are kept."""

import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from activities.searching import SearchingActivities
from contracts.messages import SearchRequest, SearchResponse
from providers.isolation.pool import SubprocessPool
from providers.search.corpus import CorpusLibrary
from providers.shared.limits import Limiter
from providers.storage.content import ObstoreContentStore
from providers.storage.stored_notebooks import Notebooks
from tests.fakes.search_answers import KEYS, PROVIDERS
from tests.fakes.search_apis import SearchApis, asking, open_provider
from workers.settings.loading import Settings, load_settings
from workers.shared_state import open_shared_state
from workers.web_access import find_unreachable, open_searching, search_limits

NAMES = ["tavily", "brave", "searxng"]


class Provider:
    """One that is at an address, or needs none."""

    def __init__(self, name: str, address: str | None = None) -> None:
        self.name = name
        if address is not None:
            self.address = address

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Nobody asks it here."""
        raise AssertionError("only looked at")


async def test_unreachable_providers_are_left_out_while_another_can_be_reached() -> None:
    """Each with its reason; a run that could ask nobody is refused before any work (X-16)."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    away = {name: Provider(name, f"http://127.0.0.1:{port}") for name in ("tavily", "searxng")}
    providers = {**away, "brave": Provider("brave")}
    missing = await find_unreachable(providers, ["tavily", "brave", "searxng"])
    assert list(missing) == ["tavily", "searxng"]
    assert "not reachable" in missing["searxng"]
    assert set(await find_unreachable(providers, ["tavily", "searxng"])) == {"tavily", "searxng"}


@asynccontextmanager
async def pool(settings: Settings) -> AsyncIterator[SearchingActivities]:
    """The search pool of one process."""
    async with AsyncExitStack() as stack:
        children = await stack.enter_async_context(SubprocessPool(1))
        shared = await stack.enter_async_context(open_shared_state(settings))
        limiter = Limiter(shared.store, search_limits(settings))
        library = CorpusLibrary(settings.home / "corpora", children)
        notebooks = Notebooks(ObstoreContentStore(settings.home / "content"))
        yield await open_searching(settings, library, shared, limiter, notebooks, stack)


def configured(folder: Path, **variables: str) -> Settings:
    """The settings of these variables alone."""
    environment = {"RESEARCH_HOME": str(folder), **variables}
    return load_settings(environment=environment, user_folder=folder)


async def test_another_instance_gives_answers_of_its_own(tmp_path: Path) -> None:
    """An answer is kept for the address that gave it; whoever changes the address asks the new one."""
    async with SearchApis() as one, SearchApis() as other:
        for server in (one, other, one):
            async with pool(configured(tmp_path, SEARXNG_URL=server.url("searxng"))) as activities:
                await ActivityEnvironment().run(activities.search, asking("searxng"))
        assert (len(one.asked), len(other.asked)) == (1, 1)


@pytest.mark.parametrize("name", PROVIDERS)
async def test_an_instance_is_an_address_and_never_a_key(name: str) -> None:
    """Addresses, engines and models separate the stored answers; keys do not."""
    change = {"google": {"GOOGLE_CSE_ID": "another"}, "anthropic": {"RESEARCH_MODEL": "another"}}.get(name, {})
    instances = []
    for address, given in (
        ("http://127.0.0.1:1/x", {}),
        ("http://127.0.0.1:1/x/", {f"{name.upper()}_API_KEY": "another-key"} if name in KEYS else {}),
        ("http://127.0.0.1:2/x", {}),
        ("http://127.0.0.1:1/x", change),
    ):
        async with open_provider(name, address, **given) as provider:
            instances.append(provider.instance)
    assert instances[0] == instances[1] != instances[2]
    assert (instances[3] != instances[0]) is bool(change)
    assert not any("key" in instance for instance in instances)
