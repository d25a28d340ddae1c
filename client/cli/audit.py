"""`audit` and `export`: check a report against its archived sources, and hand it on."""

import asyncio
import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from activities.reporting.audit import AuditResult
from activities.reporting.audit import audit as check
from client.cli.context import CommandContext, RunInfo, open_context
from client.cli.corpus import path_exists, read_start
from client.cli.errors import CommandError, ExitCode
from client.cli.options import AsJson, Commands, ConfigFile
from client.cli.output import print_bytes, print_json, print_progress, print_result
from client.cli.reports import FORMATS, write_atomically
from client.exchange.bibliography import to_bibtex, to_csl
from client.exchange.bundle import BYTE_LIMIT, BundleReader, BundleUnusable, compose_bundle, text_path
from client.exchange.documents import to_docx, to_pdf
from client.view.words import printable
from contracts.evidence import DocumentRef
from contracts.report import HTML_FILE, JSON_FILE, LARGEST_REPORT, MARKDOWN_FILE, Report, ReportUnusable, read_report
from contracts.texts import plural
from providers.errors import ContentCorrupt, ContentMissing
from providers.isolation.pool import KillableCalls, SubprocessPool
from providers.storage.sessions import SAFE_ID
from workers.private_files import umask_of_person
from workers.settings.loading import Flags

EXPORTS: Final[dict[str, Callable[[Report], bytes]]] = {
    "docx": to_docx,
    "pdf": to_pdf,
    "bibtex": to_bibtex,
    "csl": to_csl,
}

SHOWN_PROBLEMS: Final = 50

commands = Commands()


# --- audit ---------------------------------------------------------------------------------------------------------


@dataclass
class ReportToAudit:
    """A report with its other forms; problems of reading it are in the result."""

    result: AuditResult = field(default_factory=AuditResult)
    report: dict[str, Any] | None = None
    markdown: str | None = None
    html: bytes | None = None


@commands.command("audit")
async def audit(
    target: Annotated[str, typer.Argument(metavar="ID|FILE", help="a run, a report.json, or a bundle.zip")] = "last",
    *,
    as_json: AsJson = False,
    config: ConfigFile = None,
) -> int:
    """Check a report again: every citation, quote and verdict; exit code 1 on any difference.

    Compares every quote with the archived source and every verdict with the rules, and names each difference with its
    remedy. A bundle brings its sources along: it needs no server and no store.

    research audit last
    research audit reports/2026-11-21-how-does-vacuum/report.json
    research audit vacuum.zip
    """
    is_file = bool(target) and (target.endswith(".json") or path_exists(target))
    if target.endswith(".zip"):
        audited = await _audit_bundle(Path(target))
    else:
        audited = await _audit_archived(target, Flags(config=config), is_file=is_file)
    result, name = audited.result, str((audited.report or {}).get("research_id", target))
    if as_json:
        print_json(asdict(result) | {"passed": result.passed, "research_id": name})
    else:
        _print_audit(result, name)
    return ExitCode.COMPLETED if result.passed else ExitCode.INTERNAL


async def _audit_archived(target: str, flags: Flags, *, is_file: bool) -> ReportToAudit:
    """Audit a report against the content store of this machine."""
    async with open_context(flags, reads_only=True) as context:
        if is_file:
            audited = await _load_files(context, Path(target))
        else:
            audited = await _load_stored(context, await context.find(target))
        if audited.report is None:
            return audited
        content = context.stores.content

        async def text(reference: str) -> str:
            return await content.get_text(_reference(reference))

        async def data(reference: str) -> bytes:
            return await content.get(_reference(reference))

        isolated = await context.stores.isolated()
        result = await check(audited.report, text, data, isolated, markdown=audited.markdown, html=audited.html)
    audited.result = _joined(audited.result, result)
    return audited


async def _audit_bundle(path: Path) -> ReportToAudit:
    """Audit a report against the texts in its bundle alone. Raises `CommandError`."""
    read_start(path, 1, "the bundle")
    try:
        with BundleReader(path) as bundle:
            audited = ReportToAudit(AuditResult(checked={"files of the bundle": len(bundle.manifest.files)}))
            for found in bundle.differences():
                audited.result.problem(found.kind, found.path, found.message)
            audited.report = _parse_report(bundle.read(JSON_FILE), f"{JSON_FILE} of {path}")
            try:
                audited.markdown = bundle.read(MARKDOWN_FILE).decode("utf-8", "replace")
                audited.html = bundle.read(HTML_FILE)
            except ContentMissing:
                pass  # `differences` has named it, unless the manifest has not: then the audit counts it
            texts = None if bundle.manifest.quotes_only else bundle.text
            async with SubprocessPool(1) as pool:
                isolated = KillableCalls(pool)
                result = await check(
                    audited.report, texts, None, isolated, markdown=audited.markdown, html=audited.html
                )
    except ContentMissing as error:
        raise CommandError(f"{path} cannot be audited: {error}; ask for a complete bundle") from None
    except BundleUnusable as error:
        raise CommandError(str(error)) from None
    audited.result = _joined(audited.result, result)
    return audited


