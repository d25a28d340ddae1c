"""Twenty pages from twenty hosts at once: `python benchmarks/read_pages.py [FOLDER]`.

Every host is a server on loopback that answers after a time of its own (log-normal). How long all reads take together
is compared with the longest chain of steps that must follow one another: robots.txt, page, extraction. Processor time
is that of the reading process and of its children, for everything that a read does.
"""

import argparse
import asyncio
import math
import multiprocessing
import os
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from multiprocessing.connection import Connection
from pathlib import Path

from rich.console import Console

from providers.isolation.pool import SubprocessPool
from providers.reading.document_kinds import HTML
from providers.reading.egress.address_rules import hosts_and_ports
from providers.reading.egress.client import Egress
from providers.reading.reader import WebReader, extract_page
from providers.reading.robots import Robots
from tests.fakes.web import WebServer, reply

ROBOTS = reply("User-agent: *\nDisallow: /private\n", content_type="text/plain", Connection="close")
SENTENCE = "<p>The worker removes the dead rows of a table, and leaves their space to the others that come after.</p>"


def bodies(folder: Path | None, count: int, seed: int) -> list[bytes]:
    """Pages of a folder, else pages of sentences."""
    if folder is None:
        return [f"<html><body><h1>Page {n}</h1>{SENTENCE * 150}</body></html>".encode() for n in range(count)]
    files = sorted(path for path in folder.rglob("*.htm*") if path.is_file() and 2_000 < path.stat().st_size < 200_000)
    return [path.read_bytes() for path in random.Random(seed).sample(files, count)]


def later(answer: bytes, seconds: float) -> Callable[[asyncio.StreamWriter], Awaitable[None]]:
    """An answer after a while; the connection ends with it."""

    async def write(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(seconds)
        writer.write(answer)
        await writer.drain()

    return write


def serve(pages: list[bytes], delays: list[tuple[float, float]], pipe: Connection) -> None:
    """Run the hosts in a process of their own until the pipe ends: their processor time is nobody's reading."""

    async def work() -> None:
        async with AsyncExitStack() as stack:
            hosts = []
            for body, (robots, delay) in zip(pages, delays, strict=True):
                answers = {"/robots.txt": later(ROBOTS, robots), "/page": later(reply(body, Connection="close"), delay)}
                hosts.append((await stack.enter_async_context(WebServer(answers))).host)
            pipe.send(hosts)
            await asyncio.to_thread(pipe.recv)

    asyncio.run(work())


def processor_seconds() -> float:
    """Processor time of this process and of the children that have ended."""
    return sum(os.times()[:4])


async def measure(hosts: list[str], pages: list[bytes], delays: list[tuple[float, float]], children: int) -> None:
    """Read all pages at once, and print what it took."""
    async with SubprocessPool(children) as pool:

        async def extract(raw: bytes) -> float:
            begun = time.perf_counter()
            await extract_page(pool, raw, HTML, None, "http://site.test/page")
            return time.perf_counter() - begun

        await asyncio.gather(*(extract(raw) for raw in pages[: 2 * children]))  # the children start, and load
        alone = [await extract(raw) for raw in pages]
        egress = Egress("benchmark", allow_hosts=hosts_and_ports(hosts))
        reader = WebReader(egress, pool, Robots(egress, "benchmark"))
        begun = time.perf_counter()
        await asyncio.gather(*(reader.read(f"http://{host}/page") for host in hosts))
        wall = time.perf_counter() - begun
        await egress.close()
    chains = [sum(delay) + extraction for delay, extraction in zip(delays, alone, strict=True)]
    ratio = wall / max(chains)
    Console().print(
        f"{len(pages)} pages of {len(pages)} hosts: {wall:.3f} s; longest chain {max(chains):.3f} s; {ratio:.3f}"
    )


async def processor_time(hosts: list[str], rounds: int, children: int) -> None:
    """Read all pages again and again, and print the processor time of a read, starting the children apart."""
    before = processor_seconds()
    async with SubprocessPool(children) as pool:
        await asyncio.gather(*(pool.call("time:sleep", 0.1) for _ in range(children)))
    starting = processor_seconds() - before
    egress = Egress("benchmark", allow_hosts=hosts_and_ports(hosts))
    before = processor_seconds()
    async with SubprocessPool(children) as pool:
        reader = WebReader(egress, pool, Robots(egress, "benchmark"))
        for _ in range(rounds):
            await asyncio.gather(*(reader.read(f"http://{host}/page") for host in hosts))
    await egress.close()
    count = rounds * len(hosts)
    used = processor_seconds() - before
    Console().print(
        f"{count} reads: {used / count * 1e3:.1f} ms of processor time a page, "
        f"{(used - starting) / count * 1e3:.1f} ms without starting {children} children"
    )


def main() -> None:
    """Read the arguments, start the hosts and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--hosts", type=int, default=20)
    parser.add_argument("--median", type=float, default=0.8, help="median seconds of an answer")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--children", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    pages = bodies(arguments.folder, arguments.hosts, arguments.seed)
    delays = [
        (
            chance.lognormvariate(math.log(arguments.median / 4), 0.5),
            chance.lognormvariate(math.log(arguments.median), 0.7),
        )
        for _ in pages
    ]
    for work in ("wall", "processor"):
        here, there = multiprocessing.get_context("spawn").Pipe()
        times = delays if work == "wall" else [(0.0, 0.0)] * len(pages)
        hosts_process = multiprocessing.get_context("spawn").Process(
            target=serve, args=(pages, times, there), daemon=True
        )
        hosts_process.start()
        hosts = here.recv()
        if work == "wall":
            asyncio.run(measure(hosts, pages, delays, arguments.children))
        else:
            asyncio.run(processor_time(hosts, arguments.rounds, arguments.children))
        here.send("end")
        hosts_process.join(10)


if __name__ == "__main__":
    main()
