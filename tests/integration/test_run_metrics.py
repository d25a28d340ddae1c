"""What runs leave in the metrics of a worker; replays of a real worker must count nothing twice."""

import asyncio
import functools
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from temporalio import workflow
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.runtime import MetricBuffer, Runtime, TelemetryConfig
from temporalio.worker import Plugin, Worker

from providers.errors import RateLimited, SourceUnreadable
from providers.interfaces import ExtractedDocument
from tests.fakes.collector import Collector, own_provider
from tests.fakes.messages_api import MessagesApi
from tests.fakes.world import model_world
from tests.integration.conftest import Server, running_workers
from tests.integration.runs import BUILD_ID, QUESTION, start
from workers.settings.loading import Settings
from workers.settings.sections import TracingSettings
from workers.temporal import DATA_CONVERTER
from workers.tracing import open_tracing

pytestmark = pytest.mark.integration


MONITORING: Final = Path(__file__).parents[2] / "deploy" / "monitoring"
SELECTOR: Final = re.compile(r"((?:research|temporal)_[a-z_]+)(?:\{([^}]*)\})?")
"""A metric of an expression, and its conditions."""
SUFFIX: Final = re.compile(r"_(?:bucket|sum|count)$")
"""What Prometheus appends to the name of a histogram."""


def asked_for() -> dict[str, set[str]]:
    """Each metric that a panel or an alert names, with the labels that are used of it."""
    panels = json.loads((MONITORING / "dashboard.json").read_text(encoding="utf-8"))["panels"]
    alerts = yaml.safe_load((MONITORING / "alerts.yaml").read_text(encoding="utf-8"))["groups"][0]["rules"]
    asked: dict[str, set[str]] = {}
    for expression in [target["expr"] for panel in panels for target in panel["targets"]] + [a["expr"] for a in alerts]:
        grouped = {label for labels in re.findall(r"by \(([^)]*)\)", expression) for label in re.split(r",\s*", labels)}
        for name, conditions in SELECTOR.findall(expression):
            labels = set(re.findall(r"(\w+)=", conditions)) | grouped - {"le"}
            asked.setdefault(SUFFIX.sub("", name), set()).update(labels)
    return asked


