"""`delete`: remove a run from everywhere it left something."""

import asyncio
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

from pydantic import BaseModel
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import RPCError, RPCStatusCode

from client.cli import output
from client.cli.context import CommandContext, open_context
from client.cli.errors import CommandError, ExitCode
from client.cli.orphaned_documents import LEFT_BEHIND, forget_documents, note_documents, read_noted_documents
from client.cli.research_ids import resolve
from client.cli.stores import record_deleted_histories
from client.errors import RunForeign, RunUnknown
from client.handle import ResearchClient
from contracts import names
from contracts.documents import DocumentRef
from contracts.state import ResearchState
from providers.errors import ContentCorrupt, SharedStateUnavailable
from providers.storage.notebooks import entries_of
from providers.storage.stored_records import Records
from workers.dev_server.server_files import ServerFiles

OUR_TYPE: Final = f'WorkflowType="{names.DEEP_RESEARCH}"'
OPEN_RUNS: Final = f"{OUR_TYPE} AND CloseTime IS NULL"
PATIENCE: Final = timedelta(seconds=10)


async def delete(given: str, *, yes: bool) -> int:
    """Remove session, journal rows, documents that no other run uses, and the server's history.

    The journal goes first: while it cannot be removed, everything stays. Documents stay while any run goes on.
    """
    async with open_context() as context:
        notes = context.stores.records(LEFT_BEHIND)
        client = await _server(context)
        noted = await asyncio.to_thread(read_noted_documents, notes)
        research_id = resolve(given, [*await context.known_ids(), *noted])
        await _refuse_running(client, research_id)
        if not yes:
            if not output.confirm(f"remove the run {research_id} for good?", "add --yes to delete without being asked"):
                output.tell("nothing was removed")
                return ExitCode.COMPLETED
            await _refuse_running(client, research_id)  # it may have been resumed before the answer came
        state = await context.stored_state(research_id)
        rows = await _forget_calls(context, research_id)
        await asyncio.to_thread(note_documents, notes, research_id, references_of(state))
        histories = await _delete_histories(context, client, research_id)
        await context.stores.sessions.delete(research_id)
        documents, kept = await _remove_documents(context, client, notes)
    output.say(f"{research_id} removed: session, {documents} documents, {rows} journalled calls, {histories} histories")
    if kept:
        output.tell(f"{kept}; the next `research delete`, of this or any other run, removes them then")
    return ExitCode.COMPLETED


def references_of(value: Any) -> Iterable[DocumentRef]:
    """Every stored document that a state names, wherever in it, and those of its notebook."""
    if isinstance(value, ResearchState):
        yield from entries_of(value)
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


async def _server(context: CommandContext) -> ResearchClient | None:
    """The server, the embedded one started if need be; None where there never was one.

    While it is down, histories cannot be removed and it is unknown which runs will go on with what they have read.
    """
    if context.settings.uses_cluster or ServerFiles(context.settings.home).database.exists():
        return await context.ensured_client()
    return None


async def _refuse_running(client: ResearchClient | None, research_id: str) -> None:
    try:
        going_on = client is not None and await client.handle(research_id).is_running()
    except (RunUnknown, RunForeign):
        going_on = False
    except ValueError:  # paused: a status that the client's library does not know
        going_on = True
    if going_on:
        raise CommandError(f"the run {research_id} is going on: cancel it with `research cancel {research_id}`")


async def _forget_calls(context: CommandContext, research_id: str) -> int:
    try:
        return await (await context.stores.calls()).forget(research_id)
    except SharedStateUnavailable as error:
        message = f"{error}; the run {research_id} is kept: delete it again once `research doctor` reports Redis as ok"
        raise CommandError(message, ExitCode.FAILED) from None


async def _remove_documents(context: CommandContext, client: ResearchClient | None, notes: Records) -> tuple[int, str]:
    """Remove documents of deleted runs that no run uses: how many were removed, and why the rest is kept.

    What a run has read since its last checkpoint is written down nowhere, so nothing is removed while one goes on.
    The server is asked last, and then the sessions again: a run may have ended or begun while they were read.
    """
    waiting = await asyncio.to_thread(read_noted_documents, notes)
    unused = {each.hash: each for documents in waiting.values() for each in documents}
    if not unused:
        return 0, ""
    sessions = await context.stores.sessions.list()
    try:
        for session in sessions:
            for reference in references_of(await context.stored_state(session.research_id)):
                unused.pop(reference.hash, None)
    except ContentCorrupt as error:
        return 0, f"{len(unused)} documents are kept until all sessions can be read ({error})"
    if await _any_goes_on(client) or await context.stores.sessions.list() != sessions:
        return 0, f"{len(unused)} documents are kept while a run that may use them is going on"
    for reference in unused.values():
        await context.stores.content.delete(reference)
    await asyncio.to_thread(forget_documents, notes, waiting)
    return len(unused), ""


async def _any_goes_on(client: ResearchClient | None) -> bool:
    """Whether any run is open, paused ones too; a server that does not say counts as one where some are."""
    if client is None:
        return False
    try:
        return (await client.temporal.count_workflows(OPEN_RUNS, rpc_timeout=PATIENCE)).count > 0
    except RPCError:
        return True


async def _delete_histories(context: CommandContext, client: ResearchClient | None, research_id: str) -> int:
    if client is None:
        return 0
    removed = []
    async for run in client.temporal.list_workflows(f'{OUR_TYPE} AND WorkflowId="{research_id}"'):
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
    record_deleted_histories(context.settings.home, removed)
    return len(removed)
