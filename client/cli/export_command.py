"""`export`: a report with its sources as one file, or in a format of other programs."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from client.cli import output
from client.cli.audit_command import parse_report, read_report_file
from client.cli.command_context import CommandContext, open_context
from client.cli.command_errors import CommandError, ExitCode
from client.cli.folders import exists
from client.cli.report_files import FORMATS, write_atomically
from client.exchange.bibliography import to_bibtex, to_csl
from client.exchange.bundle import HTML, LARGEST_BYTES, MARKDOWN, REPORT, text_path
from client.exchange.bundle_writing import compose_bundle
from client.exchange.exported_report import ExportedReport, ReportUnusable, read_report
from client.exchange.pdf_export import to_pdf
from client.exchange.word_document import to_docx
from contracts.evidence import DocumentRef
from providers.errors import ContentMissing
from workers.private_files import umask_of_person

EXPORTS: Final[dict[str, Callable[[ExportedReport], bytes]]] = {
    "docx": to_docx,
    "pdf": to_pdf,
    "bibtex": to_bibtex,
    "csl": to_csl,
}
NOT_TEXT: Final = ("docx", "pdf")


async def export(target: str, *, bundle: Path | None, quotes_only: bool, form: str | None, out: Path | None) -> int:
    """Write a bundle or one format. Raises `CommandError`."""
    if (bundle is None) == (form is None):
        raise CommandError("say what to write: --bundle FILE.zip, or --format docx, pdf, bibtex or csl")
    if form is not None and form not in EXPORTS:
        raise CommandError(f"--format is one of {', '.join(EXPORTS)}; md, html and json: `research report --format`")
    if quotes_only and bundle is None:
        raise CommandError("--quotes-only belongs to --bundle")
    if out is not None and bundle is not None:
        raise CommandError("--out belongs to --format: --bundle names its file itself")
    try:
        if bundle is not None:
            data = await _bundle(target, quotes_only=quotes_only)
            return _write(bundle, data)
        assert form is not None
        document = await _report(target)
        data = await asyncio.to_thread(EXPORTS[form], read_report(document))
    except ReportUnusable as error:
        raise CommandError(str(error)) from None
    if out is not None:
        return _write(out, data)
    if form in NOT_TEXT and sys.stdout.isatty():
        raise CommandError(f"a {form} is no text for a terminal: name a file with --out FILE.{form}")
    output.raw(data)
    return ExitCode.COMPLETED


def _write(path: Path, data: bytes) -> int:
    if path.is_dir():
        raise CommandError(f"{path} is a folder: name a file in it")
    write_atomically(path, data, umask=umask_of_person())
    output.tell(str(path))
    return ExitCode.COMPLETED


async def _report(target: str) -> dict[str, object]:
    """The `report.json` of a run, or the file of that name."""
    if target and (target.endswith(".json") or exists(target)):
        path, data = read_report_file(Path(target))
        return parse_report(data, str(path))
    async with open_context(reads_only=True) as context:
        forms = await _forms(context, await context.resolve(target))
        return parse_report(forms["json"], f"the stored report of {target}")


async def _forms(context: CommandContext, research_id: str) -> dict[str, bytes]:
    """The three forms of a finished report. Raises `CommandError`."""
    result = await context.stored_result(research_id)
    forms = {} if result is None else await context.report_documents(result)
    if set(forms) != set(FORMATS):
        raise CommandError(
            f"the run {research_id} has no finished report to export: see `research status {research_id}`",
            ExitCode.FAILED,
        )
    return forms


async def _bundle(target: str, *, quotes_only: bool) -> bytes:
    async with open_context(reads_only=True) as context:
        research_id = await context.resolve(target)
        forms = await _forms(context, research_id)
        report = read_report(parse_report(forms["json"], f"the stored report of {research_id}"))
        files = {REPORT: forms["json"], MARKDOWN: forms["md"], HTML: forms["html"]}
        if not quotes_only:
            files |= await _texts(context, report)
    if sum(map(len, files.values())) > LARGEST_BYTES:
        raise CommandError(f"the texts have more than {LARGEST_BYTES:,} bytes together: add --quotes-only")
    return await asyncio.to_thread(
        compose_bundle,
        files,
        research_id=report.research_id,
        product_version=report.product_version,
        quotes_only=quotes_only,
    )


async def _texts(context: CommandContext, report: ExportedReport) -> dict[str, bytes]:
    """The stored texts by their path in a bundle. Raises `CommandError` if one is gone."""
    texts = {}
    for source in report.sources:
        if source.text_hash is None or text_path(source.text_hash) in texts:
            continue
        try:
            texts[text_path(source.text_hash)] = await context.stores.content.get(DocumentRef(hash=source.text_hash))
        except ContentMissing:
            raise CommandError(
                f"the stored text of {source.id} is gone or damaged: `research audit {report.research_id}` says more, "
                "and --quotes-only makes a bundle without whole texts",
                ExitCode.FAILED,
            ) from None
    return texts
