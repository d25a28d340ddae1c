"""The workflows of the pool `workflows`, and the small ones that serve clients which reach only the engine."""

from contextlib import suppress

from temporalio import workflow
from temporalio.common import Priority, RawValue
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError

from contracts import activities, failures, names
from contracts.messages import (
    DocumentPiece,
    DocumentPieceRequest,
    MetadataRequest,
    PlannedRun,
    PrepareRequest,
    ResearchMetadata,
)
from contracts.parse_request import InvalidRequest, parse_request
from contracts.request import Approve, ResearchRequest, run_memo
from contracts.resolved import ResolvedResearch
from workflows.deep_research import DeepResearchWorkflow
from workflows.research_agent import ResearchAgentWorkflow
from workflows.run.calls import call_options, show_summary
from workflows.run.host import Host, parse_argument, payload_json


@workflow.defn(name=names.RESEARCH_DOCUMENT, failure_exception_types=[TypeError])
class ResearchDocumentWorkflow:
    """Serves a stored document, in pieces of at most 1 MB, to clients that reach only the engine."""

    @workflow.run
    async def run(self, request: RawValue) -> DocumentPiece:
        """Read the piece. Raises `ApplicationError` for an invalid request."""
        parsed = parse_argument(DocumentPieceRequest, request)
        options = call_options(names.RECORDS_QUEUE, "read-document", f"read {parsed.name}")
        return await Host(None, parsed.tenant).execute(activities.READ_DOCUMENT, parsed, options)


@workflow.defn(name=names.RESEARCH_PREVIEW, failure_exception_types=[TypeError])
class ResearchPreviewWorkflow:
    """Previews the configuration that a run would use, which only the workers know."""

    @workflow.run
    async def run(self, request: RawValue) -> ResolvedResearch:
        """Resolve the request. Raises `ApplicationError` if the run would be refused."""
        parsed = parse_argument(PrepareRequest, request)
        options = call_options(names.RECORDS_QUEUE, "preview", "what would a run use?")
        return await Host(None, "").execute(activities.PREVIEW_RESEARCH, parsed, options)


@workflow.defn(name=names.RESEARCH_METADATA, failure_exception_types=[TypeError])
class ResearchMetadataWorkflow:
    """Serves the metadata that a front end needs before any run: session location and settings schema."""

    @workflow.run
    async def run(self) -> ResearchMetadata:
        """Describe the effective configuration; needs no run and stores nothing."""
        options = call_options(names.RECORDS_QUEUE, "describe", "describe the settings")
        return await Host(None, "").execute(activities.DESCRIBE_RESEARCH, MetadataRequest(), options)


@workflow.defn(name=names.DEEP_RESEARCH_PLAN, failure_exception_types=[TypeError])
class DeepResearchPlanWorkflow:
    """Starts a run whose plan needs approval, and ends."""

    @workflow.run
    async def run(self, request: RawValue) -> PlannedRun:
        """Start the run under a new id. Raises `ApplicationError` for an invalid request."""
        parsed = _parse(request)
        if parsed.gates.approve is Approve.NONE:
            raise _invalid("gates.approve: the plan of this run waits for an approval; start deep-research without one")
        if parsed.continue_from is not None:
            raise _invalid("continue_from: a run goes on under its own id: start deep-research as that id")
        gates = parsed.gates.model_copy(update={"approve": parsed.gates.approve or Approve.PLAN})
        research_id = f"r-{workflow.now():%Y%m%d}-{workflow.uuid4().hex[:8]}"
        await _start_run(parsed.model_copy(update={"gates": gates}), research_id)
        return PlannedRun(research_id=research_id)


@workflow.defn(name=names.RESEARCH_REFRESH, failure_exception_types=[TypeError])
class ResearchRefreshWorkflow:
    """Starts a refresh under the id of its run, and ends; needed because schedules append a time to workflow ids.

    A run that is still active is refreshed at the next scheduled time.
    """

    @workflow.run
    async def run(self, request: RawValue) -> PlannedRun:
        """Start the refresh. Raises `ApplicationError` for an invalid request."""
        parsed = _parse(request)
        if not parsed.refresh or parsed.continue_from is None:
            raise _invalid("refresh: name a finished run in continue_from, and set refresh")
        with suppress(WorkflowAlreadyStartedError):
            await _start_run(parsed, parsed.continue_from)
        return PlannedRun(research_id=parsed.continue_from)


def _parse(request: RawValue) -> ResearchRequest:
    try:
        return parse_request(payload_json(request))
    except InvalidRequest as error:
        raise _invalid(*error.lines) from None


async def _start_run(request: ResearchRequest, research_id: str) -> None:
    """Start a run that outlives its starter. Raises `WorkflowAlreadyStartedError`."""
    fairness = request.tenant[: names.FAIRNESS_KEY_CHARACTERS]
    await workflow.start_child_workflow(
        names.DEEP_RESEARCH,
        request.model_dump(mode="json", exclude_unset=True),
        id=research_id,
        task_queue=names.WORKFLOWS_QUEUE,
        parent_close_policy=workflow.ParentClosePolicy.ABANDON,
        cancellation_type=workflow.ChildWorkflowCancellationType.ABANDON,
        task_timeout=workflow.info().task_timeout,
        static_summary=show_summary(request.query),
        memo=run_memo(request),
        priority=Priority(priority_key=request.priority, fairness_key=fairness),
    )


def _invalid(*lines: str) -> ApplicationError:
    return ApplicationError("\n".join(lines), {"lines": list(lines)}, type=failures.INVALID_REQUEST, non_retryable=True)


WORKFLOWS: list[type] = [
    DeepResearchWorkflow,
    DeepResearchPlanWorkflow,
    ResearchAgentWorkflow,
    ResearchDocumentWorkflow,
    ResearchPreviewWorkflow,
    ResearchMetadataWorkflow,
    ResearchRefreshWorkflow,
]
