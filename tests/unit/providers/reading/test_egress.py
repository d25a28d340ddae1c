"""The way out against servers that misbehave: each costs at most its deadline and ends with a typed reason."""

import asyncio
import datetime as dt
import gzip
import ipaddress
import ssl
import zlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from providers.errors import RateLimited, SourceUnreadable, Unavailable
from providers.reading.egress.address_rules import host_and_port
from providers.reading.egress.client import MOST_REDIRECTS, Egress, Fetched, FetchPolicy
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

SOON = replace(POLICY, seconds=0.3)
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
async def server() -> AsyncIterator[WebServer]:
    """A server without pages."""
    async with WebServer({}) as running:
        yield running


@pytest.fixture
async def egress(server: WebServer) -> AsyncIterator[Egress]:
    """A way out to this server."""
    made = Egress("test", allow_hosts={host_and_port(server.host)})
    yield made
    await made.close()


async def fetch(server: WebServer, answer: Reply, policy: FetchPolicy = POLICY) -> Fetched:
    """What comes of one answer of a server that is allowed although it is on loopback."""
    server.pages["/"] = answer
    egress = Egress("test-agent/1", allow_hosts={host_and_port(server.host)})
    try:
        return await egress.fetch(server.url(), policy)
    finally:
        await egress.close()


async def kind_of(server: WebServer, answer: Reply, policy: FetchPolicy = POLICY) -> str:
    """The kind of the failure."""
    with pytest.raises(SourceUnreadable) as raised:
        await fetch(server, answer, policy)
    return raised.value.kind


async def test_a_page_comes_with_its_final_address_and_kind(server: WebServer) -> None:
    """Relative redirects are followed; the request says who asks, and carries no cookie or credential back."""
    server.pages["/b/c"] = page("Words.")
    answer = reply(status=301, Location="b/c#part", Set_Cookie="id=1", WWW_Authenticate="Basic")
    fetched = await fetch(server, answer)
    assert (fetched.url, fetched.media_type, fetched.charset) == (server.url("/b/c"), "text/html", None)
    assert b"Words." in fetched.body
    head = server.heads[-1]
    assert head["user-agent"] == "test-agent/1"
    assert head["accept-encoding"] == "gzip"
    assert not {"cookie", "authorization", "referer", "proxy-authorization"} & head.keys()


@pytest.mark.parametrize(
    ("location", "kind"),
    [
        ("http://[::ffff:7f00:1]/", "refused_address"),
        ("http://2130706433/", "refused_host"),
        ("//169.254.169.254/latest", "refused_address"),
        ("///169.254.169.254/latest", "refused_url"),
        ("http:169.254.169.254", "refused_url"),
        ("file:///etc/passwd", "refused_scheme"),
        ("JavaScript:alert(1)", "refused_scheme"),
        ("http://localhost/", "refused_host"),
        ("/x y", "refused_url"),
        ("/x\x01y", "refused_url"),
        ("\\\\127.0.0.1/x", "refused_url"),
        ("/" + "x" * 10_000, "refused_url"),
        ("http://a@public.test/", "refused_url"),
    ],
)
@pytest.mark.parametrize("status", [301, 308])
async def test_redirects_pass_the_whole_gate(server: WebServer, location: str, kind: str, status: int) -> None:
    """Whatever a server says: a redirect is a URL that a stranger named."""
    if location == "/x\x01y":  # a strict parser of headers may refuse it before the gate does
        with pytest.raises((SourceUnreadable, Unavailable)):
            await fetch(server, redirect(location, status))
    else:
        assert await kind_of(server, redirect(location, status)) == kind
    assert len(server.asked) == 1


async def test_a_redirect_with_a_line_end_sets_no_header_and_leads_nowhere(server: WebServer) -> None:
    """What follows the line end is another header of the answer, never part of a request."""
    with pytest.raises((SourceUnreadable, Unavailable)):
        await fetch(server, redirect("/next\r\n Host: 127.0.0.1\r\nX: y"))
    assert [path for _, path in server.asked] == ["/"]


