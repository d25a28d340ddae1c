"""A client that speaks the protocol's extension for tasks, made with the SDK."""

import asyncio
from typing import Any, Literal

from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.types import CallToolResult
from mcp_types import Request, RequestParams, Result

from client.assistants.tasks import IDENTIFIER


class TaskParams(RequestParams):
    """Parameters of a request about a task."""

    task_id: str


class GetTask(Request[TaskParams, Literal["tasks/get"]]):
    """A request for the state of a task."""

    method: Literal["tasks/get"] = "tasks/get"
    params: TaskParams


class CancelTask(Request[TaskParams, Literal["tasks/cancel"]]):
    """A request to end a task."""

    method: Literal["tasks/cancel"] = "tasks/cancel"
    params: TaskParams


class UpdateTask(Request[TaskParams, Literal["tasks/update"]]):
    """A request with answers to a task."""

    method: Literal["tasks/update"] = "tasks/update"
    params: TaskParams


class TaskState(Result):
    """A task in any state."""

    task_id: str
    status: str
    status_message: str
    created_at: str
    ttl_ms: int | None
    result: dict[str, Any] | None = None


class TaskHandle(TaskState):
    """A task in place of the answer of a tool."""

    result_type: Literal["task"] = "task"


class WaitingClient(ClientExtension):
    """A client that waits for tasks by itself, or cancels each of them."""

    identifier = IDENTIFIER

    def __init__(self, *, cancels: bool = False) -> None:
        self.cancels = cancels
        self.seen: list[TaskState] = []

    def claims(self) -> list[ResultClaim[Any]]:
        """Take tasks as answers of tools."""
        return [ResultClaim(result_type="task", model=TaskHandle, resolve=self.resolve)]

    async def resolve(self, handle: TaskHandle, context: ClaimContext) -> CallToolResult:
        """Poll until the task is over."""
        self.seen.append(handle)
        named = TaskParams(task_id=handle.task_id)
        if self.cancels:
            await context.session.send_request(CancelTask(params=named), Result)
        while True:
            state = await context.session.send_request(GetTask(params=named), TaskState)
            self.seen.append(state)
            if state.result is not None:
                return CallToolResult.model_validate(state.result)
            if state.status == "cancelled":
                return CallToolResult(content=[], is_error=True)
            await asyncio.sleep(0.3)
