"""The release workflow: what it runs exists, nothing that it uses can be moved, and each job may do what it needs."""

import re
from typing import Any

import yaml

from tests.architecture.repository import ROOT

WORKFLOW: dict[Any, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))
JOBS: dict[str, dict[str, Any]] = WORKFLOW["jobs"]
STEPS = [step for job in JOBS.values() for step in job["steps"]]


def test_every_action_is_pinned_by_its_commit() -> None:
    """A tag of somebody else's repository may be moved, a commit not."""
    used = [step["uses"] for step in STEPS if "uses" in step]
    assert used
    assert [name for name in used if not re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", name)] == []


def test_what_a_release_runs_is_what_the_repository_has() -> None:
    """Targets of `make`, scripts and the Dockerfile exist, and the whole gate comes first."""
    lines = "\n".join(step.get("run", "") for step in STEPS)
    made = {target for line in re.findall(r"\bmake ([\w -]+)", lines) for target in line.split()}
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert made == {"dist", "sbom", "audit-dependencies"} <= targets
    for path in re.findall(r"\bbash (\S+)|--file (\S+)", lines):
        assert (ROOT / "".join(path)).is_file()
    assert JOBS["gate"]["steps"][-1]["run"] == "bash .ci/run"
    assert JOBS["build"]["needs"] == "gate"
    assert {name: JOBS[name]["needs"] for name in ("publish", "image")} == {"publish": "build", "image": "build"}


def test_a_release_begins_with_a_tag_and_has_no_right_that_it_does_not_need() -> None:
    """No pull request starts it; only what attests or publishes gets an identity; secrets reach one step by a variable."""
    assert WORKFLOW[True] == {"push": {"tags": ["v*"]}}  # `on` is a truth value in YAML
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert {name for name, job in JOBS.items() if "id-token" in job.get("permissions", {})} == {
        "build",
        "publish",
        "image",
    }
    written = {right for job in JOBS.values() for right, how in job.get("permissions", {}).items() if how == "write"}
    assert written == {"id-token", "attestations"}
    assert [step["run"] for step in STEPS if "run" in step and "${{" in step["run"]] == []
    assert len([step for step in STEPS if "secrets." in str(step)]) == 1
