"""The overlays of deploy/kubernetes, as kustomize builds them: valid objects, and pools that drain, spread and scale."""

import importlib.resources
import json
from functools import cache
from typing import Any, Literal

import pytest
import yaml
from jsonschema import Draft202012Validator
from pydantic import BaseModel, ConfigDict, Field
from referencing import Registry, Resource

from contracts.names import DEPLOYMENT, POOLS
from tests.architecture.built_manifests import BUILT, KUBERNETES, OVERLAYS, heading
from workers.pools import DRAIN_TIMES

VERSION = "v1.33.0-local-strict"
"""Schemas of the package `kubernetes-validate`; strict ones refuse fields that they do not know."""
Objects = list[dict[str, Any]]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class TemporalMetadata(Strict):
    """Of KEDA's scaler for Temporal (2.21): all values are texts."""

    endpoint: str | None = None
    endpointFromEnv: str | None = None
    namespace: str
    taskQueue: str
    queueTypes: Literal["workflow", "activity"]
    targetQueueSize: str = Field(pattern=r"^[1-9]\d*$")
    activationTargetQueueSize: str = Field(default="0", pattern=r"^\d+$")
    workerDeploymentName: str | None = None
    workerDeploymentBuildId: str | None = None
    tlsServerName: str | None = None


class Named(Strict):
    name: str


class Trigger(Strict):
    type: Literal["temporal"]
    metadata: TemporalMetadata
    authenticationRef: Named | None = None


class ScalePolicy(Strict):
    type: Literal["Pods", "Percent"]
    value: int = Field(ge=1)
    periodSeconds: int = Field(ge=1, le=1_800)


class ScaleDown(Strict):
    stabilizationWindowSeconds: int = Field(ge=0, le=3_600)
    policies: list[ScalePolicy]


class Behavior(Strict):
    scaleDown: ScaleDown


class Autoscaler(Strict):
    behavior: Behavior


class Advanced(Strict):
    horizontalPodAutoscalerConfig: Autoscaler


class ScaledObjectSpec(Strict):
    scaleTargetRef: Named
    pollingInterval: int = Field(ge=1)
    minReplicaCount: int = Field(ge=1)
    maxReplicaCount: int = Field(ge=1)
    advanced: Advanced
    triggers: list[Trigger] = Field(min_length=1, max_length=1)


class SecretTarget(Strict):
    parameter: Literal["apiKey", "cert", "key", "ca", "keyPassword"]
    name: str
    key: str


class TriggerAuthenticationSpec(Strict):
    secretTargetRef: list[SecretTarget]


@cache
def built(overlay: str) -> Objects:
    text = (BUILT / f"{overlay}.yaml").read_text(encoding="utf-8")
    return [one for one in yaml.safe_load_all(text) if one]


def of_kind(overlay: str, kind: str) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in built(overlay) if one["kind"] == kind}


@cache
def schema(name: str) -> Any:
    folder = importlib.resources.files("kubernetes_validate") / "kubernetes-json-schema" / VERSION
    return json.loads((folder / name).read_text(encoding="utf-8"))


def problems(document: dict[str, Any]) -> list[str]:
    """What the schema of an object's kind refuses."""
    group, _, version = document["apiVersion"].rpartition("/")
    prefix = f"{group.partition('.')[0]}-" if group else ""
    registry = Resource.from_contents(schema("_definitions.json")) @ Registry()
    validator = Draft202012Validator(schema(f"{document['kind'].lower()}-{prefix}{version}.json"), registry=registry)
    return [f"{document['kind']} {error.json_path}: {error.message}" for error in validator.iter_errors(document)]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_built_files_are_those_of_the_sources(overlay: str) -> None:
    """What is tested here is what kustomize makes of the files as they are; `make kubernetes` builds it anew."""
    assert (BUILT / f"{overlay}.yaml").read_text(encoding="utf-8").startswith(heading()), "run make kubernetes"


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_object_is_valid(overlay: str) -> None:
    """By the schemas of Kubernetes, and for KEDA's kinds by the fields of its documentation; unknown fields are refused."""
    found = []
    for one in built(overlay):
        if one["kind"] == "ScaledObject":
            ScaledObjectSpec.model_validate(one["spec"])
        elif one["kind"] == "TriggerAuthentication":
            TriggerAuthenticationSpec.model_validate(one["spec"])
        else:
            found += problems(one)
    assert found == []


