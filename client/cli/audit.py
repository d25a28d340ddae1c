"""`audit` and `export`: check a report against its archived sources, and hand it on."""

from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Final, TypeVar

import typer
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from activities.reporting.audit import READ, AuditResult, BytesOf, TextOf
from activities.reporting.audit import audit as check
from client.cli.context import CommandContext, RunInfo, open_context
from client.cli.corpus import read_start
from client.cli.errors import CommandError, ExitCode
from client.cli.options import AsJson, Commands, ConfigFile, RunId
from client.cli.output import print_json, print_result
from client.cli.reports import FORMATS, write_for_person
from client.exchange.bundle import (
    BYTE_LIMIT,
    SIGNATURE,
    BundleReader,
    BundleUnusable,
    KeyUnusable,
    compose_bundle,
    private_key,
    public_key,
    text_path,
)
from client.view.words import printable
from contracts.addresses import digest
from contracts.evidence import DocumentRef
from contracts.report import HTML_FILE, JSON_FILE, LARGEST_REPORT, MARKDOWN_FILE, Report
from contracts.texts import plural
from providers.errors import ContentCorrupt, ContentMissing, InputUnprocessable
from providers.isolation.pool import SubprocessPool
from providers.storage.sessions import SAFE_ID
from workers.settings.loading import Flags

EXPORTS: Final = {
    "docx": ("client.exchange.documents:to_docx", ".docx"),
    "pdf": ("client.exchange.documents:to_pdf", ".pdf"),
    "bibtex": ("client.exchange.bibliography:to_bibtex", ".bib"),
    "csl": ("client.exchange.bibliography:to_csl", ".csl.json"),
}
"""Formats beside a bundle: the function that makes one of a report, and the suffix of its files."""
MEMORY_BYTES: Final = 1_000_000_000
"""Of the process that reads a report, which anybody may have written."""
LARGEST_KEY: Final = 10_000
EXPORT_SECONDS: Final = 120.0

K = TypeVar("K")

commands = Commands()


# --- audit ---------------------------------------------------------------------------------------------------------


@commands.command("audit")
async def audit(
    target: Annotated[str, typer.Argument(metavar="ID|FILE", help="a run, a report.json, or a bundle.zip")] = "last",
    *,
    key: Annotated[
        Path | None, typer.Option("--key", metavar="FILE", help="public key that a bundle must be signed with")
    ] = None,
    as_json: AsJson = False,
    config: ConfigFile = None,
) -> int:
    """Check a report again: every citation, quote and verdict; exit code 1 on any difference.

    Compares every quote with the archived source and every verdict with the rules, and names each difference with its
    remedy. A bundle brings its sources along: it needs no server and no store.

    research audit last
    research audit reports/2026-11-21-how-does-vacuum/report.json
    research audit vacuum.zip
    research audit vacuum.zip --key sender.pub
    """
    if key is not None and not target.endswith(".zip"):
        raise CommandError("--key belongs to a bundle, FILE.zip: only bundles are signed")
    result = AuditResult()
    if target.endswith(".zip"):
        sender = None if key is None else _read_key(public_key, key)
        name, result = await _audit_bundle(Path(target), sender, result)
    else:
        async with open_context(Flags(config=config)) as context:
            name, result = await _audit_archived(context, target, result)
    if as_json:
        print_json(asdict(result) | {"passed": result.passed})
    else:
        _print_audit(result, name)
    return ExitCode.COMPLETED if result.passed else ExitCode.INTERNAL


async def _audit_archived(context: CommandContext, target: str, result: AuditResult) -> tuple[str, AuditResult]:
    """Audit a run or a `report.json` against the content store of this machine. Raises `CommandError`."""
    is_file, content = "/" in target or target.endswith(".json"), context.stores.content
    if is_file:
        forms, name = _load_files(Path(target)), target
    else:
        run = await context.find(target)
        forms, name = await _load_stored(context, run, result), f"the stored report of {run.research_id}"
    if "json" not in forms:
        return target, result

    async def text(reference: str) -> str:
        return await content.get_text(_reference(reference))

    async def data(reference: str) -> bytes:
        return await content.get(_reference(reference))

    result = await _check(forms, name, text, data, result)
    if is_file:
        await _compare_with_store(context, forms["json"], result)
    return result.research_id or target, result


