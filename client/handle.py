"""The typed handle on a run: start it, query it, send it messages, get its result."""

import asyncio
import hashlib
import json
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final, TypeVar, cast

from temporalio import client as sdk
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.errordetails.v1 import QueryFailedFailure
from temporalio.api.failure.v1 import Failure
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client, RPCError, RPCStatusCode, WorkflowFailureError, WorkflowHandle
from temporalio.common import Priority, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import DataConverter
from temporalio.exceptions import ActivityError, ApplicationError, FailureError, WorkflowAlreadyStartedError

from client import client_errors as errors
from client.agent_events import AnyAgentEvent, ToolCallResult, Translation, UpdateReportResult
from client.run_calls import Call, read_run
from client.run_results import result_of_failure, with_stored
from contracts import failures, names
from contracts.evidence import ReportDraft, Source
from contracts.messages import DocumentPiece, PrepareRequest, refresh_schedule
from contracts.outcome import AgentDecision, AgentProgress, Awaited, Event, EventPage, ResearchResult, ResearchStatus
from contracts.plan import PlanAnswer
from contracts.request import MAX_QUERY_CHARACTERS, ResearchRequest, run_memo
from contracts.resolved import ResolvedResearch
from contracts.state import ResearchState
from contracts.texts import as_markdown, shorten
from contracts.vocabulary import AgentStatus, NodeKind, NodeStatus, Outcome, StopReason

ANSWER_SECONDS: Final = 10.0
"""Timeout for a worker's answer to a query or an update."""
READY_SECONDS: Final = 8.0
"""How long a message is sent again to a run that is getting ready."""
QUERY_PAUSE_SECONDS: Final = 0.3
RPC_TIMEOUT: Final = timedelta(seconds=10)
"""Timeout for the server alone."""
PREVIEW_TIMEOUT: Final = timedelta(seconds=30)
"""Timeout for the preview of a run, which may load a stored session."""
CLOSING_SECONDS: Final = 15.0
"""Time in which a cancelled run saves its state and closes."""
AGENT_ANSWER: Final = timedelta(seconds=2)
"""Timeout for the status of an agent, after which the status in its run is used."""
TEXT_PAUSES: Final = (0.5, 1.0, 2.0, 4.0, *(8.0,) * 30)
"""Seconds between requests for a text that a run's record does not list yet; the record of a finished run is final."""
LAST_ATTEMPTS: Final = 3
"""Unanswered requests for the events of a run that is over."""
POLLER_SECONDS: Final = 75.0
"""A long poll lasts at most a minute."""
SAME_MESSAGE_SECONDS: Final = 600
"""Window in which equal updates are one message, so that they can be sent again after a timeout."""
TASK_TIMEOUT: Final = timedelta(seconds=4)
"""A workflow task takes milliseconds; after this timeout, a dead worker's task goes to another worker."""
NONDETERMINISM: Final = "[TMPRL1100]"
"""Code of the server SDK in the failure of a run whose history does not fit the code of the worker."""
DEFAULT_TENANT: Final[str] = ResearchRequest.model_fields["tenant"].default

SHOWN_CONSTRAINTS: Final = ("audience", "region", "timeframe")
"""Constraints among the arguments of `decompose_query`."""
UNREADABLE: Final = (ValueError, KeyError)
"""SDK errors for a payload of another form or encoding."""
MAY_STILL_ARRIVE: Final = "\na worker may still receive it; sent again within ten minutes it counts once"

Answer = TypeVar("Answer")
StoredResult = Callable[[str], Awaitable[ResearchResult | None]]


