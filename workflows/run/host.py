"""The only seam between orchestration and Temporal: clock, calls and waiting. Tests use an in-process host."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError
from temporalio import workflow
from temporalio.common import Priority, RawValue
from temporalio.exceptions import ActivityError, ApplicationError, WorkflowAlreadyStartedError

from contracts import failures, names
from contracts.activities import ActivitySpec
from contracts.agents import AgentRequest, TaskResult
from contracts.base import CompactModel
from contracts.defects import Defect, describe_error
from contracts.names import FAIRNESS_KEY_CHARACTERS
from contracts.notices import NoticeRequest
from contracts.outcome import Awaited
from contracts.parse_request import error_lines
from contracts.strategies import declaration
from contracts.tenants import MAX_PROOF_BYTES, TENANT_HEADER
from workflows.run.calls import CallOptions, is_cancelled, reason_of, show_summary
from workflows.run.inbox import CallNotAllowed

M = TypeVar("M", bound=BaseModel)
S = TypeVar("S")
T = TypeVar("T")
A = TypeVar("A", bound=CompactModel)

JSON_ENCODING: Final = b"json/plain"
NULL_ENCODING: Final = b"binary/null"
MAX_ARGUMENT_BYTES: Final = 2_000_000
"""Size of a workflow's argument, by default what the server accepts: an agent's request has the ledger of its run."""
FIRST_PRIORITY: Final = 1
"""The server's highest priority, for calls that end a run."""


async def abandon(host: "Host", tasks: list["asyncio.Task[Any]"]) -> None:
    """Cancel tasks and wait for them to end; their errors are dropped."""
    for task in tasks:
        task.cancel()
    await host.settle(tasks)
    for task in tasks:
        if not task.cancelled():
            task.exception()


async def run_parallel(
    host: "Host", calls: Sequence[Callable[[], Awaitable[T]]], at_once: int
) -> list["asyncio.Task[T]"]:
    """Make calls with limited concurrency; return the ended tasks in order. Cancelling it cancels the calls."""
    turns = asyncio.Semaphore(at_once)

    async def make(call: Callable[[], Awaitable[T]]) -> T:
        async with turns:
            return await call()

    tasks = [asyncio.ensure_future(make(call)) for call in calls]
    try:
        await host.settle(tasks)
    except asyncio.CancelledError:
        await abandon(host, tasks)
        raise
    return tasks


def ended_calls(
    subjects: Iterable[S], calls: Iterable["asyncio.Task[T]"]
) -> Iterator[tuple[S, "asyncio.Task[T]", str | None]]:
    """Yield each subject with its ended call, and the reason if the call failed; None if it was answered.

    Paid answers count even if other calls were interrupted, so an interruption is raised only after the last one.
    """
    interruption: BaseException | None = None
    for subject, call in zip(subjects, calls, strict=True):
        error = call.exception()
        if error is None:
            yield subject, call, None
        elif isinstance(error, CallNotAllowed):
            yield subject, call, str(error)
        elif isinstance(error, ActivityError) and not is_cancelled(error):
            yield subject, call, reason_of(error)
        else:
            interruption = interruption or error
    if interruption is not None:
        raise interruption


