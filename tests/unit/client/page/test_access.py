"""Who may use the page: its key, its addresses, its forms, and what a proxy says."""

import asyncio
import socket
import stat
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from client.assistants.runs import Desk
from client.cli.context import open_context
from client.page.access import COOKIE, PROXY_HEADER, Access, open_access
from client.page.app import http_server
from client.page.key import KEY_FILE
from providers.certificates import trusted_certificates
from tests.fakes import states
from tests.unit.client.cli.command_line import store_run
from workers.settings.loading import Flags

LOOPBACK = "127.0.0.1"


@asynccontextmanager
async def serving(page_url: str = "", user_header: str = "") -> AsyncIterator[tuple[str, Access]]:
    """The page at the yielded address, and its access."""
    async with open_context(Flags()) as context:
        listener = socket.create_server((LOOPBACK, 0))
        listener.setblocking(False)
        port = listener.getsockname()[1]
        access = open_access(context.settings.home, port, page_url, user_header)
        server = http_server(Desk(context.settings, context.stores), listener, page_url, user_header)
        task = asyncio.create_task(server.serve([listener]))
        try:
            yield f"http://{LOOPBACK}:{port}", access
        finally:
            server.should_exit = True
            await task
            listener.close()


def allowed(access: Access, **headers: str) -> dict[str, str]:
    """The headers of a browser that has the cookie."""
    return {"cookie": f"{COOKIE}={access.key}", **headers}


async def test_the_key_in_the_address_becomes_a_cookie_that_scripts_cannot_read(home: Path) -> None:
    """The address is left without the key; without either there is one line that says how to come in."""
    async with (
        serving() as (address, access),
        httpx2.AsyncClient(verify=trusted_certificates(), base_url=address) as browser,
    ):
        refused = await browser.get("/")
        assert (refused.status_code, "research serve" in refused.text) == (401, True)
        assert (await browser.get("/?key=wrong")).status_code == 401
        entered = await browser.get("/", params={"key": access.key})
        assert (entered.status_code, entered.headers["location"]) == (303, "/")
        cookie = entered.headers["set-cookie"].lower()
        assert all(word in cookie for word in ("httponly", "samesite=strict", "path=/"))
        shown = await browser.get("/")
        assert shown.status_code == 200
        assert access.key not in shown.text


def test_the_key_is_the_same_after_a_restart_and_private(home: Path) -> None:
    """An open page goes on; the file of the key can be read by its owner alone."""
    home.mkdir(exist_ok=True)
    assert open_access(home, 1).key == open_access(home, 2).key
    assert stat.S_IMODE((home / KEY_FILE).stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1:1"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
    ],
)
async def test_a_form_of_another_site_starts_nothing(headers: Mapping[str, str], code: int, home: Path) -> None:
    """Another name of this machine, another origin, or what a browser says of the request's site."""
    async with (
        serving() as (address, access),
        httpx2.AsyncClient(verify=trusted_certificates(), base_url=address) as browser,
    ):
        sent = await browser.post(
            "/preview", data={"query": "x", "form_key": access.form_key}, headers=allowed(access, **headers)
        )
        assert sent.status_code == code


async def test_a_form_without_its_own_key_is_refused(home: Path) -> None:
    """Not even with the cookie: the key of forms is on the page only; too many fields are refused as well."""
    async with (
        serving() as (address, access),
        httpx2.AsyncClient(verify=trusted_certificates(), base_url=address) as browser,
    ):
        for form in ({"query": "x"}, {"query": "x", "form_key": access.key}):
            refused = await browser.post("/start", data=form, headers=allowed(access))
            assert refused.status_code == 403
        many = {f"field-{number}": "x" for number in range(200)}
        assert (await browser.post("/start", data=many, headers=allowed(access))).status_code == 400
        huge = await browser.post("/start", content=b"x" * 300_000, headers=allowed(access))
        assert huge.status_code == 413


async def test_every_answer_bars_foreign_scripts_frames_and_copies(home: Path) -> None:
    """Also refusals and files; only scripts of the page itself run, and nothing is kept by the browser."""
    async with (
        serving() as (address, access),
        httpx2.AsyncClient(verify=trusted_certificates(), base_url=address) as browser,
    ):
        for path in ("/", "/nowhere", "/static/page.js", "/runs/unknown"):
            for cookie in ({}, allowed(access)):
                answer = await browser.get(path, headers=cookie)
                policy = answer.headers["content-security-policy"]
                assert "default-src 'none'" in policy
                assert "unsafe" not in policy
                assert answer.headers["cache-control"] == "no-store"
                assert answer.headers["x-content-type-options"] == "nosniff"
        assert (await browser.get("/static/../app.py", headers=allowed(access))).status_code == 404


async def test_behind_a_proxy_each_user_sees_their_own_runs(home: Path) -> None:
    """The proxy shows the key and names the user; without a name, or for the run of another, there is nothing."""
    for tenant in ("ada", "ben"):
        resolved = states.resolved(tenant=tenant, query=f"What does {tenant} ask?")
        await store_run(home, f"r-{tenant}", states.state(resolved=resolved), closed=False)
    async with serving("https://research.example.org", "X-User") as (address, access):
        async with httpx2.AsyncClient(verify=trusted_certificates(), base_url=address) as browser:
            proxied = {"host": "research.example.org", PROXY_HEADER: access.key}
            assert (await browser.get("/", headers=proxied)).status_code == 401
            listed = await browser.get("/", headers=proxied | {"x-user": "ada"})
            assert "What does ada ask?" in listed.text
            assert "What does ben ask?" not in listed.text
            assert (await browser.get("/runs/r-ada", headers=proxied | {"x-user": "ada"})).status_code == 200
            for path in ("/runs/r-ben", "/runs/r-ben/live", "/runs/r-ben/report", "/compare?a=r-ben&b=r-ada"):
                other = await browser.get(path, headers=proxied | {"x-user": "ada"})
                assert (other.status_code, "What does ben ask?" in other.text) == (404, False)
