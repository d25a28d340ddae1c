"""What deploy/ and docker-compose.yml say fits the program: commands, pools, ports, places, limits, secrets."""

import asyncio
import json
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import platformdirs.unix
import pytest
import yaml

from contracts.names import POOLS
from tests.architecture import deployment as files
from tests.architecture.repository import ROOT, relative
from tests.architecture.test_dependencies import PROJECT, normalized
from workers.health import respond, serve_health
from workers.pools import DRAIN, PoolHealth, choose_pools
from workers.settings.sections import APPLICATION, FileSettings

VERSION = PROJECT["project"]["version"]
ACCOUNT = 10001


def pinned(path: Path) -> dict[str, str]:
    """Package → version of a lock file."""
    found = re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {normalized(name): version for name, version in found}


# --- the image ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["runtime", "build"])
def test_the_lock_files_of_the_image_are_parts_of_the_whole(name: str) -> None:
    """The image installs what was tested: the same versions, each with its hashes, and nothing for developers alone."""
    path = ROOT / f"requirements-{name}.lock"
    text = path.read_text(encoding="utf-8")
    assert pinned(path).items() <= pinned(ROOT / "requirements.lock").items(), "run make lock"
    assert re.findall(r"://|--(?:extra-)?index-url \S|--find-links", text) == []
    assert len(re.findall(r"^\S+==", text, re.MULTILINE)) == len(
        re.findall(r"^\S+==.*\\\n +--hash", text, re.MULTILINE)
    )


def test_the_lock_files_of_the_image_cover_what_it_needs() -> None:
    """Every dependency of the product is in the one, everything that builds it in the other; no test tools."""
    runtime, build = pinned(ROOT / "requirements-runtime.lock"), pinned(ROOT / "requirements-build.lock")
    needed = {normalized(text.split(">=")[0]) for text in PROJECT["project"]["dependencies"]}
    assert needed <= runtime.keys()
    assert {normalized(text.split(">=")[0]) for text in PROJECT["build-system"]["requires"]} <= build.keys()
    assert not {"pytest", "mypy", "ruff", "hypothesis", "pyyaml", "hatchling"} & runtime.keys()


def test_the_image_is_built_from_what_is_there() -> None:
    """Each file that the Dockerfile copies exists and is let through by .dockerignore; nothing else is sent."""
    sources = [part for name, arguments in files.stages()[0] if name == "COPY" for part in arguments.split()[:-1]]
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    let_through = {line[1:].rstrip("/") for line in lines if line.startswith("!")}
    assert lines[1] == "*"
    assert set(sources) == let_through
    assert [source for source in sources if not (ROOT / source).exists()] == []
    packages = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert set(packages) <= set(sources)


def test_the_image_installs_by_hash_and_compiles_nothing() -> None:
    """Packages are wheels with known hashes, in a stage of their own; the final one installs nothing."""
    build, final = files.stages()
    installs = [part for name, text in build if name == "RUN" for part in text.split("&&") if " install" in part]
    assert len(installs) == 4
    assert all("--require-hashes" in part or "--no-index" in part for part in installs)
    assert "PIP_ONLY_BINARY=:all:" in dict(build)["ENV"]
    assert not [text for name, text in final if name == "RUN" and re.search(r"\bpip\b|apt|gcc|curl", text)]


def test_the_image_runs_as_nobody_special() -> None:
    """A fixed account without a shell owns nothing but /data, where everything is written."""
    assert files.instruction("USER") == f"{ACCOUNT}:{ACCOUNT}"
    assert files.image_environment()["RESEARCH_HOME"] == "/data"
    assert json.loads(files.instruction("VOLUME")) == ["/data"]
    (accounts,) = [text for name, text in files.stages()[-1] if name == "RUN"]
    assert f"--uid {ACCOUNT}" in accounts
    assert f"--owner {ACCOUNT}" in accounts
    assert "/nologin" in accounts


