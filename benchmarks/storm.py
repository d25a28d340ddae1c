"""Four workers of ten slots against services that can do less than they want: `python -m benchmarks.storm`.

A thousand calls of a second each, refusals ask for 5 s, no limit is configured. Every kind of capacity with every
kind of shared store; what must be true of each is asserted (reliability F7).
"""

import argparse
import asyncio
import tempfile
from pathlib import Path

from tests.acceptance.storm import assert_polite, storm
from tests.fakes.throttled_api import Kind, ThrottledApi
from tests.fakes.valkey import running_valkey

CAPACITY = 10
SERVICE_SECONDS = 1.0
RETRY_AFTER_SECONDS = 5


async def measure(kind: Kind, store: str, name: str, calls: int) -> None:
    """One storm."""
    async with ThrottledApi(kind, CAPACITY, SERVICE_SECONDS, RETRY_AFTER_SECONDS) as api:
        seen = await storm(api, store, calls=calls)
    print(f"{kind}, {name}: {seen}", flush=True)
    assert_polite(seen, RETRY_AFTER_SECONDS)


def main() -> None:
    """All of them, one after the other."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--calls", type=int, default=1_000)
    calls: int = arguments.parse_args().calls
    kinds: tuple[Kind, ...] = ("concurrent", "window")
    for kind in kinds:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(measure(kind, str(Path(folder) / "shared.sqlite"), "SQLite", calls))
            with running_valkey(Path(folder)) as server:
                asyncio.run(measure(kind, server.url, "Valkey", calls))


if __name__ == "__main__":
    main()
