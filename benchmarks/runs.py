"""Overhead, efficiency, history, CPU and memory of whole runs: `python -m benchmarks.runs [--runs 20] [--call 8]`.

The fake model endpoint answers after a fixed time, so what a run would need is known: everything else is ours. The
server is the dev server (one SQLite file, WAL, synchronous=normal), workers are one process with all pools.
"""

import argparse
import asyncio
import itertools
import statistics
import tempfile
import time
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHandle

from benchmarks.processes import cpu_seconds, megabytes
from benchmarks.waiting import TREE_REQUEST, nine_nodes
from client.handle import ResearchClient
from contracts.outcome import ResearchResult
from contracts.request import ResearchRequest
from contracts.resolved import Estimate
from contracts.strategies import declared_roles, list_selectable
from tests.acceptance.topology import Topology, topology
from tests.fakes import library_work, many_pages
from tests.integration.runs import QUESTION, start, until

MODEL_ACTIVITIES = {role.activity for role in declared_roles()}
LARGEST_ERROR = 2.0
"""Factor by which the likely number of calls may be wrong."""
RULES = {"query": QUESTION, "corpus": "documents", "gates": {"think": "rules"}}


_PREVIEWS = count(1)
PRICED = '[models.prices."test-model"]\ninput = 3.0\noutput = 15.0\n'
LARGE_WINDOW = f"{PRICED}[models.endpoints.default]\nwindow = 200000\n"
"""For the conversation of an agent that reads twenty pages."""
LIVING_QUERIES = (
    many_pages.QUESTION,
    *many_pages.RELATED,
    "Which vents of the Velmar kiln are closed?",
    "What do open sources leave to the Velmar kiln?",
    "At how many degrees does an ashen glaze resist crazing while they are held?",
)


@dataclass(frozen=True)
class Step:
    """One activity of a history; times in seconds since the epoch."""

    name: str
    scheduled: float
    started: float
    completed: float

    @property
    def body(self) -> float:
        """How long the activity itself took."""
        return self.completed - self.started


@dataclass(frozen=True)
class Beside:
    """Seconds of a run besides its calls, along its longest chain; they add up to the wall less the calls."""

    beginning: float
    """From the start of the run until its first activity is scheduled."""
    handed_out: float
    """From the schedule of an activity until a worker starts it."""
    around_calls: float
    """What an activity of a model takes besides the call: prompt, journal, grounding."""
    other_work: float
    """Activities without a model: searches, pages, claims, saves, the report."""
    workflow: float
    """From the end of an activity until the next one is scheduled: the task of the workflow, and what hands it out."""
    end: float
    """From the end of the last activity to that of the run."""


@dataclass(frozen=True)
class Measured:
    """One run, as its history tells it."""

    wall: float
    path: list[Step]
    events: int
    bytes: int
    used: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Model calls, tokens and US dollars of the run and its agents."""
    likely: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """The same as estimated before the run; 0 without a model."""
    began: float = 0.0
    """Seconds since the epoch."""

    def error_factors(self) -> list[float]:
        """Return by which factors the figures of the estimate are wrong; 1 is right."""
        return [max(pair) / max(1e-9, min(pair)) for pair in zip(self.used, self.likely, strict=True)]

    def overhead(self, call_seconds: float) -> float:
        """Seconds per critical step that neither a model call nor a local activity's own work explains."""
        models = sum(step.name in MODEL_ACTIVITIES for step in self.path) * call_seconds
        local = sum(step.body for step in self.path if step.name not in MODEL_ACTIVITIES)
        return (self.wall - models - local) / len(self.path)

    def beside(self, call_seconds: float) -> Beside:
        """Return where the time besides the calls goes."""
        first, last = self.path[0], self.path[-1]
        pairs = itertools.pairwise(self.path)
        return Beside(
            beginning=first.scheduled - self.began,
            handed_out=sum(step.started - step.scheduled for step in self.path),
            around_calls=sum(step.body - call_seconds for step in self.path if step.name in MODEL_ACTIVITIES),
            other_work=sum(step.body for step in self.path if step.name not in MODEL_ACTIVITIES),
            workflow=sum(after.scheduled - before.completed for before, after in pairs),
            end=self.began + self.wall - last.completed,
        )

    def efficiency(self, call_seconds: float) -> float:
        """Model calls on the longest chain ÷ wall; the bodies of searches and reads count as overhead here."""
        return sum(step.name in MODEL_ACTIVITIES for step in self.path) * call_seconds / self.wall


