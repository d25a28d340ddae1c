"""What outages cost runs of every strategy: `python -m benchmarks.outages [KIND …] [--seconds 5 15 60 240] [--runs 6]`.

A real worker process with all pools researches a made-up web on loopback with a model whose calls take 2 to 5 s. Once
each run has had an answer, one service fails for the given seconds; the deadline of a run is 15 minutes. Kinds:

- `500`, `503`, `529`, `reset`, `hang`, `refused`: the model's endpoint answers so; `refused` closes its port, which a
  client sees as it sees a failed name lookup: no connection;
- `search`, `pages`: the search engine or all pages answer 500;
- `redis`: the shared store is killed, and comes back empty;
- `objects`: the object store, where sessions and documents are, answers 503;
- `worker`: not an outage in time: the worker process is killed (SIGKILL) and another one is there.

Printed for each kind and duration: outcomes, answered model calls that were made again, and the longest wall less the
same runs undisturbed and less the outage. The Temporal server is the local one: a SQLite file, WAL, synchronous=normal.
"""

import argparse
import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from benchmarks.web_deployment import WebDeployment, answered, web_deployment
from contracts.outcome import ResearchResult
from tests.fakes.loopback import HttpRequest, reset, response
from tests.fakes.many_pages import QUESTION, pages
from tests.fakes.messages_api import MessagesApi
from tests.fakes.model_request import ModelRequest
from tests.fakes.object_store import ObjectStoreServer
from tests.fakes.valkey import ValkeyServer, running_valkey
from tests.fakes.web_world import WebWorld
from tests.integration.runs import start
from workers.own_process import exit_process, run_to_end

STRATEGIES: Final = ("supervisor", "reflective", "orchestrator")
MODEL_KINDS: Final = {
    "500": "status:500", "503": "status:503", "529": "status:529", "reset": "reset", "hang": "slow", "refused": ""
}  # fmt: skip
KINDS: Final = (*MODEL_KINDS, "search", "pages", "redis", "objects", "worker")
PAGES, HOSTS = 20, 10
DEADLINE_SECONDS: Final = 900


class UnevenApi(MessagesApi):
    """A model whose calls take 2 to 5 s, each request always as long."""

    shortest, longest = 2.0, 5.0

    async def _answer(self, request: ModelRequest, *connection: Any) -> bool:
        share = int(request.request_hash[:4], 16) / 0xFFFF
        self.latency = self.shortest + share * (self.longest - self.shortest)
        return await super()._answer(request, *connection)


class FailingWeb(WebWorld):
    """A web of which the search engine or the pages fail while `failing` names them."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.failing: dict[str, str] = {}
        """By `search` or `pages`: a status, `hang` or `reset`."""

    async def serve(self, request: HttpRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request."""
        kind = "search" if "search" in request.target else "pages"
        how = self.failing.get(kind)
        if how is None:
            return await super().serve(request, reader, writer)
        if how == "hang":
            await reader.read()  # until the client hangs up
        elif how == "reset":
            reset(writer)
        else:
            writer.write(response(int(how), b"later"))
            await writer.drain()
            return True
        return False


@asynccontextmanager
async def _failing(
    kind: str, made: WebDeployment, web: FailingWeb, redis: ValkeyServer, objects: ObjectStoreServer
) -> AsyncIterator[None]:
    """Let a service fail for the time of the block."""
    model, good = made.model, made.model.plan
    if kind == "refused":
        await model.__aexit__()
    elif kind in MODEL_KINDS:
        model.plan = replace(good, otherwise=MODEL_KINDS[kind])
    elif kind == "redis":
        await asyncio.to_thread(redis.kill)
    elif kind == "objects":
        objects.down = True
    elif kind == "worker":
        made.workers[0].kill()
        await made.start_workers()
    else:
        web.failing = {kind: "500"}
    yield
    web.failing, model.plan, objects.down = {}, good, False
    if kind == "refused":
        await model.__aenter__()
    elif kind == "redis":
        await asyncio.to_thread(redis.start)


async def _measure(kind: str, seconds: float, runs: int) -> tuple[list[ResearchResult], float, int]:
    """Return the results, the wall of the longest run, and how many answered calls were made again."""
    web, model = FailingWeb(pages(PAGES, hosts=HOSTS)), UnevenApi()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        redis = stack.enter_context(running_valkey(Path(folder)))
        home, objects = Path(folder) / "home", ObjectStoreServer()
        async with (
            objects,
            web_deployment(
                home, web, model, temporal="file", redis_url=redis.url, content=objects.environment()
            ) as made,
        ):
            await made.start_workers()
            client = await made.client()
            began = time.monotonic()
            request = {
                "search": {"providers": ["searxng"]},
                "gates": {"think": "rules"},
                "limits": {"deadline_seconds": DEADLINE_SECONDS, "max_iterations": 1, "max_sources": 6},
            }
            handles = [
                await start(client, request | {"query": QUESTION, "strategy": STRATEGIES[number % len(STRATEGIES)]})
                for number in range(runs)
            ]
            while kind and sum(answered(model.calls).values()) < runs:  # noqa: ASYNC110
                await asyncio.sleep(0.05)  # another process makes the calls: there is no event to wait for
            if kind:
                async with _failing(kind, made, web, redis, objects):
                    await asyncio.sleep(seconds)
            results: list[ResearchResult] = await asyncio.gather(*(handle.result() for handle in handles))
            repeated = sum(count - 1 for count in answered(model.calls).values())
            return results, time.monotonic() - began, repeated


async def main(kinds: Sequence[str], durations: Sequence[float], runs: int) -> None:
    """Measure the undisturbed runs, then every kind with every duration."""
    results, clean, _ = await _measure("", 0, runs)
    print(f"undisturbed: {_outcomes(results)}, {clean:.1f} s", flush=True)
    print("| kind | seconds | outcomes | answered again | wall − clean − outage |\n|---|---|---|---|---|", flush=True)
    for kind in kinds:
        for seconds in durations if kind != "worker" else [0.0]:
            results, wall, repeated = await _measure(kind, seconds, runs)
            over = wall - clean - seconds
            print(f"| {kind} | {seconds:g} | {_outcomes(results)} | {repeated} | {over:.1f} s |", flush=True)


def _outcomes(results: Sequence[ResearchResult]) -> str:
    return ", ".join(f"{count} {outcome}" for outcome, count in Counter(one.outcome.value for one in results).items())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What outages cost runs.")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)} (default: all)")
    parser.add_argument("--seconds", type=float, nargs="+", default=[5, 15, 60, 240])
    parser.add_argument("--runs", type=int, default=6)
    given = parser.parse_args()
    if unknown := set(given.kinds) - set(KINDS):
        parser.error(f"no kind {', '.join(unknown)}; there are {', '.join(KINDS)}")
    run_to_end(main(given.kinds or KINDS, given.seconds, given.runs))
    exit_process(0)
