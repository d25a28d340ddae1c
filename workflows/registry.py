"""The workflows of the pool `workflows`, with the smallest of them: answers to clients that reach only the engine."""

from temporalio import workflow
from temporalio.common import RawValue

from contracts import activities, names
from contracts.messages import DocumentPiece, DocumentPieceRequest, PrepareRequest
from contracts.resolved import ResolvedResearch
from workflows.deep_research import DeepResearchWorkflow
from workflows.research_agent import ResearchAgentWorkflow
from workflows.run.calls import call_options
from workflows.run.host import Host, parse_argument


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
    """Answers what a run would use, before it is started: only those that do the work know."""

    @workflow.run
    async def run(self, request: RawValue) -> ResolvedResearch:
        """Resolve the request. Raises `ApplicationError` for one that would be refused."""
        parsed = parse_argument(PrepareRequest, request)
        options = call_options(names.RECORDS_QUEUE, "preview", "what would a run use?")
        return await Host(None, "").execute(activities.PREVIEW_RESEARCH, parsed, options)


WORKFLOWS: list[type] = [DeepResearchWorkflow, ResearchAgentWorkflow, ResearchDocumentWorkflow, ResearchPreviewWorkflow]
