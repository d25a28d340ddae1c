"""Looking whether a service can be reached, without asking it anything."""

import asyncio

import pytest

from contracts.messages import SearchRequest, SearchResponse
from providers.search.reachability import Addressed, probe, probe_address
from tests.fakes.loopback import close_server
from tests.fakes.search_answers import PROVIDERS
from tests.fakes.search_apis import SearchApis
from tests.fakes.search_clients import open_provider


@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_connection_is_all_it_takes(name: str) -> None:
    """No query is sent, so that nothing is charged; every client knows its address."""
    async with SearchApis() as server, open_provider(name, server.url(name)) as provider:
        assert isinstance(provider, Addressed)
        assert await probe(provider) is None
        assert server.asked == []


@pytest.mark.parametrize("name", PROVIDERS)
async def test_nobody_there_is_said_with_host_and_port(name: str) -> None:
    """A refused connection is a reason in words."""
    async with SearchApis() as server:
        address = server.url(name)
    async with open_provider(name, address) as provider:
        reason = await probe(provider)
    assert reason is not None
    assert "127.0.0.1 is not reachable at port" in reason
    assert "connection refused" in reason


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http://nobody.invalid", "its name is not known"),
        ("http://127.0.0.1:99999", "no usable one"),
    ],
)
async def test_addresses_that_lead_nowhere(address: str, said: str) -> None:
    """A name that does not exist is told from a host that is down."""
    assert said in str(await probe_address(address))


async def test_a_server_without_tls_is_not_taken_for_one_with_it() -> None:
    """An answer in plain text where TLS is expected is a reason of its own."""

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await reader.read()
        writer.close()

    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        assert await probe_address(f"https://127.0.0.1:{port}") == f"127.0.0.1 does not speak TLS at port {port}"
    finally:
        await close_server(server, [])


async def test_silence_is_waited_for_no_longer_than_the_limit() -> None:
    """A host that takes the connection and says nothing is given up."""
    connections: list[asyncio.Task[None]] = []

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.append(task)
        try:
            await reader.read()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            writer.transport.abort()

    server = await asyncio.start_server(wait, "127.0.0.1", 0)
    try:
        reason = await probe_address(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", seconds=0.1)
    finally:
        await close_server(server, connections)
    assert reason == "127.0.0.1 gave no answer in 0.1 s: check the network"


class Folder:
    """A provider without an address."""

    name = "corpus"

    async def search(self, request: SearchRequest) -> SearchResponse:
        raise AssertionError(request)


async def test_a_folder_is_always_there() -> None:
    """What asks nobody over the network cannot be out of reach."""
    assert await probe(Folder()) is None
