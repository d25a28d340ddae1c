"""Remove runs from everywhere they left something: one, those of long ago, or all whose time is over."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

import structlog
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from contracts import names
from contracts.evidence import DocumentRef
from contracts.texts import plural
from providers.errors import ProviderError
from providers.interfaces import CallStore, ContentStore, SessionStore, SharedStore
from providers.shared.paid_calls import KEPT_SECONDS
from providers.storage.left_behind import forget_documents, note_documents, read_noted_documents
from providers.storage.stored_records import Records

OUR_TYPE: Final = f'WorkflowType="{names.DEEP_RESEARCH}"'
OPEN_RUNS: Final = f"{OUR_TYPE} AND CloseTime IS NULL"
PATIENCE: Final = timedelta(seconds=10)
SWEPT_EVERY_SECONDS: Final = 6 * 3_600.0
READINGS: Final = 3
"""How often the sessions are read while runs are saved."""
SWEPT: Final = "retention/swept"
"""In the shared store while no process needs to sweep again."""

logger = structlog.get_logger(__name__)


class ServerSilent(ProviderError):
    """It cannot be told which runs are going on, so nothing is removed that one of them may use."""


class DocumentsKept(ProviderError):
    """It cannot be told which documents are in use."""


@dataclass(frozen=True)
class Removed:
    """What was removed; `kept` says why documents stay for now, if any do."""

    runs: int = 0
    documents: int = 0
    answers: int = 0
    histories: tuple[str, ...] = ()
    """The server's ids of the histories that it has been told to delete."""
    kept: str = ""


class Retention:
    """Made with the record of runs, and the server that has their histories (None where there never was one)."""

    def __init__(
        self,
        sessions: SessionStore,
        content: ContentStore,
        notes: Records,
        calls: Callable[[], Awaitable[CallStore]],
        client: Client | None,
        *,
        sole: bool = True,
    ) -> None:
        """`notes` are the documents that deleted runs left behind (`providers.storage.left_behind`).

        `sole` says that no other sessions name documents of this store.
        """
        self._sessions = sessions
        self._content = content
        self._notes = notes
        self._calls = calls
        self._client = client
        self._sole = sole

    async def older_than(self, age: timedelta) -> list[str]:
        """Ids of the runs that were saved last so long ago and are not going on. Raises `ServerSilent`."""
        latest = (datetime.now(UTC) - age).isoformat(timespec="microseconds")
        old = [session.research_id for session in await self._sessions.list() if session.saved_at < latest]
        if not old:
            return []
        going_on = await self._open_runs()
        return [research_id for research_id in old if research_id not in going_on]

    async def remove(self, research_ids: Iterable[str]) -> Removed:
        """Remove session, journal, histories and the documents that no other run uses, of runs that are not going on.

        The journal goes first: while it cannot be removed, everything of that run stays. Raises `ContentCorrupt` for a
        damaged note of documents, `SharedStateUnavailable`, `RPCError`.
        """
        saved = await self._saved()
        kept = await self._sessions.documents()
        answers, histories, runs = 0, list[str](), 0
        for research_id in research_ids:
            if not _is_past(saved.pop(research_id, ""), KEPT_SECONDS):
                answers += await (await self._calls()).forget(research_id)
            documents = [DocumentRef(hash=each) for each in kept.pop(research_id, None) or ()]
            await asyncio.to_thread(note_documents, self._notes, research_id, documents)
            histories += await self._delete_histories(research_id)
            await self._sessions.delete(research_id)
            runs += 1
        removed, why = await self._remove_left_behind(saved, kept)
        return Removed(runs, removed, answers, tuple(histories), why)

    async def sweep(self, research_ids: Iterable[str]) -> Removed:
        """Remove runs, then every document that no run names and that is older than the journal of calls.

        Such documents were put by calls whose host was lost, or by calls of a run that was deleted meanwhile. Where
        there is no session at all, the sessions may be missing rather than the runs: then these documents stay.
        Raises what `remove` raises, `Unavailable`.
        """
        known = bool(await self._saved())
        removed = await self.remove(research_ids)
        if not (known and self._sole):
            return removed
        try:
            used, earliest = await self._used(await self._saved(), await self._sessions.documents())
        except (DocumentsKept, ServerSilent) as error:
            return replace(removed, kept=removed.kept or f"documents that no run names are kept ({error})")
        settled = datetime.now(UTC) - timedelta(seconds=KEPT_SECONDS)
        others = await self._content.delete_others(used, unless_put_since=min(settled, earliest or settled))
        return replace(removed, documents=removed.documents + others)

    async def _remove_left_behind(
        self, saved: Mapping[str, str], kept: Mapping[str, frozenset[str] | None]
    ) -> tuple[int, str]:
        """Remove documents of deleted runs that no run uses: how many were removed, and why the rest is kept."""
        waiting = await asyncio.to_thread(read_noted_documents, self._notes)
        unused = {each.hash: each for documents in waiting.values() for each in documents}
        if not unused:
            return 0, ""
        try:
            used, earliest = await self._used(saved, kept)
        except (DocumentsKept, ServerSilent) as error:
            return 0, f"{_kept(len(unused))} ({error})"
        unused = {digest: each for digest, each in unused.items() if digest not in used}
        gone = {
            reference.hash
            for reference in unused.values()
            if await self._content.delete(reference, unless_put_since=earliest)
        }
        done = [
            name for name, documents in waiting.items() if not {each.hash for each in documents} & unused.keys() - gone
        ]
        await asyncio.to_thread(forget_documents, self._notes, done)
        left = len(unused) - len(gone)
        return len(gone), f"{_kept(left)} while a run that may use them is going on" if left else ""

    async def _used(
        self, saved: Mapping[str, str], kept: Mapping[str, frozenset[str] | None]
    ) -> tuple[frozenset[str], datetime | None]:
        """What the sessions name, and when the oldest open run began; None if none is open.

        What a run that goes on has read since its last checkpoint is in no session: but it was put there after the
        run began. The server is asked after the sessions were read: a run that began meanwhile began just now. A run
        that ended meanwhile has saved what it uses, so the sessions are read again. Raises `DocumentsKept`,
        `ServerSilent`.
        """
        for _ in range(READINGS):
            if unreadable := [research_id for research_id, used in kept.items() if used is None]:
                raise DocumentsKept(f"until all sessions can be read: {unreadable[0]} cannot")
            began = await self._open_runs()
            now = await self._saved()
            if all(saved.get(research_id) == at for research_id, at in now.items() if research_id not in began):
                return frozenset().union(*(used or () for used in kept.values())), min(began.values(), default=None)
            saved, kept = now, await self._sessions.documents()
        raise DocumentsKept("runs are saved all the time")

    async def _saved(self) -> dict[str, str]:
        """When each run was saved last."""
        return {session.research_id: session.saved_at for session in await self._sessions.list()}

    async def _open_runs(self) -> dict[str, datetime]:
        return {} if self._client is None else await open_runs(self._client)

    async def _delete_histories(self, research_id: str) -> list[str]:
        if self._client is None:
            return []
        removed = []
        agents = f'WorkflowType="{names.RESEARCH_AGENT}" AND WorkflowId STARTS_WITH "{research_id}/"'
        query = f'({OUR_TYPE} AND WorkflowId="{research_id}") OR ({agents})'
        async for run in self._client.list_workflows(query):
            request = DeleteWorkflowExecutionRequest(
                namespace=self._client.namespace,
                workflow_execution=WorkflowExecution(workflow_id=run.id, run_id=run.run_id),
            )
            try:
                await self._client.workflow_service.delete_workflow_execution(request)
            except RPCError as error:
                if error.status is not RPCStatusCode.NOT_FOUND:
                    raise
            removed.append(run.run_id)
        return removed


