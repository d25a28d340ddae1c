"""Connections to endpoints of models, and what is in a socket when the time for silence is over."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from socket import create_server, socket

import httpx2
import pytest

from providers.models.connections import AttentiveTransport

SILENCE = 0.1
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nanswer"


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """Yield the address of a server that sends something once the time for silence is over."""

    def serve(server: socket) -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(65_536)
            time.sleep(1.5 * SILENCE)
            connection.sendall(answer)
            connection.recv(1)  # until the client hangs up

    with create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, args=(server,))
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        thread.join()


async def ask(address: str, last_look_seconds: float) -> bytes:
    async with httpx2.AsyncClient(transport=AttentiveTransport(last_look_seconds), trust_env=False) as client:
        return (await client.get(address, timeout=httpx2.Timeout(5, read=SILENCE))).content


def test_a_socket_is_looked_into_once_more_before_a_call_is_given_up_for_silence() -> None:
    """The timers of a process that stood still are faster than its sockets; one that is silent is given up soon."""
    with answering(ANSWER) as address:
        assert asyncio.run(ask(address, 30.0)) == b"answer"
    with answering(b"") as address, pytest.raises(httpx2.ReadTimeout):
        asyncio.run(ask(address, SILENCE))
