"""`audit`, `diff` and `export`: check a report against its archived sources, compare two reports, export one."""

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Final, Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from pydantic import Base64UrlBytes, TypeAdapter
from typer import Argument, Option

from activities.reporting.audit import READ, REPORT, AuditResult, GetBytes, GetText
from activities.reporting.audit import audit as check
from client.cli.context import CommandContext, RunInfo, open_context
from client.cli.options import AsJson, Commands, ConfigFile, RunId
from client.cli.output import CommandError, ExitCode, print_json, print_result, read_start
from client.cli.reports import FORMATS, write_for_person
from client.exchange import bundle as bundles
from client.view.picture import illustrate
from client.view.words import change_lines, printable
from contracts.addresses import digest
from contracts.evidence import DocumentRef
from contracts.names import MODULE_PREFIX
from contracts.report import HTML_FILE, JSON_FILE, MARKDOWN_FILE, MAX_REPORT_BYTES, Report, ReportChanges, compare_files
from contracts.texts import plural
from providers.errors import ContentCorrupt, ContentMissing, InputUnprocessable
from providers.isolation.pool import SubprocessPool
from providers.storage.sessions import SAFE_ID
from workers.resolution_inputs import code_version
from workers.settings.loading import Flags

ExportForm = Literal["docx", "pdf", "bibtex", "csl"]
EXPORTS: Final = {
    "docx": (f"{MODULE_PREFIX}client.exchange.documents:to_docx", ".docx"),
    "pdf": (f"{MODULE_PREFIX}client.exchange.documents:to_pdf", ".pdf"),
    "bibtex": (f"{MODULE_PREFIX}client.exchange.bibliography:to_bibtex", ".bib"),
    "csl": (f"{MODULE_PREFIX}client.exchange.bibliography:to_csl", ".csl.json"),
}
"""Formats other than a bundle: the function that converts a report, and the file suffix."""
COMPARE: Final = f"{compare_files.__module__}:{compare_files.__name__}"
CHANGES: Final = TypeAdapter[ReportChanges | int](ReportChanges | int)
FILE: Final = TypeAdapter[bytes](Base64UrlBytes)
MEMORY_BYTES: Final = 1_000_000_000
"""Memory limit of a subprocess that reads reports, which anybody may have written."""
COMPARE_SECONDS: Final = 60.0
EXPORT_SECONDS: Final = 120.0
MAX_KEY_BYTES: Final = 10_000

commands = Commands()


@commands.command("audit")
async def audit(
    target: Annotated[str, Argument(metavar="ID|FILE", help="a run, a report.json, or a bundle.zip")] = "last",
    *,
    key: Annotated[Path | None, Option(metavar="FILE", help="public key of the signer of a bundle")] = None,
    as_json: AsJson = False,
    config: ConfigFile = None,
) -> int:
    """Check every citation, quote and verdict of a report; exit code 1 on any difference.

    Names each difference with its remedy. A bundle brings its sources along: it needs no server and no store.

    research audit last
    research audit reports/2026-11-21-how-does-vacuum/report.json
    research audit vacuum.zip --key sender.pub
    """
    if key is not None and not target.endswith(".zip"):
        raise CommandError("--key belongs to a bundle, FILE.zip: only bundles are signed")
    result = AuditResult()
    if target.endswith(".zip"):
        sender = None
        if key is not None:
            sender = bundles.public_key(read_start(key, MAX_KEY_BYTES, "the key"))
        result = await _audit_bundle(Path(target), sender, result)
    else:
        async with open_context(Flags(config=config)) as context:
            result = await _audit_archived(context, target, result)
    if as_json:
        print_json(asdict(result) | {"passed": result.passed})
    else:
        _print_audit(result, result.research_id or target)
    if result.passed:
        return ExitCode.COMPLETED
    return ExitCode.INTERNAL


async def _audit_archived(context: CommandContext, target: str, result: AuditResult) -> AuditResult:
    """Audit a run or a `report.json` against the content store of this machine. Raises `CommandError`."""
    content = context.stores.content
    if is_file(target):
        forms = _load_files(Path(target))
        name = target
    else:
        run = await context.find(target)
        forms = await _load_stored(context, run, result)
        name = f"the stored report of {run.research_id}"
    if "json" not in forms:
        return result

    async def text(reference: str) -> str:
        return await content.get_text(_reference(reference))

    async def data(reference: str) -> bytes:
        return await content.get(_reference(reference))

    result = await _check(forms, name, text, data, result)
    if is_file(target) and SAFE_ID.fullmatch(result.research_id):
        stored = await (await context.load_run(result.research_id)).result()
        if stored is not None and stored.files is not None:
            result.count("report.json against the store")
            if stored.files.json_document.hash != digest(forms["json"]):
                result.problem("report_differs", JSON_FILE, "it is not the report that is stored of this run")
    return result


