"""Tests of commands leave the process as it was; an endpoint that answers, and knows nothing."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import structlog


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """A command sends log lines to standard error."""
    yield
    structlog.reset_defaults()


class Unknown(BaseHTTPRequestHandler):
    """Answers every request with 404: a server that was left waiting would cost each command ten seconds."""

    def do_GET(self) -> None:
        self.send_error(404)

    def do_POST(self) -> None:
        self.send_error(404)

    def log_message(self, *_: object) -> None:
        """Write nothing."""


@pytest.fixture
def endpoint() -> Iterator[str]:
    """The address of a model endpoint that knows no address: it lists no model and has no window."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Unknown) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
