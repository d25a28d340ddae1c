"""The audit: check a report again, offline, from its JSON and the stored documents alone."""

from activities.reporting.audit.audit_result import AuditProblem, AuditResult
from activities.reporting.audit.auditing import audit

__all__ = ["AuditProblem", "AuditResult", "audit"]
