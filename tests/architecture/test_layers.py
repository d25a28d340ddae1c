"""Who may import whom."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.repository import PACKAGES, ROOT, imported_modules, python_files, relative

PURE_PROVIDERS = (
    "providers.interfaces", "providers.errors", "providers.domains", "providers.shared.cancellation_grace", "providers.sentences",
    "providers.text", "providers.verification",
)  # fmt: skip


def lint_imports(folder: Path, configuration: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter as `make lint` does."""
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--config", str(configuration)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_import_rules_hold() -> None:
    """Every rule between the packages that pyproject.toml declares is kept."""
    result = lint_imports(ROOT, ROOT / "pyproject.toml")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "0 broken" in result.stdout


@pytest.mark.parametrize(
    ("package", "forbidden"),
    [("workflows", "import activities"), ("providers", "import temporalio"), ("activities", "import httpx2")],
    ids=["workflow-to-activity", "provider-to-engine", "activity-to-http"],
)
def test_the_import_rules_bite(tmp_path: Path, package: str, forbidden: str) -> None:
    """A forbidden import breaks a rule: the rules are no decoration."""
    for name in [*PACKAGES, "client/cli", "client/view"]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    (tmp_path / "client" / "handle.py").touch()
    for name in ("console", "rendering"):
        (tmp_path / "client" / "view" / f"{name}.py").touch()
    (tmp_path / "contracts" / "activities.py").write_text("import temporalio")
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    assert lint_imports(tmp_path, tmp_path / "pyproject.toml").returncode == 0
    (tmp_path / package / "offender.py").write_text(forbidden)
    assert lint_imports(tmp_path, tmp_path / "pyproject.toml").returncode == 1


@pytest.mark.parametrize("path", python_files("workflows", "contracts"), ids=relative)
def test_workflow_code_imports_no_other_library(path: Path) -> None:
    """Workflow code needs the standard library, temporalio and pydantic: anything else is loaded anew for every run."""
    allowed = set(sys.stdlib_module_names) | {"temporalio", "pydantic", "contracts", "workflows"}
    foreign = {name for name in imported_modules(path) if name.split(".")[0] not in allowed}
    assert not foreign


@pytest.mark.parametrize("path", python_files("activities"), ids=relative)
def test_activities_know_no_adapter(path: Path) -> None:
    """Activities reach the outside world through the Protocols alone."""
    used = [name for name in imported_modules(path) if name.split(".")[0] == "providers"]
    assert [name for name in used if not f"{name}.".startswith(tuple(f"{pure}." for pure in PURE_PROVIDERS))] == []
