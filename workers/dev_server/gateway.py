"""The only way from a browser to the web UI of the dev server: it refuses requests of foreign pages.

A page of any web site can send requests to the loopback interface, and read the answers through a host name of its own
that resolves to it. The server's web UI checks neither origin nor host, so it listens at an address that no page can
find, and this gateway listens at the known address. It forwards what a browser sends for that address itself.

The standard library alone: the gateway is part of the keeper, which stays small and starts at once.
"""

import http.client
import shutil
import threading
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final
from urllib.parse import urlsplit

LOOPBACK_NAMES: Final = frozenset({"127.0.0.1", "localhost"})
"""With any port: a tunnel may end at another one, and no web site can own these names."""
OWN_FETCH_SITES: Final = frozenset({"same-origin", "none"})
"""What a browser sends for requests of the page itself, and for addresses that a person opened."""
HOP_HEADERS: Final = frozenset(
    {"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}
)
LONGEST_BODY_BYTES: Final = 4_000_000
CLIENT_SECONDS: Final = 60
SERVER_SECONDS: Final = 120
"""The UI polls with requests that the server answers late."""


def refusal(headers: Mapping[str, str]) -> str | None:
    """Why a request does not come from the UI itself, or None. Header names are in lower case."""
    host = headers.get("host", "")
    if _name_of(f"//{host}") not in LOOPBACK_NAMES:
        return "Only the host names 127.0.0.1 and localhost are served"
    if headers.get("sec-fetch-site", "none").strip().lower() not in OWN_FETCH_SITES:
        return "Another web page sent this request; open the address by hand"
    origin = headers.get("origin")
    if origin is not None and origin.strip().lower() != f"http://{host}".lower():
        return "Another web page sent this request"
    return None


class Gateway:
    """Listens at a port of the loopback interface until it is closed. Raises `OSError` if the port is taken."""

    def __init__(self, host: str, port: int, target: tuple[str, int]) -> None:
        self._server = _Server((host, port), _Handler)
        self._server.target = target
        threading.Thread(target=self._server.serve_forever, name="gateway", daemon=True).start()

    def close(self) -> None:
        """Stop listening; requests under way end with the process."""
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128  # a browser asks for some hundred files at once
    target: tuple[str, int]


class _Handler(BaseHTTPRequestHandler):
    """One request per connection, as in HTTP/1.0: the end of the connection ends the answer."""

    server: _Server
    timeout = CLIENT_SECONDS

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name of the base class
        """Log nothing: the keeper's log is for the keeper."""

    def version_string(self) -> str:
        """Hide the programming language and its version."""
        return "research"

    def _forward(self) -> None:
        names = [name.lower() for name in self.headers]
        refused = refusal({name.lower(): value for name, value in self.headers.items()})
        length = self.headers.get("content-length", "0")
        if refused is not None or names.count("host") != 1 or names.count("origin") > 1:
            self.send_error(HTTPStatus.FORBIDDEN, refused or "The request has several hosts or origins")
        elif "transfer-encoding" in names or not (length.isascii() and length.isdecimal()):
            self.send_error(HTTPStatus.LENGTH_REQUIRED)
        elif int(length) > LONGEST_BODY_BYTES:
            self.send_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        else:
            self._exchange(self.rfile.read(int(length)))

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _forward  # noqa: N815  names of the base class

    def _exchange(self, body: bytes) -> None:
        connection = http.client.HTTPConnection(*self.server.target, timeout=SERVER_SECONDS)
        try:
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in HOP_HEADERS:
                    connection.putheader(name, value)
            connection.endheaders(body or None)
            answer = connection.getresponse()
        except (OSError, http.client.HTTPException, ValueError):
            connection.close()
            self.send_error(HTTPStatus.BAD_GATEWAY, "The server does not answer; try again in a moment")
            return
        try:
            self.send_response_only(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in HOP_HEADERS:
                    self.send_header(name, value)
            self.end_headers()
            shutil.copyfileobj(answer, self.wfile)
        except (OSError, http.client.HTTPException):
            self.close_connection = True  # browser or server closed the connection: the browser sees a short answer
        finally:
            connection.close()


def _name_of(address: str) -> str | None:
    """The host name of an address, or None if it has none or is malformed."""
    try:
        parts = urlsplit(address)
        parts.port  # noqa: B018  raises if it is none
    except ValueError:
        return None
    return parts.hostname if parts.netloc == address[2:] and "@" not in parts.netloc else None