class ResearchClient:
    """Starts runs and makes handles on them.

    `stored_result` reads a result from the session store for a run without one on the server, because it was cancelled
    or ended from outside.
    """

    def __init__(self, client: Client, *, stored_result: StoredResult | None = None) -> None:
        self.temporal = client
        self._stored_result = stored_result

    @classmethod
    async def connect(
        cls,
        address: str,
        namespace: str = "default",
        *,
        stored_result: StoredResult | None = None,
        data_converter: DataConverter = pydantic_data_converter,
    ) -> "ResearchClient":
        """Connect with nothing but an address. Raises `ServerUnreachable`.

        Runs whose payloads are encrypted need the `data_converter` with the keys: `durable_research.data_converter()`.
        """
        try:
            client = await Client.connect(address, namespace=namespace, data_converter=data_converter)
        except (RuntimeError, ValueError, RPCError) as error:
            raise errors.ServerUnreachable(
                f"no server answers at {address}: start one with `research serve`"
            ) from error
        return cls(client, stored_result=stored_result)

    def handle(self, research_id: str) -> "ResearchHandle":
        """Return a handle on a run that was started earlier."""
        return ResearchHandle(self.temporal, research_id, stored_result=self._stored_result)

    async def start(
        self, request: ResearchRequest | Mapping[str, Any], research_id: str, *, reuse: bool = False
    ) -> "ResearchHandle":
        """Start a run, or attach (`handle.attached`) to the open run with this id.

        Raises `RunClosed` for the id of an ended run without `reuse`, pydantic's ValidationError for a bad request,
        `ServerUnreachable`.
        """
        if isinstance(request, ResearchRequest):
            validated = request
        else:
            validated = ResearchRequest.model_validate(dict(request))
        if reuse:
            policy = WorkflowIDReusePolicy.ALLOW_DUPLICATE
        else:
            policy = WorkflowIDReusePolicy.REJECT_DUPLICATE
        handle = self.handle(research_id)
        fairness = validated.tenant[: names.FAIRNESS_KEY_CHARACTERS]
        try:
            with _server_errors(research_id):
                await self.temporal.start_workflow(
                    names.DEEP_RESEARCH,
                    validated.model_dump(mode="json", exclude_unset=True),
                    id=research_id,
                    task_queue=names.WORKFLOWS_QUEUE,
                    id_reuse_policy=policy,
                    id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                    task_timeout=TASK_TIMEOUT,
                    static_summary=as_markdown(validated.query, 180, 200),  # shown in the web UI, at most 200 bytes
                    memo=run_memo(validated),
                    priority=Priority(priority_key=validated.priority, fairness_key=fairness),
                )
        except WorkflowAlreadyStartedError as error:
            if not await handle.is_running():
                raise errors.RunClosed(f"a run {research_id} exists and has ended: choose another id") from error
            handle.attached = True
        return handle

    async def resume(self, request: ResearchRequest, research_id: str) -> "ResearchHandle":
        """Start a run again from its stored session."""
        payload = request.model_dump(mode="json", exclude_unset=True) | {"continue_from": research_id}
        return await self.start(payload, research_id, reuse=True)

    async def schedule_refresh(self, request: ResearchRequest, research_id: str, every: timedelta) -> None:
        """Schedule periodic refreshes of a run on the server, replacing an earlier schedule.

        A refresh due while another is running is skipped. Raises `ServerUnreachable`.
        """
        # Schedule intervals count from 1970; the offset puts the first refresh one interval from now.
        offset = timedelta(seconds=int(time.time()) % int(every.total_seconds()))
        schedule = sdk.Schedule(
            action=sdk.ScheduleActionStartWorkflow(
                names.RESEARCH_REFRESH,
                request.model_dump(mode="json", exclude_unset=True),
                id=refresh_schedule(research_id),
                task_queue=names.WORKFLOWS_QUEUE,
                task_timeout=TASK_TIMEOUT,
            ),
            spec=sdk.ScheduleSpec(intervals=[sdk.ScheduleIntervalSpec(every=every, offset=offset)]),
            policy=sdk.SchedulePolicy(overlap=sdk.ScheduleOverlapPolicy.SKIP, catchup_window=timedelta(minutes=10)),
        )
        await self.unschedule_refresh(research_id)
        with _server_errors(research_id):
            await self.temporal.create_schedule(refresh_schedule(research_id), schedule)

    async def unschedule_refresh(self, research_id: str) -> bool:
        """Remove the refresh schedule of a run; true if there was one. Raises `ServerUnreachable`."""
        try:
            with _server_errors(research_id):
                await self.temporal.get_schedule_handle(refresh_schedule(research_id)).delete()
        except errors.RunUnknown:
            return False
        return True

    async def preview(self, request: ResearchRequest, research_id: str) -> ResolvedResearch:
        """Have the workers resolve a request without starting a run.

        Raises `PreviewRefused` if a run would be refused, `NoWorker` if no worker answers in time.
        """
        argument = PrepareRequest(research_id=research_id, request_json=request.model_dump_json(exclude_unset=True))
        preview = self.temporal.execute_workflow(
            names.RESEARCH_PREVIEW,
            argument,
            id=f"{research_id}-preview-{uuid.uuid4().hex[:12]}",
            task_queue=names.WORKFLOWS_QUEUE,
            result_type=ResolvedResearch,
            execution_timeout=PREVIEW_TIMEOUT,
        )
        try:
            with _server_errors(research_id):
                return cast("ResolvedResearch", await preview)
        except WorkflowFailureError as error:
            cause = error.cause.cause if isinstance(error.cause, ActivityError) else error.cause
            if isinstance(cause, ApplicationError) and cause.type == failures.REFUSED:
                raise errors.PreviewRefused(cause.message, str(cause.details[0]["stop_reason"])) from error
            if isinstance(cause, ApplicationError) and cause.type == failures.INVALID_REQUEST:
                raise errors.PreviewRefused(cause.message, StopReason.INVALID_INPUT.value) from error
            raise errors.NoWorker("no worker says what the run would use: see `research doctor`") from error

    async def polled_by(self, queue: str, *, activities: bool = False) -> list[str]:
        """List the identities of workers polling a task queue; those silent for `POLLER_SECONDS` are gone."""
        if activities:
            kind = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
        else:
            kind = TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
        answer = await self.temporal.workflow_service.describe_task_queue(
            DescribeTaskQueueRequest(
                namespace=self.temporal.namespace, task_queue=TaskQueue(name=queue), task_queue_type=kind
            ),
            timeout=timedelta(seconds=5),
        )
        cutoff = time.time() - POLLER_SECONDS
        return sorted({poller.identity for poller in answer.pollers if poller.last_access_time.seconds >= cutoff})


