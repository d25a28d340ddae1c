"""What a notice says, and how long a receiver is asked."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.notifying import NotifyingActivities
from contracts import failures
from contracts.evidence import DocumentRef
from contracts.notices import NoticeKind, NoticeRequest, ending_notice, waiting_notice
from contracts.outcome import ReportFiles, ResearchResult
from contracts.plan import Waiting, WaitKind
from contracts.vocabulary import Outcome, RunStatus, StopReason
from providers.errors import InvalidCall, RateLimited, Unavailable
from providers.storage.content import ObstoreContentStore
from tests.fakes.states import resolved

NOW = datetime(2026, 11, 29, 8, 41, tzinfo=UTC)
RUN = resolved(research_id="r-1")
QUESTION = "Which of our suppliers is late?"


class Receiver:
    """Keeps what it gets, or raises."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.came: list[tuple[str, bytes]] = []

    async def send(self, notice_id: str, body: bytes) -> int:
        self.came.append((notice_id, body))
        if self.error is not None:
            raise self.error
        return 204


def ended(reference: DocumentRef | None = None) -> ResearchResult:
    files = reference and ReportFiles(markdown=reference, html=reference, json_document=reference)
    return ResearchResult(
        research_id="r-1",
        outcome=Outcome.PARTIAL,
        stop_reason=StopReason.BUDGET_TIME,
        resumable=True,
        files=files,
        started_at="2026-11-29T08:00:00Z",
        ended_at="2026-11-29T08:41:00Z",
    )


async def delivered(tmp_path: Path, notices: list[str], page: str = "") -> str:
    """The body of an ending notice, of a run with a report."""
    content = ObstoreContentStore(tmp_path / "content")
    report = await content.put_text("# The report\n" + "word " * 60_000)
    run = resolved(research_id="r-1", query=QUESTION, notices=notices)
    receiver = Receiver()
    notice = ending_notice(run, RunStatus.PARTIAL, ended(report), NOW)
    await ActivityEnvironment().run(NotifyingActivities(receiver, content, page).send_notice, notice)
    ((notice_id, body),) = receiver.came
    assert notice_id == notice.notice_id
    return body.decode()


async def test_a_notice_has_no_text_of_the_run_unless_the_operator_wants_it(tmp_path: Path) -> None:
    """By default id, state, outcome and commands; question and report only where they are included."""
    plain = await delivered(tmp_path, [])
    assert json.loads(plain) == {
        "id": json.loads(plain)["id"],
        "type": "run.ended",
        "research_id": "r-1",
        "tenant": "default",
        "state": "partial",
        "outcome": "partial",
        "stop_reason": "budget_time",
        "occurred_at": "2026-11-29T08:41:00.000+00:00",
        "expires_at": None,
        "next": ["research open r-1", "research audit r-1", "research resume r-1", "research decisions r-1"],
    }
    asked = json.loads(await delivered(tmp_path, ["question"]))
    assert asked["question"] == QUESTION
    assert "report" not in asked
    whole = json.loads(await delivered(tmp_path, ["question", "report"], page="https://research.example.org/"))
    assert whole["report"].startswith("# The report\nword")
    assert whole["report_cut"]
    assert len(whole["report"]) == 200_000
    assert whole["link"] == "https://research.example.org/runs/r-1"


async def test_a_deleted_report_is_left_out_of_its_notice(tmp_path: Path) -> None:
    """The notice is still due: it has everything else."""
    content = ObstoreContentStore(tmp_path / "content")
    run = resolved(research_id="r-1", notices=["report"])
    gone = DocumentRef(hash="sha256:" + "0" * 64)
    receiver = Receiver()
    notice = ending_notice(run, RunStatus.PARTIAL, ended(gone), NOW)
    await ActivityEnvironment().run(NotifyingActivities(receiver, content).send_notice, notice)
    assert "report" not in json.loads(receiver.came[0][1])


def test_a_wait_names_the_commands_that_answer_and_its_end() -> None:
    """The id is equal for every delivery of one wait, and another one for the next wait and for the end."""
    waiting = Waiting(kind=WaitKind.APPROVAL, plan_version=2, since="2026-11-29T08:00:00Z", expires_at="2026-12-06")
    first = waiting_notice(RUN, RunStatus.AWAITING_APPROVAL, waiting)
    assert first.commands[0] == "research approve r-1 --version 2"
    assert (first.kind, first.outcome, first.expires_at) == (NoticeKind.WAITING, None, "2026-12-06")
    assert first.notice_id == waiting_notice(RUN, RunStatus.AWAITING_APPROVAL, waiting).notice_id
    later = waiting.with_fields(since="2026-11-29T09:00:00Z")
    end = ending_notice(RUN, RunStatus.COMPLETED, None, NOW)
    others = {waiting_notice(RUN, RunStatus.AWAITING_APPROVAL, later).notice_id, end.notice_id}
    assert len(others | {first.notice_id}) == 3


def test_a_run_that_ended_without_a_report_names_no_command_that_reads_one() -> None:
    """Its commands continue it and show its decisions."""
    failed = ending_notice(RUN, RunStatus.FAILED, None, NOW)
    assert failed.outcome is Outcome.FAILED
    assert failed.commands == ["research resume r-1", "research decisions r-1"]


async def failure_of(tmp_path: Path, error: Exception | None, *, attempt: int = 1) -> ApplicationError:
    receiver = None if error is None else Receiver(error)
    activities = NotifyingActivities(receiver, ObstoreContentStore(tmp_path / "content"))
    environment = ActivityEnvironment()
    environment.info = environment.info.__class__(**{**environment.info.__dict__, "attempt": attempt})
    request = NoticeRequest(research_id="r-1", kind=NoticeKind.ENDED, status=RunStatus.COMPLETED, occurred_at="now")
    with pytest.raises(ApplicationError) as raised:
        await environment.run(activities.send_notice, request)
    return raised.value


async def test_what_is_refused_is_not_sent_again_and_what_is_away_is_asked_less_and_less_often(tmp_path: Path) -> None:
    """A refusal and a missing address are final; the pauses double up to five minutes, or as the receiver asks."""
    refused = await failure_of(tmp_path, InvalidCall("the receiver answered 403"))
    assert (refused.type, refused.non_retryable) == (failures.NOTICE_REFUSED, True)
    missing = await failure_of(tmp_path, None)
    assert (missing.type, missing.non_retryable) == (failures.NOTICE_REFUSED, True)
    delays = []
    for attempt in (1, 4, 30):
        away = await failure_of(tmp_path, Unavailable("away"), attempt=attempt)
        assert (away.type, away.non_retryable) == (failures.NOTICE_UNDELIVERED, False)
        assert away.next_retry_delay is not None
        delays.append(away.next_retry_delay.total_seconds())
    assert delays[0] < 5 < delays[1] < 20 < delays[2]
    assert 250 < delays[2] <= 400
    busy = await failure_of(tmp_path, RateLimited("busy", retry_after=60))
    assert busy.next_retry_delay is not None
    assert busy.next_retry_delay.total_seconds() >= 60
