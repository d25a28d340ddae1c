"""Who may use the page: a browser with its key, from an address of its own."""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from client.http_server import Foreign, OwnNames
from client.page.key import KEY_FILE, KEY_PARAMETER, stored_key

COOKIE: Final = "research_page"
COOKIE_SECONDS: Final = 30 * 86_400
PROXY_HEADER: Final = "x-research-key"
"""Header by which a proxy proves that a request passed it."""
SAFE_METHODS: Final = ("GET", "HEAD")
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; "
    "form-action 'self'; frame-ancestors 'self'; base-uri 'none'"
)
HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # `no-referrer` would make browsers send `Origin: null` with forms
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


@dataclass(frozen=True)
class Access:
    """What a request must show: the key, the address that it names, and behind a proxy the name of its user."""

    key: str
    names: OwnNames
    user_header: str = ""
    """Header with the name of the user, whose runs alone are shown; empty: everybody's."""

    @property
    def form_key(self) -> str:
        """Return the key of forms, which a page shows, so it is not the one that opens the page."""
        return hmac.new(self.key.encode(), b"form", hashlib.sha256).hexdigest()

    def is_key(self, given: str) -> bool:
        """Compare a key in constant time."""
        return hmac.compare_digest(given.encode(), self.key.encode())

    def is_form_key(self, given: str) -> bool:
        """Compare the key of a form in constant time."""
        return hmac.compare_digest(given.encode(), self.form_key.encode())

    def user(self, headers: Mapping[str, str]) -> str | None:
        """Return the user that a proxy names; None where everybody's runs are shown."""
        return headers.get(self.user_header, "") if self.user_header else None


def open_access(home: Path, port: int, page_url: str = "", user_header: str = "") -> Access:
    """Make the access of a page at a port of the loopback interface, and at the address of a proxy before it.

    The key is the same after a restart, so an open page goes on.
    """
    hosts = {f"{host}:{port}" for host in ("127.0.0.1", "localhost")}
    origins = {f"http://{host}" for host in hosts}
    if page_url:
        address = urlsplit(page_url)
        hosts.add(address.netloc.lower())
        origins.add(f"{address.scheme}://{address.netloc}")
    return Access(stored_key(home / KEY_FILE), OwnNames(frozenset(hosts), frozenset(origins)), user_header.lower())


class Guarded:
    """An application that sees only requests with access, and whose answers have the page's headers."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request, exchange the key in an address for a cookie, or refuse it."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        application = self._answer(scope) or self._app
        return await application(scope, receive, send_guarded)

    def _answer(self, scope: Scope) -> Response | None:
        """Return the answer to a request without access; None for one that has it."""
        access = self._access
        headers = Headers(scope=scope)
        objection = access.names.objection(headers)
        if objection is Foreign.NAME:
            return PlainTextResponse("This page does not answer under that name.\n", 421)
        if objection is Foreign.PAGE and scope["method"] not in SAFE_METHODS:
            return PlainTextResponse("Forms are taken from this page only.\n", 403)
        parameters = QueryParams(scope["query_string"])
        if access.is_key(parameters.get(KEY_PARAMETER, "")):
            return self._admit(scope, headers["host"])
        given = headers.get(PROXY_HEADER, "") or _cookie(headers)
        if not access.is_key(given):
            return PlainTextResponse(
                "Open the address that `research serve` printed: it has the key of this page.\n", 401
            )
        if access.user_header and not headers.get(access.user_header):
            return PlainTextResponse("The proxy before this page names no user.\n", 401)
        return None

    def _admit(self, scope: Scope, host: str) -> Response:
        """Set the cookie, and lead to the same page without the key in its address."""
        answer = RedirectResponse(scope["path"].replace("//", "/"), 303)
        is_secure = f"https://{host}" in self._access.names.origins
        answer.set_cookie(COOKIE, self._access.key, COOKIE_SECONDS, httponly=True, samesite="strict", secure=is_secure)
        return answer


def _cookie(headers: Headers) -> str:
    try:
        morsel = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return morsel.value if morsel is not None else ""
