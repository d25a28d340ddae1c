"""The activity `send_notice`: tell the operator's address that a run has ended, or waits for a person."""

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from temporalio import activity

from activities.failures import NOTIFYING, attempt
from contracts import activities
from contracts.notices import NoticeRequest
from providers.errors import ContentMissing, NotConfigured, Retryable
from providers.interfaces import ContentStore, NoticeReceiver

MAX_REPORT_CHARACTERS: Final = 200_000
"""Of a report in a notice; a longer one is cut, and marked so."""
LONGEST_DELAY_SECONDS: Final = 300.0
"""Between two attempts: a receiver that is away for hours is not asked every half minute."""


@dataclass(frozen=True, eq=False)
class NotifyingActivities:
    """The activity that delivers notices."""

    receiver: NoticeReceiver | None
    """None: this worker has no address for them."""
    content: ContentStore
    page_url: str = ""
    """Address of the page that shows runs; empty if it is not known."""

    @activity.defn(name=activities.SEND_NOTICE.name)
    async def send_notice(self, request: NoticeRequest) -> None:
        """Deliver one notice; every attempt has the same id, so that a receiver can drop a repeated one."""
        async with attempt(NOTIFYING, handles_text=False):
            if self.receiver is None:
                raise NotConfigured("this worker has no address for notices: set notify.url for all workers alike")
            body = json.dumps(await self._body(request), ensure_ascii=False).encode("utf-8", "replace")
            try:
                await self.receiver.send(request.notice_id, body)
            except Retryable as error:
                backoff = min(LONGEST_DELAY_SECONDS, 2.0 ** min(activity.info().attempt - 1, 10))
                error.retry_after = max(backoff, error.retry_after or 0.0)
                raise

    async def _body(self, request: NoticeRequest) -> dict[str, Any]:
        body = notice_body(request)
        if self.page_url:
            body["link"] = f"{self.page_url.rstrip('/')}/runs/{request.research_id}"
        if request.question:
            body["question"] = request.question
        if request.report is not None:
            with suppress(ContentMissing):  # deleted since: the notice is still due
                report = await self.content.get_text(request.report)
                body["report"] = report[:MAX_REPORT_CHARACTERS]
                body["report_cut"] = len(report) > MAX_REPORT_CHARACTERS
        return body


def notice_body(request: NoticeRequest) -> dict[str, Any]:
    """Return the fields that every notice has."""
    return {
        "id": request.notice_id,
        "type": f"run.{request.kind.value}",
        "research_id": request.research_id,
        "tenant": request.tenant,
        "state": request.status.value,
        "outcome": request.outcome and request.outcome.value,
        "stop_reason": request.stop_reason or None,
        "occurred_at": request.occurred_at,
        "expires_at": request.expires_at or None,
        "next": request.commands,
    }