async def measure(
    handle: WorkflowHandle[Any, ResearchResult], client: Client | None = None, *, likely: Estimate | None = None
) -> Measured:
    """Read a closed run's history; with a client the calls of its agents, and of theirs, count as steps, too."""
    steps, agents, events, began, seconds = await _steps_of(handle)
    while client and agents:
        of_agent, below, _, _, _ = await _steps_of(client.get_workflow_handle(agents.pop()))
        steps, agents = [*steps, *of_agent], [*agents, *below]
    description = await handle.describe()
    size = description.raw_description.workflow_execution_info.history_size_bytes
    result = await handle.result()  # of a handle without a type, as JSON
    usage = ResearchResult.model_validate(result).usage
    used = (float(usage.model_calls), float(usage.tokens), usage.known_cost_usd)
    estimated = (0.0, 0.0, 0.0)
    if likely is not None:
        estimated = (likely.likely_calls, likely.likely_tokens, likely.likely_usd or 0.0)
    return Measured(seconds, critical_path(steps), events, size, used, estimated, began)


async def estimate(client: Client, request: dict[str, Any]) -> Estimate | None:
    """Return what the workers announce before a run; None for one without a model."""
    number = next(_PREVIEWS)
    resolved = await ResearchClient(client).preview(ResearchRequest.model_validate(request), f"r-preview-{number}")
    return resolved.estimate


async def _steps_of(handle: WorkflowHandle[Any, Any]) -> tuple[list[Step], list[str], int, float, float]:
    """Activities that were completed, ids of agents, number of events, time of the first, seconds that they span."""
    scheduled: dict[int, tuple[str, float]] = {}
    started: dict[int, float] = {}
    steps: list[Step] = []
    agents: list[str] = []
    first = last = 0.0
    events = 0
    async for event in handle.fetch_history_events():
        at = event.event_time.ToDatetime().timestamp()
        first, last, events = first or at, at, events + 1
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            name = event.activity_task_scheduled_event_attributes.activity_type.name
            scheduled[event.event_id] = (name, at)
        elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED:
            started[event.activity_task_started_event_attributes.scheduled_event_id] = at
        elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
            which = event.activity_task_completed_event_attributes.scheduled_event_id
            steps.append(Step(*scheduled[which], started[which], at))
        elif event.event_type == EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED:
            execution = event.child_workflow_execution_started_event_attributes.workflow_execution
            agents.append(execution.workflow_id)
    return steps, agents, events, first, last - first


def critical_path(steps: list[Step]) -> list[Step]:
    """From the last activity back: each one's cause is the latest to complete before it was scheduled."""
    path = [max(steps, key=lambda step: step.completed)]
    while causes := [step for step in steps if step.completed <= path[-1].scheduled]:
        path.append(max(causes, key=lambda step: step.completed))
    return path[::-1]


async def deployed(made: Topology) -> None:
    """A corpus and workers."""
    code, _, errors = await made.command("corpus", "add", str(made.documents))
    if code:
        raise SystemExit(errors)
    await made.start_workers()
    warm = await start(await made.client(), RULES | {"engine": "extractive"})
    await warm.result()


async def single(call: float, request: dict[str, Any], scenario: str = "good") -> Measured:
    """One run alone."""
    with tempfile.TemporaryDirectory() as folder:
        async with topology(Path(folder), call, scenario, PRICED) as made:
            await deployed(made)
            client = await made.client()
            likely = await estimate(client, request)
            handle = await start(client, request)
            await handle.result()
            return await measure(handle, client, likely=likely)