def test_the_base_image_is_pinned_to_a_python_that_is_supported() -> None:
    """One exact version for both stages, by a digest that nobody can move, and new enough for the product."""
    (base,) = [text.partition("=")[2] for name, text in files.dockerfile() if name == "ARG"]
    version = re.fullmatch(r"python:(\d+)\.(\d+)\.(\d+)-slim-\w+@sha256:[0-9a-f]{64}", base)
    assert version is not None
    least = re.findall(r"\d+", PROJECT["project"]["requires-python"])
    assert (int(version[1]), int(version[2])) >= (int(least[0]), int(least[1]))
    assert [stage[0][1].split()[0] for stage in files.stages()] == ["${PYTHON_IMAGE}"] * 2


def test_the_image_reads_its_configuration_where_it_is_mounted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder that the program looks into is the one that compose and Kubernetes mount."""
    monkeypatch.setenv("XDG_CONFIG_HOME", files.image_environment()["XDG_CONFIG_HOME"])
    folder = platformdirs.unix.Unix(APPLICATION).user_config_path
    mounts = [volume.split(":")[1] for service in files.workers().values() for volume in service["volumes"]]
    assert str(folder / "research.toml") in mounts
    for pool in POOLS:
        assert {str(folder), "/data", "/tmp"} <= files.mounted(files.deployment(pool)).keys()
    assert f"{folder} " in dict(files.stages()[-1])["RUN"]


def test_the_entry_point_is_a_worker_with_health_and_metrics() -> None:
    """The program of the image starts, and serves health where it is looked for."""
    program = files.entrypoint()
    options = files.worker_options(program)
    assert (options["host"], options["health_port"], options["metrics_port"]) == ("0.0.0.0", 8080, 9090)
    assert options["log_format"] == "json"
    assert files.instruction("EXPOSE").split() == ["8080", "9090"]


def test_the_programs_of_the_image_run() -> None:
    """`python -m workers.setup`, which compose and Kubernetes name, prints its help."""
    module = "workers.setup"
    named = [files.services()["setup"]["entrypoint"]]
    named += [files.container_of(job)["command"] for job in files.documents(files.KUBERNETES / "base" / "setup.yaml")]
    assert {command[2] for command in named} == {module}
    assert find_spec(module) is not None
    command = [sys.executable, "-m", module, "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert f"python -m {module}" in done.stdout


@pytest.mark.parametrize(
    ("alive", "ready", "healthy"), [(True, True, True), (True, False, False), (False, False, False)]
)
async def test_the_health_check_asks_the_worker(alive: bool, ready: bool, healthy: bool) -> None:
    """The command of HEALTHCHECK succeeds with a worker that can get work, and fails with one that cannot."""

    async def health() -> dict[str, PoolHealth]:
        return {"models": PoolHealth(alive=alive, ready=ready)}

    async with serve_health(health) as address:
        assert await _health_check(address.rpartition(":")[2]) is healthy


async def test_the_health_check_fails_without_a_worker() -> None:
    """Where nobody listens, nothing is healthy."""
    assert not await _health_check("9")


async def _health_check(port: str) -> bool:
    program, *arguments = files.health_command()
    assert program == "python"
    assert sum("8080" in part for part in arguments) == 1
    command = [part.replace("8080", port) for part in arguments]
    process = await asyncio.create_subprocess_exec(sys.executable, *command, stderr=asyncio.subprocess.DEVNULL)
    return await process.wait() == 0


# --- docker-compose.yml ------------------------------------------------------------------------------------------------
def test_compose_runs_each_pool_in_a_service_of_its_own() -> None:
    """Every pool has a service of its name, with a command that starts it and nothing else."""
    assert files.workers().keys() == POOLS.keys()
    for name, service in files.workers().items():
        options = files.worker_options([*files.entrypoint(), *service["command"]])
        assert choose_pools(options["pool"]) == (name,)
        assert options["health_port"] == 8080


def test_compose_opens_no_port_beyond_this_machine() -> None:
    """Every published port is bound to the loopback interface: a Temporal server knows no passwords."""
    ports = [files.with_defaults(port) for service in files.services().values() for port in service.get("ports", [])]
    assert len(ports) == 2
    assert [port for port in ports if not re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port)] == []
    assert not [name for name, service in files.services().items() if service.get("network_mode") == "host"]


def test_every_image_is_pinned() -> None:
    """No image floats: each has a version, ours that of the product."""
    for service in files.services().values():
        name, _, version = files.with_defaults(service["image"]).partition(":")
        assert re.match(r"\d+\.\d+", version), name
    assert {service["image"] for service in files.ours().values()} == {f"{APPLICATION}:{VERSION}"}


def test_our_containers_write_where_they_should() -> None:
    """Root is read-only, no capability is kept, and only /data and /tmp can be written."""
    for name, service in files.ours().items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        temporary = {place.split(":")[0] for place in service["tmpfs"]}
        kept = {volume.split(":")[1] for volume in service.get("volumes", []) if not volume.endswith(":ro")}
        assert all(place == "/data" or place.startswith("/data/") for place in kept)
        assert temporary == {"/tmp", *({"/data"} if name != "setup" and "/data" not in kept else ())}


@pytest.mark.parametrize("pool", POOLS)
def test_a_pool_sees_what_it_works_with(pool: str) -> None:
    """Of the record of all runs each pool has its part: `reading` has no sessions."""
    composed = [volume.split(":") for volume in files.services()[pool]["volumes"]]
    assert {volume[1] for volume in composed if volume[0] in files.compose()["volumes"]} == files.FOLDERS[pool]
    assert ("/documents" in {volume[-2] for volume in composed}) is (pool in files.READ_DOCUMENTS)


def test_the_image_has_the_folders_that_volumes_are_mounted_at() -> None:
    """A new volume takes its owner from the image: without the folder nobody could write there."""
    (made,) = [text for name, text in files.stages()[-1] if name == "RUN"]
    owned = made.partition("--owner")[2].partition("&&")[0].split()
    assert {place for places in files.FOLDERS.values() for place in places} <= set(owned)


def test_a_container_has_time_to_drain() -> None:
    """Docker and Kubernetes wait longer than the worker of each pool needs to finish or give up its calls."""
    for pool, service in files.workers().items():
        least = DRAIN[pool].total_seconds() + 20
        assert int(service["stop_grace_period"].removesuffix("s")) >= least
        assert files.deployment(pool)["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] >= least


def test_compose_refers_to_what_exists() -> None:
    """Services wait for services that are there; named volumes are declared; mounted files are in the repository."""
    services = files.services()
    for service in services.values():
        assert service.get("depends_on", {}).keys() <= services.keys()
        for volume in service.get("volumes", []):
            source = files.with_defaults(volume).split(":")[0]
            assert (ROOT / source).exists() if source.startswith(".") else source in files.compose()["volumes"]


def test_runs_wait_for_a_server_that_is_set_up() -> None:
    """Workers start after the set-up, the set-up after the server, the server after its schema."""
    order = [
        ("models", "setup"),
        ("models", "valkey"),
        ("setup", "temporal"),
        ("temporal", "schema"),
        ("schema", "postgresql"),
    ]
    for later, earlier in order:
        condition = files.services()[later]["depends_on"][earlier]["condition"]
        assert condition == ("service_completed_successfully" if earlier in files.ending() else "service_healthy")
    assert files.ending() == {"schema", "setup", "research"}


@pytest.mark.parametrize("path", ["deploy/compose/research.toml", "deploy/kubernetes/base/research.toml"])
def test_the_configuration_that_is_mounted_is_accepted(path: str) -> None:
    """The files are valid, and their corpus lies where the documents are mounted."""
    settings = FileSettings.model_validate(tomllib.loads((ROOT / path).read_text(encoding="utf-8")))
    (corpus,) = settings.corpus.values()
    targets = {volume.split(":")[-2] for volume in files.services()["reading"]["volumes"] if volume.endswith(":ro")}
    assert str(corpus.path) in targets


def test_the_server_shares_fairly_and_repeats_soon() -> None:
    """The server's dynamic configuration has what the embedded engine has for runs of tenants and for killed workers."""
    path = ROOT / "deploy" / "temporal" / "dynamic-config.yaml"
    assert yaml.safe_load(path.read_text(encoding="utf-8")) == {
        "matching.enableFairness": [{"value": True}],
        "history.timerProcessorMaxTimeShift": [{"value": "100ms"}],
    }
    temporal = files.services()["temporal"]
    (mount,) = temporal["volumes"]
    assert mount.split(":")[0] == f"./{relative(path)}"
    assert mount.split(":")[1] == temporal["environment"]["DYNAMIC_CONFIG_FILE_PATH"]


