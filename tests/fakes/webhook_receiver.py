"""A receiver of notices on the loopback interface that keeps what it gets and answers what a test says."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from tests.fakes.loopback import HttpRequest, LoopbackServer, response


class WebhookReceiver(LoopbackServer):
    """Answers with `statuses` in turn, the last one for ever; `requests` holds everything that came."""

    def __init__(self, *statuses: int, port: int = 0) -> None:
        super().__init__(port=port)
        self.statuses: Sequence[int] = statuses or (204,)
        self.requests: list[HttpRequest] = []
        self.headers: dict[str, str] = {}
        """Sent with every answer."""

    @property
    def place(self) -> str:
        """Its `host:port`, as an operator allows it by name."""
        return f"127.0.0.1:{self.port}"

    def bodies(self) -> list[dict[str, Any]]:
        """What came, decoded."""
        return [json.loads(request.body) for request in self.requests]

    async def until(self, count: int) -> list[dict[str, Any]]:
        """Wait until so many requests came, and return their bodies."""
        while len(self.requests) < count:
            await asyncio.sleep(0.02)
        return self.bodies()

    async def serve(self, request: HttpRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        self.requests.append(request)
        status = self.statuses[min(len(self.requests), len(self.statuses)) - 1]
        writer.write(response(status, b"", self.headers))
        await writer.drain()
        return True
