"""How fast a folder of documents is indexed and searched: `python benchmarks/index_pages.py DIR [QUERY …]`."""

import argparse
import asyncio
import os
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from contracts.messages import SearchRequest
from providers.isolation.pool import SubprocessPool
from providers.search.corpus.library import CorpusLibrary

QUERIES = ["How is the write-ahead log recovered after a crash?", "Which limits apply to the size of a database?"]


async def measure(folder: Path, queries: list[str], children: int) -> Table:
    """Index twice, then search; one row for each step."""
    table = Table("step", "result", "seconds")
    with tempfile.TemporaryDirectory() as home:
        async with SubprocessPool(children) as pool:
            library = CorpusLibrary(Path(home), pool)
            library.add("bench", folder)
            start = time.perf_counter()
            snapshot = await library.refresh("bench")
            seconds = time.perf_counter() - start
            files = f"{snapshot.files} pages, {snapshot.skipped} skipped, {snapshot.files / seconds:.0f} pages/s"
            table.add_row(f"index, cold, {children} children", files, f"{seconds:.2f}")
        async with SubprocessPool(children) as pool:
            library = CorpusLibrary(Path(home), pool)
            start = time.perf_counter()
            await library.refresh("bench")
            table.add_row("index, warm", "nothing changed", f"{time.perf_counter() - start:.3f}")
            for query in queries:
                request = SearchRequest(research_id="r-bench", operation="search/1", provider="corpus", text=query)
                start = time.perf_counter()
                response = await library.search(request.model_copy(update={"corpus": "bench"}))
                seconds = time.perf_counter() - start
                table.add_row(
                    query,
                    f"{len(response.hits)} hits, first {response.hits[0].title if response.hits else None}",
                    f"{seconds:.3f}",
                )
        size = sum(file.stat().st_size for file in Path(home).rglob("*") if file.is_file())
        table.add_row("size of the index", f"{size / 1e6:.1f} MB", "")
    return table


def main() -> None:
    """Read the arguments and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("queries", nargs="*", default=QUERIES)
    parser.add_argument("--children", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    Console().print(asyncio.run(measure(arguments.folder, arguments.queries, arguments.children)))


if __name__ == "__main__":
    main()
