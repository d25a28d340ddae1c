"""`audit`: check every citation of a report against the archived sources, offline."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from activities.reporting.audit import AuditResult
from activities.reporting.audit import audit as check
from client.cli import output
from client.cli.command_context import CommandContext, open_context
from client.cli.command_errors import CommandError, ExitCode
from client.cli.folders import exists, start_of_file
from client.cli.report_files import FORMATS
from client.exchange.bundle import HTML, MARKDOWN, REPORT
from client.exchange.bundle_reading import BundleReader, BundleUnusable
from client.view.rendering import printable
from contracts.evidence import DocumentRef
from providers.errors import ContentCorrupt, ContentMissing
from providers.isolation.killable_calls import KillableCalls
from providers.isolation.pool import SubprocessPool
from providers.storage.sessions import SAFE_ID

LARGEST_REPORT: Final = 100_000_000
"""Bytes; a report with a thousand sources is a hundredth of it."""
ZIP_SIGNS: Final = (b"PK\x03\x04", b"PK\x05\x06")


@dataclass
class ReportToAudit:
    """A report with its other forms; what went wrong before it could be read is among the result's problems."""

    result: AuditResult
    report: dict[str, Any] | None = None
    markdown: str | None = None
    html: bytes | None = None


async def audit(target: str, *, as_json: bool) -> int:
    """Audit a stored report by its run, a `report.json` or a bundle by its path; exit code 1 on any difference."""
    is_file = bool(target) and (target.endswith((".json", ".zip")) or exists(target))
    if is_file and is_bundle(Path(target)):
        audited, result = await _audit_bundle(Path(target))
    else:
        audited, result = await _audit_archived(target, is_file=is_file)
    name = str((audited.report or {}).get("research_id", target))
    if as_json:
        output.document(asdict(result) | {"passed": result.passed, "research_id": name})
    else:
        _show(result, name)
    return ExitCode.COMPLETED if result.passed else ExitCode.INTERNAL


def is_bundle(path: Path) -> bool:
    """Whether a file is meant as a bundle, by its name or its first bytes. Raises `CommandError` without a file."""
    if path.is_dir():
        return False
    start = start_of_file(path, 4, "the bundle" if path.suffix == ".zip" else "the report")
    return path.suffix == ".zip" or start in ZIP_SIGNS


async def _audit_archived(target: str, *, is_file: bool) -> tuple[ReportToAudit, AuditResult]:
    """Against the content store of this machine."""
    async with open_context(reads_only=True) as context:
        if is_file:
            audited = await _read_files(context, Path(target))
        else:
            audited = await _load_stored(context, await context.resolve(target))
        if audited.report is None:
            return audited, audited.result
        isolated = await context.stores.isolated()
        content = context.stores.content

        async def text(reference: str) -> str:
            return await content.get_text(_reference(reference))

        async def data(reference: str) -> bytes:
            return await content.get(_reference(reference))

        result = await check(
            audited.report, text, data, markdown=audited.markdown, html=audited.html, isolated=isolated
        )
    return audited, _joined(audited.result, result)


async def _audit_bundle(path: Path) -> tuple[ReportToAudit, AuditResult]:
    """Against the texts in the bundle alone: needs no store, no server, no settings."""
    try:
        with BundleReader(path) as bundle:
            before = AuditResult(checked={"files of the bundle": len(bundle.manifest.files)})
            for found in bundle.differences():
                before.problem(found.kind, found.path, found.message)
            audited = ReportToAudit(before, parse_report(bundle.read(REPORT), f"{REPORT} of {path}"))
            try:
                audited.markdown = bundle.read(MARKDOWN).decode("utf-8", "replace")
                audited.html = bundle.read(HTML)
            except ContentMissing:
                pass  # `differences` has named it, unless the manifest never had it: then the audit counts it
            texts = None if bundle.manifest.quotes_only else bundle.text
            async with SubprocessPool(1) as pool:
                result = await check(
                    audited.report or {},
                    texts,
                    None,
                    markdown=audited.markdown,
                    html=audited.html,
                    isolated=KillableCalls(pool),
                )
    except ContentMissing as error:
        raise CommandError(f"{path} is no bundle that can be audited: {error}") from None
    except BundleUnusable as error:
        raise CommandError(str(error)) from None
    return audited, _joined(before, result)