async def test_redirects_are_counted(server: WebServer) -> None:
    """Five redirects are followed, a sixth is not, also in a circle."""
    server.pages |= {f"/{number}": redirect(f"/{number + 1}") for number in range(1, MOST_REDIRECTS + 1)}
    server.pages[f"/{MOST_REDIRECTS}"] = page("Words.")
    assert (await fetch(server, redirect("/1"))).url == server.url("/5")
    server.pages[f"/{MOST_REDIRECTS}"] = redirect("/6")
    assert await kind_of(server, redirect("/1")) == "refused_redirect"
    assert ("127.0.0.1", "/6") not in [(host.split(":")[0], path) for host, path in server.asked]
    server.asked.clear()
    server.pages["/a"] = redirect("/")
    assert await kind_of(server, redirect("/a")) == "refused_redirect"
    assert len(server.asked) == MOST_REDIRECTS + 1


async def test_other_answers_are_no_documents(server: WebServer) -> None:
    """Anything but 200 and a redirect has a typed reason, and no challenge is answered."""
    kinds, statuses = {}, [300, 304, 305, 306, 999, 206, 410, 404, 401, 403, 451, 204, 203, 418]
    for status in statuses:
        answer = reply("" if status in {204, 304} else "x", status, WWW_Authenticate="NTLM", Location="/x")
        kinds[status] = await kind_of(server, answer)
    assert kinds.pop(404) == kinds.pop(410) == "not_found"
    assert kinds.pop(401) == kinds.pop(403) == kinds.pop(451) == "permission_denied"
    assert kinds.pop(204) == "empty"
    assert set(kinds.values()) == {"http_status"}
    assert len(server.asked) == len(statuses)


async def test_servers_that_ask_to_wait_are_asked_again_later(server: WebServer) -> None:
    """429 and 5xx may be tried again, after the stated time within its bounds."""
    with pytest.raises(RateLimited) as limited:
        await fetch(server, reply(status=429, Retry_After="7"))
    assert limited.value.retry_after == 7
    with pytest.raises(Unavailable) as down:
        await fetch(server, reply(status=503, Retry_After="99999999999"))
    assert down.value.retry_after == 300
    with pytest.raises(Unavailable):
        await fetch(server, reply(status=500))


