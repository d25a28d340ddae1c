"""The seven events: a golden log, the ends of a run, statuses both ways, and what is left of a long log."""

import asyncio
import json
from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client import handle as handles
from client.agent_events import (
    STATUSES,
    TURN_EVENTS,
    AgentInput,
    AnyAgentEvent,
    ParseContentResult,
    SessionStatus,
    StopEvent,
    ToolCallEvent,
    ToolCallResult,
    Translation,
    UpdateReportResult,
    WorkflowCancelledEvent,
    session_status,
)
from client.client_errors import DocumentMissing, NoWorker
from client.handle import ResearchHandle
from contracts.addresses import digest
from contracts.outcome import Event, EventPage, ResearchResult
from contracts.plan import PlanAnswer, PlanNode
from contracts.request import Constraints
from contracts.vocabulary import FAILURES, Outcome, RunStatus, StopReason
from tests.fakes import states
from workflows.run.context import MAX_EVENTS, add_event, page_after

SEVEN = {
    "AgentInput",
    "AgentStream",
    "ToolCall",
    "ToolCallResult",
    "AgentOutput",
    "StopEvent",
    "WorkflowCancelledEvent",
}
QUESTION = "How does the engine prevent wraparound?"
TEXTS = {digest(text): text for text in ("# R\n\n## A\n", "# R\n\n## A\n\none\n", "# R\n\n## A\n\none two\n")}
OUTLINE, ONE, TWO = TEXTS
PLAN = {
    "clarifying_questions": ["Which version?"],
    "expanded_queries": ["freezing"],
    "outline": ["A"],
    "assumptions": ["version 16"],
}


def called(turn: int, call: str, tool: str, arguments: object = None) -> tuple[str, str, dict[str, Any]]:
    shown = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    place = {"role": "living_agent", "step": f"agent-turn-{turn}", "turn": turn}
    return "tool.called", tool, place | {"tool": tool, "call_id": call, "arguments": shown}


def returned(turn: int, call: str, tool: str, text: str, *, error: bool = False, **more: Any) -> tuple[str, str, Any]:
    place = {"role": "living_agent", "step": f"agent-turn-{turn}", "turn": turn, "tool": tool, "call_id": call}
    return "tool.returned", text, place | {"is_error": error, "result": text, **more}


LOG: list[tuple[str, str, dict[str, Any]]] = [
    ("phase.started", "plan", {"phase": "plan"}),
    ("plan.drafted", "1 sub-query", {"count": 1, "version": 1, **PLAN}),
    ("wait.started", "waiting for approval: research approve r-1 --version 1", {"kind": "approval"}),
    ("guidance.given", "person: version 16", {"origin": "person"}),
    ("plan.drafted", "1 sub-query", {"count": 1, "version": 2, **PLAN, "clarifying_questions": []}),
    ("plan.approved", "plan version 2 is approved", {"version": 2}),
    ("report.updated", "9 characters", {"report": OUTLINE, "inserted": 9, "removed": 0}),
    ("guidance.given", "rules: go on", {"origin": "rules"}),
    ("agent.said", "I search.", {"role": "living_agent", "step": "agent-turn-1", "text": "I search."}),
    called(1, "c1", "web_search", {"query": "freezing"}),
    called(1, "c2", "fetch_url", '{"page": 1, "cut'),
    ("source.added", "read: A", {"source_id": "src-1"}),
    ("status", "2 found: freezing", {"found": 2}),
    returned(1, "c1", "web_search", "1. A page"),
    returned(1, "c2", "fetch_url", "page 1 is too large", error=True),
    called(2, "c3", "update_report", {"heading": "A", "notes": [1]}),
    called(2, "c4", "update_report", {"heading": "B", "notes": [1]}),
    ("report.updated", "14 characters", {"report": ONE, "inserted": 5, "removed": 0, "call_id": "c3"}),
    returned(2, "c3", "update_report", "5 characters inserted", report=ONE, heading="A", inserted=5, removed=0),
    returned(2, "c4", "update_report", "there is no heading B", error=True),
    ("report.updated", "18 characters", {"report": TWO, "heading": "A", "inserted": 4, "removed": 0}),
    ("run.finished", "completed: no gap was left open", {"outcome": "completed"}),
]
GOLDEN = [
    f"AgentInput 0 planner | {QUESTION}",
    "ToolCall 2 decompose_query-1",
    "ToolCallResult 2 decompose_query-1 | 1 sub-query",
    "AgentOutput 3 planner | waiting for approval: research approve r-1 --version 1 | ",
    "AgentInput 4 planner | version 16",
    "ToolCall 5 decompose_query-2",
    "ToolCallResult 5 decompose_query-2 | 1 sub-query",
    "AgentInput 6 planner | plan version 2 is approved",
    "ToolCall 7 update_report-7",
    f"ToolCallResult 7 update_report-7 | 9 characters | {OUTLINE}",
    "AgentStream 9 living_agent | I search.",
    "AgentOutput 11 living_agent | I search. | web_search, fetch_url",
    "ToolCall 11 c1",
    "ToolCall 11 c2",
    "ToolCallResult 14 c1 | 1. A page",
    "ToolCallResult 15 c2 | page 1 is too large | error",
    "AgentOutput 17 living_agent |  | update_report, update_report",
    "ToolCall 17 c3",
    "ToolCall 17 c4",
    f"ToolCallResult 19 c3 | 5 characters inserted | {ONE}",
    f"ToolCallResult 20 c4 | there is no heading B | error | {ONE}",
    "ToolCall 21 update_report-21",
    f"ToolCallResult 21 update_report-21 | 18 characters | {TWO}",
    "StopEvent 0 completed | completed",
]


