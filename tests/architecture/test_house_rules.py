"""Rules of the house that no linter knows."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.architecture.repository import PACKAGES, found_in, python_files, syntax, tracked_files

# Put together from parts, so that this file does not hold what it forbids.
REGISTRY_HOSTS = ["py" + "pi.org", "pythonhosted" + ".org", "npmjs" + ".", "docker" + ".io", "ghcr" + ".io"]
MACHINE_PATHS = [r"(?<![\w.])/" + folder + "/" for folder in ("work", "root", "home/[a-z]+", "Users/[A-Za-z]+")]

DRAWN_OR_FIXED = {"LICENSE", "requirements.lock"}
"""Texts that are not ours to word; the lock file has a test of its own."""


def silent_tests(path: Path) -> list[str]:
    functions = [node for node in ast.walk(syntax(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [node.name for node in functions if node.name.startswith("test_") and not ast.get_docstring(node)]


def test_every_test_says_what_it_shows() -> None:
    """Each test function has a docstring of its behaviour."""
    assert found_in(python_files("tests"), silent_tests) == {}


def test_the_gate_has_few_acceptance_tests(request: pytest.FixtureRequest) -> None:
    """Tests that start and kill processes take most of its time: further ones are slow proofs (`soak`)."""
    chosen = [item for item in request.session.items if item.get_closest_marker("acceptance") is not None]
    assert len(chosen) <= 15


def strange_places(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return []
    return [host for host in REGISTRY_HOSTS if host in text] + [one for one in MACHINE_PATHS if re.search(one, text)]


def test_nothing_names_a_registry_or_a_machine() -> None:
    """The project works wherever it is cloned: it names no package registry and no folder of anybody's machine."""
    assert found_in((path for path in tracked_files() if path.name not in DRAWN_OR_FIXED), strange_places) == {}


def test_no_two_classes_share_a_name() -> None:
    """A class is found by its name alone, wherever it is used."""
    names = [
        node.name for path in python_files(*PACKAGES) for node in syntax(path).body if isinstance(node, ast.ClassDef)
    ]
    assert not [name for name, count in Counter(names).items() if count > 1 and not name.startswith("_")]
