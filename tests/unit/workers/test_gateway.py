"""Which requests reach the web UI, decided from their headers alone."""

import http.client
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from workers.dev_server.gateway import LONGEST_BODY_BYTES, Gateway, refusal

OWN = "127.0.0.1:8233"


@pytest.mark.parametrize(
    "headers",
    [
        {"host": OWN},
        {"host": "localhost:8233", "sec-fetch-site": "none"},
        {"host": OWN, "origin": f"http://{OWN}", "sec-fetch-site": "same-origin"},
        {"host": "LOCALHOST:9000", "origin": "http://localhost:9000"},
    ],
)
def test_requests_of_the_page_itself_pass(headers: dict[str, str]) -> None:
    """What a browser sends for an address that a person opened, also through a tunnel, is let through."""
    assert refusal(headers) is None


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"host": ""},
        {"host": "evil.example"},
        {"host": "evil.example:8233", "origin": "http://evil.example:8233", "sec-fetch-site": "same-origin"},
        {"host": "127.0.0.1.evil.example:8233"},
        {"host": "127.0.0.1:8233@evil.example"},
        {"host": "evil.example@127.0.0.1:8233"},
        {"host": "127.0.0.1/evil.example"},
        {"host": "[::1"},
        {"host": "localhost:x"},
        {"host": OWN, "origin": "http://evil.example"},
        {"host": OWN, "origin": "null"},
        {"host": OWN, "origin": ""},
        {"host": OWN, "origin": "https://127.0.0.1:8233"},
        {"host": OWN, "origin": "http://127.0.0.1:3000"},
        {"host": OWN, "sec-fetch-site": "cross-site"},
        {"host": OWN, "sec-fetch-site": "same-site"},
        {"host": OWN, "origin": f"http://{OWN}", "sec-fetch-site": "cross-site"},
    ],
)
def test_requests_of_other_pages_are_refused(headers: dict[str, str]) -> None:
    """A foreign or absent host, a foreign origin and a request from another site say why they are refused."""
    assert refusal(headers)


class Echo(BaseHTTPRequestHandler):
    """Answers with what it was asked."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        told = f"{self.path} {self.headers['host']} {self.headers.get('x-csrf-token')} ".encode() + body
        self.send_response(201)
        self.send_header("transfer-encoding", "chunked")
        self.send_header("set-cookie", "a=1")
        self.send_header("set-cookie", "b=2")
        self.end_headers()
        self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(told), told))

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def gateway_port() -> Iterator[int]:
    """A gateway before a server that echoes."""
    behind = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=behind.serve_forever, daemon=True).start()
    gateway = Gateway("127.0.0.1", 0, ("127.0.0.1", behind.server_port))
    yield gateway._server.server_port
    gateway.close()
    behind.shutdown()
    behind.server_close()


def ask(port: int, *headers: tuple[str, str], body: bytes = b"x") -> tuple[int, list[str], bytes]:
    """Status, cookies and body of the answer to a POST with exactly these headers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.putrequest("POST", "/a?b=%20", skip_host=True)
    for name, value in headers:
        connection.putheader(name, value)
    connection.endheaders(body)
    with connection.getresponse() as answer:
        result = answer.status, answer.headers.get_all("set-cookie", []), answer.read()
    connection.close()
    return result


def test_requests_and_answers_pass_whole(gateway_port: int) -> None:
    """Path, host, headers and body arrive as sent; so do status, every cookie and the body of the answer."""
    own = ("host", f"127.0.0.1:{gateway_port}")
    assert ask(gateway_port, own, ("x-csrf-token", "t"), ("content-length", "1")) == (
        201,
        ["a=1", "b=2"],
        f"/a?b=%20 127.0.0.1:{gateway_port} t x".encode(),
    )


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([("host", "evil.example"), ("content-length", "1")], 403),
        ([("host", "127.0.0.1"), ("host", "evil.example"), ("content-length", "1")], 403),
        ([("host", "evil.example"), ("host", "127.0.0.1"), ("content-length", "1")], 403),
        ([("host", "127.0.0.1"), ("transfer-encoding", "chunked")], 411),
        ([("host", "127.0.0.1"), ("content-length", "-1")], 411),
        ([("host", "127.0.0.1"), ("content-length", str(LONGEST_BODY_BYTES + 1))], 413),
    ],
)
def test_doubtful_requests_end_at_the_gateway(gateway_port: int, headers: list[tuple[str, str]], status: int) -> None:
    """A foreign host, two hosts, and a body without an honest length are refused without asking the server."""
    assert ask(gateway_port, *headers)[0] == status


def test_a_server_that_is_away_is_told() -> None:
    """While the server is being restarted the gateway answers that it is."""
    gateway = Gateway("127.0.0.1", 0, ("127.0.0.1", 1))
    port = gateway._server.server_port
    status, _, text = ask(port, ("host", "localhost"), ("content-length", "1"))
    gateway.close()
    assert status == 502
    assert b"try again" in text
