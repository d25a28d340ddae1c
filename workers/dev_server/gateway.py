"""The only way from a browser to the web UI of the embedded server: it refuses what a foreign page sends.

A page on any website can send requests to the loopback interface, and with a host name of its own that leads there it
could read the answers as well. The server's web UI asks for neither, so it listens where no page finds it, and this
gateway listens at the address that people know. It lets through what a browser sends for that address itself.

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
"""With any port: a tunnel may end at another one, and no web site can take these names."""
OWN_FETCH_SITES: Final = frozenset({"same-origin", "none"})
"""What a browser says of requests of the page itself, and of addresses that a person opened."""
HOP_HEADERS: Final = frozenset(
    {"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}
)
LONGEST_BODY_BYTES: Final = 4_000_000
CLIENT_SECONDS: Final = 60
SERVER_SECONDS: Final = 120
"""The UI asks for news of a run with requests that wait."""


def refusal(headers: Mapping[str, str]) -> str | None:
    """Why a request is not one of the UI itself, or null. The names of the headers are in lower case."""
    host = headers.get("host", "")
    if _name_of(f"//{host}") not in LOOPBACK_NAMES:
        return "This address is for 127.0.0.1 and localhost alone"
    if headers.get("sec-fetch-site", "none").strip().lower() not in OWN_FETCH_SITES:
        return "A page elsewhere asked for this; open the address by hand"
    origin = headers.get("origin")
    if origin is not None and origin.strip().lower() != f"http://{host}".lower():
        return "A page elsewhere asked for this"
    return None


class Gateway:
    """Listens at a port of the loopback interface for as long as it is open. Raises `OSError` if it is taken."""

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
    """One request per connection, as HTTP/1.0 has it: so the end of an answer needs no framing of its own."""

    server: _Server
    timeout = CLIENT_SECONDS

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name of the base class
        """Nothing: the keeper's log is for the keeper."""

    def version_string(self) -> str:
        """Nothing about the programming language."""
        return "research"

    def _forward(self) -> None:
        names = [name.lower() for name in self.headers]
        refused = refusal({name.lower(): value for name, value in self.headers.items()})
        length = self.headers.get("content-length", "0")
        if refused is not None or names.count("host") != 1 or names.count("origin") > 1:
            self.send_error(HTTPStatus.FORBIDDEN, refused or "The request has two senders")
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
            self.send_error(HTTPStatus.BAD_GATEWAY, "The engine does not answer; try again in a moment")
            return
        try:
            self.send_response_only(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in HOP_HEADERS:
                    self.send_header(name, value)
            self.end_headers()
            shutil.copyfileobj(answer, self.wfile)
        except (OSError, http.client.HTTPException):
            self.close_connection = True  # one of the two went away: what is missing shows as a short answer
        finally:
            connection.close()


def _name_of(address: str) -> str | None:
    """The host name of an address, or null if it has none or is no address."""
    try:
        parts = urlsplit(address)
        parts.port  # noqa: B018  raises if it is none
    except ValueError:
        return None
    return parts.hostname if parts.netloc == address[2:] and "@" not in parts.netloc else None
