"""Rules of the house that no linter knows."""

import ast
import re
from pathlib import Path

import pytest

from tests.architecture.repository import python_files, relative, syntax, tracked_files

# Put together from parts, so that this file does not hold what it forbids.
REGISTRY_HOSTS = ["py" + "pi.org", "pythonhosted" + ".org", "npmjs" + ".", "docker" + ".io", "ghcr" + ".io"]
MACHINE_PATHS = [r"(?<![\w.])/" + folder + "/" for folder in ("work", "root", "home/[a-z]+", "Users/[A-Za-z]+")]

DRAWN_OR_FIXED = {"LICENSE", "requirements.lock"}
"""Texts that are not ours to word; the lock file has a test of its own."""


@pytest.mark.parametrize("path", python_files("tests"), ids=relative)
def test_every_test_says_what_it_shows(path: Path) -> None:
    """Each test function has a docstring of its behaviour."""
    functions = [node for node in ast.walk(syntax(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    silent = [node.name for node in functions if node.name.startswith("test_") and not ast.get_docstring(node)]
    assert not silent


@pytest.mark.parametrize(
    "path", [path for path in python_files() if relative(path).split("/")[0] != "tests"], ids=relative
)
def test_only_the_settings_read_the_environment(path: Path) -> None:
    """No module but workers/settings/loading.py touches os.environ or os.getenv, under whatever name."""
    if relative(path) == "workers/settings/loading.py":
        return
    touched = {node.attr for node in ast.walk(syntax(path)) if isinstance(node, ast.Attribute)}
    touched |= {
        alias.name
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.ImportFrom) and node.module == "os"
        for alias in node.names
    }
    assert not touched & {"environ", "environb", "getenv", "getenvb"}


@pytest.mark.parametrize("path", [path for path in tracked_files() if path.name not in DRAWN_OR_FIXED], ids=relative)
def test_nothing_names_a_registry_or_a_machine(path: Path) -> None:
    """The project works wherever it is cloned: it names no package registry and no folder of anybody's machine."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return
    hosts = [host for host in REGISTRY_HOSTS if host in text]
    paths = [pattern for pattern in MACHINE_PATHS if re.search(pattern, text)]
    assert not hosts
    assert not paths


@pytest.mark.parametrize("path", python_files(), ids=relative)
def test_nothing_is_left_for_later(path: Path) -> None:
    """No file carries a note about work that somebody should do some day."""
    marks = re.findall(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b", path.read_text(encoding="utf-8"))
    assert not marks
