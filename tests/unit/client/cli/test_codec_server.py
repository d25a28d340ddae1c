"""The codec server: who is answered, and payloads that it decrypts and encrypts."""

import asyncio
import json
import socket
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
from google.protobuf.json_format import MessageToJson, Parse
from temporalio.api.common.v1 import Payload, Payloads

from client.cli.codec_server import CodecServer
from client.http_server import OwnNames, WholeRequests, make_server
from providers.encryption import Keyring
from tests.unit.client.cli.command_line import research
from workers.encryption import KeyringCodec

TOKEN = "long-random-token"
UI = "http://127.0.0.1:8233"
FIRST = KeyringCodec(Keyring({"k1": bytes(32)}, "k1"))
PLAIN = Payload(metadata={"encoding": b"json/plain"}, data=b'"quindlebrack"')


@asynccontextmanager
async def serving() -> AsyncIterator[httpx2.AsyncClient]:
    listener = socket.create_server(("127.0.0.1", 0))
    name = f"127.0.0.1:{listener.getsockname()[1]}"
    codec = KeyringCodec(Keyring({"k1": bytes(32), "k2": bytes(range(32))}, "k2"))
    server = make_server(WholeRequests(CodecServer(codec, TOKEN, OwnNames(frozenset({name}), frozenset({UI}))), 10_000))
    running = asyncio.create_task(server.serve([listener]))
    try:
        async with httpx2.AsyncClient(base_url=f"http://{name}") as client:
            yield client
    finally:
        server.should_exit = True
        await running
        listener.close()


def body_of(*payloads: Payload) -> str:
    return MessageToJson(Payloads(payloads=payloads))


async def test_payloads_are_decrypted_and_encrypted_by_the_protocol() -> None:
    """By the token as a header or in the address: payloads of every key and plain ones are decoded, new ones encoded."""
    (sealed,) = await FIRST.encode([PLAIN])
    authorised = {"authorization": f"Bearer {TOKEN}", "x-namespace": "default"}
    async with serving() as client:
        decoded = await client.post("/decode", content=body_of(sealed, PLAIN), headers=authorised)
        assert list(Parse(decoded.content, Payloads()).payloads) == [PLAIN, PLAIN]
        encoded = await client.post(f"/{TOKEN}/encode", content=body_of(PLAIN))
        (payload,) = Parse(encoded.content, Payloads()).payloads
        assert payload.metadata["encryption-key-id"] == b"k2"
        assert b"quindlebrack" not in payload.data
        again = await client.post(f"/{TOKEN}/decode", content=encoded.content)
        assert list(Parse(again.content, Payloads()).payloads) == [PLAIN]


REFUSED: list[tuple[int, str, dict[str, str]]] = [
    (401, "/decode", {}),
    (401, "/decode", {"authorization": "Bearer wrong"}),
    (401, "/wrong/decode", {"authorization": f"Bearer {TOKEN}"}),
    (401, "/wrong/decode", {}),
    (401, f"/{TOKEN}", {}),
    (403, f"/{TOKEN}/decode", {"origin": "http://evil.example"}),
    (403, f"/{TOKEN}/decode", {"origin": "null"}),
    (421, f"/{TOKEN}/decode", {"host": "evil.example"}),
    (404, f"/{TOKEN}/other", {}),
]


async def test_others_are_refused() -> None:
    """Another name of the server, another origin, and a wrong or missing token: nothing is decrypted for them."""
    (sealed,) = await FIRST.encode([PLAIN])
    async with serving() as client:
        for status, path, headers in REFUSED:
            answer = await client.post(path, content=body_of(sealed), headers=headers)
            assert answer.status_code == status, (path, headers)
            assert "quindlebrack" not in answer.text
            assert b64encode(PLAIN.data).decode() not in answer.text
            assert "access-control-allow-origin" not in answer.headers


async def test_a_browser_may_ask_for_the_web_ui_alone() -> None:
    """The web UI's own origin gets the headers that let it read; another one gets none, before and after a request."""
    asking = {"access-control-request-method": "POST", "access-control-request-headers": "content-type,x-namespace"}
    async with serving() as client:
        allowed = await client.options(f"/{TOKEN}/decode", headers={"origin": UI, **asking})
        foreign = await client.options(f"/{TOKEN}/decode", headers={"origin": "http://127.0.0.1:1", **asking})
        read = await client.post(f"/{TOKEN}/decode", content=body_of(PLAIN), headers={"origin": UI})
    assert (allowed.status_code, foreign.status_code, read.status_code) == (204, 403, 200)
    for answer in (allowed, read):
        assert answer.headers["access-control-allow-origin"] == UI
        assert "x-namespace" in answer.headers["access-control-allow-headers"]
    assert "access-control-allow-origin" not in foreign.headers


async def test_a_malformed_body_is_refused() -> None:
    """What is no JSON of payloads, however deep or broken, is answered with 400; a large body with 413."""
    async with serving() as client:
        for content in (b"no JSON", b'{"payloads": [{"data": 1}]}', b'{"payloads": 1}', b"[" * 9_000, b"\xff"):
            assert (await client.post(f"/{TOKEN}/decode", content=content)).status_code == 400, content[:20]
        assert (await client.post(f"/{TOKEN}/decode", content=b"{" * 11_000)).status_code == 413
        assert (await client.get(f"/{TOKEN}/decode")).status_code == 405


async def test_a_missing_key_and_a_forged_payload_are_named() -> None:
    """The web UI shows the id of the key that is missing; a forged payload is not passed on as plain."""
    (sealed,) = await KeyringCodec(Keyring({"k9": bytes(32)}, "k9")).encode([PLAIN])
    forged = Payload(metadata={"encoding": b"binary/encrypted"}, data=b"\xffenc1\x02k1short")
    async with serving() as client:
        missing = await client.post(f"/{TOKEN}/decode", content=body_of(sealed))
        refused = await client.post(f"/{TOKEN}/decode", content=body_of(forged))
    assert (missing.status_code, refused.status_code) == (422, 422)
    assert "the encryption key k9 is missing" in missing.text


def test_the_command_needs_a_key_and_a_name_of_its_own(home: Path) -> None:
    """Without keys there is nothing to decrypt; an interface that others reach needs the name that they use."""
    done = research("codec-server")
    assert (done.exit_code, "there is no encryption key" in done.stderr) == (2, True)
    key = f"k1={b64encode(bytes(32)).decode()}"
    done = research("codec-server", "--host", "0.0.0.0", RESEARCH_ENCRYPTION_KEYS=key)
    assert (done.exit_code, "name this server by --allow-host" in done.stderr) == (2, True)
    assert json.dumps(key) not in done.stderr