async def _load_files(context: CommandContext, given: Path) -> ReportToAudit:
    """Load a `report.json` with the other forms in its folder, compared with the stored one if there is one."""
    path, data = _read_report_file(given)
    audited = ReportToAudit(report=_parse_report(data, str(path)))
    markdown, page = path.with_name(FORMATS["md"]), path.with_name(FORMATS["html"])
    if markdown.is_file():
        audited.markdown = markdown.read_text(encoding="utf-8", errors="replace")
    if page.is_file():
        audited.html = page.read_bytes()
    research_id = str((audited.report or {}).get("research_id"))
    known = SAFE_ID.fullmatch(research_id) is not None
    stored = await (await context.load_run(research_id)).result() if known else None
    if stored is not None and stored.files is not None:
        audited.result.count("report.json against the store")
        if stored.files.json_document.hash != "sha256:" + hashlib.sha256(data).hexdigest():
            audited.result.problem("report_differs", path.name, "it is not the report that is stored of this run")
    return audited


async def _load_stored(context: CommandContext, run: RunInfo) -> ReportToAudit:
    stored = await run.result()
    if stored is None or stored.files is None:
        raise CommandError(f"this run has no report to audit: see `research status {run.research_id}`")
    audited = ReportToAudit()

    async def load(reference: DocumentRef, name: str) -> bytes | None:
        try:
            return await context.stores.content.get(reference)
        except ContentCorrupt:
            audited.result.problem("report_damaged", name, "the stored file does not have the hash that names it")
        except ContentMissing:
            audited.result.problem("report_missing", name, "the stored file is gone")
        return None

    report = await load(stored.files.json_document, FORMATS["json"])
    markdown = await load(stored.files.markdown, FORMATS["md"])
    audited.html = await load(stored.files.html, FORMATS["html"])
    audited.markdown = None if markdown is None else markdown.decode("utf-8", "replace")
    audited.report = None if report is None else _parse_report(report, f"the stored report of {run.research_id}")
    return audited


def _joined(first: AuditResult, second: AuditResult) -> AuditResult:
    return AuditResult(
        first.checked | second.checked, first.unchecked | second.unchecked, [*first.problems, *second.problems]
    )


def _reference(text: str) -> DocumentRef:
    try:
        return DocumentRef(hash=text)
    except ValueError:
        raise ContentMissing("the report names a document by something other than a hash") from None


def _read_report_file(path: Path) -> tuple[Path, bytes]:
    """Read a `report.json` by its path or that of its folder. Raises `CommandError`."""
    if path.is_dir():
        path = path / FORMATS["json"]
    return path, read_start(path, LARGEST_REPORT + 1, "the report")


def _parse_report(data: bytes, name: str) -> dict[str, Any]:
    """Parse a `report.json`, which messages call by `name`. Raises `CommandError`."""
    if len(data) > LARGEST_REPORT:
        raise CommandError(
            f"{name} is larger than {LARGEST_REPORT:,} bytes: name a report that `research run` has written"
        )
    try:
        report = json.loads(data)
    except (ValueError, RecursionError):
        report = None
    if not isinstance(report, dict):
        raise CommandError(f"{name} is not a report.json: name one that `research run` has written")
    return report


def _print_audit(result: AuditResult, name: str) -> None:
    for problem in result.problems[:SHOWN_PROBLEMS]:
        print_result(f"✖ {problem.kind} {printable(problem.id)}: {printable(problem.message)}")
        print_result(f"    → {problem.remedy}")
    if len(result.problems) > SHOWN_PROBLEMS:
        print_result(f"… and {len(result.problems) - SHOWN_PROBLEMS:,} more: add --json")
    verdict = "✔ no difference" if result.passed else f"✖ {plural(len(result.problems), 'difference')}"
    print_result(f"{verdict} in {printable(name)}")
    compared = ", ".join(f"{count} {noun}" for noun, count in result.checked.items())
    print_result(f"  compared: {compared or 'nothing'}")
    if result.unchecked:
        print_result(f"  not compared: {', '.join(f'{count} {noun}' for noun, count in result.unchecked.items())}")


# --- export --------------------------------------------------------------------------------------------------------


