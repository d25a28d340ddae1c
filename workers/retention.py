"""Removal of runs and everything stored for them: one run, old ones, or all that have expired."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

import structlog
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from contracts import names
from contracts.evidence import DocumentRef
from contracts.messages import refresh_schedule
from contracts.texts import plural
from providers.errors import ProviderError
from providers.interfaces import ContentStore, SessionStore, SharedStore
from providers.shared.paid_calls import STORED_SECONDS, CallStore
from providers.storage.content_archive import RecordArchive

RUN_TYPE: Final = f'WorkflowType="{names.DEEP_RESEARCH}"'
OPEN_RUNS: Final = f"{RUN_TYPE} AND CloseTime IS NULL"
LISTING_TIMEOUT: Final = timedelta(seconds=10)
SWEEP_INTERVAL_SECONDS: Final = 6 * 3_600.0
SWEEP_KEY: Final = "retention/swept"  # set in the shared store until the next sweep is due

logger = structlog.get_logger(__name__)


class UsesUnknown(ProviderError):
    """Open runs or the documents in use are unknown, so no document is removed."""


@dataclass(frozen=True)
class RemovalCounts:
    """Counts of removed items; `remaining` is the reason why documents remain for now, if any do."""

    runs: int = 0
    documents: int = 0
    answers: int = 0
    histories: int = 0
    remaining: str = ""


class Retention:
    """Removal of runs and of documents that no run uses."""

    def __init__(
        self,
        sessions: SessionStore,
        content: ContentStore,
        calls: CallStore,
        client: Client | None,
        archive: RecordArchive,
        *,
        sole: bool,
    ) -> None:
        """`client` is None if there never was a server; `sole`: no other sessions use documents of this store."""
        self._sessions = sessions
        self._content = content
        self._calls = calls
        self._client = client
        self._archive = archive
        self._sole = sole

    async def older_than(self, age: timedelta) -> list[str]:
        """List the runs that were last saved longer than `age` ago and are not open. Raises `UsesUnknown`."""
        latest = (datetime.now(UTC) - age).isoformat(timespec="microseconds")
        old = [session.research_id for session in await self._sessions.list() if session.saved_at < latest]
        open_now = await self._open_runs() if old else {}
        return [research_id for research_id in old if research_id not in open_now]

    async def remove(self, research_ids: Iterable[str], *, named: bool = True) -> RemovalCounts:
        """Remove session, journal, histories, and documents that no other run uses, of runs that are not open.

        Runs that a person `named` also lose their records in the archive. A run is not touched while its journal cannot
        be removed. Raises `SharedStateUnavailable`, `RPCError`, and errors of the archive.
        """
        documents = await self._sessions.documents()
        removed = RemovalCounts()
        candidates: set[str] = set()
        for research_id in research_ids:
            answers = await self._calls.forget(research_id)
            candidates |= documents.get(research_id) or frozenset()
            if named:
                candidates |= await self._archive.forget(research_id)
            histories = await self._delete_histories(research_id)
            await self._sessions.delete(research_id)
            removed = RemovalCounts(removed.runs + 1, 0, removed.answers + answers, removed.histories + histories)
        if not candidates:
            return removed
        try:
            used, earliest = await self._used_documents()
        except UsesUnknown as error:
            return replace(removed, remaining=f"{_remaining(len(candidates))} ({error})")
        unused = [DocumentRef(hash=digest) for digest in candidates - used]
        deleted = sum([await self._content.delete(document, unless_put_since=earliest) for document in unused])
        count = len(unused) - deleted
        remaining = ""
        if count:
            remaining = f"{_remaining(count)} while a run that may use them is going on"
        return replace(removed, documents=deleted, remaining=remaining)

    async def sweep(self, research_ids: Iterable[str], *, orphans: bool = True) -> RemovalCounts:
        """Remove runs, expired archive records, and `orphans`: documents of no run, older than any stored paid answer.

        These remain if there is no session at all, as the session store may be missing. Raises the errors of `remove`.
        """
        known = bool(await self._sessions.list())
        archived = bool(await self._archive.read())
        removed = await self.remove(research_ids, named=False)
        orphans = orphans and known and self._sole
        if not (archived or orphans):
            return removed
        try:
            used, earliest = await self._used_documents()
        except UsesUnknown as error:
            return replace(removed, remaining=removed.remaining or f"documents that no run names stay ({error})")
        texts = [DocumentRef(hash=digest) for digest in await self._archive.expire(datetime.now(UTC)) - used]
        deleted = sum([await self._content.delete(text, unless_put_since=earliest) for text in texts])
        if orphans:
            cutoff = datetime.now(UTC) - timedelta(seconds=STORED_SECONDS)
            deleted += await self._content.delete_others(used, unless_put_since=min(cutoff, earliest or cutoff))
        return replace(removed, documents=removed.documents + deleted)

    async def expire_archive(self) -> tuple[int, str]:
        """Remove what has expired from the archive, with its texts, as a worker does every few hours.

        Returns the number of removed records, and the reason why expired ones remain; empty if none do. Raises the
        errors of `remove`.
        """
        now = datetime.now(UTC)
        records = [record for record in (await self._archive.read()).values() if record is not None]
        expired = [one for one in records if self._archive.is_own(one) and not self._archive.is_own(one, now)]
        if not expired:
            return 0, ""
        removed = await self.sweep((), orphans=False)
        if removed.remaining:
            return (0, removed.remaining)
        return (len(expired), "")

    async def _used_documents(self) -> tuple[frozenset[str], datetime | None]:
        """Return the documents of sessions and archive, and the start of the oldest open run. Raises `UsesUnknown`.

        Documents that an open run has read since its last checkpoint were stored after its start. Open runs are listed
        first: one that ends in between has saved its session before the sessions are read.
        """
        starts = await self._open_runs()
        documents = await self._sessions.documents()
        if unreadable := [research_id for research_id, used in documents.items() if used is None]:
            raise UsesUnknown(f"until all sessions can be read: {unreadable[0]} cannot")
        archived = await self._archive.pinned(datetime.now(UTC))
        return archived.union(*(used or () for used in documents.values())), min(starts.values(), default=None)

    async def _open_runs(self) -> dict[str, datetime]:
        if self._client is None:
            return {}
        return await open_runs(self._client)

    async def _delete_histories(self, research_id: str) -> int:
        if self._client is None:
            return 0
        removed = 0
        children = f'WorkflowType IN ("{names.RESEARCH_AGENT}", "{names.RESEARCH_NOTICE}")'
        query = (
            f'({RUN_TYPE} AND WorkflowId="{research_id}") OR ({children} AND WorkflowId STARTS_WITH "{research_id}/")'
        )
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
            removed += 1
        try:  # or the run would be refreshed again
            await self._client.get_schedule_handle(refresh_schedule(research_id)).delete()
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
        return removed


async def open_runs(client: Client) -> dict[str, datetime]:
    """Return the start of each open run, including paused ones. Raises `UsesUnknown`."""
    try:
        return {run.id: run.start_time async for run in client.list_workflows(OPEN_RUNS, rpc_timeout=LISTING_TIMEOUT)}
    except (RPCError, ValueError):
        raise UsesUnknown("the server does not list its open runs") from None


async def sweep_periodically(retention: Retention, days: int | None, shared: SharedStore) -> None:
    """Remove expired data, and runs older than `days`, every few hours, in only one of the processes of the store."""
    while True:
        try:
            if await shared.swap(SWEEP_KEY, None, b"1", SWEEP_INTERVAL_SECONDS):
                old = []
                if days is not None:
                    old = await retention.older_than(timedelta(days=days))
                removed = await retention.sweep(old, orphans=days is not None)
                if removed != RemovalCounts():
                    logger.info("retention.swept", **asdict(removed))
        except (ProviderError, RPCError) as error:
            logger.warning("retention.not_swept", error=type(error).__name__)
            with suppress(ProviderError):
                await shared.swap(SWEEP_KEY, b"1", None)
        await asyncio.sleep(SWEEP_INTERVAL_SECONDS / 6)


def _remaining(count: int) -> str:
    return f"{plural(count, 'document')} {'stays' if count == 1 else 'stay'}"
