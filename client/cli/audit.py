"""`audit` and `export`: check a report against its archived sources, and hand it on."""

import asyncio
import hashlib
import json
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from activities.reporting.audit import AuditResult, BytesOf, TextOf
from activities.reporting.audit import audit as check
from client.cli.context import CommandContext, RunInfo, open_context
from client.cli.corpus import read_start
from client.cli.errors import CommandError, ExitCode
from client.cli.options import AsJson, Commands, ConfigFile
from client.cli.output import print_json, print_progress, print_result
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
from workers.private_files import files_of_person
from workers.settings.loading import Flags

EXPORTS: Final[dict[str, tuple[Callable[[Report], bytes], str]]] = {
    "docx": (to_docx, ".docx"),
    "pdf": (to_pdf, ".pdf"),
    "bibtex": (to_bibtex, ".bib"),
    "csl": (to_csl, ".csl.json"),
}
"""Formats beside a bundle, with the suffixes of their files."""

SHOWN_PROBLEMS: Final = 50

commands = Commands()


# --- audit ---------------------------------------------------------------------------------------------------------


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
    if target.endswith(".zip"):
        name, result = await _audit_bundle(Path(target))
    else:
        async with open_context(Flags(config=config)) as context:
            name, result = await _audit_archived(context, target)
    if as_json:
        print_json(asdict(result) | {"passed": result.passed, "research_id": name})
    else:
        _print_audit(result, name)
    return ExitCode.COMPLETED if result.passed else ExitCode.INTERNAL


async def _audit_archived(context: CommandContext, target: str) -> tuple[str, AuditResult]:
    """Audit a run or a `report.json` against the content store of this machine. Raises `CommandError`."""
    result, content = AuditResult(), context.stores.content
    if is_report_file(target):
        forms, name = await _load_files(context, _report_path(target), result), target
    else:
        run = await context.find(target)
        forms, name = await _load_stored(context, run, result), f"the stored report of {run.research_id}"
    if "json" not in forms:
        return target, result
    report = _parse_report(forms["json"], name)

    async def text(reference: str) -> str:
        return await content.get_text(_reference(reference))

    async def data(reference: str) -> bytes:
        return await content.get(_reference(reference))

    return await _check(report, forms, text, data, KillableCalls(await context.stores.children()), result)


async def _audit_bundle(path: Path) -> tuple[str, AuditResult]:
    """Audit a report against the texts in its bundle alone. Raises `CommandError`."""
    read_start(path, 1, "the bundle")
    try:
        with closing(BundleReader(path)) as bundle:
            result = AuditResult(checked={"files of the bundle": len(bundle.manifest.files)})
            for found in bundle.differences():
                result.problem(*found)
            report = _parse_report(bundle.read(JSON_FILE), f"{JSON_FILE} of {path}")
            forms = {}
            with suppress(ContentMissing):  # `differences` has named it, unless the manifest has not
                forms["md"] = bundle.read(MARKDOWN_FILE)
                forms["html"] = bundle.read(HTML_FILE)
            texts = None if bundle.manifest.quotes_only else bundle.text
            async with SubprocessPool(1) as pool:
                return await _check(report, forms, texts, None, KillableCalls(pool), result)
    except ContentMissing as error:
        raise CommandError(f"{path} cannot be audited: {error}; ask for a complete bundle") from None
    except BundleUnusable as error:
        raise CommandError(str(error)) from None


async def _check(
    report: dict[str, Any],
    forms: dict[str, bytes],
    text: TextOf | None,
    data: BytesOf | None,
    isolated: KillableCalls,
    before: AuditResult,
) -> tuple[str, AuditResult]:
    """Give the id of the run of a report, and everything that was compared."""
    markdown = forms["md"].decode("utf-8", "replace") if "md" in forms else None
    result = await check(report, text, data, isolated, markdown=markdown, html=forms.get("html"), before=before)
    return str(report.get("research_id")), result


async def _load_files(context: CommandContext, path: Path, result: AuditResult) -> dict[str, bytes]:
    """Load a `report.json` with the other forms in its folder; one that the store has must be the same."""
    others = {form: path.with_name(name) for form, name in FORMATS.items() if form != "json"}
    forms = {form: beside.read_bytes() for form, beside in others.items() if beside.is_file()}
    forms["json"] = data = read_start(path, LARGEST_REPORT + 1, "the report")
    research_id = str(_parse_report(data, str(path)).get("research_id"))
    stored = await (await context.load_run(research_id)).result() if SAFE_ID.fullmatch(research_id) else None
    if stored is not None and stored.files is not None:
        result.count("report.json against the store")
        if stored.files.json_document.hash != "sha256:" + hashlib.sha256(data).hexdigest():
            result.problem("report_differs", path.name, "it is not the report that is stored of this run")
    return forms


