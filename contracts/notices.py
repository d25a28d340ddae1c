"""Notices about a run to an address of the operator: what a run sends with each, and what was sent."""

from datetime import datetime
from enum import StrEnum
from typing import Final

from contracts.addresses import long_hash
from contracts.evidence import DocumentRef
from contracts.messages import RunRequest
from contracts.outcome import ResearchResult
from contracts.plan import Waiting
from contracts.resolved import ResolvedResearch
from contracts.vocabulary import Outcome, RunStatus

NOTICE_SECONDS: Final = 6 * 3_600.0
"""Time for all attempts to deliver a notice: a receiver may be away for an evening, and older news is no news."""


class NoticeKind(StrEnum):
    """Occasion of a notice."""

    ENDED = "ended"
    WAITING = "waiting"
    TEST = "test"
    """Sent by `research doctor --notify`; no run has it."""


class NoticeText(StrEnum):
    """A text of a run that the operator may want in notices."""

    QUESTION = "question"
    REPORT = "report"


class NoticeRequest(RunRequest):
    """A notice as its run asks for it; it has no text of the run but what the operator wants."""

    kind: NoticeKind
    status: RunStatus
    outcome: Outcome | None = None
    """None while the run waits."""
    stop_reason: str = ""
    occurred_at: str
    """ISO 8601, by the run's clock."""
    expires_at: str = ""
    """Time at which a wait for a person ends without an answer."""
    commands: list[str] = []
    """What a person may type next, most common first."""
    question: str = ""
    report: DocumentRef | None = None
    """The report as Markdown."""

    @property
    def notice_id(self) -> str:
        """Return the id of the notice, equal for every attempt to deliver it."""
        return f"notice-{long_hash(self.research_id, self.kind.value, self.occurred_at)}"


def waiting_notice(resolved: ResolvedResearch, status: RunStatus, waiting: Waiting) -> NoticeRequest:
    """Return the notice of a run that waits for a person."""
    return NoticeRequest(
        research_id=resolved.research_id,
        tenant=resolved.tenant,
        kind=NoticeKind.WAITING,
        status=status,
        occurred_at=waiting.since,
        expires_at=waiting.expires_at,
        commands=waiting.ways(resolved.research_id),
        question=_question(resolved),
    )


def ending_notice(
    resolved: ResolvedResearch, status: RunStatus, result: ResearchResult | None, ended_at: datetime
) -> NoticeRequest:
    """Return the notice of a run that has ended, with a result or without one."""
    research_id = resolved.research_id
    files = result.files if result is not None else None
    is_resumable = result.resumable if result is not None else status is not RunStatus.COMPLETED
    reading = [] if files is None else [f"research open {research_id}", f"research audit {research_id}"]
    resuming = [f"research resume {research_id}"] if is_resumable else []
    return NoticeRequest(
        research_id=research_id,
        tenant=resolved.tenant,
        kind=NoticeKind.ENDED,
        status=status,
        outcome=result.outcome if result is not None else Outcome(status.value),
        stop_reason=result.stop_reason.value if result is not None else "",
        occurred_at=ended_at.isoformat(timespec="milliseconds"),
        commands=[*reading, *resuming, f"research decisions {research_id}"],
        question=_question(resolved),
        report=files.markdown if files is not None and NoticeText.REPORT.value in (resolved.notices or ()) else None,
    )


def _question(resolved: ResolvedResearch) -> str:
    if NoticeText.QUESTION.value in (resolved.notices or ()):
        return resolved.query
    return ""