class ResearchHandle:
    """One run. Queries work on open and closed runs, as long as the server has their history."""

    def __init__(self, client: Client, research_id: str, *, stored_result: StoredResult | None = None) -> None:
        self.research_id = research_id
        self.attached = False
        """True if `start` found the run already open."""
        self._client = client
        self._stored_result = stored_result
        self._run: WorkflowHandle[Any, Any] = client.get_workflow_handle(research_id)

    async def status(self) -> ResearchStatus:
        """Query the state of the run, with the latest state of its agents."""
        status = await self._query(names.STATUS, ResearchStatus)
        agents = await asyncio.gather(*(self._with_newest(agent) for agent in status.agents))
        awaiting = await self._with_retries(status) if status.awaiting else []
        return status.with_newest(agents, awaiting)

    async def _with_retries(self, status: ResearchStatus) -> list[Awaited]:
        """Add attempt and last failure to each call that Temporal is retrying, if the server answers."""
        try:
            run = await self._run.describe(rpc_timeout=AGENT_ANSWER)
        except RPCError:  # the status is useful without them
            return status.awaiting
        retried = {call.activity_id: call for call in run.raw_description.pending_activities if call.attempt > 1}
        calls = []
        for call in status.awaiting:
            failing = retried.get(call.id)
            if failing is None:
                calls.append(call)
            else:
                message = " ".join((await self._failure_text(failing.last_failure)).split())
                calls.append(call.with_fields(attempt=failing.attempt, last_failure=shorten(message, 160)))
        return calls

    async def _failure_text(self, failure: Failure) -> str:
        """Return the message of a failure, which may be encrypted, and that of its cause."""
        error: BaseException | None = await self._client.data_converter.decode_failure(failure)
        messages = []
        while isinstance(error, FailureError):
            messages.append(error.message)
            error = error.cause
        return ": ".join(messages)

    async def _query_failure(self, error: sdk.WorkflowQueryFailedError) -> str:
        """Return the message of a failed query, which may be encrypted in the details of the server's answer."""
        answer = error.__context__
        if not isinstance(answer, RPCError):
            return error.message
        for detail in answer.grpc_status.details:
            found = QueryFailedFailure()
            if detail.Unpack(found) and found.HasField("failure"):
                return await self._failure_text(found.failure)
        return error.message

    async def _with_newest(self, agent: AgentProgress) -> AgentProgress:
        """Add the state of a running agent and of its own agents, if it answers."""
        if agent.status is not AgentStatus.RUNNING:
            return agent
        status = await self._query_agent(agent, names.STATUS, ResearchStatus)
        if status is None:
            return agent
        agents = await asyncio.gather(*(self._with_newest(child) for child in status.agents))
        return agent.with_fields(phase=status.phase or "", counts=status.counts, usage=status.usage, agents=agents)

    async def _query_agent(
        self, agent: AgentProgress, query: str, answer: type[Answer], *arguments: object
    ) -> Answer | None:
        """Query an agent; None if it does not answer."""
        child = self._client.get_workflow_handle(agent.workflow_id)
        try:
            result: Answer = await child.query(query, args=arguments, result_type=answer, rpc_timeout=AGENT_ANSWER)
        except (RPCError, sdk.WorkflowQueryFailedError):
            return None
        return result

    async def events(self, after: int = 0) -> EventPage:
        """Query at most 200 events after the cursor `after`, and the next cursor."""
        return await self._query(names.EVENTS, EventPage, after)

    async def events_of(self, agent: AgentProgress, after: int = 0) -> EventPage:
        """Query the events of an agent, as `events` does for the run; empty if it does not answer."""
        return await self._query_agent(agent, names.EVENTS, EventPage, after) or EventPage(next=after)

    async def follow(self, after: int = 0, *, pause_seconds: float = 1.0) -> AsyncIterator[Event]:
        """Yield the events after a cursor until the run is over; a run has its last 400. Raises as `events` does."""
        while True:
            running = await self.is_running()
            while (page := await self.events(after)).events:
                for event in page.events:
                    yield event
                after = page.next
            if not running:
                return
            await asyncio.sleep(pause_seconds)

    async def agent_events(
        self, *, tenant: str = DEFAULT_TENANT, pause_seconds: float = 1.0
    ) -> AsyncIterator[AnyAgentEvent]:
        """Yield the seven agent events of a run (`client.agent_events`) from beginning to end, as they come.

        A log that lost its beginning starts with the question, the plan in force and the newest text. Fetches reports
        by their hashes. Waits for a worker; if a run is over and its workers ended with it, its latest entries may be
        missing before the end. Raises the other errors of `events`.
        """
        first = await self._patiently(self.events)
        plan = await self._patiently(self.plan)
        constraints = plan.constraints.model_dump(include=set(SHOWN_CONSTRAINTS))
        translation = Translation(await self.question() or "", constraints)
        cursor = 0
        is_over = False
        opening = translation.begin()
        if first.events and first.events[0].seq > 1:
            opening += translation.catch_up(plan, await self._newest_text(tenant))
        for agent_event in opening:
            yield await self._with_text(agent_event, tenant)
        while not is_over:
            is_over = not await self.is_running()
            while (page := await self._next_page(cursor)).events:
                for event in page.events:
                    for agent_event in translation.read(event):
                        yield await self._with_text(agent_event, tenant)
                cursor = page.next
            for agent_event in translation.flush():
                yield agent_event
            if not is_over:
                await asyncio.sleep(pause_seconds)
        for agent_event in translation.end(await self.result()):
            yield await self._with_text(agent_event, tenant)

    async def _next_page(self, cursor: int) -> EventPage:
        """Return the next events; none if the run is over and no worker is left to answer for it."""
        left = LAST_ATTEMPTS
        while left:
            try:
                return await self.events(cursor)
            except errors.NoWorker:
                left -= not await self.is_running()
                await asyncio.sleep(1.0)
        return EventPage(next=cursor)

    async def _patiently(self, query: Callable[[], Awaitable[Answer]]) -> Answer:
        """Make a query, again until a worker answers."""
        while True:
            try:
                return await query()
            except errors.NoWorker:
                await asyncio.sleep(1.0)

    async def _newest_text(self, tenant: str) -> str:
        """Return the text of the report so far; empty if there is none."""
        try:
            return await self.document("draft.md", tenant=tenant)
        except errors.DocumentMissing:
            return ""

    async def _with_text(self, event: AnyAgentEvent, tenant: str) -> AnyAgentEvent:
        """Add the report's text to the answer to an update; the run's record lists a text shortly after the event."""
        if not isinstance(event, ToolCallResult) or not isinstance(event.tool_output.raw_output, UpdateReportResult):
            return event
        update = event.tool_output.raw_output
        text = None
        pauses = TEXT_PAUSES if update.report else ()
        for seconds in pauses:
            running = await self.is_running()  # checked first: a run saves its record before it is over
            try:
                text = await self.document(update.report, tenant=tenant)
                break
            except errors.DocumentMissing:
                if not running:
                    break
                await asyncio.sleep(seconds)
        update = update.with_fields(new_report_markdown=text)
        output = event.tool_output.with_fields(raw_output=update)
        return event.with_fields(tool_output=output)

    async def document(self, name: str, *, tenant: str = DEFAULT_TENANT) -> str:
        """Read a stored document of the run through the server, without access to the stores.

        `name` is `report.md`, `report.html`, `report.json`, `session.json`, `draft.md`, a source id, or the hash of a
        text of a live report. Raises `DocumentMissing`, `ServerUnreachable`. Waits for a worker.
        """
        text = ""
        offset = 0
        while True:
            request = {"research_id": self.research_id, "name": name, "offset": offset, "tenant": tenant}
            try:
                with _server_errors(self.research_id):
                    piece: DocumentPiece = await self._client.execute_workflow(
                        names.RESEARCH_DOCUMENT,
                        request,
                        id=f"{self.research_id}-document-{uuid.uuid4().hex[:12]}",
                        task_queue=names.WORKFLOWS_QUEUE,
                        result_type=DocumentPiece,
                    )
            except WorkflowFailureError as error:
                cause = error.cause.cause if isinstance(error.cause, ActivityError) else error.cause
                raise errors.DocumentMissing(f"{name} of {self.research_id}: {cause or error}") from error
            text += piece.text
            if piece.next_offset is None:
                return text
            offset = piece.next_offset

    async def report(self) -> ResearchResult | ReportDraft | None:
        """Query the result or the newest draft; None before the first draft."""
        result_type: Any = ResearchResult | ReportDraft | None
        return cast("ResearchResult | ReportDraft | None", await self._query(names.REPORT, result_type))

    async def decisions(self) -> list[AgentDecision]:
        """Query the decision log."""
        return await self._query(names.DECISIONS, list[AgentDecision])

    async def sources(self) -> list[Source]:
        """Query every source in the workflow's state; the document `session.json` has the full details."""
        return await self._query(names.SOURCES, list[Source])

    async def session(self) -> ResearchState:
        """Query the workflow's state; the document `session.json` has the full details."""
        return await self._query(names.SESSION, ResearchState)

    async def calls(self) -> list[Call]:
        """Return the calls of the run and its agents since it was last started or resumed. Raises as `status` does."""
        with _server_errors(self.research_id):
            return await read_run(self._client, self.research_id)

    async def steer(self, text: str) -> str:
        """Send guidance; return the run's reaction. Raises `MessageRefused`, `RunClosed`, `NoWorker`."""
        return await self._update(names.STEER, text)

    async def stop_and_report(self) -> str:
        """Have the run write its report from the findings so far. Raises `MessageRefused`, `RunClosed`, `NoWorker`."""
        return await self._update(names.STOP_AND_REPORT)

    async def plan(self) -> PlanAnswer:
        """Query the plan, its approved version, and the open question to a person.

        The plans of running agents appear below the nodes of their tasks, at all levels.
        """
        answer = await self._query(names.PLAN, PlanAnswer)
        if not any(node.kind is NodeKind.TASK and node.status is NodeStatus.EXECUTING for node in answer.nodes):
            return answer
        agents = [agent for top in (await self.status()).agents for _, agent in top.walk()]
        for agent in agents:
            if agent.status is AgentStatus.RUNNING:
                agent_plan = await self._query_agent(agent, names.PLAN, PlanAnswer)
                if agent_plan is not None:
                    answer = answer.with_agent(agent.id, agent_plan.nodes)
        return answer

    async def answer(self, answers: Sequence[str], question_round: int | None = None) -> str:
        """Answer the open questions of a round, in order. Raises the errors of every message."""
        arguments: list[Any] = [list(answers)]
        if question_round is not None:
            arguments.append(question_round)
        return await self._update(names.ANSWER_CLARIFICATION, *arguments)

    async def reply(self, text: str) -> str:
        """Answer the open question, or describe a change to the plan."""
        return await self._update(names.REPLY, text)

    async def revise_plan(self, revision: str | Mapping[str, Any], version: int | None = None) -> str:
        """Send guidance to the planner, or `{"brief": …, "sub_queries": […]}` for the plan of this `version`."""
        argument = revision if isinstance(revision, str) else dict(revision)
        if version is None:
            return await self._update(names.REVISE_PLAN, argument)
        return await self._update(names.REVISE_PLAN, argument, version)

    async def approve_plan(self, version: int, phrase: str | None = None, *, overrule: bool = False) -> str:
        """Approve the newest plan and start the research; `overrule` overrides objections to its queries."""
        if overrule:
            arguments = [phrase, True]
        elif phrase is None:
            arguments = []
        else:
            arguments = [phrase]
        return await self._update(names.APPROVE_PLAN, version, *arguments)

    async def reject_plan(self, reason: str = "") -> str:
        """End the run without any work; its plan is stored."""
        return await self._update(names.REJECT_PLAN, reason)

    async def cancel(self) -> None:
        """Cancel the run, which saves its state; no effect if it is over."""
        await self._end(self._run.cancel(rpc_timeout=RPC_TIMEOUT))

    async def terminate(self) -> None:
        """End the run at once, without workers; its last checkpoint stays. No effect if it is over."""
        await self._end(self._run.terminate(reason="ended by hand", rpc_timeout=RPC_TIMEOUT))

    async def _end(self, ending: Awaitable[None]) -> None:
        try:
            await ending
        except RPCError as error:
            if "already completed" not in error.message:
                raise _rpc_failure(error, self.research_id) from error

    async def is_running(self) -> bool:
        """Return whether the server has an open run with this id. Raises `RunUnknown`, `RunForeign`."""
        with _server_errors(self.research_id):
            run = await self._run.describe(rpc_timeout=RPC_TIMEOUT)
        if run.workflow_type != names.DEEP_RESEARCH:
            raise _foreign_run(self.research_id)
        return run.status is sdk.WorkflowExecutionStatus.RUNNING

    async def question(self) -> str | None:
        """Read the question from the server, without a worker; None if the request cannot be read.

        Raises `RunUnknown`, `ServerUnreachable`.
        """
        try:
            with _server_errors(self.research_id):
                start = await anext(aiter(self._run.fetch_history_events(page_size=1)), None)
            if start is None:
                return None
            payloads = start.workflow_execution_started_event_attributes.input.payloads
            (request,) = await self._client.data_converter.decode(payloads, [dict])
        except UNREADABLE:
            return None
        question = request.get("query") if isinstance(request, dict) else None
        is_question = isinstance(question, str) and len(question) <= MAX_QUERY_CHARACTERS
        return question if is_question else None

    async def result(self) -> ResearchResult:
        """Wait for the run to end, and return a `ResearchResult` for every outcome (see `run_results`).

        Raises `RunUnknown`, `RunForeign`, `ServerUnreachable`.
        """
        try:
            with _server_errors(self.research_id):
                return ResearchResult.model_validate(await self._run.result())
        except WorkflowFailureError as error:
            result = result_of_failure(self.research_id, error.cause)
        except UNREADABLE as error:  # also pydantic's ValidationError
            raise _foreign_run(self.research_id) from error
        if result.report or result.outcome is Outcome.REFUSED or self._stored_result is None:
            return result
        return with_stored(result, await self._stored_result(self.research_id))

    async def _query(self, query: str, answer: type[Answer], *arguments: object) -> Answer:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                while True:
                    try:
                        result: Answer = await self._run.query(query, args=arguments, result_type=answer)
                    except sdk.WorkflowQueryFailedError as error:
                        if error.message != failures.EVENTS_AFTER_TASK:
                            raise
                        await asyncio.sleep(QUERY_PAUSE_SECONDS)
                    else:
                        return result
        except TimeoutError as error:
            raise await self._no_answer() from error
        except sdk.WorkflowQueryFailedError as error:
            if NONDETERMINISM in error.message:
                raise errors.RunOfOtherVersion(self.research_id) from error
            reason = await self._query_failure(error)
            raise errors.MessageRefused(f"the run could not answer `{query}`: {reason}") from error
        except UNREADABLE as error:
            raise _foreign_run(self.research_id) from error
        except RPCError as error:
            if _no_poller(error):
                raise await self._no_answer() from error
            raise _rpc_failure(error, self.research_id) from error

    async def _send_update(self, update: str, arguments: Sequence[object]) -> object:
        """Send an update, again while the run is getting ready: it refuses messages while it begins a new history."""
        end = time.monotonic() + READY_SECONDS
        while True:
            try:
                return await self._run.execute_update(update, args=arguments, id=message_id(update, arguments))
            except sdk.WorkflowUpdateFailedError as error:
                not_ready = isinstance(error.cause, ApplicationError) and error.cause.type == failures.NOT_READY
                if not not_ready or time.monotonic() > end:
                    raise
            await asyncio.sleep(QUERY_PAUSE_SECONDS)

    async def _update(self, update: str, *arguments: object) -> str:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                answer = await self._send_update(update, arguments)
        except (TimeoutError, sdk.WorkflowUpdateRPCTimeoutOrCancelledError) as error:
            # The SDK also turns a cancellation of the caller into its own error.
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise asyncio.CancelledError from error
            raise await self._no_answer(MAY_STILL_ARRIVE) from error
        except UnicodeEncodeError:
            raise errors.MessageRefused("the text is not valid UTF-8: write it in that encoding") from None
        except sdk.WorkflowUpdateFailedError as error:
            if isinstance(error.cause, ApplicationError):
                reason = error.cause.message
            else:
                reason = str(error.cause or error)
            raise errors.MessageRefused(reason) from error
        except RPCError as error:
            if "already completed" in error.message:
                raise errors.RunClosed(
                    f"the run {self.research_id} has already finished: see `research status {self.research_id}`"
                ) from error
            if _no_poller(error):
                raise await self._no_answer(MAY_STILL_ARRIVE) from error
            raise _rpc_failure(error, self.research_id) from error
        return answer if isinstance(answer, str) else ""

    async def _no_answer(self, consequence: str = "") -> errors.NoWorker | errors.ServerUnreachable:
        try:
            pollers = await ResearchClient(self._client).polled_by(names.WORKFLOWS_QUEUE)
        except RPCError:
            return errors.ServerUnreachable(
                f"the server stopped answering: start it with `research serve`{consequence}"
            )
        if pollers:
            problem = (
                f"the run {self.research_id} did not answer within {ANSWER_SECONDS:.0f} s: see `research doctor`, or"
            )
        else:
            problem = f"no worker is polling {names.WORKFLOWS_QUEUE}:"
        remedy = "start a worker with `research serve` (this machine) or `research worker` (a cluster)"
        return errors.NoWorker(f"{problem} {remedy}{consequence}")