@commands.command("export")
async def export(
    target: Annotated[str, typer.Argument(metavar="ID|FILE", help="a run; for --format also a report.json")] = "last",
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE.zip", help="for --bundle, else ID.zip here", show_default=False)
    ] = None,
    *,
    bundle: Annotated[
        bool, typer.Option("--bundle", help="report and archived texts, for `research audit` elsewhere")
    ] = False,
    quotes_only: Annotated[
        bool, typer.Option("--quotes-only", help="a bundle without the whole texts of the sources")
    ] = False,
    form: Annotated[
        str | None, typer.Option("--format", metavar="docx|pdf|bibtex|csl", help="one format instead")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="write the format there")] = None,
    config: ConfigFile = None,
) -> int:
    """Hand a report on: as a bundle that others can audit, as a document, or its sources as a bibliography.

    A bundle is a ZIP file: the report in its three forms, the archived text of each source, and a manifest of SHA-256
    hashes. `research audit FILE.zip` checks it without any other file. You may not have the right to pass on the
    texts of others: --quotes-only includes only the quoted passages.

    research export last --bundle                          (ID.zip in this folder)
    research export last --bundle vacuum.zip
    research export last --bundle vacuum.zip --quotes-only
    research export last --format docx --out vacuum.docx
    research export last --format pdf --out vacuum.pdf
    research export last --format bibtex > vacuum.bib      (or csl: CSL-JSON)
    """
    if bundle and file is None and target.endswith(".zip"):
        target, file = "last", Path(target)
    if bundle == (form is not None):
        raise CommandError("choose one form: --bundle, or --format docx, pdf, bibtex or csl")
    if form is not None and form not in EXPORTS:
        raise CommandError(f"--format is one of {', '.join(EXPORTS)}; md, html and json: `research report --format`")
    if not bundle and (quotes_only or file is not None):
        raise CommandError("--quotes-only and FILE.zip belong to --bundle: add it; --format takes --out FILE")
    if bundle and out is not None:
        raise CommandError("--out belongs to --format: name the bundle behind --bundle")
    flags = Flags(config=config)
    try:
        if form is None:
            research_id, data = await _bundle(target, flags, quotes_only=quotes_only)
            out = file or Path(f"{research_id}.zip")
        else:
            report = read_report(await _load_report(target, flags))
            data = await asyncio.to_thread(EXPORTS[form], report)
    except ReportUnusable as error:
        raise CommandError(str(error)) from None
    if out is None:
        if form in ("docx", "pdf") and sys.stdout.isatty():
            raise CommandError(f"a {form} is no text for a terminal: name a file with --out FILE.{form}")
        print_bytes(data)
        return ExitCode.COMPLETED
    if out.is_dir():
        raise CommandError(f"{out} is a folder: name a file in it")
    write_atomically(out, data, umask=umask_of_person())
    print_progress(str(out))
    return ExitCode.COMPLETED


async def _load_report(target: str, flags: Flags) -> dict[str, Any]:
    """Load the `report.json` of a run, or the file of that name."""
    if target and (target.endswith(".json") or path_exists(target)):
        path, data = _read_report_file(Path(target))
        return _parse_report(data, str(path))
    async with open_context(flags, reads_only=True) as context:
        forms = await _load_forms(context, await context.find(target))
        return _parse_report(forms["json"], f"the stored report of {target}")


async def _load_forms(context: CommandContext, run: RunInfo) -> dict[str, bytes]:
    """Load the three forms of a finished report. Raises `CommandError`."""
    result = await run.result()
    forms = {} if result is None else await context.report_documents(result)
    if set(forms) != set(FORMATS):
        raise CommandError(
            f"this run has no finished report to export: see `research status {run.research_id}`",
            ExitCode.FAILED,
        )
    return forms


async def _bundle(target: str, flags: Flags, *, quotes_only: bool) -> tuple[str, bytes]:
    """Give the id of a run and its bundle. Raises `CommandError`."""
    async with open_context(flags, reads_only=True) as context:
        run = await context.find(target)
        research_id, forms = run.research_id, await _load_forms(context, run)
        report = read_report(_parse_report(forms["json"], f"the stored report of {research_id}"))
        files = {JSON_FILE: forms["json"], MARKDOWN_FILE: forms["md"], HTML_FILE: forms["html"]}
        for source in [] if quotes_only else report.sources:
            if source.text_hash is None:
                continue
            try:
                text = await context.stores.content.get(DocumentRef(hash=source.text_hash))
            except ContentMissing:
                raise CommandError(
                    f"the stored text of {source.id} is gone or damaged: see `research audit {research_id}`, "
                    "or add --quotes-only for a bundle without whole texts",
                    ExitCode.FAILED,
                ) from None
            files[text_path(source.text_hash)] = text
    if sum(map(len, files.values())) > BYTE_LIMIT:
        raise CommandError(f"the texts have more than {BYTE_LIMIT:,} bytes together: add --quotes-only")
    data = await asyncio.to_thread(
        compose_bundle,
        files,
        research_id=report.research_id,
        product_version=report.product_version,
        quotes_only=quotes_only,
    )
    return research_id, data
