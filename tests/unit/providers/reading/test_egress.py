"""The way out against servers that misbehave: each costs at most its deadline and ends with a typed reason."""

import asyncio
import datetime as dt
import gzip
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from providers.errors import SourceUnreadable, Unavailable
from providers.reading.egress.address_rules import hosts_and_ports
from providers.reading.egress.client import MAX_REDIRECTS, STEP_TIMEOUTS, Egress, Fetched, FetchPolicy
from providers.reading.reader import POLICY
from tests.fakes.web import (
    PUBLIC_ADDRESS,
    FixedResolver,
    RecordingNetwork,
    Reply,
    WebServer,
    endless,
    page,
    redirect,
    reply,
)
from tests.unit.providers.reading.conftest import kind_of

SOON = replace(POLICY, seconds=0.3)
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
async def egress(server: WebServer) -> AsyncIterator[Egress]:
    """A way out to this server, which is allowed although it is on loopback."""
    made = Egress("test-agent/1", allow_hosts=hosts_and_ports([server.host]))
    yield made
    await made.close()


Fetch = Callable[..., Awaitable[Fetched]]


@pytest.fixture
def fetch(server: WebServer, egress: Egress) -> Fetch:

    async def fetching(answer: Reply, policy: FetchPolicy = POLICY) -> Fetched:
        server.pages["/"] = answer
        return await egress.fetch(server.url(), policy)

    return fetching


# --- redirects and statuses ------------------------------------------------------------------------------------------
async def test_a_page_comes_with_its_final_address_and_kind(server: WebServer, fetch: Fetch) -> None:
    """Relative redirects are followed; the request says who asks, and carries no cookie or credential back."""
    server.pages["/b/c"] = page("Words.")
    answer = reply(status=301, Location="b/c#part", Set_Cookie="id=1", WWW_Authenticate="Basic")
    fetched = await fetch(answer)
    assert (fetched.url, fetched.media_type, fetched.charset) == (server.url("/b/c"), "text/html", None)
    assert b"Words." in fetched.body
    head = server.heads[-1]
    assert head["user-agent"] == "test-agent/1"
    assert head["accept-encoding"] == "gzip"
    assert not {"cookie", "authorization", "referer", "proxy-authorization"} & head.keys()


@pytest.mark.parametrize(
    ("location", "kind"),
    [
        ("//169.254.169.254/latest", "refused_address"),
        ("http:169.254.169.254", "refused_url"),
        ("file:///etc/passwd", "refused_scheme"),
        ("http://localhost/", "refused_host"),
        ("/next\r\n Host: 127.0.0.1\r\nX: y", "refused_url"),
        ("\\\\127.0.0.1/x", "refused_url"),
        ("/" + "x" * 10_000, "refused_url"),
    ],
)
@pytest.mark.parametrize("status", [301, 308])
async def test_redirects_pass_the_whole_gate(
    server: WebServer, fetch: Fetch, location: str, kind: str, status: int
) -> None:
    """Whatever a server says: a redirect is a URL that a stranger named."""
    assert await kind_of(fetch(redirect(location, status))) == kind
    assert len(server.asked) == 1


async def test_redirects_are_counted(server: WebServer, fetch: Fetch) -> None:
    """Five redirects are followed, a sixth is not, also in a circle."""
    server.pages |= {f"/{number}": redirect(f"/{number + 1}") for number in range(1, MAX_REDIRECTS + 1)}
    server.pages[f"/{MAX_REDIRECTS}"] = page("Words.")
    assert (await fetch(redirect("/1"))).url == server.url("/5")
    server.pages[f"/{MAX_REDIRECTS}"] = redirect("/")
    server.asked.clear()
    assert await kind_of(fetch(redirect("/1"))) == "refused_redirect"
    assert len(server.asked) == MAX_REDIRECTS + 1


async def test_other_answers_are_no_documents(server: WebServer, fetch: Fetch) -> None:
    """Anything but 200 and a redirect has a typed reason, and no challenge is answered."""
    kinds, statuses = {}, [300, 304, 305, 999, 206, 410, 404, 401, 403, 451, 204, 418]
    for status in statuses:
        answer = reply("" if status in {204, 304} else "x", status, WWW_Authenticate="NTLM", Location="/x")
        kinds[status] = await kind_of(fetch(answer))
    assert kinds.pop(404) == kinds.pop(410) == "not_found"
    assert kinds.pop(401) == kinds.pop(403) == kinds.pop(451) == "permission_denied"
    assert kinds.pop(204) == "empty"
    assert set(kinds.values()) == {"http_status"}
    assert len(server.asked) == len(statuses)


# --- limits of time and size -----------------------------------------------------------------------------------------
SLOW = {
    "trickle": endless(CHUNKED, b"5\r\nabcde\r\n", 0.01),
    "silent body": endless(CHUNKED, b"", 0.01),
    "silence": endless(b"", b"", 0.01),
    "silent headers": endless(b"HTTP/1.1 200 OK\r\n", b"", 0.01),
    "continue flood": endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
}


@pytest.mark.parametrize("name", SLOW)
async def test_slow_servers_cost_their_deadline(fetch: Fetch, name: str) -> None:
    """A trickle never exceeds the time for one step, so the whole has a time of its own; its end is an outage of the site."""
    async with asyncio.timeout(60):
        with pytest.raises(Unavailable, match="took too long"):
            await fetch(SLOW[name], SOON)


