"""`delete`: remove a run from everywhere it left something."""

import sys
from collections.abc import Iterable
from typing import Any

import typer
from pydantic import BaseModel
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import RPCError, RPCStatusCode

from client.cli import output
from client.cli.desk import Desk, open_desk
from client.cli.exit_codes import ExitCode
from client.cli.failures import CommandError
from client.cli.tombstones import bury
from contracts.documents import DocumentRef
from contracts.state import ResearchState


async def delete(given: str, *, yes: bool) -> int:
    """Remove session, journal rows, documents that no other run uses, and the engine's history."""
    async with open_desk() as desk:
        research_id = await desk.resolve(given)
        await _refuse_running(desk, research_id)
        if not yes and not _confirmed(research_id):
            output.tell("nothing was removed")
            return ExitCode.COMPLETED
        state = await desk.stored_state(research_id)
        documents = await _unshared(desk, research_id, state)
        rows = await (await desk.stores.calls()).forget(research_id)
        histories = await _delete_histories(desk, research_id)
        await desk.stores.sessions.delete(research_id)
        for reference in documents:
            await desk.stores.content.delete(reference)
    output.say(
        f"{research_id} removed: session, {len(documents)} documents, {rows} journalled calls, {histories} histories"
    )
    return ExitCode.COMPLETED


def references_of(value: Any) -> Iterable[DocumentRef]:
    """Every stored document that a state names, wherever in it."""
    if isinstance(value, DocumentRef):
        yield value
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from references_of(getattr(value, name))
    elif isinstance(value, dict):
        for each in value.values():
            yield from references_of(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from references_of(each)


async def _refuse_running(desk: Desk, research_id: str) -> None:
    if await desk.is_running(research_id):
        raise CommandError(f"the run {research_id} is going on: research cancel {research_id} first")


def _confirmed(research_id: str) -> bool:
    if not sys.stdin.isatty():
        raise CommandError("add --yes to delete without being asked")
    return typer.confirm(f"remove the run {research_id} for good?", err=True)


async def _unshared(desk: Desk, research_id: str, state: ResearchState | None) -> list[DocumentRef]:
    """Documents that this run alone names."""
    if state is None:
        return []
    own = {reference.hash: reference for reference in references_of(state)}
    for session in await desk.stores.sessions.list():
        if session.research_id != research_id and own:
            other = await desk.stored_state(session.research_id)
            for reference in references_of(other):
                own.pop(reference.hash, None)
    return list(own.values())


async def _delete_histories(desk: Desk, research_id: str) -> int:
    client = await desk.client_if_running()
    if client is None:
        return 0
    removed = []
    async for run in client.temporal.list_workflows(f'WorkflowId="{research_id}"'):
        request = DeleteWorkflowExecutionRequest(
            namespace=client.temporal.namespace,
            workflow_execution=WorkflowExecution(workflow_id=run.id, run_id=run.run_id),
        )
        try:
            await client.temporal.workflow_service.delete_workflow_execution(request)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
        removed.append(run.run_id)
    bury(desk.settings.home, removed)
    return len(removed)