def test_a_misspelt_field_is_refused() -> None:
    """The check can fail, at any depth."""
    worker = json.loads(json.dumps(of_kind("small", "Deployment")["research-models"]))
    worker["spec"]["template"]["spec"]["terminationGracePeriod"] = 30
    assert len(problems(worker)) == 1


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_pool_drains_before_it_is_killed(overlay: str) -> None:
    """Pods get more time to end than their workers give calls, probes and limits, and leave a drained node one by one."""
    workers = of_kind(overlay, "Deployment")
    budgets = of_kind(overlay, "PodDisruptionBudget")
    for pool in POOLS:
        worker = workers[f"research-{pool}"]["spec"]
        pod = worker["template"]["spec"]
        (container,) = pod["containers"]
        assert pod["terminationGracePeriodSeconds"] >= DRAIN_TIMES[pool].total_seconds() + 15
        assert {"livenessProbe", "readinessProbe", "startupProbe"} <= container.keys()
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
        assert "memory" in container["resources"]["limits"]
        labels = worker["template"]["metadata"]["labels"]
        for spread in pod["topologySpreadConstraints"]:
            assert spread["labelSelector"]["matchLabels"] == worker["selector"]["matchLabels"]
            assert spread["whenUnsatisfiable"] == "ScheduleAnyway"
        assert budgets[f"research-{pool}"]["spec"]["maxUnavailable"] == 1
        selected = budgets[f"research-{pool}"]["spec"]["selector"]["matchLabels"]
        assert selected == worker["selector"]["matchLabels"]
        assert selected.items() <= labels.items()


def test_each_pool_scales_by_its_own_backlog() -> None:
    """Queue, kind, namespace and version of each are those of its workers; the server is asked with their key."""
    (environment,) = [one["data"] for name, one in of_kind("large", "ConfigMap").items() if "environment" in name]
    scaled = of_kind("large", "ScaledObject")
    assert {name.removeprefix("research-") for name in scaled} == POOLS.keys()
    for pool, queue in POOLS.items():
        spec = ScaledObjectSpec.model_validate(scaled[f"research-{pool}"]["spec"])
        assert spec.scaleTargetRef.name == f"research-{pool}"
        assert 2 <= spec.minReplicaCount < spec.maxReplicaCount
        assert spec.advanced.horizontalPodAutoscalerConfig.behavior.scaleDown.stabilizationWindowSeconds >= 300
        (trigger,) = spec.triggers
        assert trigger.authenticationRef is not None
        assert trigger.authenticationRef.name in of_kind("large", "TriggerAuthentication")
        asked = trigger.metadata
        assert (asked.taskQueue, asked.namespace) == (queue, environment["TEMPORAL_NAMESPACE"])
        assert asked.endpointFromEnv == "TEMPORAL_ADDRESS"
        assert asked.queueTypes == ("workflow" if pool == "workflows" else "activity")
        version = (DEPLOYMENT, environment["RESEARCH_BUILD_ID"]) if pool == "workflows" else (None, None)
        assert (asked.workerDeploymentName, asked.workerDeploymentBuildId) == version
    assert "replicas" not in of_kind("large", "Deployment")["research-models"]["spec"]


def test_both_ways_to_authenticate_name_what_keda_knows() -> None:
    """An API key, or certificates, which the workers show as well."""
    for name in ("temporal-api-key", "temporal-tls"):
        folder = KUBERNETES / "components" / name
        one = yaml.safe_load((folder / "authentication.yaml").read_text(encoding="utf-8"))
        TriggerAuthenticationSpec.model_validate(one["spec"])
        component = yaml.safe_load((folder / "kustomization.yaml").read_text(encoding="utf-8"))
        (scaling,) = [each for each in component["patches"] if each["target"]["kind"] == "ScaledObject"]
        assert yaml.safe_load(scaling["patch"])[0]["value"] == {"name": one["metadata"]["name"]}
