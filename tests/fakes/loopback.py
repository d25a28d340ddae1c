"""Closing a loopback server without leaving a socket behind."""

import asyncio
from collections.abc import Collection

TURNS = 5
"""Turns of the loop in which a connection that was just accepted begins, and one that was aborted ends."""


async def close_server(server: asyncio.Server, connections: Collection["asyncio.Task[None]"]) -> None:
    """Accept no more, end every connection, and let the loop take note of it.

    `connections` is the server's own collection: a connection accepted in this very moment still enters it.
    """
    server.close()
    await _turns()
    ending = list(connections)
    for connection in ending:
        connection.cancel()
    await asyncio.gather(*ending, return_exceptions=True)
    await server.wait_closed()
    await _turns()


async def _turns() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)
