"""Changes of frozen values are checked by mypy."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from contracts.evidence import Finding
from tests.architecture.repository import PACKAGES, ROOT, nodes, python_files, relative

BY_NAMES_OF_FIELDS = {
    "activities/preparation.py": 2,
    "contracts/base.py": 1,
    "contracts/evidence.py": 1,
    "contracts/notebooks.py": 1,
    "contracts/presets.py": 1,
    "providers/storage/stored_notebooks.py": 2,
    "workflows/run/research_run.py": 1,
}
"""Places that still take the names of fields from data; none may be added."""
WRONG = """
from contracts.evidence import Finding
from contracts.plan import PlanNode


def change(finding: Finding, node: PlanNode) -> None:
    finding.with_fields(evidence_idz=["a"])
    finding.with_fields(statement=5)
    finding.with_fields(statement="a", evidence_ids=["b"])
    node.failed(5)
"""


def test_no_field_is_changed_by_a_name_in_a_string() -> None:
    """`with_fields` and methods of the models change values; `model_copy(update=…)` is unchecked."""
    found: dict[str, int] = {}
    for path in python_files(*PACKAGES):
        for node in nodes(path):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "model_copy":
                is_update = any(keyword.arg == "update" for keyword in node.keywords)
                found[relative(path)] = found.get(relative(path), 0) + is_update
    assert {name: count for name, count in found.items() if count} == BY_NAMES_OF_FIELDS


@pytest.mark.soak
def test_a_misspelt_field_and_a_value_of_another_type_are_errors(tmp_path: Path) -> None:
    """The plugin gives `with_fields` the fields of its model, with their types."""
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG, "utf-8")
    options = ["--config-file", "pyproject.toml", "--cache-dir", str(tmp_path), "--follow-imports=silent"]
    # In a process of its own, as mypy raises the limit of recursion of the one in which it runs.
    command = [sys.executable, "-m", "mypy", *options, str(wrong)]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    errors = [line.split(" error: ")[1] for line in checked.stdout.splitlines() if " error: " in line]
    assert checked.returncode == 1, checked.stderr
    assert [("evidence_idz" in errors[0]), ('"statement"' in errors[1]), ('"failed"' in errors[2])] == [True] * 3
    assert len(errors) == 3


def test_an_unknown_field_is_an_error_at_run_time() -> None:
    """What is not checked by mypy, such as code of a package without it, does not pass silently."""
    finding = Finding(id="f-1", statement="Pages are frozen.")
    with pytest.raises(TypeError, match="Finding has no field evidence_idz"):
        finding.with_fields(evidence_idz=["a"])
    assert finding.with_fields(statement="Rows are.").statement == "Rows are."