# --- Kubernetes --------------------------------------------------------------------------------------------------------
def test_every_manifest_is_used_and_there() -> None:
    """Each kustomization names files that exist, and each file is named by one."""
    used = set()
    for path in files.KUBERNETES.rglob("kustomization.yaml"):
        folder = relative(path.parent).removeprefix("deploy/kubernetes/")
        made = files.kustomization(folder)
        generated = [file for one in made.get("configMapGenerator", []) for file in one.get("files", [])]
        for name in [*made.get("resources", []), *made.get("components", []), *generated]:
            target = (path.parent / name).resolve()
            used.add(target / "kustomization.yaml" if target.is_dir() else target)
    beside = {(ROOT / "deploy" / name / "kustomization.yaml").resolve() for name in ("valkey", "searxng")}
    there = {path.resolve() for path in files.KUBERNETES.rglob("*") if path.is_file()} | beside
    assert used - there == set()
    assert there - used == {(files.KUBERNETES / "example" / "kustomization.yaml").resolve()}


@pytest.mark.parametrize("pool", POOLS)
async def test_each_pool_has_a_deployment(pool: str) -> None:
    """Its arguments start the pool, its probes ask what the worker serves, and it may do nothing that it need not."""
    made = files.deployment(pool)
    container, pod = files.container_of(made), made["spec"]["template"]["spec"]
    options = files.worker_options([*files.entrypoint(), *container["args"]])
    assert made["metadata"]["name"] == f"research-{pool}"
    assert choose_pools(options["pool"]) == (pool,)
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"health": options["health_port"], "metrics": options["metrics_port"]}

    async def health() -> dict[str, PoolHealth]:
        return {pool: PoolHealth(alive=True, ready=True)}

    for probe, path in {"startupProbe": "/livez", "livenessProbe": "/livez", "readinessProbe": "/healthz"}.items():
        assert container[probe]["httpGet"] == {"path": path, "port": "health"}
        assert (await respond(path, health))[0] == 200
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == pod["securityContext"]["fsGroup"] == ACCOUNT
    assert pod["automountServiceAccountToken"] is False
    assert container["image"] == f"{APPLICATION}:{VERSION}"
    assert {"cpu", "memory"} <= container["resources"]["requests"].keys()


