"""Fakes as processes of their own, so that what they take of the machine is not counted as the product's.

`python -m benchmarks.fake_processes pages --subjects 20 --count 26` serves so many pages about each of so many kilns,
every page on a host of its own; `python -m benchmarks.fake_processes model --latency 2` is a model endpoint. Each
prints where it is as its first line, in JSON.
"""

import argparse
import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Any, Self

from tests.fakes.many_pages import QUESTION, pages
from tests.fakes.messages_api import MessagesApi
from tests.fakes.web_world import Site, WebWorld

ROOT = Path(__file__).resolve().parents[1]
LONGEST_LINE = 4_000_000


class FakeProcess:
    """One of the fakes for the time of a block; its first line is JSON and says where it is."""

    def __init__(self, kind: str, *options: str) -> None:
        self._command = ("-m", "benchmarks.fake_processes", kind, *options)
        self._process: asyncio.subprocess.Process | None = None
        self._place: dict[str, Any] = {}

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, *self._command, cwd=ROOT, stdout=asyncio.subprocess.PIPE, limit=LONGEST_LINE
        )
        assert self._process.stdout is not None
        self._place = json.loads(await self._process.stdout.readline())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.terminate()
        await self._process.wait()

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None
        return self._process.pid

    @property
    def base_url(self) -> str:
        """The address of the model endpoint."""
        return str(self._place["base_url"])

    def variables(self) -> dict[str, str]:
        """Variables that point a run at it."""
        return {name: str(value) for name, value in self._place.items()}


def subject(number: int) -> str:
    """The name of a kiln: no other number has it, and no word that is like it."""
    letters = "".join(chr(ord("a") + number // 26**place % 26) for place in range(3))
    return f"Velmar{letters}q"


def question(number: int) -> str:
    """The question about a kiln of many."""
    return QUESTION.replace("Velmar", subject(number))


def pages_of_subjects(subjects: int, count: int) -> list[Site]:
    """So many pages about each of so many kilns; no two pages have a host in common."""
    return [
        Site(about * count + place, site.path, site.title, site.body.replace("Velmar", subject(about)))
        for about in range(subjects)
        for place, site in enumerate(pages(count, hosts=count, seed=about))
    ]


async def main() -> None:
    """Serve until a signal ends it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("pages", "model"))
    parser.add_argument("--subjects", type=int, default=1)
    parser.add_argument("--count", type=int, default=26)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each reply of the model")
    parser.add_argument("--longest", type=float, default=0.0, help="draw the seconds evenly from --latency to this")
    given = parser.parse_args()
    ended = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, ended.set)
    if given.kind == "pages":
        async with WebWorld(pages_of_subjects(given.subjects, given.count)) as world:
            print(json.dumps(world.variables()), flush=True)
            await ended.wait()
    else:
        async with MessagesApi(latency=given.latency, longest=given.longest) as model:
            print(json.dumps({"base_url": model.base_url}), flush=True)
            await ended.wait()


if __name__ == "__main__":
    asyncio.run(main())