def losing_once(work: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """The plan's activity, whose first result does not arrive although its answer was stored; others as they are."""
    if work.__name__ != "plan_research":
        return work
    lost: list[str] = []

    @functools.wraps(work)
    async def losing(request: Any) -> Any:
        result = await work(request)
        if not lost:
            lost.append(work.__name__)
            raise ApplicationError("the connection ended")
        return result

    return losing


@workflow.defn(sandboxed=False)
class Mistaken:
    """Code with a mistake, for which a run waits."""

    @workflow.run
    async def run(self) -> None:
        raise KeyError("a mistake")


async def fail_a_task(client: Client) -> None:
    """Have a workflow task fail as one of a run does whose code has a mistake."""
    async with Worker(client, task_queue="mistaken", workflows=[Mistaken], build_id=BUILD_ID):
        handle = await client.start_workflow(Mistaken.run, id="mistaken", task_queue="mistaken")
        async for event in handle.fetch_history_events(wait_new_event=True):
            if event.HasField("workflow_task_failed_event_attributes"):
                break
        await handle.terminate()


@asynccontextmanager
async def traced(home: Path) -> AsyncIterator[tuple[Collector, Sequence[Plugin]]]:
    """A collector, and the plug-ins of workers that send spans there; all have arrived after the block."""
    with own_provider():
        async with Collector() as collector:
            settings = Settings(home=home, tracing=TracingSettings(endpoint=collector.base_url))
            async with open_tracing(settings) as plugins:
                yield collector, plugins


def assert_traced(collector: Collector, research_id: str) -> None:
    """Run, phases, calls and requests are there, each once and in its place, and none has a word of the question."""
    (run,) = [span for span in collector.spans if span.name == "run deep-research"]
    spans = [span for span in collector.spans if span.trace == run.trace]
    assert len({span.id for span in spans}) == len(spans)
    assert run.parent == b""
    by_id = {span.id: span for span in spans}
    kinds = {kind: [span for span in spans if span.name.startswith(kind)] for kind in ("phase", "call", "request")}
    assert len(spans) == 1 + sum(map(len, kinds.values()))
    assert {span.parent for span in kinds["phase"]} == {run.id}
    names = [span.name for span in sorted(kinds["phase"], key=lambda span: span.raw.start_time_unix_nano)]
    assert names[:4] == ["phase planning", "phase gathering", "phase analysis", "phase synthesis"]
    assert all(before != after for before, after in pairwise(names)), "a replay began a phase again"
    assert all(by_id[span.parent] in (run, *kinds["phase"]) for span in kinds["call"])
    assert all(by_id[span.parent] in kinds["call"] for span in kinds["request"])
    attempts = Counter(
        (span.attributes["research.call"], span.attributes["research.attempt"]) for span in kinds["call"]
    )
    assert set(attempts.values()) == {1}
    analysis = next(span for span in kinds["phase"] if span.name == "phase analysis")
    assert {span.name for span in collector.children(analysis)} >= {"call analyze_sources"}
    errors = {span.attributes["error.type"] for span in kinds["call"] if span.is_error}
    assert errors >= {"RateLimited", "SourceUnreadable"}
    asked = [span for span in kinds["request"] if span.attributes.get("research.role") == "planner"]
    assert asked[0].attributes.items() >= {"gen_ai.request.model": "test-model", "research.endpoint": "default"}.items()
    assert all(span.attributes["gen_ai.usage.output_tokens"] for span in asked)
    assert {span.attributes["research.id"] for span in spans if span not in kinds["request"]} == {research_id}
    sent = b"".join(request.body for request in collector.requests)
    assert not [word for word in (b"wraparound", b"transaction", b"engine prevent") if word in sent]


async def test_runs_and_failures_are_counted_by_type(server: Server, tmp_path: Path) -> None:
    """Outcome, sources that could not be read with their reason, failures by type, refusals by service.

    Every metric and label that a panel or an alert of the deployment names is there. The trace has each attempt once,
    although each task of the workflow is a replay.
    """
    buffer = MetricBuffer(100_000)
    runtime = Runtime(telemetry=TelemetryConfig(metrics=buffer))
    client = await Client.connect(server.address, data_converter=DATA_CONVERTER, runtime=runtime)
    async with MessagesApi() as api, traced(tmp_path) as (collector, plugins):
        world = model_world(tmp_path, api.base_url)
        read, refused = world.corpus.read, list[str]()
        made = world.activities

        async def unwilling(url: str) -> ExtractedDocument:
            if not refused:
                refused.append(url)
                error = RateLimited("slowly", retry_after=0.1)
                error.service = "manual"
                raise error
            if url == refused[0]:
                raise SourceUnreadable("encrypted", "it is locked")
            return await read(url)

        world.corpus.read = unwilling  # type: ignore[method-assign]
        world.activities = lambda: [*map(losing_once, made())]  # type: ignore[method-assign]
        async with running_workers(client, world, replaying=True, plugins=plugins), asyncio.timeout(60):
            handle = await start(client, {"query": QUESTION, "corpus": "manual"})
            await handle.result()
            await fail_a_task(client)
    assert_traced(collector, handle.id)
    counted: Counter[tuple[object, ...]] = Counter()
    values: dict[str, float] = {}
    labels: dict[str, set[str]] = {}
    for update in buffer.retrieve_updates():
        name, told = update.metric.name, update.attributes
        values[name] = update.value
        labels.setdefault(name, set()).update(told)
        if name.startswith("research_"):
            words = [told.get(key) for key in ("outcome", "type", "final", "service", "reason") if key in told]
            counted[(name, *words)] += int(update.value)
    assert sum(number for key, number in counted.items() if key[0] == "research_runs") == 1
    assert counted["research_sources_dropped", "encrypted"] == 1
    assert counted["research_call_failures", "RateLimited", False] == 1
    assert counted["research_call_failures", "SourceUnreadable", True] == 1
    assert counted["research_refusals", "manual"] == 1
    assert values["research_run_seconds"] > 0
    assert counted["research_journal_hits",] == 1
    asked = asked_for()
    assert len(asked) > 10
    assert {
        name: used - labels.get(name, {"no such metric"}) for name, used in asked.items() if name not in labels
    } == {}
    assert {name: used - labels[name] for name, used in asked.items() if used - labels[name]} == {}
