"""The forms of a report as bytes: from the content store, or what the result itself carries."""

from client.cli import output
from client.cli.context import CommandContext
from contracts.outcome import ResearchResult
from providers.errors import ContentCorrupt, ContentMissing


async def report_documents(context: CommandContext, result: ResearchResult) -> dict[str, bytes]:
    """`md`, `html` and `json` as far as they exist; only `md` where the content store is out of reach."""
    if result.files is None:
        return {"md": result.report.encode()} if result.report else {}
    references = {"md": result.files.markdown, "html": result.files.html, "json": result.files.json_document}
    try:
        return {form: await context.stores.content.get(reference) for form, reference in references.items()}
    except ContentCorrupt:
        raise
    except ContentMissing:
        if not result.report:
            raise
        output.tell("the stored report is not to be found here: only the Markdown of the result is written")
        return {"md": result.report.encode()}
