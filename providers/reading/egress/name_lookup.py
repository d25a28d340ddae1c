"""Looking names up with the operating system, in threads that nothing else waits for.

A look-up cannot be interrupted, and one without an answer takes the system half a minute. In the threads of the
event loop a handful of them would hold up everything else that blocks: files, stores, the reading of robots.txt.
"""

import asyncio
import contextlib
import ipaddress
import socket
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from cachetools import TTLCache

from providers.errors import Unavailable
from providers.reading.egress.address_rules import IpAddress
from providers.reading.egress.url_gate import refused

MOST_THREADS: Final = 32
MOST_OF_A_DOMAIN: Final = 4
"""Look-ups at once of names that end alike: a silent name server cannot take all threads."""
LONGEST_WAIT: Final = 5.0
"""Seconds after which a name counts as not answered."""
UNANSWERED_KEPT: Final = 60.0
"""Seconds for which a name that was not answered is not asked for again."""
MOST_UNANSWERED: Final = 10_000
PASSING_FAILURES: Final = {socket.EAI_AGAIN, socket.EAI_MEMORY, socket.EAI_SYSTEM}
CANNOT_NOW: Final = "names cannot be looked up at the moment"

LookUp = Callable[[str], Sequence[IpAddress]]
_Answer = Sequence[IpAddress] | OSError | ValueError
"""A failure is handed over, not raised: each caller that waits for a name raises an error of its own."""


def ask_system(host: str) -> list[IpAddress]:
    """All addresses of a name, each once, in the system's order. Raises `socket.gaierror`, `ValueError`."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(ipaddress.ip_address(entry[4][0]) for entry in found))


def domain_of(host: str) -> str:
    """The registered end of a name, as far as its shape tells: `b.de`, `b.co.uk`."""
    labels = host.rstrip(".").lower().split(".")
    shared = len(labels) > 2 and len(labels[-1]) == 2 and len(labels[-2]) <= 3
    return ".".join(labels[-3 if shared else -2 :])


class SystemResolver:
    """The resolver of the operating system. One of it belongs to one event loop.

    Names that are being looked up are looked up once; threads are few, and few of them work for one domain. They are
    daemons: the end of a process waits for none.
    """

    def __init__(self, look_up: LookUp = ask_system) -> None:
        self._look_up = look_up
        self._asking: dict[str, asyncio.Task[_Answer]] = {}
        self._begun: dict[str, float] = {}
        self._running: Counter[str] = Counter()
        self._changed = asyncio.Condition()
        self._unanswered: TTLCache[str, None] = TTLCache(MOST_UNANSWERED, UNANSWERED_KEPT)

    async def resolve(self, host: str) -> Sequence[IpAddress]:
        """All addresses of a name, each once, in the system's order.

        Raises `Unavailable` (also for a name that was not answered a moment ago), or `SourceUnreadable`
        refused_unresolved, refused_host.
        """
        now = asyncio.get_running_loop().time()
        if host in self._unanswered or now - self._begun.get(host, now) > LONGEST_WAIT:
            raise Unavailable(CANNOT_NOW)
        asking = self._asking.get(host)
        if asking is None:
            asking = self._asking[host] = asyncio.create_task(self._ask(host))
        answer = await asyncio.shield(asking)
        if isinstance(answer, ValueError):
            raise refused("host", "the host is malformed") from answer
        if isinstance(answer, socket.gaierror) and answer.errno not in PASSING_FAILURES:
            raise refused("unresolved", "the host has no address") from answer
        if isinstance(answer, OSError):
            raise Unavailable(CANNOT_NOW) from answer
        return answer

    async def _ask(self, host: str) -> _Answer:
        """What the system says, when there is a thread for it; goes on when no caller waits any more."""
        loop, domain = asyncio.get_running_loop(), domain_of(host)
        try:
            async with asyncio.timeout(LONGEST_WAIT), self._changed:
                await self._changed.wait_for(lambda: self._has_room(domain))
                self._running[domain] += 1
        except TimeoutError as error:
            del self._asking[host]
            return error
        begun = self._begun[host] = loop.time()
        try:
            answer = await self._in_thread(host)
        finally:
            del self._asking[host], self._begun[host]
            async with self._changed:
                self._running[domain] -= 1
                self._running += Counter()  # drops what is zero
                self._changed.notify_all()
        if isinstance(answer, OSError) and loop.time() - begun > LONGEST_WAIT:
            self._unanswered[host] = None
        return answer

    def _has_room(self, domain: str) -> bool:
        return self._running.total() < MOST_THREADS and self._running[domain] < MOST_OF_A_DOMAIN

    def _in_thread(self, host: str) -> asyncio.Future[_Answer]:
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[_Answer] = loop.create_future()

        def tell(answer: _Answer) -> None:
            if not answered.done():
                answered.set_result(answer)

        def run() -> None:
            answer: _Answer = OSError("no answer")
            try:
                answer = self._look_up(host)
            except (OSError, ValueError) as error:
                answer = error
            finally:
                with contextlib.suppress(RuntimeError):  # the loop has ended: no caller waits
                    loop.call_soon_threadsafe(tell, answer)

        threading.Thread(target=run, name="name look-up", daemon=True).start()
        return answered