def test_only_pools_that_need_the_key_get_it() -> None:
    """Secrets are given to the same pools as in docker-compose.yml, and are no part of any file."""
    secrets = {
        pool: [source["secretRef"]["name"] for source in files.container_of(files.deployment(pool))["envFrom"][1:]]
        for pool in POOLS
    }
    for secret, holders in zip(("research-model", "research-search"), files.KEY_HOLDERS.values(), strict=True):
        assert {pool for pool, names in secrets.items() if secret in names} == set(holders)
    assert all({"research-temporal", "research-redis"} <= set(names) for names in secrets.values())
    kinds = [one.get("kind") for path in files.KUBERNETES.rglob("*.yaml") for one in files.documents(path)]
    assert "Secret" not in kinds


@pytest.mark.parametrize("pool", POOLS)
def test_workers_run_on_any_node(pool: str) -> None:
    """No worker is bound to a node or to a volume of one: its home is empty at first and goes with it."""
    pod = files.deployment(pool)["spec"]["template"]["spec"]
    assert "affinity" not in pod
    assert "nodeSelector" not in pod
    assert not [volume for volume in pod["volumes"] if "persistentVolumeClaim" in volume]
    mounts = files.mounted(files.deployment(pool))
    assert {place for place, mount in mounts.items() if not mount.get("readOnly")} == {"/data", "/tmp"}
    assert {volume["name"] for volume in pod["volumes"] if "emptyDir" in volume} == {"home", "temporary"}


