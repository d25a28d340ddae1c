"""The audit itself: what is loaded, and every check in its order."""

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from activities.reporting.audit.archive_checks import (
    BytesOf,
    TextOf,
    check_original,
    check_passages,
    check_quotations,
    load_text,
)
from activities.reporting.audit.audit_result import AuditProblem, AuditResult
from activities.reporting.audit.audited_report import AuditedReport
from activities.reporting.audit.claim_checks import check_claims
from activities.reporting.audit.reference_checks import (
    check_addresses,
    check_citations,
    check_findings,
    check_identities,
    check_numbers,
)
from contracts.addresses import digest
from providers.interfaces import IsolatedCalls

COMPARED: Final = f"{__name__}:compare_plainly"
COMPARING_SECONDS: Final = 120.0
MARKDOWN: Final = "report.md"
HTML: Final = "report.html"


async def audit(
    report: Mapping[str, Any],
    get_text: TextOf | None,
    get_bytes: BytesOf | None,
    *,
    markdown: str | None = None,
    html: bytes | None = None,
    isolated: IsolatedCalls | None = None,
) -> AuditResult:
    """Check every source, passage, citation, claim, number and address of a `report.json`.

    `get_text` and `get_bytes` give a stored document by its hash and raise `ContentMissing` or `ContentCorrupt`; None
    where such documents were left out on purpose. `markdown` and `html` are the other forms to compare with, if they
    are there. With `isolated` the texts are looked through in a process that can be killed; then `InputUnprocessable`
    is raised for a report that ends its readers.
    """
    result = AuditResult()
    try:
        audited = AuditedReport.model_validate(report)
    except ValidationError as error:
        for item in error.errors(include_input=False, include_url=False):
            result.problem("malformed", ".".join(str(part) for part in item["loc"]), item["msg"])
        return result
    texts = {}
    for source in audited.sources:
        texts[source.id] = await load_text(source, get_text, result)
        await check_original(source, get_bytes, result)
    _check_forms(audited, markdown, html, result)
    if isolated is None:
        return compare(audited, texts, result)
    checked, unchecked, problems = await isolated.call(COMPARED, audited, texts, result, seconds=COMPARING_SECONDS)
    return AuditResult(checked, unchecked, [AuditProblem(*problem) for problem in problems])


def compare_plainly(
    audited: AuditedReport, texts: Mapping[str, str | None], result: AuditResult
) -> tuple[dict[str, int], dict[str, int], list[tuple[str, str, str, str]]]:
    """`compare` for a child process: the fields of its result."""
    found = compare(audited, texts, result)
    problems = [(item.kind, item.id, item.message, item.remedy) for item in found.problems]
    return found.checked, found.unchecked, problems


def compare(audited: AuditedReport, texts: Mapping[str, str | None], result: AuditResult) -> AuditResult:
    """The result with every difference between the report and the stored texts, by the id of their source."""
    check_passages(audited, texts, result)
    check_identities(audited, result)
    check_citations(audited, result)
    check_claims(audited, texts, result)
    check_findings(audited, result)
    check_numbers(audited, result)
    check_quotations(audited, texts, result)
    check_addresses(audited, result)
    return result


def _check_forms(report: AuditedReport, markdown: str | None, html: bytes | None, result: AuditResult) -> None:
    """The three forms must be those that were rendered together."""
    text, page = report.forms.get(MARKDOWN), report.forms.get(HTML)
    if text is None:
        result.skip("the text in report.json, whose hash is not in it")
    else:
        result.count("text in report.json")
        if digest(report.report.markdown) != text:
            result.problem("text_altered", "report.markdown", "the text in report.json is not what its hash says")
    if markdown is None:
        result.skip(MARKDOWN)
    else:
        result.count(MARKDOWN)
        if markdown != report.report.markdown:
            result.problem("markdown_differs", MARKDOWN, "it differs from the text in report.json")
    if html is None or page is None:
        result.skip(HTML)
    else:
        result.count(HTML)
        if "sha256:" + hashlib.sha256(html).hexdigest() != page:
            result.problem("html_differs", HTML, "it is not the page that was rendered with report.json")