async def living(call: float, pages: int = 20) -> tuple[Measured, str]:
    """One run of `living` over so many pages, its plan edited and approved at once, and what it did."""
    with tempfile.TemporaryDirectory() as folder:
        async with topology(Path(folder), call, configuration=LARGE_WINDOW) as made:
            for number, site in enumerate(many_pages.pages(pages, hosts=pages), start=1):
                (made.documents / f"notebook-{number}.html").write_text(site.body, encoding="utf-8")
            await deployed(made)
            limits = {"max_sources_per_query": 10}  # a corpus gives twice as many hits
            request = {"query": many_pages.QUESTION, "corpus": "documents", "strategy": "living", "limits": limits}
            client = await made.client()
            likely = await estimate(client, request)
            handle = await ResearchClient(client).start(request, "r-living")
            run = client.get_workflow_handle("r-living")
            await until(run, lambda known: known.status == "awaiting_approval")
            await handle.revise_plan({"sub_queries": [{"query": query} for query in LIVING_QUERIES]}, 1)
            await handle.approve_plan(2)
            read = (await handle.result()).counts.sources
            updates = [event async for event in handle.follow() if event.type == "report.updated"]
            return await measure(run, likely=likely), f"{read} pages, {len(updates) - 1} updates"


async def tree(call: float) -> tuple[Measured, str]:
    """One run of `recursive` with nine executors and twenty-four leaves, and the largest history of an executor."""
    library_work.tree = nine_nodes
    with tempfile.TemporaryDirectory() as folder:
        async with topology(Path(folder), call, configuration=PRICED) as made:
            await deployed(made)
            client = await made.client()
            likely = await estimate(client, TREE_REQUEST)
            run = await start(client, TREE_REQUEST)
            await run.result()
            sizes, waiting = list[int](), [run.id]
            while waiting:
                handle = client.get_workflow_handle(waiting.pop())
                waiting += (await _steps_of(handle))[1]
                sizes.append((await handle.describe()).raw_description.workflow_execution_info.history_size_bytes)
            text = f"{len(sizes) - 1} executors, {made.model.counts()['extractor']} leaves"
            text = f"{text}, histories of executors of {max(sizes[1:]) / 1000:.0f} kB at most"
            return await measure(run, client, likely=likely), text


async def many(runs: int, call: float) -> tuple[list[Measured], float, float]:
    """Runs at once: each one's figures, worker CPU seconds per run, and megabytes per waiting run."""
    with tempfile.TemporaryDirectory() as folder:
        async with topology(Path(folder), call, configuration=PRICED) as made:
            await deployed(made)
            pid = made.worker_pids()[0]
            client = await made.client()
            cpu, memory = cpu_seconds(pid), megabytes(pid)
            likely = await estimate(client, RULES)
            handles = [await start(client, RULES) for _ in range(runs)]
            await asyncio.sleep(call / 2)
            waiting = (megabytes(pid) - memory) / runs
            await asyncio.gather(*(handle.result() for handle in handles))
            used = (cpu_seconds(pid) - cpu) / runs
            return [await measure(handle, likely=likely) for handle in handles], used, waiting


async def by_strategy(call: float) -> None:
    """Print wall, calls in a row, efficiency, and where the other time goes, of one default run of each strategy.

    A call takes as long as the endpoint took for it, which on two processors is some milliseconds more than it should.
    """
    parts = " | ".join(f"{field.name.replace('_', ' ')} ms" for field in fields(Beside))
    print(f"| strategy | wall s | calls in a row | calls | a call s | efficiency | {parts} |")
    print(f"|---|---|---|---|---|---|{'---|' * 6}")
    with tempfile.TemporaryDirectory() as folder:
        async with topology(Path(folder), call, configuration=PRICED) as made:
            await deployed(made)
            client = await made.client()
            for strategy in list_selectable():
                request = {"query": QUESTION, "corpus": "documents", "gates": {"approve": "none"}}
                earlier = len(made.model.calls)
                run = await start(client, request | {"strategy": strategy.name})
                await run.result()
                item = await measure(run, client)
                answered = [(one.started, one.ended) for one in made.model.calls[earlier:] if one.ended]
                each = statistics.mean(ended - started for started, ended in answered)
                in_a_row = sum(step.name in MODEL_ACTIVITIES for step in item.path)
                row = f"{item.wall:.1f} | {in_a_row} | {item.used[0]:.0f} | {each:.3f} | {item.efficiency(each):.3f}"
                milliseconds = " | ".join(f"{seconds * 1000:.0f}" for seconds in astuple(item.beside(each)))
                print(f"| `{strategy.name}` | {row} | {milliseconds} |", flush=True)


