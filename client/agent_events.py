"""Seven agent events: the log of a run, translated for front ends that were written for tool-calling agents.

`AgentInput`, `AgentStream`, `ToolCall`, `ToolCallResult`, `AgentOutput`, `StopEvent` and `WorkflowCancelledEvent`, and
no other: a translation of the log (`ResearchHandle.agent_events`).
"""

import json
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

from contracts.addresses import digest
from contracts.base import Contract
from contracts.outcome import PERSON, Event, ResearchResult
from contracts.plan import PlanAnswer
from contracts.vocabulary import FAILURES, Outcome, RunStatus

UPDATE_REPORT: Final = "update_report"
DECOMPOSE_QUERY: Final = "decompose_query"
PLANNER: Final = "planner"
"""Agent of the plan and of the questions about it."""
TURN_EVENTS: Final = ("agent.said", "tool.called")
"""Log events that together make up one turn of an agent."""
UNANSWERED: Final = "this call was not answered"


# --- the seven events ------------------------------------------------------------------------------------------------
class AgentEvent(Contract):
    """One of the seven; `type` is its name."""

    seq: int = 0
    """Number of the log entry that it translates; 0 for the first and the last event."""
    time: str = ""


class ChatMessage(Contract):
    """A message with its author."""

    role: Literal["user", "assistant"]
    content: str


class AgentInput(AgentEvent):
    """Input from a person: the question, guidance or an approval."""

    type: Literal["AgentInput"] = "AgentInput"
    input: list[ChatMessage]
    current_agent_name: str
    plan: "DecomposeQueryResult | None" = None
    """The plan as the person edited it; None for any other input."""


class AgentStream(AgentEvent):
    """Text of an agent, complete, once per turn that has any."""

    type: Literal["AgentStream"] = "AgentStream"
    delta: str
    response: str
    current_agent_name: str


class ToolSelection(Contract):
    """A call with its arguments."""

    tool_id: str
    tool_name: str
    tool_kwargs: dict[str, Any] = {}


class AgentOutput(AgentEvent):
    """End of a turn: its text and its calls; or a question to a person, with the commands that answer it."""

    type: Literal["AgentOutput"] = "AgentOutput"
    response: ChatMessage
    tool_calls: list[ToolSelection] = []
    current_agent_name: str


class ToolCallEvent(AgentEvent, ToolSelection):
    """A tool call that is being made."""

    type: Literal["ToolCall"] = "ToolCall"


class TextResult(Contract):
    """Result of a tool, as shown to the agent."""

    text: str


class DecomposeQueryResult(Contract):
    """The plan awaiting a person's approval, or the plan that the run follows."""

    version: int
    clarifying_questions: list[str] = []
    expanded_queries: list[str] = []
    outline: list[str] = []
    assumptions: list[str] = []


class FoundPage(Contract):
    """A page that a search found."""

    page: int
    """Its number in the conversation."""
    url: str
    title: str = ""
    snippet: str = ""


class WebSearchResult(Contract):
    """The pages that a search shows to the agent, best first; none that an earlier search has shown."""

    pages: list[FoundPage] = []
    reason: str = ""
    """The answer as text, or the reason for a failure."""


class FetchUrlResult(Contract):
    """A fetched page; all but `url` and `reason` are empty if it could not be fetched."""

    url: str = ""
    title: str = ""
    file_id: str = ""
    content_type: str = ""
    characters: int = 0
    """Length of its text."""
    reason: str = ""
    """The answer as text, or the reason for a failure."""


class ParseContentResult(Contract):
    """The notes on a file: the numbered notes that a reader made of it, each with its passage in the record."""

    url: str = ""
    title: str = ""
    authors: list[str] = []
    notes: dict[int, str] = {}
    """Number in the conversation → statement."""
    reason: str = ""
    """The answer as text, or the reason for a failure."""


class UpdateReportResult(Contract):
    """The report after an update; unchanged if the update was refused."""

    new_report_markdown: str | None = None
    """None if there is no text yet or it is no longer stored."""
    report: str = ""
    """Hash of that text, under which `research-document` serves it."""
    heading: str = ""
    inserted: int = 0
    removed: int = 0
    """Characters."""
    reason: str = ""
    """Description of the update: the change made, or the reason for the refusal."""


