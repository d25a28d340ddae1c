"""`audit`: check every citation of a report against the archived sources, offline."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from activities.reporting.audit import AuditResult
from activities.reporting.audit import audit as check
from client.cli import output
from client.cli.command_context import CommandContext, open_context
from client.cli.command_errors import CommandError, ExitCode
from client.cli.folders import exists, start_of_file
from client.cli.report_files import FORMATS
from client.view.rendering import printable
from contracts.documents import DocumentRef
from providers.errors import ContentMissing

LARGEST_REPORT = 100_000_000
"""Bytes; a report with a thousand sources is a hundredth of it."""


async def audit(target: str, *, as_json: bool) -> int:
    """Audit a stored report by its run, or a `report.json` by its path; exit code 1 on any difference."""
    is_file = bool(target) and (target.endswith(".json") or exists(target))
    async with open_context(reads_only=True) as context:
        if is_file:
            report, markdown = _read_files(Path(target))
        else:
            report, markdown = await _load_stored(context, await context.resolve(target))
        isolated = await context.stores.isolated()
        content = context.stores.content

        async def text(reference: str) -> str:
            return await content.get_text(_reference(reference))

        async def data(reference: str) -> bytes:
            return await content.get(_reference(reference))

        result = await check(report, text, data, markdown=markdown, isolated=isolated)
    if as_json:
        output.document(asdict(result) | {"passed": result.passed, "research_id": report.get("research_id")})
    else:
        _show(result, str(report.get("research_id", target)))
    return ExitCode.COMPLETED if result.passed else ExitCode.INTERNAL


def _reference(text: str) -> DocumentRef:
    try:
        return DocumentRef(hash=text)
    except ValueError:
        raise ContentMissing("the report names a document by something other than a hash") from None


def _read_files(path: Path) -> tuple[dict[str, Any], str | None]:
    """`report.json`, and `report.md` beside it if there is one."""
    if path.is_dir():
        path = path / FORMATS["json"]
    data = start_of_file(path, LARGEST_REPORT + 1, "the report")
    if len(data) > LARGEST_REPORT:
        raise CommandError(f"{path} is larger than {LARGEST_REPORT:,} bytes and so not a report.json")
    try:
        report = json.loads(data)
    except (ValueError, RecursionError):
        report = None
    if not isinstance(report, dict):
        raise CommandError(f"{path} is not a report.json")
    beside = path.with_name(FORMATS["md"])
    return report, beside.read_text(encoding="utf-8") if beside.is_file() else None


async def _load_stored(context: CommandContext, research_id: str) -> tuple[dict[str, Any], str | None]:
    result = await context.stored_result(research_id)
    if result is None or result.files is None:
        raise CommandError(f"the run {research_id} has no report to audit: see `research status {research_id}`")
    report = json.loads(await context.stores.content.get(result.files.json_document))
    return report, (await context.stores.content.get(result.files.markdown)).decode()


def _show(result: AuditResult, name: str) -> None:
    for problem in result.problems:
        output.say(f"✖ {problem.kind} {printable(problem.id)}: {printable(problem.message)}")
    done = ", ".join(f"{count} {what}" for what, count in result.checked.items())
    output.say(f"{'✔ no difference' if result.passed else f'✖ {len(result.problems)} differences'} in {name}")
    output.say(f"  compared: {done or 'nothing'}")
    if result.unchecked:
        left = ", ".join(f"{count} {what}" for what, count in result.unchecked.items())
        output.say(f"  not compared: {left}")