async def _audit_bundle(path: Path, key: Ed25519PublicKey | None, result: AuditResult) -> AuditResult:
    """Audit a report against only the texts in its bundle. Raises `CommandError`."""
    read_start(path, 1, "the bundle")
    try:
        with closing(bundles.BundleReader(path)) as bundle:
            result.checked["files of the bundle"] = len(bundle.manifest.files)
            for difference in bundle.differences():
                result.problem(*difference)
            if key is not None:
                result.count("signature")
                if not bundle.is_signed:
                    result.problem("signature_missing", bundles.SIGNATURE, "the bundle is not signed")
                elif not bundle.is_signed_by(key):
                    result.problem(
                        "signature_differs", bundles.SIGNATURE, "this key did not sign the manifest as it is"
                    )
            elif bundle.is_signed:
                result.skip("signature, which --key compares")
            forms = {"json": bundle.read(JSON_FILE)}
            with suppress(ContentMissing):  # already reported by `differences`, unless the manifest does not list it
                forms["md"] = bundle.read(MARKDOWN_FILE)
                forms["html"] = bundle.read(HTML_FILE)
            texts = None if bundle.manifest.quotes_only else bundle.text
            return await _check(forms, f"{JSON_FILE} of {path}", texts, None, result)
    except ContentMissing as error:
        raise CommandError(f"{path} cannot be audited: {error}; ask for a complete bundle") from None


async def _check(
    forms: dict[str, bytes], name: str, text: GetText | None, data: GetBytes | None, result: AuditResult
) -> AuditResult:
    """Compare a report, called `name` in messages, with everything available. Raises `CommandError`."""
    markdown = None
    if "md" in forms:
        markdown = forms["md"].decode("utf-8", "replace")
    async with SubprocessPool(1, memory_bytes=MEMORY_BYTES) as pool:
        html = forms.get("html")
        with _readable(name, "audited"):
            result = await check(
                forms["json"], text, data, pool, version=code_version(), markdown=markdown, html=html, earlier=result
            )
    if any(problem.kind == "malformed" and not problem.id for problem in result.problems):
        raise CommandError(f"{name} is not a report.json: name one that `research run` has written")
    return result


async def _load_stored(context: CommandContext, run: RunInfo, result: AuditResult) -> dict[str, bytes]:
    """Load the stored forms of a report. Raises `CommandError` for a run without one."""
    stored = await run.result()
    forms = {}
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
    verdict = "✔ no difference"
    if not result.passed:
        verdict = f"✖ {plural(len(result.problems), 'difference')}"
    print_result(f"{verdict} in {printable(name)}")
    if not result.passed and result.by_other_rules:
        print_result(f"  written by durable-research {printable(result.writer)}, audited by {result.auditor}")
    for label, counts in (("compared", result.checked), ("not compared", result.unchecked)):
        if counts:
            print_result(f"  {label}: {' · '.join(f'{noun} ({count})' for noun, count in counts.items())}")


# --- files ---------------------------------------------------------------------------------------------------------


@contextmanager
def _readable(name: str, action: str) -> Iterator[None]:
    """Turn a report that cannot be processed into a `CommandError` that names it."""
    try:
        yield
    except InputUnprocessable as error:
        raise CommandError(f"{name} cannot be {action}: {error}") from None


def is_file(target: str) -> bool:
    """Return whether a target is a path; anything else is a run."""
    return "/" in target or target.endswith((".json", ".zip"))


def _load_files(path: Path) -> dict[str, bytes]:
    """Load a `report.json`, or the one in a folder, with the other forms beside it. Raises `CommandError`."""
    path = path / JSON_FILE if path.is_dir() else path
    siblings = {form: path.with_name(name) for form, name in FORMATS.items() if path.with_name(name).is_file()}
    files = siblings | {"json": path}
    forms = {form: read_start(file, MAX_REPORT_BYTES + 1, "the report") for form, file in files.items()}
    if len(forms["json"]) > MAX_REPORT_BYTES:
        raise CommandError(f"{path} is larger than {MAX_REPORT_BYTES:,} bytes: name a report of `research run`")
    return forms


async def _finished(context: CommandContext, target: str) -> tuple[str, dict[str, bytes]]:
    """Load the id of a run and the three forms of its report. Raises `CommandError`."""
    run = await context.find(target)
    result = await run.result()
    forms = {}
    if result is not None:
        forms = await context.report_documents(result)
    if set(forms) != set(FORMATS):
        problem = f"the run {run.research_id} has no finished report: see `research status {run.research_id}`"
        raise CommandError(problem, ExitCode.FAILED)
    return run.research_id, forms


# --- diff ----------------------------------------------------------------------------------------------------------


