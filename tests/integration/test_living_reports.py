"""Whole runs of `living` as a front end sees them: a stranger reads the seven events, and checks every text in them.

The runs work side by side over as many as twenty pages, each with a model of its own: a sensible one, one that answers nonsense,
one whose every statement has to be corrected, one that breaks each rule of an update in turn.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from markdown_it import MarkdownIt
from temporalio.client import Client

from client.agent_events import AnyAgentEvent
from client.handle import ResearchClient, ResearchHandle
from contracts.outcome import Event, ResearchResult
from tests.fakes import model_scenarios
from tests.fakes.checking_work import cited
from tests.fakes.hostile_pages import mark_of
from tests.fakes.many_pages import QUESTION, RELATED, pages
from tests.fakes.messages_api import MessagesApi
from tests.fakes.model_request import ModelRequest
from tests.fakes.tool_work import blocks, offered
from tests.fakes.web_world import WebWorld
from tests.integration.conftest import Server
from tests.integration.web_pools import web_workers
from workers.temporal import DATA_CONVERTER

pytestmark = pytest.mark.integration

SEVEN = {
    "AgentInput", "AgentStream", "ToolCall", "ToolCallResult", "AgentOutput", "StopEvent", "WorkflowCancelledEvent",
}  # fmt: skip
BOUND = 800
TOOLS = ("web_search", "fetch_url", "parse_content", "update_report", "finish")
"""Of the agent; it is offered all of them once there are pages, files and notes."""
OUTLINE = ["What it does", "Settings & limits", "Where it fails", "What nobody asked"]
MARKER = re.compile(r"\s*\[(?:ev-\w+|\d+)\]")
BADGE = re.compile(r" \*\([^)]+\)\*")
"""Words about a statement that verification did not support."""
SECRET = "Zyzzyva"
FAULTS: dict[str, tuple[str, str]] = {
    "a whole report": (f"# Report\n\n## What it does\n\n{SECRET} does it {{marker}}.", "a heading of its own"),
    "a heading": (f"## {SECRET}\n\nIt does it {{marker}}.", "a heading of its own"),
    "an open fence": (f"It does it {{marker}}.\n\n```\n{SECRET}", "a code fence is not closed"),
    "raw HTML": (f"It <b onclick='x()'>does {SECRET}</b> it {{marker}}.", "raw HTML"),
    "an address": (f"See [{SECRET}](https://zyzzyva.example/x) about it {{marker}}.", "an address that is no source"),
    "an unknown marker": (f"{SECRET} does it [99].", "a citation that names no passage"),
    "too much": (f"{SECRET} does it again and again and again {{marker}}. " * 20, "characters inserted"),
    "an unknown place": (f"{SECRET} does it {{marker}}.", "none of the section's numbers"),
    "the mark": (f"{SECRET} says {{mark}} {{marker}}.", ""),
    "words": (f"I would rather talk about {SECRET}.", "JSON"),
}
"""Texts of an update by what is wrong with them, and words of the reason for which each is refused."""
BAD_CALLS: dict[str, tuple[str, dict[str, Any], str]] = {
    "an unknown tool": ("send_mail", {"to": "someone"}, "send_mail"),
    "a wrong type": ("web_search", {"query": 7}, "query"),
    "a number that is no number": ("fetch_url", {"page": "the first one"}, "page"),
    "a page that is none": ("fetch_url", {"page": 4_711}, "there is no page 4711"),
    "a file that is none": ("parse_content", {"file_id": "https://zyzzyva.example"}, "is no fetched file"),
    "another heading": ("update_report", {"heading": SECRET, "notes": [1]}, "the outline has no such heading"),
    "a note that is none": ("update_report", {"heading": OUTLINE[0], "notes": [999]}, "there is no note 999"),
    "no notes": ("update_report", {"heading": OUTLINE[0], "notes": []}, "name the numbers of the notes"),
}
"""Calls of the agent that are refused, with words of the reason."""


class Strays:
    """A model whose agent begins with calls that are refused, and whose reporter breaks one rule of updates after another.

    A repair has no fault but for the last one, which is left to rules.
    """

    def __init__(self) -> None:
        self.last = ""
        self.repaired: set[str] = set()
        self.due = list(FAULTS)
        self.has_strayed = False

    def __call__(self, request: ModelRequest) -> model_scenarios.Reply:
        every_tool = request.role == "living_agent" and len(offered(request.body)) == len(TOOLS)
        if every_tool and not self.has_strayed:
            self.has_strayed = True
            calls = [(tool, arguments) for tool, arguments, _ in BAD_CALLS.values()]
            return model_scenarios.message(request, blocks(request.body, *calls), "tool_use")
        notes = str(cited(request.prompt))
        if request.role != "reporter" or notes in self.repaired or not (self.due or notes == self.last):
            return model_scenarios.good(request)
        fault = self.due.pop(0) if self.due else list(FAULTS)[-1]
        text = FAULTS[fault][0]
        if self.due:
            self.repaired.add(notes)
        else:
            self.last = notes
        if fault == "words":
            return model_scenarios.text(request, text)
        text = text.replace("{marker}", cited(request.prompt)[0][1]).replace("{mark}", mark_of(request.system) or "")
        kind, anchor = ("replace", 400) if fault == "an unknown place" else ("append", 0)
        operations = [{"kind": kind, "anchor": anchor, "text": text}]
        return model_scenarios.answered(request, json.dumps({"operations": operations}))


@dataclass
class Seen:
    """One run as a front end saw it."""

    result: ResearchResult
    events: list[AnyAgentEvent]
    log: list[Event]
    report: str
    asked_before_approval: list[str] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        """The text in each answer to `update_report`; the newest forty are there."""
        answers = [json.loads(each.model_dump_json()) for each in self.events if each.type == "ToolCallResult"]
        answers = [each["tool_output"]["raw_output"] for each in answers if each["tool_name"] == "update_report"]
        return [each["new_report_markdown"] for each in answers]


Meddling = Callable[[ResearchHandle], Awaitable[None]]


async def stop_early(handle: ResearchHandle) -> None:
    """Ask for the report once some of it is there."""
    while not any(each.type == "report.updated" and each.data["inserted"] for each in (await handle.events()).events):
        await asyncio.sleep(0.02)
    await handle.stop_and_report()


BOUNDED: dict[str, Any] = {"max_update_characters": BOUND}
FEWER: dict[str, Any] = {"limits": BOUNDED | {"max_sources": 6}}
RUNS: dict[str, tuple[str, dict[str, Any], Meddling | None]] = {
    "whole": ("good", {"limits": BOUNDED}, None),
    "stopped": ("good", FEWER, stop_early),
    "nonsense": ("hopeless", FEWER, None),
    "corrected": ("fabricates", {"verify": "full", "limits": BOUNDED | {"max_sources": 14}}, None),
    "straying": ("strays", {"limits": BOUNDED | {"max_sources": 13}}, None),
}
"""By name: the model, fields of the request, and what a person does once the run works."""
SLOW = ("whole", "stopped", "nonsense", "corrected")
"""Runs of slow proofs: the gate has the ends and the corrections of `living` without a server, in `tests/every_strategy`,
and here the run with the most to refuse.
"""
CASES = [pytest.param(name, marks=pytest.mark.soak if name in SLOW else ()) for name in RUNS]


def names_of(items: list[pytest.Item]) -> list[str]:
    """The runs that the tests of this file will look at."""
    looks = [item for item in items if item.path == Path(__file__)]
    slow = any(item.get_closest_marker("soak") for item in looks)
    return [name for name in RUNS if slow or name not in SLOW]


async def see(client: ResearchClient, world: WebWorld, name: str, approval: asyncio.Barrier) -> Seen:
    """Start a run, give it an outline of our own, approve that once all runs wait, and look at it when it is over."""
    model, fields, meddling = RUNS[name]
    request = {
        "query": QUESTION,
        "strategy": "living",
        "engine": "model",
        "models": dict.fromkeys(("simple", "analytical", "complex"), model),
        "search": {"providers": ["searxng"], "max_results_per_query": 20},
    }
    handle = await client.start(request | fields, f"living-{name}")
    while (await handle.status()).status != "awaiting_approval":
        await asyncio.sleep(0.05)
    queries = [
        QUESTION,
        *RELATED,
        "Which vents of the Velmar kiln are closed?",
        "What do open sources leave to the Velmar kiln?",
    ]
    await handle.revise_plan({"sub_queries": [{"query": query} for query in queries], "outline": OUTLINE}, 1)
    await approval.wait()
    asked = list(world.asked)
    await approval.wait()
    await handle.approve_plan(2)

    if meddling:
        await meddling(handle)
    result = await handle.result()
    events = [event async for event in handle.agent_events()]
    log = [event async for event in handle.follow()]
    return Seen(result, events, log, await handle.document("report.md"), asked)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def runs(
    server: Server, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> AsyncIterator[dict[str, Seen]]:
    """Every run that a test looks at, side by side."""
    chosen = names_of(request.session.items)
    temporal = await Client.connect(server.address, data_converter=DATA_CONVERTER)
    home: Path = tmp_path_factory.mktemp("living")
    approval = asyncio.Barrier(len(chosen))

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(model_scenarios.SCENARIOS, "strays", Strays())
        models = {model: model for model, _, _ in RUNS.values()}
        async with (
            MessagesApi(by_model=models) as api,
            WebWorld(pages(20, hosts=20)) as world,
            web_workers(temporal, home, world, api),
        ):
            client = ResearchClient(temporal)
            seen = await asyncio.gather(*(see(client, world, name, approval) for name in chosen))
    yield dict(zip(chosen, seen, strict=True))


def alike(one: str, other: str) -> int:
    """Characters with which both begin."""
    places = (place for place, (mine, its) in enumerate(zip(one, other, strict=False)) if mine != its)
    return next(places, min(len(one), len(other)))


def changed(before: str, after: str) -> int:
    """Characters inserted and removed, by a comparison that knows nothing of the product."""
    start = alike(before, after)
    end = alike(before[start:][::-1], after[start:][::-1])
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    pieces = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return sum((i2 - i1) + (j2 - j1) for kind, i1, i2, j1, j2 in pieces if kind != "equal")


def headings(text: str) -> list[str]:
    """The headings of the first and second level, as any reader of Markdown finds them."""
    tokens = MarkdownIt("commonmark").parse(text)
    return [
        "".join(part.content for part in inline.children or [])
        for opening, inline in pairwise(tokens)
        if opening.type == "heading_open" and opening.tag in ("h1", "h2")
    ]


def body_of(report: str) -> str:
    """A report without numbers of citations, notices, sources and method."""
    body = re.split(r"\n## (?:Sources|Method and limits)\n", report)[0]
    parts = [part for part in body.strip().split("\n\n") if not part.startswith("> **")]
    return re.sub(r"\s+", " ", BADGE.sub("", MARKER.sub("", "\n\n".join(parts))))


@pytest.mark.parametrize("name", CASES)
def test_a_stranger_finds_one_report_that_grows_within_its_bound(runs: dict[str, Seen], name: str) -> None:
    """Seven types; nothing searched or read before the approval; every text a whole report of the outline, within the
    bound of the one before it; the last one is the report, however the run ended (S2-019, S2-020, S2-029, S2-030).
    """
    seen = runs[name]
    assert {event.type for event in seen.events} <= SEVEN
    assert seen.asked_before_approval == []
    texts = seen.texts
    assert len(texts) >= 2
    for before, after in pairwise(["", *texts]):
        assert changed(before, after) <= BOUND
        assert headings(after)[1:] == OUTLINE
        assert len(re.findall("^```", after, re.MULTILINE)) % 2 == 0
    assert body_of(texts[-1]) == body_of(seen.report)
    assert MARKER.search(texts[-1])
    assert seen.events[-1].type == "StopEvent"


@pytest.mark.soak
def test_a_sensible_run_reads_twenty_pages_and_makes_ten_updates(runs: dict[str, Seen]) -> None:
    """Every page that there is, and each call answered once, after it."""
    seen = runs["whole"]
    assert seen.result.outcome == "completed"
    assert seen.result.counts.sources == 20
    assert len(set(seen.texts)) >= 10
    first = next(place for place, event in enumerate(seen.log) if event.data.get("inserted"))
    turns_before = sum(event.type == "decision.recorded" and "living_agent" in event.text for event in seen.log[:first])
    assert turns_before <= 4  # with an analysis and the writing of the passage these are at most six calls in a row
    calls = [event.tool_id for event in seen.events if event.type == "ToolCall"]
    answers = [event.tool_id for event in seen.events if event.type == "ToolCallResult"]
    assert sorted(calls) == sorted(answers)


@pytest.mark.soak
def test_runs_that_are_cut_short_or_get_nonsense_are_partial(runs: dict[str, Seen]) -> None:
    """Each has a report with passages, and says why it is partial."""
    for name, reason in (("stopped", "user_stopped"), ("nonsense", "")):
        assert runs[name].result.outcome == "partial", name
        assert reason in runs[name].result.stop_reason.value
        assert runs[name].result.counts.passages_cited > 2


@pytest.mark.soak
def test_many_corrections_arrive_as_updates(runs: dict[str, Seen]) -> None:
    """What verification does not support goes, passage by passage (S2-013)."""
    seen = runs["corrected"]
    assert sum(int(each.text.split()[1]) for each in seen.log if each.type == "citation.corrected") >= 20
    assert seen.texts[-1].count(SECRET) < max(text.count(SECRET) for text in seen.texts)


@pytest.mark.parametrize("call", BAD_CALLS)
def test_a_bad_call_is_refused_with_the_reason(runs: dict[str, Seen], call: str) -> None:
    """The agent is told what is wrong, and the run goes on (S2-023, S2-045)."""
    tool, _, reason = BAD_CALLS[call]
    answers = [event.tool_output for event in runs["straying"].events if event.type == "ToolCallResult"]
    assert [each for each in answers if each.is_error and each.tool_name == tool and reason in each.content]


def test_an_update_that_breaks_a_rule_is_refused_with_the_reason(runs: dict[str, Seen]) -> None:
    """The text stays as it is, rules put the notes in, and the run goes on to its end."""
    seen = runs["straying"]
    told = " ".join(event.text for event in seen.log if event.text.startswith("reporter: "))
    assert {fault: reason for fault, (_, reason) in FAULTS.items() if reason not in told} == {}
    assert all(SECRET.lower() not in text.lower() for text in [*seen.texts, seen.report])
    assert seen.result.outcome == "partial"
    assert len(seen.texts) >= 10


@pytest.mark.soak
async def test_a_resumed_run_repeats_no_event(server: Server, tmp_path: Path) -> None:
    """Notes that rules wrote at a forced end are not written once more by the turn that the end cut short (S0-131)."""
    temporal = await Client.connect(server.address, data_converter=DATA_CONVERTER)
    request: dict[str, Any] = {
        "query": QUESTION,
        "strategy": "living",
        "engine": "model",
        "gates": {"approve": "none"},
        "search": {"providers": ["searxng"]},
    }
    async with (
        MessagesApi(latency=0.5) as api,
        WebWorld(pages(12, hosts=12)) as world,
        web_workers(temporal, tmp_path, world, api),
    ):
        client = ResearchClient(temporal)
        handle = await client.start(request, "living-resumed")
        while api.counts()["reporter"] < 4:  # the second wave of updates is being written
            await asyncio.sleep(0.02)
        await handle.stop_and_report()
        await handle.result()
        resumed = await client.start(request | {"continue_from": handle.research_id}, handle.research_id, reuse=True)
        await resumed.result()
        report = body_of(await resumed.document("report.md"))
    sentences = [each.strip("> ") for each in re.split(r"[.\n]+", report) if each.strip("> ")]
    assert sorted(set(sentences)) == sorted(sentences)