class ToolOutput(Contract):
    """Result of a call, as text and typed: a model for each tool of the agent, a text for any other tool."""

    tool_name: str
    content: str
    is_error: bool = False
    raw_output: (
        UpdateReportResult | DecomposeQueryResult | WebSearchResult | FetchUrlResult | ParseContentResult | TextResult
    )


class ToolCallResult(AgentEvent, ToolSelection):
    """Answer to a call."""

    type: Literal["ToolCallResult"] = "ToolCallResult"
    tool_output: ToolOutput
    return_direct: bool = False


class SessionStatus(StrEnum):
    """State of a run in the vocabulary of the seven events."""

    PLANNING = "planning"
    AWAITING_APPROVAL = "awaiting_approval"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class StopEvent(AgentEvent):
    """End of a run that was not cancelled, with its result."""

    type: Literal["StopEvent"] = "StopEvent"
    status: SessionStatus
    result: ResearchResult
    is_error: bool = False
    message: str = ""
    """Reason of a failure."""


class WorkflowCancelledEvent(AgentEvent):
    """End of a run that a person cancelled; its state is stored."""

    type: Literal["WorkflowCancelledEvent"] = "WorkflowCancelledEvent"
    status: Literal[SessionStatus.CANCELLED] = SessionStatus.CANCELLED
    research_id: str
    resumable: bool = True
    message: str = ""


AnyAgentEvent: TypeAlias = (
    AgentInput | AgentStream | ToolCallEvent | ToolCallResult | AgentOutput | StopEvent | WorkflowCancelledEvent
)


RESULTS: Final[Mapping[str, type[WebSearchResult | FetchUrlResult | ParseContentResult]]] = {
    "web_search": WebSearchResult, "fetch_url": FetchUrlResult, "parse_content": ParseContentResult
}  # fmt: skip


# --- statuses --------------------------------------------------------------------------------------------------------
STATUSES: Final = {
    SessionStatus.AWAITING_APPROVAL: (RunStatus.AWAITING_CLARIFICATION, RunStatus.AWAITING_APPROVAL),
    SessionStatus.RUNNING: (RunStatus.RUNNING,),
    SessionStatus.COMPLETED: (RunStatus.COMPLETED, RunStatus.PARTIAL, RunStatus.EMPTY),
    SessionStatus.FAILED: (RunStatus.FAILED, RunStatus.REFUSED, RunStatus.TIMED_OUT),
    SessionStatus.CANCELLED: (RunStatus.CANCELLED,),
    SessionStatus.PLANNING: (RunStatus.CREATED, RunStatus.QUEUED, RunStatus.RUNNING),
}
"""Run statuses behind each session status; a running run counts as planning until it has a plan."""


def session_status(status: RunStatus, *, planned: bool = True) -> SessionStatus:
    """Return the status of a session; `planned` is false while a running run has no plan yet."""
    if status is RunStatus.RUNNING and not planned:
        return SessionStatus.PLANNING
    return next(session for session, statuses in STATUSES.items() if status in statuses)