async def all_answers(host: "Host", calls: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """Make all calls at once and return their answers in order; raise the first error once all calls have ended."""
    tasks = await run_parallel(host, calls, len(calls))
    for error in [task.exception() for task in tasks]:
        if error is not None:
            raise error
    return [task.result() for task in tasks]


async def all_or_first_error(host: "Host", calls: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """Make all calls at once and return their answers in order; the first error cancels the others and is raised."""
    tasks = [asyncio.ensure_future(call()) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    except (asyncio.CancelledError, Exception):
        await abandon(host, tasks)
        raise


async def beside(host: "Host", call: Callable[[], Awaitable[T]], other: Callable[[], Awaitable[None]]) -> T:
    """Make a call, and another one beside it; return the answer to the first once both have ended.

    The first error cancels the other and is raised.
    """
    tasks = asyncio.ensure_future(call()), asyncio.ensure_future(other())
    try:
        answer, _ = await asyncio.gather(*tasks)
    except (asyncio.CancelledError, Exception):
        await abandon(host, list(tasks))
        raise
    return answer


@contextmanager
def afterwards(step: Callable[[], None]) -> Iterator[None]:
    """Run a step after the block, however it ends, unless the workflow is evicted from the worker's cache."""
    try:
        yield
    except GeneratorExit:
        raise  # an evicted workflow must issue no more commands
    except BaseException:
        step()
        raise
    step()


class Host:
    """The engine from a run's perspective: the workflow that the run executes in."""

    def __init__(
        self, priority: int | None = None, tenant: str = "", changed: Callable[[], None] = lambda: None
    ) -> None:
        """The run itself sets its tenant's fairness key on calls, because not every client that starts runs does.

        `changed` is called when a call starts and when it ends.
        """
        fairness = tenant[:FAIRNESS_KEY_CHARACTERS]
        self._priority = Priority(priority_key=priority, fairness_key=fairness)
        self._first = Priority(priority_key=FIRST_PRIORITY, fairness_key=fairness)
        self._used: dict[str, int] = {}
        self._awaiting: dict[str, Awaited] = {}
        self._changed = changed

    def awaiting(self) -> list[Awaited]:
        """Return the calls in flight, oldest first."""
        return list(self._awaiting.values())

    def now(self) -> datetime:
        """Return the workflow's time, which is the same on replay."""
        return workflow.now()

    async def execute(self, spec: ActivitySpec[A, T], argument: A, options: CallOptions) -> T:
        """Run an activity. Raises `temporalio.exceptions.ActivityError`."""
        result: T = await self._start(spec.name, [argument], spec.result, options)
        return result

    async def execute_hook(self, activity: str, arguments: list[Any], options: CallOptions) -> Any:
        """Run an operator's think-pause hook. Raises `ActivityError`, and ValueError if the answer is not JSON."""
        return decode_json(await self._start(activity, arguments, RawValue, options))

    async def run_agent(self, request: AgentRequest, workflow_id: str) -> TaskResult:
        """Have an agent do its task. If cancelled, still return the agent's partial result.

        Raises `temporalio.exceptions.ChildWorkflowError` if the agent has no result.
        """
        with self._awaited(workflow_id, f"{request.task.id}: {request.task.text}"):
            result: TaskResult = await workflow.execute_child_workflow(
                names.RESEARCH_AGENT,
                request,
                id=workflow_id,
                result_type=TaskResult,
                task_queue=names.WORKFLOWS_QUEUE,
                cancellation_type=workflow.ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
                # An agent saves no report of its own, so its findings are useless once its run has ended.
                parent_close_policy=workflow.ParentClosePolicy.TERMINATE,
                static_summary=show_summary(f"{request.task.id}: {request.task.text}"),
                # A dead worker is detected as fast as for the run itself.
                task_timeout=workflow.info().task_timeout,
                priority=self._priority,
            )
            return result

    async def start_notice(self, request: NoticeRequest) -> None:
        """Start the delivery of a notice, a workflow that outlives this one; wait for its start alone."""
        with suppress(WorkflowAlreadyStartedError):  # after a reset of the run
            await workflow.start_child_workflow(
                names.RESEARCH_NOTICE,
                request,
                id=f"{request.research_id}/{request.notice_id}",
                task_queue=names.WORKFLOWS_QUEUE,
                parent_close_policy=workflow.ParentClosePolicy.ABANDON,
                cancellation_type=workflow.ChildWorkflowCancellationType.ABANDON,
                static_summary=f"notice: {request.status.value}",
                task_timeout=workflow.info().task_timeout,
                priority=self._priority,
            )

    async def wait_until(self, predicate: Callable[[], bool]) -> None:
        """Wait until the predicate is true."""
        await workflow.wait_condition(predicate)

    async def sleep(self, seconds: float, summary: str = "") -> None:
        """Sleep on a durable timer; the summary names it in the web UI."""
        await workflow.sleep(timedelta(seconds=seconds), summary=summary or None)

    async def settle(self, tasks: list["asyncio.Task[Any]"]) -> None:
        """Wait until all tasks are done, with a result or an error."""
        if tasks:
            await workflow.wait(tasks)

    async def _start(self, activity: str, arguments: list[Any], result_type: type, options: CallOptions) -> Any:
        # A cancelled activity may still use the operation's id, so a later one gets a number.
        count = self._used[options.activity_id] = self._used.get(options.activity_id, 0) + 1
        name = options.activity_id if count == 1 else f"{options.activity_id}#{count}"
        with self._awaited(name, options.summary):
            return await workflow.execute_activity(
                activity,
                args=arguments,
                result_type=result_type,
                task_queue=options.task_queue,
                activity_id=name,
                start_to_close_timeout=options.start_to_close,
                schedule_to_close_timeout=options.schedule_to_close,
                heartbeat_timeout=options.heartbeat,
                retry_policy=options.retry,
                summary=options.summary,
                priority=self._first if options.first else self._priority,
            )

    @contextmanager
    def _awaited(self, name: str, what: str) -> Iterator[None]:
        """List a call as in flight during the block."""
        self._awaiting[name] = Awaited(id=name, what=what, since=self.now().isoformat(timespec="milliseconds"))
        self._changed()
        try:
            with afterwards(self._changed):
                yield
        finally:
            del self._awaiting[name]


def log_defect(error: Exception, strategy: str | None) -> Defect:
    """Log an unforeseen error of a run under this strategy with all its frames, and return its description."""
    packages = []
    if strategy:
        packages = [declaration(strategy).implementation.partition(".")[0].partition(":")[0]]
    defect = describe_error(error, packages)
    fields = {"research_id": workflow.info().workflow_id, "error": defect.error, "place": defect.place}
    workflow.logger.error("run.defect", extra=fields | {"frames": defect.frames})
    return defect


# --- outside payloads, decoded here so that none of them can fail a workflow task ------------------------------------
def tenant_proof() -> str:
    """Return the proof for its tenant with which this workflow was started, unchecked; empty without one."""
    header = workflow.info().headers.get(TENANT_HEADER)
    if header is None:
        return str(workflow.memo_value(TENANT_HEADER, default=""))[:MAX_PROOF_BYTES]
    return header.data[:MAX_PROOF_BYTES].decode("utf-8", "replace")


def payload_json(value: RawValue) -> bytes:
    """Return the JSON of a payload; `null` for a payload in another encoding."""
    if value.payload.metadata.get("encoding") != JSON_ENCODING:
        return b"null"
    return value.payload.data


def decode_json(value: RawValue) -> Any:
    """Decode a payload to plain data. Raises ValueError if it is not JSON."""
    if value.payload.metadata.get("encoding") not in (JSON_ENCODING, NULL_ENCODING):
        raise ValueError("no JSON")
    try:
        return json.loads(payload_json(value))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def parse_argument(kind: type[M], value: RawValue, max_bytes: int = MAX_ARGUMENT_BYTES) -> M:
    """Parse a workflow's argument. Raises a non-retryable `ApplicationError` that names each invalid field."""
    data = payload_json(value)
    if len(data) > max_bytes:
        raise invalid_request(f"request: larger than {max_bytes} bytes")
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        raise invalid_request(*error_lines(error)) from None


def invalid_request(*lines: str) -> ApplicationError:
    """Return the failure of a workflow that cannot use its request; each line is `path: message`."""
    return ApplicationError("\n".join(lines), {"lines": list(lines)}, type=failures.INVALID_REQUEST, non_retryable=True)


def exceeds(values: Sequence[Any], max_characters: int) -> bool:
    """Return whether decoded JSON is larger than this; stops counting at the limit, at any depth."""
    left = max_characters
    todo = list(values)
    while todo and left >= 0:
        value = todo.pop()
        size = 1
        if isinstance(value, str | bytes | dict | list | tuple) and len(value) > left:
            return True
        if isinstance(value, str | bytes):
            size = len(value)
        elif isinstance(value, dict):
            todo += [*value.keys(), *value.values()]
        elif isinstance(value, list | tuple):
            todo += value
        left -= 1 + size
    return left < 0