@commands.command("diff")
async def diff(
    context: CommandContext,
    earlier: Annotated[str, Argument(metavar="ID|FILE", help="the earlier report: a run, or a report.json")],
    later: Annotated[str, Argument(metavar="ID|FILE", help="the later report")],
    *,
    as_json: AsJson = False,
) -> None:
    """Compare two reports claim by claim, without a server: new and lost claims, other words, other verdicts.

    Sources whose text changed or that the later report lacks are named with the passages that were cited.

    research diff reports/2026-11-01-heat-pumps/report.json last
    """
    targets = (earlier, later)
    documents = []
    for target in targets:
        if is_file(target):
            forms = _load_files(Path(target))
        else:
            forms = (await _finished(context, target))[1]
        documents.append(forms["json"])
    async with SubprocessPool(1, cpu_seconds=COMPARE_SECONDS, memory_bytes=MEMORY_BYTES) as pool:
        with _readable(" or ".join(targets), "compared"):
            comparison = await pool.call(COMPARE, *documents, returns=CHANGES)
    if not isinstance(comparison, ReportChanges):
        raise CommandError(f"{targets[comparison]} is not a report.json: name one that `research run` has written")
    if as_json:
        print_json(comparison.model_dump(mode="json"))
        return
    for line in change_lines(comparison):
        print_result(printable(line))


# --- export --------------------------------------------------------------------------------------------------------


@commands.command("export")
async def export(
    context: CommandContext,
    run_id: RunId = "last",
    *,
    bundle: Annotated[bool, Option("--bundle", help="report and archived texts, for an audit elsewhere")] = False,
    quotes_only: Annotated[bool, Option("--quotes-only", help="a bundle without the whole texts")] = False,
    sign: Annotated[Path | None, Option(metavar="KEYFILE", help="private Ed25519 key that signs a bundle")] = None,
    form: Annotated[ExportForm | None, Option("--format", help="export this format instead")] = None,
    out: Annotated[Path | None, Option(metavar="FILE", help="write it there [ID with the format's suffix]")] = None,
) -> None:
    """Hand a report on: as a bundle that others can audit, as a document, or its sources as a bibliography.

    `research audit FILE.zip` checks a bundle without any other file. You may not have the right to pass on the texts
    of others: --quotes-only includes only the quoted passages.

    research export last --bundle --sign ~/.ssh/id_ed25519
    research export last --format pdf --out vacuum.pdf
    """
    if bundle == (form is not None):
        raise CommandError("choose one form: --bundle, or --format docx, pdf, bibtex or csl")
    if (quotes_only or sign is not None) and not bundle:
        raise CommandError("--quotes-only and --sign belong to --bundle: add it")
    key = None
    if sign is not None:
        key = bundles.private_key(read_start(sign, MAX_KEY_BYTES, "the key"))
    research_id, forms = await _finished(context, run_id)
    make, suffix = EXPORTS[form] if form is not None else ("", ".zip")
    async with SubprocessPool(1, cpu_seconds=EXPORT_SECONDS, memory_bytes=MEMORY_BYTES) as pool:
        with _readable(research_id, "exported"):
            report = await pool.call(READ, forms["json"], returns=REPORT)
            if not isinstance(report, Report):
                raise CommandError(f"the stored report cannot be read: see `research audit {research_id}`")
            if make:
                data = await pool.call(make, report, returns=FILE, seconds=EXPORT_SECONDS)
            else:
                forms = await illustrate(forms, await context.handle_if_running(research_id))
                data = await _bundle(context, report, forms, quotes_only, key)
    write_for_person(out or Path(research_id + suffix), data)


async def _bundle(
    context: CommandContext, report: Report, forms: dict[str, bytes], quotes_only: bool, key: Ed25519PrivateKey | None
) -> bytes:
    """Make the bundle of a report. Raises `CommandError`."""
    files = {FORMATS[form]: data for form, data in forms.items()}
    hashes: list[str] = []
    if not quotes_only:
        stored = (each for source in report.sources for each in (source.text_hash, source.pages_hash))
        hashes = list(filter(None, stored))
    try:
        for text_hash in hashes:
            files[bundles.text_path(text_hash)] = await context.stores.content.get(DocumentRef(hash=text_hash))
    except ContentMissing:
        problem = f"the stored text of a source is gone or damaged: see `research audit {report.research_id}`"
        remedy = "or add --quotes-only for a bundle without whole texts"
        raise CommandError(f"{problem}, {remedy}", ExitCode.FAILED) from None
    if sum(map(len, files.values())) > bundles.BYTE_LIMIT:
        raise CommandError(f"the texts have more than {bundles.BYTE_LIMIT:,} bytes together: add --quotes-only")
    names = {"research_id": report.research_id, "product_version": report.product_version}
    return bundles.compose_bundle(files, **names, quotes_only=quotes_only, key=key)