# --- the translation -------------------------------------------------------------------------------------------------
class Translation:
    """Translates the log of one run, entry by entry; report texts are referenced by hash, for the caller to fetch."""

    def __init__(self, question: str, constraints: Mapping[str, Any] = MappingProxyType({})) -> None:
        """`constraints` are audience, region and timeframe of the request, as arguments of `decompose_query`."""
        self._question = question
        self._constraints = {name: value for name, value in constraints.items() if value}
        self._turn: AgentOutput | None = None
        """Turn whose entries are being read."""
        self._step = ""
        """Name of that turn in the log."""
        self._open_calls: dict[str, ToolSelection] = {}
        """Unanswered calls, by id."""
        self._report = ""
        """Hash of the newest text."""
        self._error = ""

    def begin(self) -> list[AnyAgentEvent]:
        """Return the opening event: the question."""
        return [AgentInput(input=[ChatMessage(role="user", content=self._question)], current_agent_name=PLANNER)]

    def catch_up(self, plan: PlanAnswer, text: str) -> list[AnyAgentEvent]:
        """Return what a log that lost its beginning no longer shows: the plan in force, its approval, the newest text.

        `text` is empty if there is none yet.
        """
        events = list[AnyAgentEvent]()
        if plan.version:
            content = DecomposeQueryResult(
                version=plan.version,
                clarifying_questions=plan.questions,
                expanded_queries=[node.text for node in plan.sub_queries],
                outline=plan.outline,
                assumptions=plan.assumptions,
            )
            events += self._planned(content, f"plan version {plan.version}", {})
        if plan.approved_version:
            events.append(_input(f"plan version {plan.approved_version} is approved", {}))
        if text:
            self._report = digest(text)
            call = ToolSelection(tool_id=f"{UPDATE_REPORT}-0", tool_name=UPDATE_REPORT)
            events += [
                ToolCallEvent(**call.model_dump()),
                self._result(call, "the report so far", {}, {}, is_error=False),
            ]
        return events

    def read(self, event: Event) -> list[AnyAgentEvent]:
        """Translate the next entry of the log."""
        if event.type in TURN_EVENTS:
            return self._read_turn(event)
        pending = self.flush()
        data = event.data
        stamp = _stamp(event)
        match event.type:
            case "tool.returned":
                return [*pending, self._answer(event)]
            case "report.updated" if data.get("report"):
                return [*pending, *self._update(event)]
            case "plan.drafted" | "plan.revised" if "outline" in data:
                return [*pending, *self._plan(event)]
            case "guidance.given" if data.get("origin") == PERSON:
                return [*pending, _input(event.text.removeprefix(f"{PERSON}: "), stamp)]
            case "plan.approved" | "plan.rejected":
                return [*pending, _input(event.text, stamp)]
            case "wait.started":
                return [*pending, AgentOutput(response=_message(event.text), current_agent_name=PLANNER, **stamp)]
            case "status" if data.get("level") == "error" or "ends" in data:
                self._error = event.text
                return [*pending, *self._close(event.text, stamp)]
        return pending

    def flush(self) -> list[AnyAgentEvent]:
        """Return the pending turn and its calls; the log never contains part of a turn."""
        turn = self._turn
        self._turn = None
        if turn is None:
            return []
        self._open_calls |= {call.tool_id: call for call in turn.tool_calls}
        return [turn, *(ToolCallEvent(**call.model_dump(), seq=turn.seq, time=turn.time) for call in turn.tool_calls)]

    def end(self, result: ResearchResult) -> list[AnyAgentEvent]:
        """Return the end of the run."""
        pending = [*self.flush(), *self._close(UNANSWERED, {"time": result.ended_at})]
        if result.outcome is Outcome.CANCELLED:
            name = result.research_id
            message = f"the state is kept: `research resume {result.research_id}` continues"
            return [*pending, WorkflowCancelledEvent(research_id=name, message=message, time=result.ended_at)]
        failed = result.outcome in FAILURES
        message = ""
        if failed:
            message = self._error or "; ".join(result.limitations) or result.stop_reason.text
        status = session_status(RunStatus(result.outcome.value))
        stop = StopEvent(status=status, result=result, is_error=failed, message=message, time=result.ended_at)
        return [*pending, stop]

    def _read_turn(self, event: Event) -> list[AnyAgentEvent]:
        data = event.data
        stamp = _stamp(event)
        agent = str(event.data.get("role", ""))
        pending = []
        if data.get("step") != self._step:
            pending = [*self.flush(), *self._close(UNANSWERED, stamp)]
        self._step = str(data.get("step"))
        turn = self._turn or AgentOutput(response=_message(""), current_agent_name=agent)
        if event.type == "tool.called":
            self._turn = turn.with_fields(tool_calls=[*turn.tool_calls, _selection(data)], **stamp)
            return pending
        text = str(data.get("text") or event.text)
        self._turn = turn.with_fields(response=_message(text), **stamp)
        return [*pending, AgentStream(delta=text, response=text, current_agent_name=agent, **stamp)]

    def _answer(self, event: Event) -> AnyAgentEvent:
        """Translate the answer to a call; the call itself may be missing from a log that lost its beginning."""
        data = event.data
        stamp = _stamp(event)
        call = self._open_calls.pop(str(data.get("call_id", "")), None) or _selection(data)
        text = str(data.get("result") or event.text)
        return self._result(call, text, data, stamp, is_error=bool(data.get("is_error")))

    def _result(
        self, call: ToolSelection, text: str, data: dict[str, Any], stamp: dict[str, Any], *, is_error: bool
    ) -> AnyAgentEvent:
        raw_output: UpdateReportResult | WebSearchResult | FetchUrlResult | ParseContentResult | TextResult
        if (kind := RESULTS.get(call.tool_name)) is not None:
            fields = {name: data[name] for name in kind.model_fields if name in data}
            raw_output = kind.model_validate(fields | {"reason": text})
        elif call.tool_name != UPDATE_REPORT:
            raw_output = TextResult(text=text)
        else:
            self._report = str(data.get("report") or self._report)
            changed = {name: data[name] for name in ("heading", "inserted", "removed") if name in data}
            raw_output = UpdateReportResult(report=self._report, reason=text, **changed)
        output = ToolOutput(tool_name=call.tool_name, content=text, is_error=is_error, raw_output=raw_output)
        return ToolCallResult(**call.model_dump(), **stamp, tool_output=output)

    def _update(self, event: Event) -> list[AnyAgentEvent]:
        """Translate a new report text; a text written by a pending call comes with the answer to that call."""
        self._report = str(event.data["report"])
        if event.data.get("call_id") in self._open_calls:
            return []
        stamp = _stamp(event)
        heading = event.data.get("heading")
        kwargs = {"heading": heading} if heading else {}
        call = ToolSelection(tool_id=f"{UPDATE_REPORT}-{event.seq}", tool_name=UPDATE_REPORT, tool_kwargs=kwargs)
        result = self._result(call, event.text, event.data, stamp, is_error=False)
        return [ToolCallEvent(**call.model_dump(), **stamp), result]

    def _plan(self, event: Event) -> list[AnyAgentEvent]:
        """Translate a version of the plan: a call of the planner, or input of the person who edited it."""
        plan = DecomposeQueryResult.model_validate(event.data)
        if event.type == "plan.revised":
            return [_input(event.text, _stamp(event)).with_fields(plan=plan)]
        return self._planned(plan, event.text, _stamp(event))

    def _planned(self, plan: DecomposeQueryResult, text: str, stamp: dict[str, Any]) -> list[AnyAgentEvent]:
        kwargs: dict[str, Any] = {"initial_query": self._question}
        if self._constraints:
            kwargs["constraints"] = self._constraints
        name = f"{DECOMPOSE_QUERY}-{plan.version}"
        call = ToolCallEvent(tool_id=name, tool_name=DECOMPOSE_QUERY, tool_kwargs=kwargs, **stamp)
        output = ToolOutput(tool_name=DECOMPOSE_QUERY, content=text, raw_output=plan)
        return [call, ToolCallResult(**call.model_dump(exclude={"type"}), tool_output=output)]

    def _close(self, text: str, stamp: dict[str, Any]) -> list[AnyAgentEvent]:
        """Answer every open call with an error."""
        calls = self._open_calls
        self._open_calls = {}
        return [self._result(call, text, {}, stamp, is_error=True) for call in calls.values()]


def _stamp(event: Event) -> dict[str, Any]:
    return {"seq": event.seq, "time": event.time}


def _message(text: str) -> ChatMessage:
    return ChatMessage(role="assistant", content=text)


def _input(text: str, stamp: dict[str, Any]) -> AgentInput:
    return AgentInput(input=[ChatMessage(role="user", content=text)], current_agent_name=PLANNER, **stamp)


def _selection(data: dict[str, Any]) -> ToolSelection:
    """Return a call from the log; arguments truncated there are not valid JSON and come as text."""
    text = str(data.get("arguments") or "{}")
    try:
        arguments = json.loads(text)
    except ValueError:
        arguments = text
    kwargs = arguments if isinstance(arguments, dict) else {"arguments": arguments}
    return ToolSelection(tool_id=str(data.get("call_id", "")), tool_name=str(data.get("tool", "")), tool_kwargs=kwargs)
