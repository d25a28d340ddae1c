"""Whole runs over the web, undisturbed and with faults, and what the caches save: `python -m benchmarks.web_runs`.

A web of eighty pages on forty hosts, a search engine and a model are played by this process over loopback; all that
works for a run is one worker process with all pools, its real clients and its real guard. One request in seven fails:
10 % with 429 and `Retry-After: 1`, 5 % with 500, of every kind. What must be true of each run is checked, and ends the
measurement when it is not: every source that a search found was read, or is named with a reason; no page, no search and
no model call was answered twice; usage equals the model's own books. The Temporal server is the embedded one (one
SQLite file, WAL, synchronous=normal).
"""

import argparse
import asyncio
import tempfile
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from temporalio.client import WorkflowHandle
from temporalio.worker import Worker

from benchmarks.fan_out import QUEUE, FanOut
from benchmarks.ideal_wall import ANSWERED, Ideal, ideal_wall
from benchmarks.processes import Peak, cpu_seconds, watched
from benchmarks.runs import Measured, measure
from benchmarks.web_deployment import MODEL, PRICE, WebDeployment, answered, web_deployment
from contracts import activities, names
from contracts.messages import SearchRequest
from contracts.outcome import ResearchResult
from contracts.state import ResearchState
from contracts.vocabulary import Outcome, SourceStatus
from tests.fakes.many_pages import QUESTION, RELATED, pages
from tests.fakes.messages_api import MessagesApi
from tests.fakes.valkey import running_valkey
from tests.fakes.web_world import Faults, Latencies, Site, WebWorld, page
from tests.integration.runs import start
from workers.pools import workflow_runner

PAGES, HOSTS = 80, 40
TOO_MANY, SERVER_ERROR = 0.10, 0.05
PARALLEL_READS: Final = 20
EQUAL_SEARCHES, FLIGHT_SECONDS = 50, 1.0
WEB_SEED, MODEL_SEED = 18, 16
"""With them the shares are met as near as whole requests come, by each kind of call: searches, pages, the model."""
WARM = Site(HOSTS, "/lanterns", "Lanterns of Orvik", page("Lanterns", "# Lanterns\n\nIn Orvik lanterns hang in trees."))


def request(query: str, *, iterations: int = 2) -> dict[str, Any]:
    """A request for all that there is to find."""
    limits = {
        "max_iterations": iterations,
        "max_sources": 100,
        "max_sources_per_query": 20,
        "max_parallel_reads": PARALLEL_READS,
    }
    search = {"providers": ["searxng"], "max_results_per_query": 20}
    return {"query": query, "search": search, "gates": {"think": "rules"}, "limits": limits}


@dataclass(frozen=True)
class Run:
    """One run, from every side."""

    result: ResearchResult
    state: ResearchState
    history: Measured
    ideal: Ideal
    world: WebWorld
    model: MessagesApi
    cpu: float
    peak: Peak

    def searches(self) -> int:
        """Requests to the search engine."""
        return sum(place.startswith("search") for place in self.world.asked)

    def page_requests(self) -> int:
        """Requests for pages, those for robots.txt not counted."""
        return sum(not place.startswith("search") and not place.endswith("/robots.txt") for place in self.world.asked)

    def bill(self) -> float:
        """What the model's own books say, in US dollars."""
        return self.model.book.owed_usd({MODEL: PRICE})

    def check(self) -> None:
        """What has to be true of every run. Raises AssertionError."""
        usage, charges = self.result.usage, self.model.book.charges
        sources = self.state.evidence.sources.values()
        known = {url for source in sources for url in (source.url, *source.aliases)}
        assert self.result.outcome is Outcome.COMPLETED, self.result.outcome
        assert self.world.found <= known, f"{len(self.world.found - known)} found sources are not told of"
        assert all(source.status is SourceStatus.FULL or source.status_reason for source in sources)
        assert max(self.world.served.values()) == 1, "the web was asked again for what it had answered"
        assert max(answered(self.model.calls).values()) == 1, "the model was asked again for what it had answered"
        assert usage.model_calls == len(charges)
        assert usage.input_tokens == sum(charge.prompt for charge in charges)
        assert usage.output_tokens == sum(charge.output for charge in charges)
        assert usage.cost_usd is not None
        assert abs(usage.cost_usd - self.bill()) < 1e-6, (usage.cost_usd, self.bill())