def line_of(event: AnyAgentEvent) -> str:
    """The content of an event in one line; of the text of a report its hash."""
    given = json.loads(event.model_dump_json())
    head = f"{given['type']} {given['seq']}"
    match given["type"]:
        case "AgentInput":
            return f"{head} {given['current_agent_name']} | {given['input'][0]['content']}"
        case "AgentStream":
            return f"{head} {given['current_agent_name']} | {given['response']}"
        case "AgentOutput":
            calls = ", ".join(call["tool_name"] for call in given["tool_calls"])
            return f"{head} {given['current_agent_name']} | {given['response']['content']} | {calls}"
        case "ToolCall":
            return f"{head} {given['tool_id']}"
        case "ToolCallResult":
            output = given["tool_output"]
            error = " | error" * output["is_error"]
            text = output["raw_output"].get("new_report_markdown")
            return f"{head} {given['tool_id']} | {output['content']}{error}" + (f" | {digest(text)}" if text else "")
        case "StopEvent":
            return f"{head} {given['status']} | {given['result']['outcome']}"
    return head


def logged(*entries: tuple[str, str, dict[str, Any]]) -> list[Event]:
    return [
        Event(seq=seq, type=kind, time=f"2026-11-21T12:00:{seq:02}", text=text, data=data)
        for seq, (kind, text, data) in enumerate(entries, start=1)
    ]


def ended(outcome: Outcome = Outcome.COMPLETED, **fields: Any) -> ResearchResult:
    reason = StopReason.NO_OPEN_GAPS if outcome is Outcome.COMPLETED else StopReason.INTERNAL_ERROR
    return ResearchResult(research_id="r-1", outcome=outcome, stop_reason=reason, **fields)


def step_of(event: Event) -> object:
    return event.data["step"] if event.type in TURN_EVENTS else event.seq