async def open_runs(client: Client) -> dict[str, datetime]:
    """When each open run began, paused ones too. Raises `ServerSilent`."""
    try:
        return {run.id: run.start_time async for run in client.list_workflows(OPEN_RUNS, rpc_timeout=PATIENCE)}
    except (RPCError, ValueError):
        raise ServerSilent("the server does not tell which runs are going on") from None


async def sweep_now_and_then(retention: Retention, days: int, shared: SharedStore) -> None:
    """Remove runs that are older than so many days, every few hours, in one process of all that share the store."""
    while True:
        try:
            if await shared.swap(SWEPT, None, b"1", SWEPT_EVERY_SECONDS):
                await _sweep(retention, days)
        except (ProviderError, RPCError) as error:
            logger.warning("retention.not_swept", error=type(error).__name__)
            with suppress(ProviderError):
                await shared.swap(SWEPT, b"1", None)
        await asyncio.sleep(SWEPT_EVERY_SECONDS / 6)


async def _sweep(retention: Retention, days: int) -> None:
    removed = await retention.sweep(await retention.older_than(timedelta(days=days)))
    if removed.runs or removed.documents or removed.kept:
        logger.info("retention.swept", runs=removed.runs, documents=removed.documents, kept=removed.kept)


def _kept(count: int) -> str:
    return f"{plural(count, 'document')} {'is' if count == 1 else 'are'} kept"


def _is_past(saved_at: str, seconds: float) -> bool:
    """Whether so much time has gone by; of a run that was never saved it is not known."""
    return bool(saved_at) and datetime.fromisoformat(saved_at) < datetime.now(UTC) - timedelta(seconds=seconds)
