"""References within a report: ids, numbers, markers and addresses."""

from collections import Counter
from collections.abc import Iterator

from activities.reporting.audit.audit_result import AuditResult
from activities.reporting.audit.audited_report import AuditedReport, labels_of, marks_of, registry_of
from activities.reporting.links import addresses_in_markdown, is_registered, link_targets
from activities.reporting.markdown_layout import layout
from activities.roles.evidence_markers import OWN_FORM


def check_identities(report: AuditedReport, result: AuditResult) -> None:
    """Ids of one kind are distinct: a second entry would hide the first one."""
    for kind, listed in (("source", report.sources), ("evidence", report.evidence), ("claim", report.claims)):
        counts = Counter(item.id for item in listed)
        for identity in sorted(one for one, count in counts.items() if count > 1):
            result.problem("id_twice", identity, f"two entries of kind {kind} have this id")


def check_citations(report: AuditedReport, result: AuditResult) -> None:
    """Numbers and sources are one to one, and every source is listed."""
    known = {source.id for source in report.sources}
    numbers: dict[int, str] = {}
    sources: dict[str, int] = {}
    for citation in report.citations:
        result.count("citations")
        label = f"[{citation.number}]"
        if citation.number < 1 or citation.number in numbers:
            result.problem("number_twice", label, "a number stands for exactly one source and begins at 1")
        if citation.source_id in sources:
            result.problem("source_twice", label, f"{citation.source_id} has another number already")
        if citation.source_id not in known:
            result.problem("citation_without_source", label, f"the source {citation.source_id} is not listed")
        numbers[citation.number] = citation.source_id
        sources[citation.source_id] = citation.number
    for source in report.sources:
        if source.cited != (source.id in sources):
            result.problem("cited_differs", source.id, "the mark `cited` and the list of citations disagree")


def check_findings(report: AuditedReport, result: AuditResult) -> None:
    """The passages of a finding are listed."""
    known = {item.id for item in report.evidence}
    for finding in report.findings:
        result.count("findings")
        for identity in finding.evidence_ids:
            if identity not in known:
                result.problem("finding_without_evidence", finding.id, f"the passage {identity} is not listed")


def check_numbers(report: AuditedReport, result: AuditResult) -> None:
    """The text has the numbers of the citations, all of them and no other, and no marker."""
    known, labels = {citation.number for citation in report.citations}, labels_of(report)
    seen = set()
    for mark in marks_of(report):
        result.count("numbers in the text")
        seen.add(mark.number)
        if mark.number not in known:
            result.problem("number_unknown", f"[{mark.number}]", "no source has this number")
    for number in sorted(known - seen):
        result.problem("number_unused", f"[{number}]", "the text does not have this number")
    for match in OWN_FORM.finditer(layout(report.report.markdown).masked):
        is_known = match[0] in labels or (not labels and (match["items"] or "").isdecimal())
        if match["items"] and not is_known:
            result.problem("marker_left", match[0], "a marker was not resolved")


def _foreign(report: AuditedReport, result: AuditResult) -> Iterator[str]:
    registry = registry_of(report)
    for address in addresses_in_markdown(report.report.markdown):
        result.count("addresses in the text")
        if not registry.names(address):
            yield address
    for target in link_targets(report.report.markdown):
        result.count("links in the text")
        if not is_registered(target, registry):
            yield target


def check_addresses(report: AuditedReport, result: AuditResult) -> None:
    """The text names no address that no source has."""
    for address in dict.fromkeys(_foreign(report, result)):
        result.problem("address_unknown", address[:200], "no source has this address")
