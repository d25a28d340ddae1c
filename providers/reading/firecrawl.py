"""Firecrawl: a service, of its maker or of the operator, that opens pages which need a browser.

It is asked only about a page that was read here first, by the same rules (address, domains, robots.txt), and that has
no text of its own. What comes back is the HTML of the page after its scripts have run; it is extracted and archived as
any other page.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2

from contracts.base import CheckedModel
from providers.bounded_request import send_once
from providers.errors import NotConfigured, RateLimited, SourceUnreadable, Unavailable
from providers.interfaces import SharedStore
from providers.schemas import PAGES
from providers.service_calls import StatusKind, classify, retry_after_seconds
from providers.shared.shared_value import SharedValue

LABEL: Final = "Firecrawl"
SERVICE: Final = "read/firecrawl"
"""Name of its limits among those that workers share."""
PATH: Final = "/v2/scrape"
KEY_VARIABLE: Final = "FIRECRAWL_API_KEY"
SETTING: Final = "web.firecrawl"
MAX_ANSWER_BYTES: Final = 12_000_000  # a page of 3 MB, with every character escaped
WAIT_MILLISECONDS: Final = 2_000
"""For the scripts of a page; a wait also rules out the ways of reading that have no browser."""
MARGIN_SECONDS: Final = 5.0  # before our own time-out, so that the service says what it waited for
DAY_SECONDS: Final = 86_400.0
MALFORMED: Final = f"{LABEL}: the answer is cut or not of the documented form"

Permit = Callable[[], AbstractAsyncContextManager[object]]


@dataclass(frozen=True)
class BrowserPage:
    """A page as a browser has it after its scripts have run."""

    url: str
    """Address at which the browser ended."""
    html: str


class DayCount(CheckedModel):
    """The pages that were asked for on one day, counted from the epoch."""

    day: int = 0
    pages: int = 0


class DailyPages:
    """The number of pages that all workers together may have opened on a day (UTC)."""

    def __init__(self, store: SharedStore, most: int) -> None:
        self._counts = SharedValue(store, DayCount, PAGES, 2 * DAY_SECONDS)
        self._most = most

    async def take(self) -> None:
        """Count one page. Raises `SourceUnreadable` if the day has none left, and the errors of the store."""

        def count(state: DayCount, now: float) -> tuple[DayCount, bool]:
            day = int(now // DAY_SECONDS)
            pages = state.pages if state.day == day else 0
            if pages >= self._most:
                return state, False
            return DayCount(day=day, pages=pages + 1), True

        if not await self._counts.update("limits/firecrawl-pages", count):
            reason = f"needs a browser, and the {self._most} pages of a day are used up: see {SETTING}.pages_per_day"
            raise SourceUnreadable("too_little_text", reason)


@dataclass(frozen=True)
class Firecrawl:
    """Opens pages. Its key is sent in a header, and only to its own address."""

    client: httpx2.AsyncClient
    address: str
    key: str | None
    seconds: float
    permit: Permit
    """Allows one call; raises `RateLimited` while the service is to be left alone."""
    pages: DailyPages

    @property
    def host(self) -> str:
        """Return the host that gets the addresses of pages."""
        return urlsplit(self.address).netloc.rpartition("@")[2]

    async def open(self, url: str) -> BrowserPage:
        """Have a page opened. Raises `SourceUnreadable`, `RateLimited`, `Unavailable`, `NotConfigured`."""
        async with self.permit():
            await self.pages.take()
            answer = await self._send(url)
        page = answer.get("data")
        if answer.get("success") is not True or not isinstance(page, dict):
            raise Unavailable(MALFORMED)
        facts = page.get("metadata")
        html = page.get("rawHtml")
        if not isinstance(facts, dict) or not isinstance(html, str):
            raise Unavailable(MALFORMED)
        status = facts.get("statusCode")
        if isinstance(status, int) and classify(status) is not StatusKind.DONE:
            raise SourceUnreadable("http_status", f"the server answered {status} to a browser")
        ended = facts.get("url")
        return BrowserPage(ended if isinstance(ended, str) and ended else url, html)

    async def _send(self, url: str) -> dict[str, Any]:
        """Send exactly one request, and return the object of its answer."""
        body = {
            "url": url,
            "formats": ["rawHtml"],
            "onlyMainContent": False,
            # A page from its cache would not be of today, and what a run reads is nobody else's business.
            "maxAge": 0,
            "storeInCache": False,
            "proxy": "basic",
            "skipTlsVerification": False,
            "waitFor": WAIT_MILLISECONDS,
            "timeout": int(1_000 * max(MARGIN_SECONDS, self.seconds - MARGIN_SECONDS)),
        }
        headers = {"authorization": f"Bearer {self.key}"} if self.key else {}
        try:
            answer = await send_once(
                self.client,
                "POST",
                self.address + PATH,
                seconds=self.seconds,
                max_bytes=MAX_ANSWER_BYTES,
                headers=headers,
                service="firecrawl",
                json=body,
            )
        except httpx2.InvalidURL:
            raise NotConfigured(f"{SETTING}.url is no usable address: write it as https://HOST:PORT") from None
        if answer.is_too_large:
            raise SourceUnreadable("too_large", f"the page has more than {MAX_ANSWER_BYTES:,} bytes")
        if answer.is_refused:
            raise _refusal(answer.status, answer.headers, answer.body)
        if answer.failure:
            raise Unavailable(f"{LABEL}: {answer.failure}")
        return _read_object(answer.body)


def _read_object(body: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        raise Unavailable(MALFORMED) from None
    if not isinstance(answer, dict):
        raise Unavailable(MALFORMED)
    return answer


SITE_CODES: Final[Mapping[str, tuple[str, str]]] = {
    "SCRAPE_TIMEOUT": ("timeout", "the page was not ready in time"),
    "SCRAPE_SSL_ERROR": ("certificate", "the server's certificate cannot be verified"),
    "SCRAPE_SITE_ERROR": ("http_status", "the site did not answer the browser"),
    "SCRAPE_DNS_RESOLUTION_ERROR": ("refused_unresolved", "the host has no address"),
    "SCRAPE_ALL_ENGINES_FAILED": ("too_little_text", "no browser of the service could read it"),
    "SCRAPE_UNSUPPORTED_FILE_ERROR": ("wrong_type", "the service cannot read such files"),
}
"""Codes of failures that are the page's own, whatever status they come with: another attempt would be paid again."""


def _refusal(status: int, headers: Sequence[tuple[str, str]], explanation: bytes) -> Exception:
    """Return the error for a status; the explanation is read for its code alone, and never passed on."""
    try:
        code = json.loads(explanation).get("code")
    except (ValueError, RecursionError, AttributeError):
        code = None
    if code in SITE_CODES:
        kind, reason = SITE_CODES[code]
        return SourceUnreadable(kind, f"{LABEL}: {reason}")
    wait = retry_after_seconds(headers)
    kind_of_status = classify(status)
    if kind_of_status is StatusKind.BUSY:
        return RateLimited(f"{LABEL} asks to wait ({status})", retry_after=wait)
    if kind_of_status is StatusKind.UNAVAILABLE:
        return Unavailable(f"{LABEL} is not available ({status})", retry_after=wait)
    if kind_of_status is StatusKind.DENIED:
        return NotConfigured(f"{LABEL} refuses the key or has no credits left ({status}): see {KEY_VARIABLE}")
    return NotConfigured(f"{LABEL} refuses the call ({status}): see {SETTING}.url")
