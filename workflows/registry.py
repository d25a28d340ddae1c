"""The workflows of the pool `workflows`, and the small ones that serve clients which reach only the engine."""

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from temporalio import workflow
from temporalio.common import Priority, RawValue
from temporalio.exceptions import WorkflowAlreadyStartedError

from contracts import activities, names
from contracts.messages import (
    DocumentPiece,
    DocumentPieceRequest,
    MetadataRequest,
    PlannedRun,
    PrepareRequest,
    ResearchMetadata,
)
from contracts.notices import NOTICE_SECONDS, NoticeRequest
from contracts.parse_request import MAX_REQUEST_BYTES, InvalidRequest, parse_request
from contracts.request import Approve, ResearchRequest, run_memo
from contracts.resolved import ResolvedResearch
from contracts.tenants import TENANT_HEADER
from contracts.texts import RESEARCH_ID
from workflows.deep_research import DeepResearchWorkflow
from workflows.research_agent import ResearchAgentWorkflow
from workflows.run.calls import call_options, show_summary
from workflows.run.host import Host, invalid_request, parse_argument, payload_json, tenant_proof

ENTRY_SECONDS: Final = 300.0
"""Time of a workflow that serves a client, with all its attempts; then the client gets the last failure."""
MAX_DOCUMENT_REQUEST_BYTES: Final = 4_096
MAX_NOTICE_BYTES: Final = 16_384
MAX_PREVIEW_BYTES: Final = 2 * MAX_REQUEST_BYTES
"""A request is a text in the argument of a preview, so that each of its quotation marks takes two bytes."""


@workflow.defn(name=names.RESEARCH_DOCUMENT, failure_exception_types=[TypeError])
class ResearchDocumentWorkflow:
    """Serves a stored document, in pieces of at most 1 MB, to clients that reach only the engine."""

    @workflow.run
    async def run(self, request: RawValue) -> DocumentPiece:
        """Read the piece. Raises `ApplicationError` for an invalid request."""
        parsed = parse_argument(DocumentPieceRequest, request, MAX_DOCUMENT_REQUEST_BYTES)
        _check_id(parsed.research_id)
        options = call_options(names.RECORDS_QUEUE, "read-document", f"read {parsed.name}", ENTRY_SECONDS)
        signed = parsed.with_fields(tenant_proof=tenant_proof())
        return await Host(None, parsed.tenant).execute(activities.READ_DOCUMENT, signed, options)


@workflow.defn(name=names.RESEARCH_PREVIEW, failure_exception_types=[TypeError])
class ResearchPreviewWorkflow:
    """Previews the configuration that a run would use, which only the workers know."""

    @workflow.run
    async def run(self, request: RawValue) -> ResolvedResearch:
        """Resolve the request. Raises `ApplicationError` if the run would be refused."""
        parsed = parse_argument(PrepareRequest, request, MAX_PREVIEW_BYTES)
        _check_id(parsed.research_id)
        _parse(parsed.request_json)
        options = call_options(names.RECORDS_QUEUE, "preview", "what would a run use?", ENTRY_SECONDS)
        signed = parsed.with_fields(tenant_proof=tenant_proof(), started_by="", continued=False)
        return await Host(None, "").execute(activities.PREVIEW_RESEARCH, signed, options)


@workflow.defn(name=names.RESEARCH_METADATA, failure_exception_types=[TypeError])
class ResearchMetadataWorkflow:
    """Serves the metadata that a front end needs before any run: session location and settings schema."""

    @workflow.run
    async def run(self) -> ResearchMetadata:
        """Describe the effective configuration; needs no run and stores nothing."""
        options = call_options(names.RECORDS_QUEUE, "describe", "describe the settings", ENTRY_SECONDS)
        request = MetadataRequest(tenant_proof=tenant_proof())
        return await Host(None, "").execute(activities.DESCRIBE_RESEARCH, request, options)