def _joined(first: AuditResult, second: AuditResult) -> AuditResult:
    return AuditResult(
        first.checked | second.checked, first.unchecked | second.unchecked, [*first.problems, *second.problems]
    )


def _reference(text: str) -> DocumentRef:
    try:
        return DocumentRef(hash=text)
    except ValueError:
        raise ContentMissing("the report names a document by something other than a hash") from None


def read_report_file(path: Path) -> tuple[Path, bytes]:
    """A `report.json` by its path or by that of its folder. Raises `CommandError`."""
    if path.is_dir():
        path = path / FORMATS["json"]
    data = start_of_file(path, LARGEST_REPORT + 1, "the report")
    if len(data) > LARGEST_REPORT:
        raise CommandError(f"{path} is larger than {LARGEST_REPORT:,} bytes and so not a report.json")
    return path, data


def parse_report(data: bytes, name: str) -> dict[str, Any]:
    """The content of a `report.json`. Raises `CommandError`."""
    try:
        report = json.loads(data)
    except (ValueError, RecursionError):
        report = None
    if not isinstance(report, dict):
        raise CommandError(f"{name} is not a report.json")
    return report


async def _read_files(context: CommandContext, given: Path) -> ReportToAudit:
    """`report.json`, and the other forms beside it if there are any; compared with the stored one, if there is one."""
    path, data = read_report_file(given)
    audited = ReportToAudit(AuditResult(), parse_report(data, str(path)))
    beside, page = path.with_name(FORMATS["md"]), path.with_name(FORMATS["html"])
    if beside.is_file():
        audited.markdown = beside.read_text(encoding="utf-8", errors="replace")
    if page.is_file():
        audited.html = page.read_bytes()
    research_id = str((audited.report or {}).get("research_id"))
    stored = await context.stored_result(research_id) if SAFE_ID.fullmatch(research_id) else None
    if stored is not None and stored.files is not None:
        audited.result.count("report.json against the store")
        if stored.files.json_document.hash != "sha256:" + hashlib.sha256(data).hexdigest():
            audited.result.problem("report_differs", path.name, "it is not the report that is stored of this run")
    return audited


async def _load_stored(context: CommandContext, research_id: str) -> ReportToAudit:
    stored = await context.stored_result(research_id)
    if stored is None or stored.files is None:
        raise CommandError(f"the run {research_id} has no report to audit: see `research status {research_id}`")
    audited = ReportToAudit(AuditResult())

    async def load(reference: DocumentRef, name: str) -> bytes | None:
        try:
            return await context.stores.content.get(reference)
        except ContentCorrupt:
            audited.result.problem("report_damaged", name, "the stored file is not what its hash says")
        except ContentMissing:
            audited.result.problem("report_missing", name, "the stored file is gone")
        return None

    report = await load(stored.files.json_document, FORMATS["json"])
    markdown = await load(stored.files.markdown, FORMATS["md"])
    audited.html = await load(stored.files.html, FORMATS["html"])
    audited.markdown = None if markdown is None else markdown.decode("utf-8", "replace")
    audited.report = None if report is None else parse_report(report, f"the stored report of {research_id}")
    return audited


def _show(result: AuditResult, name: str) -> None:
    for problem in result.problems:
        output.say(f"✖ {problem.kind} {printable(problem.id)}: {printable(problem.message)}")
        output.say(f"    → {problem.remedy}")
    count = len(result.problems)
    verdict = "✔ no difference" if result.passed else f"✖ {count} difference{'' if count == 1 else 's'}"
    output.say(f"{verdict} in {printable(name)}")
    done = ", ".join(f"{count} {what}" for what, count in result.checked.items())
    output.say(f"  compared: {done or 'nothing'}")
    if result.unchecked:
        left = ", ".join(f"{count} {what}" for what, count in result.unchecked.items())
        output.say(f"  not compared: {left}")
