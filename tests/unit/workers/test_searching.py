"""The search pool: whom a run can ask, and whose answers are kept."""

import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from activities.searching import SearchingActivities
from contracts.messages import CheckProvidersRequest, SearchRequest, SearchResponse
from providers.interfaces import SearchProvider
from providers.isolation.pool import SubprocessPool
from providers.search.corpus import CorpusLibrary
from providers.shared.circuit_breaker import FAILURES_TO_OPEN, OPEN_SECONDS, PROBE_LEASE_SECONDS, CircuitBreaker
from providers.shared.limiter import SharedLimiter
from providers.shared.stores.memory_store import MemorySharedStore
from providers.storage.content import ObstoreContentStore
from providers.storage.stored_notebooks import StoredNotebooks
from tests.fakes.search_answers import KEYS, PROVIDERS
from tests.fakes.search_apis import SearchApis, asking, open_provider
from tests.fakes.states import PERMITTED
from workers.searching import CIRCUIT_OPEN, Availability, open_searching, search_limits, service_of
from workers.settings.loading import Settings, load_settings
from workers.shared_state import open_shared_state

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


class World:
    """Circuits with a clock that the test moves, and providers that can all be reached."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0
        self.store = MemorySharedStore(lambda: self.now)
        self.providers: dict[str, SearchProvider] = {name: Provider(name) for name in NAMES}

    async def unavailable(self, *names: str) -> dict[str, str]:
        """What the worker of another process says."""
        return await Availability(self.providers, CircuitBreaker(self.store)).unavailable(names)

    async def fail(self, *names: str) -> None:
        """So often that they are left alone."""
        for name in names:
            for _ in range(FAILURES_TO_OPEN):
                await CircuitBreaker(self.store).report(service_of(name), ok=False)


async def test_who_failed_again_and_again_is_left_alone_for_a_while() -> None:
    """Runs that begin meanwhile do without; then one run in turn tries, and its success lets all others in (X-16)."""
    world = World()
    assert await world.unavailable(*NAMES) == {}
    await world.fail("tavily")
    assert await world.unavailable(*NAMES) == {"tavily": CIRCUIT_OPEN}
    world.now += OPEN_SECONDS + 1
    assert await world.unavailable(*NAMES) == {}
    assert await world.unavailable(*NAMES) == {"tavily": CIRCUIT_OPEN}
    world.now += PROBE_LEASE_SECONDS + 1
    assert await world.unavailable(*NAMES) == {}, "nobody is locked out for good by a run that never asked"
    await CircuitBreaker(world.store).report(service_of("tavily"), ok=True)
    assert await world.unavailable(*NAMES) == await world.unavailable(*NAMES) == {}


async def test_nobody_is_left_alone_where_nobody_else_stands_by() -> None:
    """A circuit is no reason to refuse a run: with all of them open, or a single provider named, they are asked."""
    world = World()
    await world.fail("tavily", "brave")
    assert await world.unavailable("tavily") == await world.unavailable("tavily", "brave") == {}
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    world.providers["searxng"] = Provider("searxng", f"http://127.0.0.1:{port}")
    missing = await world.unavailable(*NAMES)
    assert list(missing) == ["searxng"]
    assert "not reachable" in missing["searxng"]


@asynccontextmanager
async def pool(settings: Settings) -> AsyncIterator[SearchingActivities]:
    """The search pool of one process."""
    async with AsyncExitStack() as stack:
        children = await stack.enter_async_context(SubprocessPool(1))
        shared = await stack.enter_async_context(open_shared_state(settings))
        limiter = SharedLimiter(shared.store, search_limits(settings))
        stack.push_async_callback(limiter.close)
        library = CorpusLibrary(settings.home / "corpora", children)
        notebooks = StoredNotebooks(ObstoreContentStore(settings.home / "content"))
        yield await open_searching(settings, library, shared, limiter, notebooks, stack)


def configured(folder: Path, **variables: str) -> Settings:
    """The settings of these variables alone."""
    environment = {"RESEARCH_HOME": str(folder), **variables}
    return load_settings(environment=environment, user_folder=folder)


async def test_a_service_that_always_fails_is_told_before_the_next_run(tmp_path: Path) -> None:
    """What a run learned of a provider is known when another begins, through what all workers share (S0-102)."""
    async with SearchApis("503") as broken, SearchApis() as well:
        addresses = {"BRAVE_BASE_URL": broken.url("brave"), "SEARXNG_URL": well.url("searxng")}
        settings = configured(tmp_path, BRAVE_API_KEY=KEYS["brave"], **addresses)
        check = CheckProvidersRequest(research_id="r-1", providers=["brave", "searxng", "tavily"], permission=PERMITTED)
        async with pool(settings) as activities:
            before = await ActivityEnvironment().run(activities.check_providers, check)
            for _ in range(FAILURES_TO_OPEN):
                with pytest.raises(Exception, match="Brave Search is not available"):
                    await ActivityEnvironment().run(activities.search, asking("brave"))
        async with pool(settings) as activities:
            after = await ActivityEnvironment().run(activities.check_providers, check)
    assert list(before.unavailable) == ["tavily"]
    assert "not configured" in before.unavailable["tavily"]
    assert after.unavailable == {**before.unavailable, "brave": CIRCUIT_OPEN}


async def test_another_instance_gives_answers_of_its_own(tmp_path: Path) -> None:
    """An answer is kept for the address that gave it; whoever changes the address asks the new one (S0-177)."""
    async with SearchApis() as one, SearchApis() as other:
        for server in (one, other, one):
            async with pool(configured(tmp_path, SEARXNG_URL=server.url("searxng"))) as activities:
                await ActivityEnvironment().run(activities.search, asking("searxng"))
        assert (len(one.asked), len(other.asked)) == (1, 1)


@pytest.mark.parametrize("name", PROVIDERS)
async def test_an_instance_is_an_address_and_never_a_key(name: str) -> None:
    """Addresses, engines and models part the answers kept; keys, and passwords in addresses, do not (S0-177)."""
    change = {"google": {"GOOGLE_CSE_ID": "another"}, "anthropic": {"RESEARCH_MODEL": "another"}}.get(name, {})
    instances = []
    for address, given in (
        ("http://127.0.0.1:1/x", {}),
        ("http://me:planted-word@127.0.0.1:1/x/", {f"{name.upper()}_API_KEY": "another-key"} if name in KEYS else {}),
        ("http://127.0.0.1:2/x", {}),
        ("http://127.0.0.1:1/x", change),
    ):
        async with open_provider(name, address, **given) as provider:
            instances.append(provider.instance)
    assert instances[0] == instances[1] != instances[2]
    assert (instances[3] != instances[0]) is bool(change)
    assert not any(word in instance for instance in instances for word in ("planted", "key"))
