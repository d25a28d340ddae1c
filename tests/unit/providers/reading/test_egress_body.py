"""Bodies that are larger than they look, or that are none."""

import zlib
from collections.abc import AsyncIterator

import pytest

from providers.errors import SourceUnreadable
from providers.reading.egress import Egress
from providers.reading.egress_addresses import host_and_port
from providers.reading.web_reader import POLICY
from tests.fakes.web import WebServer, page, reply


@pytest.fixture
async def server() -> AsyncIterator[WebServer]:
    """A server without pages."""
    async with WebServer({}) as running:
        yield running


@pytest.fixture
async def egress(server: WebServer) -> AsyncIterator[Egress]:
    """A way out to this server."""
    made = Egress("test", allow_hosts={host_and_port(server.host)})
    yield made
    await made.close()


async def test_a_body_where_there_is_none_is_not_taken_for_another_answer(server: WebServer, egress: Egress) -> None:
    """Bytes after an answer without content are not the answer to the next request."""
    stray = b"HTTP/1.1 204 Said\r\nContent-Length: 40\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad"
    server.pages |= {"/": stray, "/next": page("Words.")}
    with pytest.raises(SourceUnreadable) as raised:
        await egress.fetch(server.url(), POLICY)
    assert raised.value.kind == "empty"
    assert b"Words." in (await egress.fetch(server.url("/next"), POLICY)).body


async def test_a_megabyte_that_unpacks_to_a_gigabyte_costs_its_beginning(server: WebServer, egress: Egress) -> None:
    """The bomb is not unpacked to see that it is one."""
    packer = zlib.compressobj(9, wbits=31)
    opening = packer.compress(b"<html>") + packer.flush(zlib.Z_FULL_FLUSH)
    packer.compress(bytes(1_000_000))
    megabyte = packer.flush(zlib.Z_FULL_FLUSH)
    bomb = opening + megabyte * 1_074
    assert len(bomb) < 1_200_000
    server.pages["/"] = reply(bomb, Content_Encoding="gzip")
    with pytest.raises(SourceUnreadable) as raised:
        await egress.fetch(server.url(), POLICY)
    assert raised.value.kind == "too_large"