async def whole_run(call: float, web: float, faults: Faults, folder: Path, redis_url: str | None = None) -> Run:
    """One run on a fresh machine, after a small one that loaded what is loaded once."""
    world = WebWorld([*pages(PAGES, hosts=HOSTS), WARM], faults=faults, latencies=Latencies(web))
    mix = {"status:429:1": faults.too_many, "status:500": faults.server_error}
    model = MessagesApi("gaps", mix=mix, latency=call, seed=MODEL_SEED)
    async with web_deployment(folder, world, model, temporal="file", redis_url=redis_url) as made:
        (worker,) = await made.start_workers()
        client = await made.client()
        small = {"max_iterations": 1, "max_sub_queries": 1, "max_sources": 1}
        warm = await start(client, request("Which lanterns hang in Orvik?") | {"limits": small})
        await warm.result()
        forget(world, model)
        before = cpu_seconds(worker.running.pid)
        async with watched(worker.running.pid) as peak:
            handle = await start(client, request(QUESTION))
            result = await handle.result()
        cpu = cpu_seconds(worker.running.pid) - before
        history, state = await measure(handle), await state_of(handle)
        ideal = ideal_wall(state, world, model, slots=PARALLEL_READS)
        return Run(result, state, history, ideal, world, model, cpu, peak)


async def state_of(handle: WorkflowHandle[Any, ResearchResult]) -> ResearchState:
    """All that a run knows."""
    return ResearchState.model_validate(await handle.query(names.SESSION))


def forget(world: WebWorld, model: MessagesApi) -> None:
    """Begin new journals; what was asked is about other things, so that the places stay apart."""
    for journal in (world.asked, world.failed, world.served, world.found):
        journal.clear()
    for calls in (model.calls, model.requests, model.headers, model.book.charges):
        calls.clear()


ROWS: Final = (
    "wall, s",
    "ideal wall, undisturbed / with the waiting asked for, s",
    "ideal (with waiting) ÷ wall",
    "critical steps",
    "sources found / read / named as not read",
    "model: requests / answered",
    "searches: requests / answered",
    "pages: requests / answered",
    "refused with 429 / failed with 500",
    "answered twice",
    "tokens in / out",
    "cost by usage / by the model's books, USD",
    "worker CPU, children included, s",
    "worker CPU per page, ms",
    "peak memory of the worker and its children, MB",
    "history, events / kB",
)


def column(run: Run) -> list[str]:
    """One run of the table."""
    statuses = Counter(call.status for call in run.model.calls)
    served, usage = run.world.served, run.result.usage
    searched = sum(count for place, count in served.items() if place.startswith("search"))
    read = sum(source.status is SourceStatus.FULL for source in run.state.evidence.sources.values())
    twice = [*served.values(), *answered(run.model.calls).values()]
    wall = run.history.wall
    return [
        f"{wall:.1f}",
        f"{run.ideal.undisturbed:.1f} / {run.ideal.as_it_went:.1f}",
        f"{run.ideal.as_it_went / wall:.2f}",
        f"{len(run.history.path)}",
        f"{len(run.world.found)} / {read} / {len(run.state.evidence.sources) - read}",
        f"{len(run.model.calls)} / {statuses[ANSWERED]}",
        f"{run.searches()} / {searched}",
        f"{run.page_requests()} / {sum(served.values()) - searched}",
        f"{run.world.failed[429] + statuses[429]} / {run.world.failed[500] + statuses[500]}",
        f"{sum(count > 1 for count in twice)}",
        f"{usage.input_tokens:,} / {usage.output_tokens:,}",
        f"{usage.cost_usd:.6f} / {run.bill():.6f}",
        f"{run.cpu:.1f}",
        f"{run.cpu / max(1, read) * 1000:.0f}",
        f"{run.peak.megabytes:.0f}",
        f"{run.history.events} / {run.history.bytes / 1000:.0f}",
    ]


