"""What deploy/ and docker-compose.yml say fits the program: commands, pools, ports, places, limits, secrets."""

import json
import re
import tomllib

import pytest

from contracts.names import POOLS
from providers.search.declarations import search_variables
from tests.architecture import deployment as files
from tests.architecture.repository import ROOT, tracked_files
from tests.architecture.test_dependencies import PROJECT
from workers.settings.loading import VARIABLES
from workers.settings.sections import FileSettings

ACCOUNT = 10001


# --- the image ---------------------------------------------------------------------------------------------------------
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


# --- docker-compose.yml ------------------------------------------------------------------------------------------------
def test_compose_opens_no_port_beyond_this_machine() -> None:
    """Every published port is bound to the loopback interface: a Temporal server knows no passwords."""
    ports = [files.with_defaults(port) for service in files.services().values() for port in service.get("ports", [])]
    assert len(ports) == 2
    assert [port for port in ports if not re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port)] == []
    assert not [name for name, service in files.services().items() if service.get("network_mode") == "host"]


@pytest.mark.parametrize("pool", POOLS)
def test_a_pool_sees_what_it_works_with(pool: str) -> None:
    """Of the record of all runs each pool has its part: `reading` has no sessions."""
    composed = [volume.split(":") for volume in files.services()[pool]["volumes"]]
    assert {volume[1] for volume in composed if volume[0] in files.compose()["volumes"]} == files.FOLDERS[pool]
    assert ("/documents" in {volume[-2] for volume in composed}) is (pool in files.READ_DOCUMENTS)


@pytest.mark.parametrize("path", ["deploy/compose/research.toml", "deploy/kubernetes/base/research.toml"])
def test_the_configuration_that_is_mounted_is_accepted(path: str) -> None:
    """The files are valid, and their corpus lies where the documents are mounted."""
    settings = FileSettings.model_validate(tomllib.loads((ROOT / path).read_text(encoding="utf-8")))
    (corpus,) = settings.corpus.values()
    targets = {volume.split(":")[-2] for volume in files.services()["reading"]["volumes"] if volume.endswith(":ro")}
    assert str(corpus.path) in targets


# --- variables --------------------------------------------------------------------------------------------------------
def test_all_pools_are_configured_alike() -> None:
    """Workers differ in nothing but keys, which only those get that need them; every variable is one that is read."""
    known = {*VARIABLES, *search_variables()}
    kept = {name: dict(service["environment"]) for name, service in files.ours().items()}
    unknown = {name for environment in kept.values() for name in environment.keys() - known}
    assert unknown == {"TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE"}
    for variables, those in files.KEY_HOLDERS.items():
        holders = {name for name, environment in kept.items() if environment.keys() & variables}
        assert holders == {*those, "research"}
        assert all(kept[name].keys() >= variables for name in holders)
        kept = {
            name: {key: environment[key] for key in environment.keys() - variables}
            for name, environment in kept.items()
        }
    assert all(environment == kept["models"] for environment in kept.values())
    assert kept["models"]["RESEARCH_HOME"] == "/data"


def test_every_variable_can_be_set_in_compose() -> None:
    """Whatever the program reads from the environment has a place there, unless research.toml or compose decides it."""
    passed = {name for service in files.ours().values() for name in service["environment"]}
    in_the_file = {name for name, path in VARIABLES.items() if path[0] in FileSettings.model_fields}
    assert {*VARIABLES, *search_variables()} - passed <= in_the_file


def test_no_secret_is_written_down() -> None:
    """Secrets come from variables without a default; the example leaves them empty; the real file is ignored by git."""
    for name, service in files.services().items():
        for variable, value in service.get("environment", {}).items():
            if files.SECRET.search(variable):
                found = files.VARIABLE.fullmatch(value)
                assert found is not None, f"{name}: {variable}"
                assert found[2] == ":?" or not found[3]
    lines = (ROOT / ".env.example").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if files.SECRET.search(line.partition("=")[0]) and re.search(r"=\S", line)] == []
    assert ".env" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert not [path for path in tracked_files() if path.name == ".env"]


def test_the_example_of_variables_is_complete() -> None:
    """.env.example names every variable that docker-compose.yml reads, with its default, and no other."""
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    shown = dict(re.findall(r"^#?([A-Z_]+)=(.*)$", (ROOT / ".env.example").read_text(encoding="utf-8"), re.MULTILINE))
    assert shown.keys() == files.variables(text)
    defaults = {found[1]: found[3] for found in files.VARIABLE.finditer(text) if found[2] == ":-"}
    assert {name: value for name, value in shown.items() if name in defaults} == defaults


# --- Kubernetes --------------------------------------------------------------------------------------------------------
def test_pods_may_do_nothing_that_they_need_not() -> None:
    """All pools are made of one template: an account of its own, no rights, a root that cannot be written, no token."""
    (made,) = files.documents(files.KUBERNETES / "worker" / "deployment.yaml")
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
    assert "Secret" not in [
        one.get("kind") for path in files.KUBERNETES.rglob("*.yaml") for one in files.documents(path)
    ]