def _read_key(read: Callable[[bytes], K], path: Path) -> K:
    """Read a key from a file. Raises `CommandError`."""
    try:
        return read(read_start(path, LARGEST_KEY, "the key"))
    except KeyUnusable as error:
        raise CommandError(f"{path}: {error}") from None


async def _audit_bundle(path: Path, key: Ed25519PublicKey | None, result: AuditResult) -> tuple[str, AuditResult]:
    """Audit a report against the texts in its bundle alone. Raises `CommandError`."""
    read_start(path, 1, "the bundle")
    try:
        with closing(BundleReader(path)) as bundle:
            result.checked["files of the bundle"] = len(bundle.manifest.files)
            for found in bundle.differences():
                result.problem(*found)
            if key is not None:
                result.count("signature")
                if not bundle.is_signed:
                    result.problem("signature_missing", SIGNATURE, "the bundle is not signed")
                elif not bundle.is_signed_by(key):
                    result.problem("signature_differs", SIGNATURE, "this key did not sign the manifest as it is")
            elif bundle.is_signed:
                result.skip("signature, which --key compares")
            forms = {"json": bundle.read(JSON_FILE)}
            with suppress(ContentMissing):  # `differences` has named it, unless the manifest has not
                forms["md"] = bundle.read(MARKDOWN_FILE)
                forms["html"] = bundle.read(HTML_FILE)
            texts = None if bundle.manifest.quotes_only else bundle.text
            result = await _check(forms, f"{JSON_FILE} of {path}", texts, None, result)
            return result.research_id or str(path), result
    except ContentMissing as error:
        raise CommandError(f"{path} cannot be audited: {error}; ask for a complete bundle") from None
    except BundleUnusable as error:
        raise CommandError(str(error)) from None


async def _check(
    forms: dict[str, bytes], name: str, text: TextOf | None, data: BytesOf | None, before: AuditResult
) -> AuditResult:
    """Compare a report, which messages call by `name`, with everything that there is. Raises `CommandError`."""
    if len(forms["json"]) > LARGEST_REPORT:
        raise CommandError(
            f"{name} is larger than {LARGEST_REPORT:,} bytes: name a report that `research run` has written"
        )
    markdown = forms["md"].decode("utf-8", "replace") if "md" in forms else None
    async with SubprocessPool(1, memory_bytes=MEMORY_BYTES) as pool:
        try:
            html = forms.get("html")
            result = await check(forms["json"], text, data, pool, markdown=markdown, html=html, before=before)
        except InputUnprocessable as error:
            raise CommandError(f"{name} cannot be audited: {error}") from None
    if any(problem.kind == "malformed" and not problem.id for problem in result.problems):
        raise CommandError(f"{name} is not a report.json: name one that `research run` has written")
    return result


def _load_files(path: Path) -> dict[str, bytes]:
    """Load a `report.json`, or that of a folder, with the other forms beside it. Raises `CommandError`."""
    path = path / JSON_FILE if path.is_dir() else path
    beside = {form: path.with_name(name) for form, name in FORMATS.items()} | {"json": path}
    files = {form: file for form, file in beside.items() if form == "json" or file.is_file()}
    return {form: read_start(file, LARGEST_REPORT + 1, "the report") for form, file in files.items()}


async def _compare_with_store(context: CommandContext, data: bytes, result: AuditResult) -> None:
    """Compare a `report.json` with the one that the store has of this run, if it has one."""
    known = bool(SAFE_ID.fullmatch(result.research_id))
    stored = await (await context.load_run(result.research_id)).result() if known else None
    if stored is not None and stored.files is not None:
        result.count("report.json against the store")
        if stored.files.json_document.hash != digest(data):
            result.problem("report_differs", JSON_FILE, "it is not the report that is stored of this run")


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


def _reference(text: str) -> DocumentRef:
    try:
        return DocumentRef(hash=text)
    except ValueError:
        raise ContentMissing("the report names a document by something other than a hash") from None


