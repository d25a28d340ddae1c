"""The tiny workflow `research-document`: serves a stored document to clients that reach only the engine."""

from pydantic import ValidationError
from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from contracts import activities, failures, names
from contracts.messages import DocumentPiece, DocumentPieceRequest
from contracts.parse_request import error_lines
from workflows.run.activity_options import record_options
from workflows.run.host import TemporalHost
from workflows.run.payloads import json_of


@workflow.defn(name=names.RESEARCH_DOCUMENT, failure_exception_types=[TypeError])
class ResearchDocumentWorkflow:
    """One piece of at most 1 MB."""

    @workflow.run
    async def run(self, request: RawValue) -> DocumentPiece:
        """Read the piece; what makes no sense ends at once with what is wrong."""
        asked = _parse(request)
        options = record_options("read-document", f"read {asked.name}")
        return await TemporalHost(None, asked.tenant).execute(activities.read_document, asked, options)


def _parse(request: RawValue) -> DocumentPieceRequest:
    try:
        return DocumentPieceRequest.model_validate_json(json_of(request))
    except ValidationError as error:
        lines = error_lines(error)
        raise ApplicationError(
            "\n".join(lines), {"lines": lines}, type=failures.INVALID_REQUEST, non_retryable=True
        ) from None
