"""The tiny workflow `research-document`: serves a stored document to clients that reach only the engine."""

from temporalio import workflow

from contracts import activities, names
from contracts.activities import DocumentPiece, DocumentPieceRequest
from workflows.activity_options import record_options
from workflows.host import TemporalHost


@workflow.defn(name=names.RESEARCH_DOCUMENT)
class ResearchDocumentWorkflow:
    """One piece of at most 1 MB."""

    @workflow.run
    async def run(self, request: DocumentPieceRequest) -> DocumentPiece:
        """Read the piece."""
        options = record_options("read-document", f"read {request.name}")
        return await TemporalHost().execute(activities.read_document.__name__, request, DocumentPiece, options)