@pytest.mark.parametrize(
    "answer",
    [
        endless(CHUNKED, b"5\r\nabcde\r\n", 0.01),
        endless(CHUNKED, b"", 0.01),
        endless(b"", b"", 0.01),
        endless(b"HTTP/1.1 200 OK\r\n", b"", 0.01),
        endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        endless(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\nContent-Type: text/html\r\n\r\n", b"x", 0.01),
    ],
    ids=["chunks", "silent body", "silence", "silent headers", "continue flood", "trickle"],
)
async def test_slow_servers_cost_their_deadline(server: WebServer, answer: Reply) -> None:
    """A trickle never exceeds the time for one step, so the whole has a time of its own."""
    async with asyncio.timeout(10):
        assert await kind_of(server, answer, SOON) == "timeout"


@pytest.mark.parametrize(
    "answer",
    [
        endless(b"HTTP/1.1 200 OK\r\n", b"X-Filler: " + b"y" * 200 + b"\r\n"),
        b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: %s\r\n" % (n, b"y" * 200) for n in range(5_000)) + b"\r\nwords",
        b"<html>an answer without a head, as in the first days</html>",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 9\r\n\r\nabcde",
        CHUNKED + b"zz\r\nabc\r\n",
    ],
    ids=["endless headers", "5,000 headers", "no head", "another protocol", "two lengths", "bad chunk"],
)
async def test_what_is_not_http_is_refused(server: WebServer, answer: Reply) -> None:
    """A typed error, soon."""
    async with asyncio.timeout(10):
        with pytest.raises((Unavailable, SourceUnreadable)):
            await fetch(server, answer, SOON)


async def test_a_body_that_breaks_off_is_no_document(server: WebServer) -> None:
    """Half a page is never taken for a page."""

    async def half(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\nContent-Type: text/html\r\n\r\n<p>half")
        await writer.drain()

    with pytest.raises(Unavailable):
        await fetch(server, half)


def packed(data: bytes) -> bytes:
    """A response that is compressed."""
    return reply(data, Content_Encoding="gzip")


async def test_compressed_pages_are_unpacked_within_limits(server: WebServer) -> None:
    """One layer; a bomb stops at the limit, garbage and a cut end are malformed, other codings are not read."""
    html = b"<!doctype html><html><body><p>Words.</p></body></html>"
    assert (await fetch(server, packed(gzip.compress(html)))).body == html
    assert (await fetch(server, reply(zlib.compress(html), Content_Encoding="deflate"))).body == html
    assert await kind_of(server, packed(gzip.compress(b"<html>" + b" " * 50_000_000, 1))) == "too_large"
    assert (
        await kind_of(server, reply(gzip.compress(gzip.compress(html)), Content_Encoding="gzip, gzip")) == "wrong_type"
    )
    assert await kind_of(server, reply(html, Content_Encoding="br")) == "wrong_type"
    assert await kind_of(server, packed(b"\x1f\x8b garbage")) == "malformed"
    assert await kind_of(server, packed(gzip.compress(html)[:-12])) == "malformed"


async def test_bytes_behind_a_compressed_page_are_not_gathered(server: WebServer) -> None:
    """The page ends where its compressed content ends, whatever is sent after it."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n"
    html = b"<!doctype html><html><body>Words.</body></html>"
    assert (await fetch(server, endless(head + gzip.compress(html), b"x" * 65_536))).body == html


async def test_compressed_bytes_that_unpack_to_nothing_are_counted(server: WebServer) -> None:
    """What arrives counts too: empty blocks without end stop at the limit."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n"
    opening = gzip.compress(b"")[:10]
    assert await kind_of(server, endless(head + opening, b"\x00\x00\x00\xff\xff" * 10_000)) == "too_large"


@pytest.mark.parametrize(
    "head", [b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n", CHUNKED], ids=["until it closes", "chunks"]
)
async def test_an_endless_body_stops_at_the_limit(server: WebServer, head: bytes) -> None:
    """No more than the limit is kept, however fast it comes."""
    piece = b"1000\r\n" + b"w" * 4_096 + b"\r\n" if head is CHUNKED else b"w" * 4_096
    assert await kind_of(server, endless(head, piece)) == "too_large"


async def test_an_unwanted_type_is_refused_by_its_header(server: WebServer) -> None:
    """The body of a film is not waited for."""
    film = endless(b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n\r\n", b"", 0.01)
    assert await kind_of(server, film) == "wrong_type"


async def test_a_page_without_a_type_is_accepted(server: WebServer) -> None:
    """A server that states nothing is not punished for it; one that sends nothing has no document."""
    for stated in (None, ""):
        assert (await fetch(server, reply("words", content_type=stated))).media_type is None
    assert await kind_of(server, reply("")) == "empty"


async def test_other_places_that_a_server_offers_are_ignored(server: WebServer) -> None:
    """Alternative services, refresh headers and scripts lead nowhere."""
    body = "<html><meta http-equiv=refresh content='0;url=http://127.0.0.1/'><script>location='/x'</script>Words</html>"
    await fetch(server, reply(body, Alt_Svc='h2="127.0.0.1:1"', Refresh="0; url=/x", Link="</x>; rel=preload"))
    assert [path for _, path in server.asked] == ["/"]


def certificates(folder: Path, name: str, *, days: int = 1) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """TLS of a server whose certificate is for `name`, and of a client that trusts its maker."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = dt.datetime.now(dt.UTC)
    alternative: x509.GeneralName = x509.DNSName(name)
    if name[0].isdigit():
        alternative = x509.IPAddress(ipaddress.ip_address(name))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=9))
        .not_valid_after(now + dt.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / f"{name}{days}.pem"
    path.write_bytes(secret + pem)
    served = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    served.load_cert_chain(path)
    return served, ssl.create_default_context(cadata=pem.decode())


async def test_https_is_checked_against_the_name_and_never_left(tmp_path: Path) -> None:
    """The certificate must be valid and for the host that was asked for; a redirect to http is refused."""
    served, trusting = certificates(tmp_path, "public.test")
    pages = {"/": page("Words."), "/down": redirect("http://public.test/")}
    async with WebServer(pages, served) as server:
        network = RecordingNetwork({PUBLIC_ADDRESS: server.port})
        names = {"public.test": [[PUBLIC_ADDRESS]], "other.test": [[PUBLIC_ADDRESS]]}
        egress = Egress("test", resolver=FixedResolver(names), network=network, tls=trusting)
        assert (await egress.fetch("https://public.test/", POLICY)).url == "https://public.test/"
        with pytest.raises(SourceUnreadable) as down:
            await egress.fetch("https://public.test/down", POLICY)
        with pytest.raises(SourceUnreadable) as other:
            await egress.fetch("https://other.test/", POLICY)
        await egress.close()
        strict = Egress("test", resolver=FixedResolver(names), network=network)
        with pytest.raises(SourceUnreadable) as unknown:
            await strict.fetch("https://public.test/", POLICY)
        await strict.close()
    served, trusting = certificates(tmp_path, "public.test", days=-1)
    async with WebServer(pages, served) as server:
        network = RecordingNetwork({PUBLIC_ADDRESS: server.port})
        egress = Egress("test", resolver=FixedResolver(names), network=network, tls=trusting)
        with pytest.raises(SourceUnreadable) as expired:
            await egress.fetch("https://public.test/", POLICY)
        await egress.close()
    assert down.value.kind == "refused_redirect"
    assert other.value.kind == unknown.value.kind == expired.value.kind == "certificate"


async def test_proxies_of_the_environment_are_not_used(server: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing in the environment changes where a request goes."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert (await fetch(server, page("Words."))).url == server.url()


async def test_no_answer_at_all_may_be_tried_again(server: WebServer) -> None:
    """A server that hangs up, and a step that takes too long (S0-126)."""

    async def hang_up(writer: asyncio.StreamWriter) -> None:
        writer.close()

    with pytest.raises(Unavailable):
        await fetch(server, hang_up)
    server.pages["/"] = endless(b"", b"", 0.01)
    impatient = httpx2.Timeout(connect=1, read=0.05, write=1, pool=1)
    egress = Egress("test", allow_hosts={host_and_port(server.host)}, waits=impatient)
    with pytest.raises(SourceUnreadable) as raised:
        await egress.fetch(server.url(), POLICY)
    await egress.close()
    assert raised.value.kind == "timeout"


async def test_a_body_where_there_is_none_is_not_taken_for_another_answer(server: WebServer, egress: Egress) -> None:
    """Bytes after an answer without content are not the answer to the next request."""
    stray = b"HTTP/1.1 204 Said\r\nContent-Length: 40\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad"
    server.pages |= {"/": stray, "/next": page("Words.")}
    with pytest.raises(SourceUnreadable) as raised:
        await egress.fetch(server.url(), POLICY)
    assert raised.value.kind == "empty"
    assert b"Words." in (await egress.fetch(server.url("/next"), POLICY)).body


async def test_a_megabyte_that_unpacks_to_a_gigabyte_costs_its_beginning(server: WebServer, egress: Egress) -> None:
    """The bomb is not unpacked to see that it is one."""
    packer = zlib.compressobj(9, wbits=31)
    opening = packer.compress(b"<html>") + packer.flush(zlib.Z_FULL_FLUSH)
    packer.compress(b" " * 1_000_000)
    megabyte = packer.flush(zlib.Z_FULL_FLUSH)
    bomb = opening + megabyte * 1_074
    assert len(bomb) < 1_200_000
    server.pages["/"] = reply(bomb, Content_Encoding="gzip")
    with pytest.raises(SourceUnreadable) as raised:
        await egress.fetch(server.url(), POLICY)
    assert raised.value.kind == "too_large"