async def repeated_questions(web: float, folder: Path) -> None:
    """The same question three times and two related ones, one after the other: what is asked, and what is not."""
    world = WebWorld(pages(PAGES, hosts=HOSTS), latencies=Latencies(web))
    async with web_deployment(folder, world, MessagesApi(), temporal="file") as made:
        await made.start_workers()
        print("\n| question | wall s | searches | from the cache | pages | from the cache | requests to the web |")
        print("|---|---|---|---|---|---|---|")
        wanted = hit = 0
        questions = [("first", QUESTION), ("again", QUESTION), ("a third time", QUESTION)]
        for label, query in [*questions, *((f"related: {query}", query) for query in RELATED)]:
            world.asked.clear()
            handle = await start(await made.client(), request(query, iterations=1))
            used = (await handle.result()).usage
            wall = (await measure(handle)).wall
            print(
                f"| {label} | {wall:.1f} | {used.searches} | {used.cached_searches} | {used.reads} "
                f"| {used.cached_reads} | {len(world.asked)} |",
                flush=True,
            )
            wanted += used.searches + used.reads
            hit += used.cached_searches + used.cached_reads
            await made_of_the_web(made, world, used.searches - used.cached_searches, used.reads - used.cached_reads)
        print(f"\nall five: {hit} of {wanted} searches and pages from the cache ({hit / wanted:.0%})", flush=True)


async def made_of_the_web(made: WebDeployment, world: WebWorld, searches: int, reads: int) -> None:
    """Usage told the truth about the cache. Raises AssertionError."""
    asked = [place for place in world.asked if not place.endswith("/robots.txt")]
    seen = sum(place.startswith("search") for place in asked)
    assert (seen, len(asked) - seen) == (searches, reads), made.home


async def one_flight(name: str, folder: Path, redis_url: str | None) -> None:
    """Fifty equal searches at once by two worker processes: one request to the provider. Raises AssertionError."""
    world = WebWorld(latencies=Latencies(FLIGHT_SECONDS, spread=0.0))
    async with web_deployment(folder, world, MessagesApi(), temporal="memory", redis_url=redis_url) as made:
        await made.start_workers(2, pools=("search",))
        client = await made.client()
        asked = [
            SearchRequest(
                research_id=f"r-{number}",
                operation="search",
                provider="searxng",
                text="wraparound",
                max_results=5,
                permitted=True,
            ).model_dump(mode="json")
            for number in range(EQUAL_SEARCHES)
        ]
        async with Worker(client, task_queue=QUEUE, workflows=[FanOut], workflow_runner=workflow_runner()):
            arguments = [activities.SEARCH.name, names.SEARCH_QUEUE, asked]
            handle = await client.start_workflow(FanOut.run, args=arguments, id="equal-searches", task_queue=QUEUE)
            await handle.result()
            history = await handle.fetch_history()
    started = [event.activity_task_started_event_attributes for event in history.events]
    by_worker = Counter(each.identity for each in started if each.identity)
    assert len(by_worker) == 2, "one worker did everything: nothing is shown"
    assert world.asked == ["search wraparound"], world.asked
    print(
        f"{EQUAL_SEARCHES} equal searches at once, {name}: 1 request; by worker {sorted(by_worker.values())}",
        flush=True,
    )


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--call", type=float, default=2.0, help="seconds that a model call takes")
    parser.add_argument("--web", type=float, default=0.4, help="median seconds of a search or a page")
    given = parser.parse_args()
    print(
        f"{datetime.now(UTC):%Y-%m-%d %H:%M}, model calls of {given.call} s, the web answers in about {given.web} s\n"
    )
    faults = Faults(TOO_MANY, SERVER_ERROR, retry_after="1", seed=WEB_SEED)
    columns = []
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        valkey = stack.enter_context(running_valkey(folder))
        for label, how, redis_url in (
            ("undisturbed, SQLite", Faults(), None),
            ("faults, SQLite", faults, None),
            ("faults, Valkey", faults, valkey.url),
        ):
            run = await whole_run(given.call, given.web, how, folder / label.replace(" ", "-"), redis_url)
            run.check()
            columns.append([label, *column(run)])
            print(f"done: {label}", flush=True)
        print("\n| state that workers share | " + " | ".join(each[0] for each in columns) + " |")
        print("|---" * (len(columns) + 1) + "|")
        for row in zip(ROWS, *(each[1:] for each in columns), strict=True):
            print("| " + " | ".join(row) + " |", flush=True)
        await repeated_questions(given.web, folder / "repeated")
        await one_flight("SQLite", folder / "flight-sqlite", None)
        await one_flight("Valkey", folder / "flight-valkey", valkey.url)


if __name__ == "__main__":
    asyncio.run(main())