def _print_audit(result: AuditResult, name: str) -> None:
    for problem in result.problems:
        print_result(f"✖ {problem.kind} {printable(problem.id)}: {printable(problem.message)}")
        print_result(f"    → {problem.remedy}")
    verdict = "✔ no difference" if result.passed else f"✖ {plural(len(result.problems), 'difference')}"
    print_result(f"{verdict} in {printable(name)}")
    for label, counts in (("compared", result.checked), ("not compared", result.unchecked)):
        if counts or counts is result.checked:
            listed = ", ".join(f"{count} {noun}" for noun, count in counts.items())
            print_result(f"  {label}: {listed or 'nothing'}")


# --- export --------------------------------------------------------------------------------------------------------


@commands.command("export")
async def export(
    context: CommandContext,
    given: RunId = "last",
    *,
    bundle: Annotated[
        bool, typer.Option("--bundle", help="report and archived texts, for `research audit` elsewhere")
    ] = False,
    quotes_only: Annotated[
        bool, typer.Option("--quotes-only", help="a bundle without the whole texts of the sources")
    ] = False,
    sign: Annotated[
        Path | None, typer.Option("--sign", metavar="KEYFILE", help="sign a bundle with this private Ed25519 key")
    ] = None,
    form: Annotated[
        str | None, typer.Option("--format", metavar="docx|pdf|bibtex|csl", help="one format instead")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="write it there [ID with the format's suffix]")
    ] = None,
) -> None:
    """Hand a report on: as a bundle that others can audit, as a document, or its sources as a bibliography.

    A bundle is a ZIP file: the report in its three forms, the archived text of each source, and a manifest of SHA-256
    hashes. `research audit FILE.zip` checks it without any other file. You may not have the right to pass on the
    texts of others: --quotes-only includes only the quoted passages.

    research export last --bundle                          (ID.zip in this folder)
    research export last --bundle --quotes-only --out vacuum.zip
    research export last --bundle --sign ~/.ssh/id_ed25519
    research export last --format docx                     (ID.docx; also pdf, bibtex, csl)
    research export last --format pdf --out vacuum.pdf
    """
    if bundle == (form is not None):
        raise CommandError("choose one form: --bundle, or --format docx, pdf, bibtex or csl")
    if form is not None and form not in EXPORTS:
        raise CommandError(f"--format is one of {', '.join(EXPORTS)}; md, html and json: `research report --format`")
    if (quotes_only or sign is not None) and not bundle:
        raise CommandError("--quotes-only and --sign belong to --bundle: add it")
    key = None if sign is None else _read_key(private_key, sign)
    if out is not None and out.is_dir():
        raise CommandError(f"{out} is a folder: name a file in it")
    run = await context.find(given)
    result = await run.result()
    forms = {} if result is None else await context.report_documents(result)
    if set(forms) != set(FORMATS):
        problem = f"this run has no finished report to export: see `research status {run.research_id}`"
        raise CommandError(problem, ExitCode.FAILED)
    make, suffix = EXPORTS[form] if form is not None else ("", ".zip")
    async with SubprocessPool(1, cpu_seconds=EXPORT_SECONDS, memory_bytes=MEMORY_BYTES) as pool:
        try:
            report = await pool.call(READ, forms["json"])
            if not isinstance(report, Report):
                problem = f"the stored report of {run.research_id} cannot be read"
                raise CommandError(f"{problem}: see `research audit {run.research_id}`")
            if make:
                data = await pool.call(make, report, seconds=EXPORT_SECONDS)
            else:
                data = await _bundle(context, report, forms, quotes_only, key)
        except InputUnprocessable as error:
            raise CommandError(f"{run.research_id} cannot be exported: {error}") from None
    write_for_person(out or Path(run.research_id + suffix), data)


async def _bundle(
    context: CommandContext, report: Report, forms: dict[str, bytes], quotes_only: bool, key: Ed25519PrivateKey | None
) -> bytes:
    """Make the bundle of a report. Raises `CommandError`."""
    research_id = report.research_id
    files = {FORMATS[form]: data for form, data in forms.items()}
    hashes = [each for source in report.sources for each in (source.text_hash, source.pages_hash) if each is not None]
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
    return compose_bundle(files, research_id=research_id, product_version=version, quotes_only=quotes_only, key=key)