class Run(ResearchHandle):
    """A handle on a run whose log grows by some entries with each look; texts are served once the record has them."""

    def __init__(
        self, log: list[Event], *, by_look: int, result: ResearchResult, late: int = 0, silent: int = 0
    ) -> None:
        super().__init__(Mock(), "r-1")
        self.log, self.by_look, self._end = log, by_look, result
        self.visible, self.late, self.silent = 0, late, silent
        self.tenants: set[str] = set()
        self.answered_plan = PlanAnswer()

    async def question(self) -> str:
        return QUESTION

    async def is_running(self) -> bool:
        self.visible = min(len(self.log), self.visible + self.by_look)
        # The entries of a turn are made at one moment: nobody sees half of them.
        while self.visible < len(self.log) and step_of(self.log[self.visible - 1]) == step_of(self.log[self.visible]):
            self.visible += 1
        return self.visible < len(self.log)

    async def plan(self) -> PlanAnswer:
        return self.answered_plan

    async def events(self, after: int = 0) -> EventPage:
        if self.silent:
            self.silent -= 1
            raise NoWorker("no worker answers")
        page = [event for event in self.log[: self.visible] if event.seq > after][:3]
        return EventPage(events=page, next=page[-1].seq if page else after)

    async def document(self, name: str, *, tenant: str = "default") -> str:
        self.tenants.add(tenant)
        if self.late:
            self.late -= 1
            raise DocumentMissing("not yet")
        return TEXTS[name] if name != "draft.md" else TEXTS[ONE]

    async def result(self) -> ResearchResult:
        return self._end


async def lines_of(run: Run) -> list[str]:
    return [line_of(event) async for event in run.agent_events(pause_seconds=0, tenant="acme")]


# --- the log ---------------------------------------------------------------------------------------------------------
async def test_a_log_is_translated_into_seven_events() -> None:
    """Each entry in order, once, with the text of each update (S2-019 to S2-022, S2-031, S2-046, S2-052)."""
    run = Run(logged(*LOG), by_look=100, result=ended())
    assert await lines_of(run) == GOLDEN
    assert {line.split()[0] for line in GOLDEN} == SEVEN - {"WorkflowCancelledEvent"}
    assert run.tenants == {"acme"}


@given(st.integers(1, 25))
async def test_a_watcher_sees_the_same_whenever_it_comes(by_look: int) -> None:
    """From the beginning or at the end: a turn is one moment of the log, and answers have texts of their own (C2-11)."""
    assert await lines_of(Run(logged(*LOG), by_look=by_look, result=ended())) == GOLDEN


async def test_texts_and_workers_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The record names a text a moment after the log; one that is gone for good is none, and ends nothing."""
    monkeypatch.setattr(handles, "TEXT_PAUSES", (0, 0))
    monkeypatch.setattr(handles.asyncio, "sleep", AsyncMock())
    run = Run(logged(*LOG), by_look=8, result=ended(), late=1, silent=2)
    assert await lines_of(run) == GOLDEN
    assert (run.late, run.silent) == (0, 0)
    gone = await lines_of(Run(logged(*LOG), by_look=100, result=ended(), late=10**6))
    assert [line.rpartition(" | sha256:")[0] or line for line in GOLDEN] == gone


async def test_a_stream_ends_with_its_run_though_the_workers_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that brings its own workers takes them with it: open calls are closed, and the last event comes."""
    monkeypatch.setattr(handles.asyncio, "sleep", AsyncMock())
    run = Run(logged(*LOG), by_look=8, result=ended())
    lines = []
    async with asyncio.timeout(60):
        async for event in run.agent_events(pause_seconds=0):
            lines.append(line_of(event))
            if len(lines) == 4:  # from here on nobody answers
                run.visible, run.silent = len(run.log), 10**9
    assert lines[:4] == GOLDEN[:4]
    assert lines[-1].startswith("StopEvent")
    assert lines.count(lines[-1]) == 1


async def test_a_log_that_lost_its_beginning_starts_with_the_plan_and_the_newest_text() -> None:
    """So does that of a long run, and what a refused update leaves unchanged is there with it (S2-022, S2-031)."""
    run = Run(logged(*LOG)[16:20], by_look=100, result=ended())
    run.visible = len(run.log)
    run.answered_plan = PlanAnswer(
        version=2,
        approved_version=2,
        outline=["A"],
        sub_queries=[PlanNode(id="q-1", text="freezing")],
        constraints=Constraints(region="Europe", timeframe="year"),
    )
    events = [event async for event in run.agent_events(pause_seconds=0)]
    assert [line_of(event) for event in events][:6] == [
        f"AgentInput 0 planner | {QUESTION}",
        "ToolCall 0 decompose_query-2",
        "ToolCallResult 0 decompose_query-2 | plan version 2",
        "AgentInput 0 planner | plan version 2 is approved",
        "ToolCall 0 update_report-0",
        f"ToolCallResult 0 update_report-0 | the report so far | {ONE}",
    ]
    called_plan = events[1]
    assert isinstance(called_plan, ToolCallEvent)
    assert called_plan.tool_kwargs["constraints"] == {"region": "Europe", "timeframe": "year"}
    refused = next(event for event in events if isinstance(event, ToolCallResult) and event.tool_output.is_error)
    assert isinstance(refused.tool_output.raw_output, UpdateReportResult)
    assert refused.tool_output.raw_output.new_report_markdown == TEXTS[ONE]


