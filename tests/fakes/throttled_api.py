"""A loopback service with a true capacity: beyond it 429 with Retry-After, and a journal of every request."""

import asyncio
import time
from collections import deque
from dataclasses import dataclass
from typing import Literal

from tests.fakes.loopback import HttpRequest, LoopbackServer

Kind = Literal["concurrent", "window"]
WINDOW_SECONDS = 1.0


@dataclass(frozen=True)
class Served:
    """One request: which call it was for, when it came, what it was answered and when. Seconds of the wall clock."""

    call: str
    granted: float
    """When the caller was allowed to make it, as it says itself in the header `x-granted`."""
    began: float
    status: int
    ended: float


class ThrottledApi(LoopbackServer):
    """The service: `base_url`, `journal`.

    It takes `capacity` requests at once (`concurrent`), or in any second (`window`); each takes `service_seconds`.
    """

    def __init__(self, kind: Kind, capacity: int, service_seconds: float, retry_after_seconds: int) -> None:
        super().__init__()
        self.kind = kind
        self.capacity = capacity
        self.service_seconds = service_seconds
        self.retry_after_seconds = retry_after_seconds
        self.journal: list[Served] = []
        self._in_flight = 0
        self._taken: deque[float] = deque()

    @property
    def calls_per_second(self) -> float:
        """What it can do at best."""
        return self.capacity / (self.service_seconds if self.kind == "concurrent" else WINDOW_SECONDS)

    async def serve(self, request: HttpRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; the connection may carry another."""
        call = request.target.rpartition("/")[2]
        granted = request.headers.get("x-granted")
        began = time.time()
        status = 200 if self._takes(began) else 429
        if status == 200:
            self._in_flight += 1
            try:
                await asyncio.sleep(self.service_seconds)
            finally:
                self._in_flight -= 1
        self.journal.append(Served(call, float(granted or began), began, status, time.time()))
        reason = "OK" if status == 200 else "Too Many Requests"
        wait = "" if status == 200 else f"retry-after: {self.retry_after_seconds}\r\n"
        writer.write(f"HTTP/1.1 {status} {reason}\r\n{wait}content-length: 0\r\n\r\n".encode())
        await writer.drain()
        return True

    def _takes(self, now: float) -> bool:
        if self.kind == "concurrent":
            return self._in_flight < self.capacity
        while self._taken and self._taken[0] <= now - WINDOW_SECONDS:
            self._taken.popleft()
        if len(self._taken) >= self.capacity:
            return False
        self._taken.append(now)
        return True
