"""How fast pages become text: `python benchmarks/extract_pages.py FOLDER`, with HTML files somewhere in it.

The same pages, read in turns on one core: whole, with metadata, by us and by trafilatura alone; and their content
alone, by us as documents of a folder are read, and by trafilatura as it comes and at its quickest. Then ours once more
in child processes, as workers use it.
"""

import argparse
import asyncio
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles

import trafilatura
from rich.console import Console
from rich.table import Table

from providers.errors import SourceUnreadable
from providers.isolation.pool import SubprocessPool
from providers.reading.canonical_text import Extraction
from providers.reading.document_kinds import HTML
from providers.reading.documents import extract, read_page
from providers.reading.reader import extract_page

URL = "https://site.test/page"
WARM_UP = 5


def ours(raw: bytes) -> object:
    """Our reading of a page of the web, with metadata, access and language."""
    try:
        return read_page(raw, HTML, None, URL)
    except SourceUnreadable:
        return None


def theirs(raw: bytes) -> object:
    """Markdown with metadata by trafilatura."""
    return trafilatura.extract(raw, url=URL, output_format="markdown", with_metadata=True)


def our_content(raw: bytes) -> object:
    """The text and structure of a document, without what only pages of the web have."""
    try:
        return extract(raw, "page.html")
    except SourceUnreadable:
        return None


def their_content(raw: bytes) -> object:
    """Text by trafilatura as it comes."""
    return trafilatura.extract(raw, url=URL)


def theirs_fast(raw: bytes) -> object:
    """Text by trafilatura, without metadata and without its second readings."""
    return trafilatura.extract(raw, url=URL, fast=True)


def one_core(pages: list[bytes], *readings: Callable[[bytes], object]) -> list[list[float]]:
    """Seconds of processor time for each page, by reading. They take turns, for a machine may get slower meanwhile."""
    times: list[list[float]] = [[] for _ in readings]
    for number, raw in enumerate([*pages[:WARM_UP], *pages]):
        for read, spent in zip(readings, times, strict=True):
            begun = time.process_time()
            read(raw)
            if number >= WARM_UP:
                spent.append(time.process_time() - begun)
    return times


async def in_children(pages: list[bytes], children: int) -> tuple[float, float]:
    """Wall seconds for all pages, and seconds of processor time of this process alone."""
    async with SubprocessPool(children, recycle_after=len(pages) + WARM_UP * children) as pool:

        async def read(raw: bytes) -> Extraction | None:
            try:
                return await extract_page(pool, raw, HTML, None, URL)
            except SourceUnreadable:
                return None

        await asyncio.gather(*(read(raw) for raw in pages[: WARM_UP * children]))
        begun, used = time.perf_counter(), time.process_time()
        await asyncio.gather(*(read(raw) for raw in pages))
        wall, parent = time.perf_counter() - begun, time.process_time() - used
    return wall, parent


def row(name: str, times: list[float], base: float | None = None) -> list[str]:
    """One line of the table."""
    mean = sum(times) / len(times)
    p95 = quantiles(times, n=20)[-1]
    ratio = "" if base is None else f"{mean / base:.1f}"
    return [name, f"{mean * 1e3:.1f}", f"{median(times) * 1e3:.1f}", f"{p95 * 1e3:.1f}", f"{1 / mean:.0f}", ratio]


def main() -> None:
    """Read the arguments and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pages", type=int, default=400)
    parser.add_argument("--children", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    files = sorted(path for path in arguments.folder.rglob("*.htm*") if path.is_file() and path.stat().st_size)
    random.Random(7).shuffle(files)
    pages = [path.read_bytes() for path in files[: arguments.pages]]
    size = sum(map(len, pages))
    mine, full, content, text, fast = one_core(pages, ours, theirs, our_content, their_content, theirs_fast)
    whole, part = sum(mine) / len(mine), sum(content) / len(content)
    table = Table(
        "reading", "ms/page", "p50", "p95", "pages/s", "times ours", title=f"{len(pages)} pages, {size:,} bytes"
    )
    table.add_row(*row("whole page, ours", mine))
    table.add_row(*row("whole page, trafilatura", full, whole))
    table.add_row(*row("content alone, ours", content))
    table.add_row(*row("content alone, trafilatura", text, part))
    table.add_row(*row("content alone, trafilatura, quick", fast, part))
    wall, parent = asyncio.run(in_children(pages, arguments.children))
    rate = len(pages) / wall
    table.add_row(
        f"whole page, ours, {arguments.children} children", f"{wall / len(pages) * 1e3:.1f}", "", "",
        f"{rate:.0f} ({rate / arguments.children:.0f} a child)", "",
    )  # fmt: skip
    Console().print(table)
    Console().print(f"the worker's own process spends {parent / len(pages) * 1e3:.2f} ms a page on that")


if __name__ == "__main__":
    main()