def test_runs_are_in_an_object_store_that_pools_have_keys_for() -> None:
    """What every host shares is named for all; the keys go to the pools that read and write, and to the indexing job."""
    literals = dict(pair.split("=", 1) for pair in files.kustomization("base")["configMapGenerator"][0]["literals"])
    assert literals["RESEARCH_CONTENT_URL"].startswith("s3://")
    for pool in POOLS:
        named = [one["secretRef"]["name"] for one in files.container_of(files.deployment(pool))["envFrom"][1:]]
        assert ("research-objects" in named) is (pool != "workflows")


def test_documents_are_indexed_where_they_are() -> None:
    """One job at a time has the documents, as confined as a worker, and indexes the folder that workers know by name."""
    (job,) = files.documents(files.KUBERNETES / "base" / "index.yaml")
    assert job["spec"]["concurrencyPolicy"] == "Forbid"
    container, pod = (
        files.container_of(job["spec"]["jobTemplate"]),
        job["spec"]["jobTemplate"]["spec"]["template"]["spec"],
    )
    worker = files.worker_template()
    assert container["securityContext"] == files.container_of(worker)["securityContext"]
    assert pod["securityContext"] == worker["spec"]["template"]["spec"]["securityContext"]
    mounts = {mount["mountPath"]: mount.get("readOnly", False) for mount in container["volumeMounts"]}
    assert mounts == {"/documents": True, "/data": False, "/etc/durable-research": True, "/tmp": False}
    known = tomllib.loads((files.KUBERNETES / "base" / "research.toml").read_text(encoding="utf-8"))["corpus"]
    assert container["command"][:4] == ["research", "corpus", "add", known["documents"]["path"]]
    assert container["command"][4:6] == ["--name", "documents"]
    claims = {one["metadata"]["name"] for one in files.documents(files.KUBERNETES / "base" / "storage.yaml")}
    assert claims == {v["persistentVolumeClaim"]["claimName"] for v in pod["volumes"] if "persistentVolumeClaim" in v}


@pytest.mark.parametrize("pool", POOLS)
def test_each_queue_is_scaled_by_its_backlog(pool: str) -> None:
    """KEDA looks at the pool's own queue, of the right kind, in the namespace of the workers, and leaves one worker."""
    (scaled,) = files.documents(files.KUBERNETES / "components" / "keda" / f"{pool}.yaml")
    (trigger,) = scaled["spec"]["triggers"]
    assert scaled["spec"]["scaleTargetRef"]["name"] == files.deployment(pool)["metadata"]["name"]
    assert trigger["metadata"]["taskQueue"] == POOLS[pool]
    assert trigger["metadata"]["queueTypes"] == ("workflow" if pool == "workflows" else "activity")
    assert 1 <= scaled["spec"]["minReplicaCount"] <= scaled["spec"]["maxReplicaCount"]
    literals = dict(pair.split("=") for pair in files.kustomization("base")["configMapGenerator"][0]["literals"])
    assert trigger["metadata"]["namespace"] == literals["TEMPORAL_NAMESPACE"]
    assert trigger["metadata"]["endpointFromEnv"] in literals
    assert "replicas" not in files.worker_template()["spec"]


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kustomize_makes_what_these_tests_look_at() -> None:
    """Kustomize itself builds the example, and its Deployments are those that the tests above have put together."""
    command = ["kubectl", "kustomize", str(files.KUBERNETES / "example")]
    built = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    made = {one["metadata"]["name"]: one for one in yaml.safe_load_all(built) if one["kind"] == "Deployment"}
    made.pop("research-searxng")
    for pool in POOLS:
        expected, found = files.deployment(pool), made[f"research-{pool}"]
        assert found["spec"]["selector"] == expected["spec"]["selector"]
        assert files.container_of(found)["args"] == files.container_of(expected)["args"]
        assert files.container_of(found)["resources"] == files.container_of(expected)["resources"]
    assert len(made) == len(POOLS)