def test_an_edited_plan_is_input_of_the_person_who_edited_it() -> None:
    """No planner was called for it; the input has the plan (S2-024)."""
    edited = ("plan.revised", "plan version 3: 1 sub-queries", {"version": 3, **PLAN})
    (_, event, *_) = translated([edited], ended())
    assert isinstance(event, AgentInput)
    assert event.plan is not None
    assert (event.plan.version, event.plan.outline) == (3, ["A"])


def test_the_tools_of_the_agent_have_typed_results() -> None:
    """Address, title and snippet of what a search found, the file of a page, the notes of a file (S2-025, S2-026)."""
    pages = [{"page": 1, "url": "https://a.example/x", "title": "A", "snippet": "about freezing"}]
    fetched = {"url": "https://a.example/x", "title": "A", "file_id": "0a1b", "content_type": "text/html"}
    events = translated(
        [
            called(1, "c1", "web_search", {"query": "freezing"}),
            called(1, "c2", "fetch_url", {"page": 1}),
            called(1, "c3", "parse_content", {"file_id": "0a1b"}),
            returned(1, "c1", "web_search", "1. A", pages=pages),
            returned(1, "c2", "fetch_url", "Page 1: file 0a1b", characters=2198, **fetched),
            returned(1, "c3", "parse_content", "note 1: It freezes.", notes={1: "It freezes."}),
        ],
        ended(),
    )
    results = {one.tool_id: one.tool_output.raw_output for one in events if isinstance(one, ToolCallResult)}
    assert results["c1"].model_dump() == {"pages": pages, "reason": "1. A"}
    assert results["c2"].model_dump() == fetched | {"characters": 2198, "reason": "Page 1: file 0a1b"}
    notes = results["c3"]
    assert isinstance(notes, ParseContentResult)
    assert notes.notes == {1: "It freezes."}


# --- typed payloads --------------------------------------------------------------------------------------------------
def translated(entries: list[tuple[str, str, dict[str, Any]]], result: ResearchResult) -> list[AnyAgentEvent]:
    translation = Translation(QUESTION)
    found = [event for entry in logged(*entries) for event in translation.read(entry)]
    return [*translation.begin(), *found, *translation.flush(), *translation.end(result)]


def test_payloads_are_plain_and_typed() -> None:
    """Each tool has a schema for its answers; arguments that the log has cut come as text (S2-021, S2-046)."""
    events = translated(LOG, ended())
    results = {event.tool_id: event for event in events if isinstance(event, ToolCallResult)}
    plan = results["decompose_query-1"].tool_output.raw_output.model_dump()
    assert plan == {"version": 1, **PLAN}
    update = results["c3"].tool_output.raw_output
    assert isinstance(update, UpdateReportResult)
    assert (update.report, update.heading, update.inserted, update.removed) == (ONE, "A", 5, 0)
    assert results["c1"].tool_output.raw_output.model_dump() == {"pages": [], "reason": "1. A page"}
    assert (results["c1"].tool_kwargs, results["c2"].tool_kwargs) == (
        {"query": "freezing"},
        {"arguments": '{"page": 1, "cut'},
    )
    for event in events:
        assert type(event).model_validate_json(event.model_dump_json()) == event


SEARCH, UPDATE = (called(1, "c1", tool) for tool in ("web_search", "update_report"))
MADE = ("report.updated", "9 characters", {"report": OUTLINE, "call_id": "c1"})
LATE = [("report.updated", "14 characters", {"report": ONE}), ("report.updated", "18 characters", {"report": TWO})]
CUT = ("status", "ending early: stopped", {"level": "warning", "ends": "user_stopped"})
SLOW, LOST = (("status", text, {"level": level}) for text, level in (("slow", "warning"), ("lost", "error")))
OPEN = "this call was not answered"


