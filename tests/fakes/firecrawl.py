"""A server that speaks Firecrawl's `/v2/scrape`, in the form of its own types, and opens what a test has prepared."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from tests.fakes.loopback import HttpRequest, LoopbackServer, response

KEY = "fc-planted-key-0123456789"
KNOWN = {
    "url", "formats", "onlyMainContent", "maxAge", "storeInCache", "proxy", "skipTlsVerification", "waitFor", "timeout",
}  # fmt: skip
"""Fields of a request that a client of ours may send; the service refuses unknown ones."""


class FirecrawlServer(LoopbackServer):
    """Opens pages: `pages` has the HTML by address, `failures` the status and the code; `asked` the requests."""

    def __init__(self, pages: Mapping[str, str] | None = None, failures: Mapping[str, tuple[int, str]] | None = None):
        super().__init__()
        self.pages = dict(pages or {})
        self.failures = dict(failures or {})
        self.ends: dict[str, str] = {}
        """Where the browser ends, by the address at which it began."""
        self.statuses: dict[str, int] = {}
        """What the site answered the browser."""
        self.answer: Any = None
        """In place of the service's own answer."""
        self.asked: list[dict[str, Any]] = []

    async def serve(self, request: HttpRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request."""
        status, answer = self._answer(request)
        writer.write(response(status, json.dumps(answer).encode(), {"content-type": "application/json"}))
        await writer.drain()
        return True

    @property
    def host(self) -> str:
        """Its host and port."""
        return f"127.0.0.1:{self.port}"

    def _answer(self, request: HttpRequest) -> tuple[int, Any]:
        if (request.method, request.target) != ("POST", "/v2/scrape"):
            return 404, {"success": False, "error": "Not found"}
        if request.headers.get("authorization") != f"Bearer {KEY}":
            return 401, {
                "success": False,
                "error": f"Unauthorized: Invalid token {request.headers.get('authorization')}",
            }
        asked = json.loads(request.body)
        self.asked.append(asked)
        url = asked["url"]
        if unknown := asked.keys() - KNOWN:
            details = [{"code": "unrecognized_keys", "keys": sorted(unknown), "path": []}]
            return 400, {"success": False, "code": "BAD_REQUEST", "error": "Bad Request", "details": details}
        if self.answer is not None:
            return 200, self.answer
        if url in self.failures:
            status, code = self.failures[url]
            return status, {"success": False, "code": code, "error": f"it failed for {url}"}
        metadata = {
            "title": "A page",
            "sourceURL": url,
            "url": self.ends.get(url, url),
            "statusCode": self.statuses.get(url, 200),
            "contentType": "text/html; charset=iso-8859-1",
            "proxyUsed": "basic",
            "cacheState": "miss",
            "creditsUsed": 1,
        }
        html = self.pages.get(url, "<html><body></body></html>")
        return 200, {"success": True, "data": {"rawHtml": html, "metadata": metadata}}