def message_id(update: str, arguments: Sequence[object], *, clock: Callable[[], float] = time.time) -> str:
    """Make the id of an update, which a run accepts once: equal updates in the same ten minutes are one message.

    Raises `UnicodeEncodeError` for a text that is not Unicode.
    """
    message = json.dumps([update, list(arguments), int(clock() // SAME_MESSAGE_SECONDS)], ensure_ascii=False)
    return f"{update}-{hashlib.sha256(message.encode()).hexdigest()[:24]}"


def _foreign_run(research_id: str) -> errors.RunForeign:
    return errors.RunForeign(f"{research_id} is a workflow of another program: choose another id, see `research list`")


def _no_poller(error: RPCError) -> bool:
    return error.status in (RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.FAILED_PRECONDITION, RPCStatusCode.CANCELLED)


@contextmanager
def _server_errors(research_id: str) -> Iterator[None]:
    """Translate errors of the server into `RunUnknown` or `ServerUnreachable`."""
    try:
        yield
    except RPCError as error:
        raise _rpc_failure(error, research_id) from error


def _rpc_failure(error: RPCError, research_id: str) -> errors.RunUnknown | errors.ServerUnreachable:
    if error.status is RPCStatusCode.NOT_FOUND:
        return errors.RunUnknown(f"the server knows no run {research_id}: see `research list`")
    status = error.status.name.lower()
    return errors.ServerUnreachable(f"the server answers with an error ({status}): see `research doctor`")
