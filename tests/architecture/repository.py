"""The repository as its tests see it: the files that belong to it, and their text."""

import ast
import importlib.util
import subprocess
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("contracts", "workflows", "activities", "providers", "workers", "client", "durable_research")
LEFT_OUT = {".git", ".venv", ".demo", "__pycache__", "reports", "build", "dist"}


@cache
def tracked_files() -> tuple[Path, ...]:
    """Every file that belongs to the repository, also one that is about to be committed; without git, every file."""
    if (ROOT / ".git").exists():
        command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
        listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        paths = [ROOT / line for line in listing.splitlines()]
    else:
        paths = [path for path in ROOT.rglob("*") if not LEFT_OUT.intersection(path.relative_to(ROOT).parts)]
    return tuple(sorted(path for path in paths if path.is_file()))


def python_files(*folders: str) -> list[Path]:
    """The Python files of some top-level folders; of all without any."""
    python = [path for path in tracked_files() if path.suffix == ".py"]
    return [path for path in python if not folders or path.relative_to(ROOT).parts[0] in folders]


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def found_in(paths: Iterable[Path], look: Callable[[Path], Collection[Any]]) -> dict[str, Collection[Any]]:
    """What is found in files, by path; files in which nothing is found are left out. Raises if there are no files."""
    found = {relative(path): look(path) for path in paths}
    assert found, "no files to look at"
    return {path: what for path, what in found.items() if what}


@cache
def syntax(path: Path) -> ast.Module:
    text = path.read_text(encoding="utf-8")
    try:
        return ast.parse(text)
    except SystemError:  # Python 3.11 counts the depth of all trees that are being made in one place
        return ast.parse(text)


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Every node of a file: a dozen tests look at all of them, and walking takes as long as parsing."""
    return tuple(ast.walk(syntax(path)))


def load_script(path: Path) -> ModuleType:
    """A script that is in no package, as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def imported_modules(path: Path) -> Iterator[str]:
    """Full names of everything that a file imports, wherever the import stands; `from a import b` is `a.b`."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
