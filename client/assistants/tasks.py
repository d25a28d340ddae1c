"""Runs as tasks of the protocol's extension, for clients that wait for a task by themselves: nothing is remembered.

A client that declares the extension gets a task in place of the answer of `start_research` or `ask_follow_up`. Its id
is that of the run, its state that of the workflow, and to cancel it cancels the workflow. What a run asks a person is
answered by the tools, as without the extension.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.extension import Extension, MethodBinding
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolRequestParams, CallToolResult, TextContent
from mcp_types import INVALID_PARAMS, RequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from client.assistants.answers import RunState
from client.assistants.runs import Desk, observe, started_run
from client.cli.output import CommandError
from client.client_errors import ClientError
from contracts.vocabulary import Outcome
from providers.errors import ProviderError

IDENTIFIER: Final = "io.modelcontextprotocol/tasks"
STARTING_TOOLS: Final = ("start_research", "ask_follow_up")
POLL_MILLISECONDS: Final = 5_000
VERSIONS: Final = frozenset(MODERN_PROTOCOL_VERSIONS)
ASKED_BY_TOOLS: Final = "a run asks through its tools: call answer_questions, approve_plan or steer"


class TaskParams(RequestParams):
    """Parameters of a request about a task."""

    task_id: str


class RunTasks(Extension):
    """The extension, over the runs of a desk."""

    identifier = IDENTIFIER

    def __init__(self, desk: Desk, explain: Callable[[BaseException | None, str], str]) -> None:
        """Take what puts an error into one line for an assistant."""
        self._desk = desk
        self._explain = explain

    def methods(self) -> Sequence[MethodBinding]:
        """Return the requests about tasks, which only the protocol's later versions have."""
        handlers = {"tasks/get": self._get, "tasks/cancel": self._cancel, "tasks/update": self._update}
        return [MethodBinding(name, TaskParams, handler, VERSIONS) for name, handler in handlers.items()]

    async def intercept_tool_call(
        self, params: CallToolRequestParams, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        """Return the run that a tool has started as a task, if this request declares the extension."""
        result = await call_next(ctx)
        capabilities = ctx.session.client_capabilities
        is_declared = capabilities is not None and IDENTIFIER in (capabilities.extensions or {})
        if not (is_declared and params.name in STARTING_TOOLS and isinstance(result, CallToolResult)):
            return result
        if result.is_error or result.structured_content is None:
            return result
        started = "\n".join(block.text for block in result.content if isinstance(block, TextContent))
        return _task(result.structured_content["research_id"], "working", _now(), started, kind="task")

    async def _get(self, _: ServerRequestContext[Any, Any], params: TaskParams) -> HandlerResult:
        """Return the state of a run, with the answer of its tool once it is over."""
        try:
            run = await self._desk.context().find(params.task_id)
            began = (run.state.clock.started_at if run.state is not None else "") or _now()
            state = await observe(self._desk, params.task_id, None, 0)
            # Cancelled before it could save its end: the server has closed it, and its state has a note and no outcome.
            is_interrupted = run.open is None and state.outcome is None and bool(state.summary)
            if is_interrupted or state.outcome == Outcome.CANCELLED.value:
                return _task(state.research_id, "cancelled", began, state.as_text())
            if state.outcome is None:
                return _task(state.research_id, "working", began, state.as_text())
            started = await started_run(self._desk, state)
        except (CommandError, ClientError, ProviderError) as error:
            raise self._refused(error, "tasks/get") from None
        answer = CallToolResult(
            content=[TextContent(type="text", text=state.as_text())],
            structured_content=started.model_dump(mode="json"),
            is_error=state.outcome not in (Outcome.COMPLETED.value, Outcome.PARTIAL.value),
        )
        result = {"result": answer.model_dump(by_alias=True, mode="json", exclude_none=True)}
        return _task(state.research_id, "completed", began, _ending(state)) | result

    async def _cancel(self, _: ServerRequestContext[Any, Any], params: TaskParams) -> HandlerResult:
        """Cancel a run, which saves its state."""
        try:
            context = self._desk.context()
            run = await context.find(params.task_id)
            if run.open is not None:
                await run.open.cancel()
        except (CommandError, ClientError, ProviderError) as error:
            raise self._refused(error, "tasks/cancel") from None
        return {"resultType": "complete"}

    async def _update(self, _: ServerRequestContext[Any, Any], params: TaskParams) -> HandlerResult:  # noqa: ARG002
        raise MCPError(INVALID_PARAMS, ASKED_BY_TOOLS)

    def _refused(self, error: BaseException, method: str) -> MCPError:
        return MCPError(INVALID_PARAMS, self._explain(error, method))


def _task(research_id: str, status: str, began: str, message: str, *, kind: str = "complete") -> dict[str, Any]:
    """Return a task as the extension writes it: a run is stored until the operator's retention ends."""
    return {
        "resultType": kind,
        "taskId": research_id,
        "status": status,
        "statusMessage": message,
        "createdAt": began,
        "lastUpdatedAt": _now(),
        "ttlMs": None,
        "pollIntervalMs": POLL_MILLISECONDS,
    }


def _ending(state: RunState) -> str:
    return f"{state.outcome}; {state.next}"


def _now() -> str:
    return datetime.now(tz=UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