@workflow.defn(name=names.DEEP_RESEARCH_PLAN, failure_exception_types=[TypeError])
class DeepResearchPlanWorkflow:
    """Starts a run whose plan needs approval, and ends."""

    @workflow.run
    async def run(self, request: RawValue) -> PlannedRun:
        """Start the run under a new id. Raises `ApplicationError` for an invalid request."""
        parsed = _parse(payload_json(request))
        if parsed.gates.approve is Approve.NONE:
            raise invalid_request(
                "gates.approve: the plan of this run waits for an approval; start deep-research without one"
            )
        if parsed.continue_from is not None:
            raise invalid_request("continue_from: a run goes on under its own id: start deep-research as that id")
        gates = parsed.gates.with_fields(approve=parsed.gates.approve or Approve.PLAN)
        research_id = f"r-{workflow.now():%Y%m%d}-{workflow.uuid4().hex[:8]}"
        await _start_run(parsed.with_fields(gates=gates), research_id)
        return PlannedRun(research_id=research_id)


@workflow.defn(name=names.RESEARCH_REFRESH, failure_exception_types=[TypeError])
class ResearchRefreshWorkflow:
    """Starts a refresh under the id of its run, and ends; needed because schedules append a time to workflow ids.

    A run that is still active is refreshed at the next scheduled time.
    """

    @workflow.run
    async def run(self, request: RawValue) -> PlannedRun:
        """Start the refresh. Raises `ApplicationError` for an invalid request."""
        parsed = _parse(payload_json(request))
        if not parsed.refresh or parsed.continue_from is None:
            raise invalid_request("refresh: name a finished run in continue_from, and set refresh")
        with suppress(WorkflowAlreadyStartedError):
            await _start_run(parsed, parsed.continue_from)
        return PlannedRun(research_id=parsed.continue_from)


@workflow.defn(name=names.RESEARCH_NOTICE, failure_exception_types=[TypeError])
class ResearchNoticeWorkflow:
    """Delivers one notice of a run to the operator's address; started by the run, which does not wait for its end."""

    @workflow.run
    async def run(self, request: RawValue) -> None:
        """Send the notice until it is taken, refused, or too old. Raises `ActivityError`."""
        parsed = parse_argument(NoticeRequest, request, MAX_NOTICE_BYTES)
        _check_id(parsed.research_id)
        summary = f"notice: {parsed.status.value}"
        options = call_options(names.READING_QUEUE, "send-notice", summary, NOTICE_SECONDS)
        await Host(None, parsed.tenant).execute(activities.SEND_NOTICE, parsed, options)


@workflow.defn(dynamic=True)
class UnknownWorkflow:
    """Ends what a client starts under a name that none of ours has.

    Without it the server gives out the first task of such a workflow every ten seconds, for ever.
    """

    @workflow.run
    async def run(self, arguments: Sequence[RawValue]) -> None:
        """Fail. Raises `ApplicationError`."""
        del arguments
        raise invalid_request("workflow: there is none of this name here; are the workers older than what started it?")


def _parse(request: bytes | str) -> ResearchRequest:
    try:
        return parse_request(request)
    except InvalidRequest as error:
        raise invalid_request(*error.lines) from None


async def _start_run(request: ResearchRequest, research_id: str) -> None:
    """Start a run that outlives its starter. Raises `WorkflowAlreadyStartedError`."""
    fairness = request.tenant[: names.FAIRNESS_KEY_CHARACTERS]
    memo = run_memo(request)
    if proof := tenant_proof():
        memo[TENANT_HEADER] = proof
    await workflow.start_child_workflow(
        names.DEEP_RESEARCH,
        request.model_dump(mode="json", exclude_unset=True),
        id=research_id,
        task_queue=names.WORKFLOWS_QUEUE,
        parent_close_policy=workflow.ParentClosePolicy.ABANDON,
        cancellation_type=workflow.ChildWorkflowCancellationType.ABANDON,
        task_timeout=workflow.info().task_timeout,
        static_summary=show_summary(request.query),
        memo=memo,
        priority=Priority(priority_key=request.priority, fairness_key=fairness),
    )


def _check_id(research_id: str) -> None:
    if not re.fullmatch(RESEARCH_ID.pattern, research_id):
        raise invalid_request(f"research_id: must be {RESEARCH_ID.expected}")


WORKFLOWS: list[type] = [
    DeepResearchWorkflow,
    DeepResearchPlanWorkflow,
    ResearchAgentWorkflow,
    ResearchDocumentWorkflow,
    ResearchPreviewWorkflow,
    ResearchMetadataWorkflow,
    ResearchRefreshWorkflow,
    ResearchNoticeWorkflow,
    UnknownWorkflow,
]