async def _load_stored(context: CommandContext, run: RunInfo, result: AuditResult) -> dict[str, bytes]:
    """Load the stored forms of a report. Raises `CommandError` for a run without one."""
    stored, forms = await run.result(), {}
    if stored is None or stored.files is None:
        raise CommandError(f"this run has no report to audit: see `research status {run.research_id}`")
    for form, reference in stored.files.by_form().items():
        try:
            forms[form] = await context.stores.content.get(reference)
        except ContentCorrupt:
            result.problem("report_damaged", FORMATS[form], "the stored file does not have the hash that names it")
        except ContentMissing:
            result.problem("report_missing", FORMATS[form], "the stored file is gone")
    return forms


def is_report_file(target: str) -> bool:
    """Give whether a text is the path of a report, or of a folder with one; any other is the id of a run."""
    return "/" in target or target.endswith(".json")


def _report_path(target: str) -> Path:
    return Path(target) / FORMATS["json"] if Path(target).is_dir() else Path(target)


def _reference(text: str) -> DocumentRef:
    try:
        return DocumentRef(hash=text)
    except ValueError:
        raise ContentMissing("the report names a document by something other than a hash") from None


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
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="write it there [ID with the format's suffix]")
    ] = None,
    config: ConfigFile = None,
) -> int:
    """Hand a report on: as a bundle that others can audit, as a document, or its sources as a bibliography.

    A bundle is a ZIP file: the report in its three forms, the archived text of each source, and a manifest of SHA-256
    hashes. `research audit FILE.zip` checks it without any other file. You may not have the right to pass on the
    texts of others: --quotes-only includes only the quoted passages.

    research export last --bundle                          (ID.zip in this folder)
    research export last --bundle --quotes-only --out vacuum.zip
    research export last --format docx                     (ID.docx; also pdf, bibtex, csl)
    research export last --format pdf --out vacuum.pdf
    """
    if bundle == (form is not None):
        raise CommandError("choose one form: --bundle, or --format docx, pdf, bibtex or csl")
    if form is not None and form not in EXPORTS:
        raise CommandError(f"--format is one of {', '.join(EXPORTS)}; md, html and json: `research report --format`")
    if quotes_only and not bundle:
        raise CommandError("--quotes-only belongs to --bundle: add it")
    if out is not None and out.is_dir():
        raise CommandError(f"{out} is a folder: name a file in it")
    async with open_context(Flags(config=config)) as context:
        try:
            if form is None:
                name, data = await _bundle(context, target, quotes_only=quotes_only)
            else:
                make, suffix = EXPORTS[form]
                report = read_report(await _load_report(context, target))
                name, data = report.research_id + suffix, await asyncio.to_thread(make, report)
        except ReportUnusable as error:
            raise CommandError(str(error)) from None
    out = out or Path(Path(name).name)  # a file of others may have any id
    with files_of_person():
        write_atomically(out, data)
    print_progress(str(out))
    return ExitCode.COMPLETED


async def _load_report(context: CommandContext, target: str) -> dict[str, Any]:
    """Load the `report.json` of a run, or the file of that name."""
    if is_report_file(target):
        path = _report_path(target)
        return _parse_report(read_start(path, LARGEST_REPORT + 1, "the report"), str(path))
    forms = await _load_forms(context, await context.find(target))
    return _parse_report(forms["json"], f"the stored report of {target}")


async def _load_forms(context: CommandContext, run: RunInfo) -> dict[str, bytes]:
    """Load the three forms of a finished report. Raises `CommandError`."""
    result = await run.result()
    forms = {} if result is None else await context.report_documents(result)
    if set(forms) != set(FORMATS):
        problem = f"this run has no finished report to export: see `research status {run.research_id}`"
        raise CommandError(problem, ExitCode.FAILED)
    return forms


async def _bundle(context: CommandContext, target: str, *, quotes_only: bool) -> tuple[str, bytes]:
    """Give the name of a file, and the bundle of a run. Raises `CommandError`."""
    run = await context.find(target)
    research_id, forms = run.research_id, await _load_forms(context, run)
    report = read_report(_parse_report(forms["json"], f"the stored report of {research_id}"))
    files = {FORMATS[form]: data for form, data in forms.items()}
    hashes = [source.text_hash for source in report.sources if source.text_hash is not None]
    try:
        for text_hash in [] if quotes_only else hashes:
            files[text_path(text_hash)] = await context.stores.content.get(DocumentRef(hash=text_hash))
    except ContentMissing:
        raise CommandError(
            f"the stored text of a source is gone or damaged: see `research audit {research_id}`, "
            "or add --quotes-only for a bundle without whole texts",
            ExitCode.FAILED,
        ) from None
    if sum(map(len, files.values())) > BYTE_LIMIT:
        raise CommandError(f"the texts have more than {BYTE_LIMIT:,} bytes together: add --quotes-only")
    version = report.product_version
    data = compose_bundle(files, research_id=research_id, product_version=version, quotes_only=quotes_only)
    return f"{research_id}.zip", data