async def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--call", type=float, default=8.0, help="seconds that a model call takes with many runs")
    parser.add_argument("--strategies", action="store_true", help="only one default run of each, calls of 2 s")
    given = parser.parse_args()
    if given.strategies:
        await by_strategy(2.0)
        return
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M}, dev server: one SQLite file, WAL, synchronous=normal\n")
    print("| what | wall s | critical steps | overhead ms/step | efficiency | events | history kB "
          "| calls, likely | tokens, likely | USD, likely |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|")
    done_runs = list[Measured]()
    extractive = await single(0.0, RULES | {"engine": "extractive"})
    row("one run, extractive", extractive, 0.0)
    for what, call, request, scenario in (
        ("one run, calls of 2 s", 2.0, RULES, "good"),
        ("one run, calls of 2 s, reflections on", 2.0, RULES | {"gates": {}}, "good"),
        ("one run with another iteration, calls of 0.5 s", 0.5, RULES, "gaps"),
        ("one run of `reflective`, calls of 2 s", 2.0, RULES | {"strategy": "reflective", "gates": {}}, "good"),
        ("one run of `orchestrator`, calls of 2 s", 2.0, RULES | {"strategy": "orchestrator", "gates": {}}, "good"),
    ):
        done_runs.append(await single(call, request, scenario))
        row(what, done_runs[-1], call)
    grown, done = await living(2.0)
    row(f"one run of `living`, {done}, calls of 2 s", grown, 2.0)
    branched, done = await tree(2.0)
    row(f"one run of `recursive`, {done}, calls of 2 s", branched, 2.0)
    done_runs += [grown, branched]
    began = time.monotonic()
    measured, cpu, waiting = await many(given.runs, given.call)
    mean = statistics.mean(item.efficiency(given.call) for item in measured)
    print(
        f"\n{given.runs} runs at once, calls of {given.call:.0f} s: mean efficiency {mean:.3f}, "
        f"{time.monotonic() - began:.0f} s in all, {cpu:.2f} worker CPU s and {waiting:.1f} MB per waiting run"
    )

    done_runs.append(measured[0])  # the others are alike
    figures = zip(*(run.error_factors() for run in done_runs), strict=True)
    right = [sum(factor <= LARGEST_ERROR for factor in factors) for factors in figures]
    counts = ", ".join(f"{name} {count}" for name, count in zip(("calls", "tokens", "dollars"), right, strict=True))
    print(f"within a factor of {LARGEST_ERROR:g} of the estimate, of {len(done_runs)} kinds of runs: {counts}")


def row(what: str, item: Measured, call: float) -> None:
    """One line of the table."""
    efficiency = f"{item.efficiency(call):.3f}" if call else "–"
    figures = zip(item.used, item.likely, (".0f", ",.0f", ".3f"), strict=True)
    pairs = [f"{used:{form}}, {likely:{form}}" for used, likely, form in figures]
    print(
        f"| {what} | {item.wall:.2f} | {len(item.path)} | {item.overhead(call) * 1000:.0f} | {efficiency} "
        f"| {item.events} | {item.bytes / 1000:.0f} | {' | '.join(pairs)} |",
        flush=True,
    )


if __name__ == "__main__":
    asyncio.run(main())