async def test_a_step_that_takes_too_long_has_a_reason(server: WebServer) -> None:
    """A server that accepts and says nothing costs the time of one step, and is away like one that refuses (S0-126)."""
    server.pages["/"] = endless(b"", b"", 0.01)
    egress = Egress("test", allow_hosts=hosts_and_ports([server.host]), timeouts=STEP_TIMEOUTS | {"read": 0.05})
    try:
        with pytest.raises(Unavailable, match="stopped answering"):
            await egress.fetch(server.url(), POLICY)
    finally:
        await egress.close()


async def hang_up(writer: asyncio.StreamWriter) -> None:
    writer.close()


async def half_a_page(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\nContent-Type: text/html\r\n\r\n<p>half")
    await writer.drain()


BROKEN: dict[str, Reply] = {
    "hang up": hang_up,
    "half a page": half_a_page,
    "endless headers": endless(b"HTTP/1.1 200 OK\r\n", b"X-Filler: " + b"y" * 200 + b"\r\n"),
    "too many headers": b"HTTP/1.1 200 OK\r\n" + b"X-Filler: yyyyyyyyyyyyyyyyyyyy\r\n" * 50_000 + b"\r\nwords",
    "no head": b"<html>an answer without a head, as in the first days</html>",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 9\r\n\r\nabcde",
    "bad chunk": CHUNKED + b"zz\r\nabc\r\n",
}


@pytest.mark.parametrize("name", BROKEN)
async def test_what_is_not_a_whole_answer_is_refused(fetch: Fetch, name: str) -> None:
    """A typed error, soon: half a page is never taken for a page."""
    async with asyncio.timeout(60):
        with pytest.raises((Unavailable, SourceUnreadable)):
            await fetch(BROKEN[name], SOON)


HTML = b"<!doctype html><html><body><p>Words.</p></body></html>"
ZIPPED = gzip.compress(HTML)
PLAIN_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
GZIP_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n"


BODIES = {
    "bomb": (reply(gzip.compress(b"<html>" + b" " * 50_000_000, 1), Content_Encoding="gzip"), "too_large"),
    "empty blocks": (endless(GZIP_HEAD + gzip.compress(b"")[:10], b"\x00\x00\x00\xff\xff" * 10_000), "too_large"),
    "endless": (endless(PLAIN_HEAD, b"w" * 4_096), "too_large"),
    "endless chunks": (endless(CHUNKED, b"1000\r\n" + b"w" * 4_096 + b"\r\n"), "too_large"),
    "two layers": (reply(gzip.compress(ZIPPED), Content_Encoding="gzip, gzip"), "wrong_type"),
    "brotli": (reply(HTML, Content_Encoding="br"), "wrong_type"),
    "garbage": (reply(b"\x1f\x8b garbage", Content_Encoding="gzip"), "malformed"),
    "cut end": (reply(ZIPPED[:-12], Content_Encoding="gzip"), "malformed"),
    "film": (endless(b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n\r\n", b"", 0.01), "wrong_type"),
    "nothing": (reply(""), "empty"),
    "gzip": (reply(ZIPPED, Content_Encoding="gzip"), ""),
    "deflate": (reply(zlib.compress(HTML), Content_Encoding="deflate"), ""),
    "bytes behind it": (endless(GZIP_HEAD + ZIPPED, b"x" * 65_536), ""),
    "without a type": (reply(HTML, content_type=None), ""),
    "with an empty type": (reply(HTML, content_type=""), ""),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", BODIES)
async def test_bodies_have_limits(fetch: Fetch, name: str) -> None:
    """What arrives counts, and what it unpacks to; one layer is unpacked, which ends where its content ends. No film is
    waited for, and a server that states no type is not punished for it.
    """
    answer, kind = BODIES[name]
    if kind:
        assert await kind_of(fetch(answer)) == kind
    else:
        assert (await fetch(answer)).body == HTML


# --- TLS and the environment -----------------------------------------------------------------------------------------
def certificates(folder: Path, *, days: int = 1) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """TLS of a server whose certificate is for public.test, and of a client that trusts its maker."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=9))
        .not_valid_after(now + dt.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("public.test")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / f"{days}.pem"
    path.write_bytes(secret + pem)
    served = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    served.load_cert_chain(path)
    return served, ssl.create_default_context(cadata=pem.decode())


PAGES = {"/": page("Words."), "/down": redirect("http://public.test/")}
NAMES = {"public.test": [[PUBLIC_ADDRESS]], "other.test": [[PUBLIC_ADDRESS]]}


@pytest.mark.parametrize(
    ("url", "days", "trusted", "kind"),
    [
        ("https://public.test/", 1, True, ""),
        ("https://public.test/down", 1, True, "refused_redirect"),
        ("https://other.test/", 1, True, "certificate"),
        ("https://public.test/", 1, False, "certificate"),
        ("https://public.test/", -1, True, "certificate"),
    ],
    ids=["valid", "redirect to http", "another name", "unknown maker", "expired"],
)
async def test_https_is_checked_against_the_name_and_never_left(
    tmp_path: Path, url: str, days: int, trusted: bool, kind: str
) -> None:
    """The certificate must be valid and for the host that was asked for; a redirect to http is refused."""
    served, trusting = certificates(tmp_path, days=days)
    async with WebServer(PAGES, served) as server:
        network = RecordingNetwork({PUBLIC_ADDRESS: server.port})
        egress = Egress("test", look_up=FixedResolver(NAMES), network=network, tls=trusting if trusted else None)
        if kind:
            assert await kind_of(egress.fetch(url, POLICY)) == kind
        else:
            assert (await egress.fetch(url, POLICY)).url == url
        await egress.close()


async def test_proxies_of_the_environment_are_not_used(
    server: WebServer, fetch: Fetch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing in the environment changes where a request goes."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert (await fetch(page("Words."))).url == server.url()
