"""Stores of every kind for the tests of this folder; the kinds that processes can share are real ones."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from providers.interfaces import SharedStore
from tests.fakes.shared_stores import Opener, opener
from tests.fakes.valkey import ValkeyServer, running_valkey

shared_by_processes = pytest.mark.parametrize("kind", ["sqlite", "valkey"])
everywhere = pytest.mark.parametrize("kind", ["sqlite", "valkey", "memory"])


@pytest.fixture(scope="session")
def valkey_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ValkeyServer]:
    """One server for all tests of a session."""
    with running_valkey(tmp_path_factory.mktemp("valkey")) as server:
        yield server


@pytest.fixture
def valkey(valkey_server: ValkeyServer) -> ValkeyServer:
    valkey_server.flush()
    return valkey_server


@pytest.fixture
def address(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """Where the stores of a kind keep their values in this test."""
    if kind == "valkey":
        server: ValkeyServer = request.getfixturevalue("valkey")
        return server.url
    return f"{kind}:{tmp_path / 'data' / 'shared.sqlite3' if kind == 'sqlite' else ''}"


@pytest.fixture
async def open_store(address: str) -> AsyncIterator[Opener]:
    """Opens one more store on the same values, closed with the test."""
    open_one, stores = opener(address), list[SharedStore]()

    def opening() -> SharedStore:
        stores.append(open_one())
        return stores[-1]

    yield opening
    for store in stores:
        await store.close()


@pytest.fixture
def store(open_store: Opener) -> SharedStore:
    return open_store()
