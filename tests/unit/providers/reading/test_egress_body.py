"""Bodies that are larger than they look, or that are none."""

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator

import pytest

from providers.errors import SourceUnreadable
from providers.reading.egress.address_rules import host_and_port
from providers.reading.egress.client import Egress
from providers.reading.reader import POLICY
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


@pytest.mark.parametrize("size", [1, 7, 1_000])
async def test_members_of_a_gzip_body_are_read_one_after_another(server: WebServer, egress: Egress, size: int) -> None:
    """What was packed in parts is read whole, wherever the network cuts it; what stands behind is left."""
    packed = gzip.compress(b"<html><p>One, ") + gzip.compress(b"") + gzip.compress(b"two.</p></html>") + b"\0\0"

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n")
        writer.write(b"Transfer-Encoding: chunked\r\n\r\n")
        for start in range(0, len(packed), size):
            part = packed[start : start + size]
            writer.write(b"%x\r\n%b\r\n" % (len(part), part))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    server.pages["/"] = answer
    assert (await egress.fetch(server.url(), POLICY)).body == b"<html><p>One, two.</p></html>"


async def test_members_are_bounded(server: WebServer, egress: Egress) -> None:
    """A body of ever more members ends, and limits hold for all of them together."""
    server.pages["/"] = reply(gzip.compress(b"<p>") + gzip.compress(b"") * 5_000 + gzip.compress(b"end"),
                              Content_Encoding="gzip")  # fmt: skip
    assert (await egress.fetch(server.url(), POLICY)).body == b"<p>"
    server.pages["/"] = reply(gzip.compress(bytes(1_000_000)) * 100, Content_Encoding="gzip")
    with pytest.raises(SourceUnreadable) as raised:
        await egress.fetch(server.url(), POLICY)
    assert raised.value.kind == "too_large"


async def test_codings_that_are_none_change_nothing(server: WebServer, egress: Egress) -> None:
    """A character set where a compression belongs is passed over; a compression that was not asked for is refused."""
    for coding in ("utf-8", "none", "identity", "UTF-8, identity"):
        server.pages["/"] = reply("<p>Words.</p>", Content_Encoding=coding)
        assert (await egress.fetch(server.url(), POLICY)).body == b"<p>Words.</p>"
    for coding in ("br", "gzip, gzip", "unheard-of"):
        server.pages["/"] = reply("<p>Words.</p>", Content_Encoding=coding)
        with pytest.raises(SourceUnreadable):
            await egress.fetch(server.url(), POLICY)