@pytest.mark.parametrize(
    ("entries", "reason", "texts"),
    [
        ([SEARCH, SLOW, called(1, "c2", "update_report")], OPEN, [OUTLINE]),
        ([SEARCH, SLOW, LOST], "lost", []),
        ([UPDATE, MADE, CUT, *LATE], "ending early: stopped", [OUTLINE, ONE, TWO]),
        (
            [UPDATE, MADE, called(2, "c2", "finish"), returned(2, "c2", "finish", "done"), *LATE],
            OPEN,
            [OUTLINE, ONE, TWO],
        ),
    ],
)
def test_every_call_has_one_answer_after_it(entries: list[Any], reason: str, texts: list[str]) -> None:
    """An open, failed or cut call is answered by an error; later texts are updates (S2-022, S2-031, S2-041, C2-3)."""
    events = translated([*LOG[:8], *entries], ended(Outcome.CANCELLED))
    answers = [event for event in events if isinstance(event, ToolCallResult)][3:]
    order = [event.tool_id for event in events if isinstance(event, ToolCallEvent)][3:]
    assert sorted(event.tool_id for event in answers) == sorted(order)
    assert {event.tool_output.content for event in answers if event.tool_output.is_error} == {reason}
    assert (answers[0].tool_id, answers[0].tool_output.is_error) == ("c1", True)
    updates = [event.tool_output.raw_output for event in answers if event.tool_name == "update_report"]
    assert [cast("UpdateReportResult", update).report for update in updates] == texts
    assert events[-1].type == "WorkflowCancelledEvent"


# --- ends ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("outcome", Outcome)
def test_a_run_ends_with_its_result(outcome: Outcome) -> None:
    """Whole, with the reason of a failure, or the command that continues it (S2-041, S2-052, C2-3, C2-4)."""
    failed = outcome in FAILURES
    error = [("status", "the store is full", {"level": "error"})] if failed else []
    result = ended(outcome, report="# R")
    *_, stop = translated([*error, ("run.finished", outcome.value, {"outcome": outcome.value})], result)
    if outcome is Outcome.CANCELLED:
        assert isinstance(stop, WorkflowCancelledEvent)
        assert (stop.research_id, stop.resumable, stop.status) == ("r-1", True, "cancelled")
        assert "research resume r-1" in stop.message
        return
    assert isinstance(stop, StopEvent)
    assert stop.result == result
    assert (stop.is_error, stop.message) == (failed, "the store is full" if failed else "")


# --- statuses and the log --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("planned", [True, False])
@pytest.mark.parametrize("status", RunStatus)
def test_statuses_are_mapped_both_ways(status: RunStatus, planned: bool) -> None:
    """Each status of a run has one of the six, `cancelled` among them, which stands for it in turn (S2-008, C2-4)."""
    mapped = session_status(status, planned=planned)
    assert status in STATUSES[mapped]
    assert set(STATUSES) == set(SessionStatus) == set(map(session_status, RunStatus)) | {SessionStatus.PLANNING}
    expected = {RunStatus.CANCELLED: "cancelled", RunStatus.AWAITING_APPROVAL: "awaiting_approval"}
    assert mapped == expected.get(status, mapped)
    if status is RunStatus.RUNNING:
        assert mapped == ("running" if planned else "planning")


def test_the_log_only_grows_and_the_state_has_its_newest_part() -> None:
    """Entries are numbered without a gap; the ring is bounded, and a cursor continues behind what it read (C2-11)."""
    state, seen = states.state(), list[Event]()
    for number in range(1, MAX_EVENTS + 60):
        add_event(state, "status", "", f"entry {number}", {})
        if number % 50 == 0:
            seen += page_after(state, len(seen)).events
    assert [(event.seq, event.text) for event in seen] == [(n, f"entry {n}") for n in range(1, len(seen) + 1)]
    assert len(seen) > MAX_EVENTS == len(state.people.events) < state.people.event_count == state.people.events[-1].seq
