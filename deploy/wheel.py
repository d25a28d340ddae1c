"""Build hook of the wheel: everything of the product is installed below the one name `durable_research`.

In the repository the packages are folders at the top. In a wheel they would take names like `client` from everybody
else in an environment, so they are put below `durable_research`, whose name their imports of one another get in front.
Nothing else of a file is changed. A module that is named by a text, which no import shows, ends the build.
"""

import ast
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE: Final = "durable_research"
FOLDERS: Final = ("contracts", "workflows", "activities", "providers", "workers", "client")
CHECKOUT: Final = "checkout.py"
"""The module that joins the folders of the repository under one name; a wheel has no use for it."""
MODULE: Final = re.compile(rf"(?:{'|'.join(FOLDERS)})(?:\.\w+)+")
QUOTED: Final = re.compile(rf'"({MODULE.pattern}:\w+)"'.encode())
"""A class or function that a data file names by its module."""


class OneName(BuildHookInterface[Any]):
    """Puts rewritten copies of the packages into a wheel; an editable installation has the repository itself."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the copies, and have hatchling install them. Raises `ValueError` for a file that cannot be moved."""
        if version == "editable":
            return
        self._copies = Path(tempfile.mkdtemp(prefix="durable-research-wheel-"))
        write_package(Path(self.root), self._copies / PACKAGE)
        build_data["force_include"][str(self._copies / PACKAGE)] = PACKAGE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the copies."""
        del build_data, artifact_path
        if version != "editable":
            shutil.rmtree(self._copies)


def write_package(root: Path, target: Path) -> None:
    """Write the package as it is installed into `target`. Raises `ValueError` for a file that cannot be moved."""
    for folder in (PACKAGE, *FOLDERS):
        for source in sorted((root / folder).rglob("*")):
            inside = source.relative_to(root / PACKAGE if folder == PACKAGE else root)
            if source.is_dir() or "__pycache__" in inside.parts or inside == Path(CHECKOUT):
                continue
            copy = target / inside
            copy.parent.mkdir(parents=True, exist_ok=True)
            if source.suffix == ".py":
                copy.write_text(moved(source.read_text(encoding="utf-8"), root, str(inside)), encoding="utf-8")
            else:
                if (found := QUOTED.search(source.read_bytes())) is not None:
                    raise ValueError(f"{inside}: begin the name of this module with a dot: {found[1].decode()}")
                copy.write_bytes(source.read_bytes())


def moved(source: str, root: Path, name: str) -> str:
    """Return a module's source with imports of the folders from below the package. Raises `ValueError`."""
    lines = source.splitlines(keepends=True)
    nodes = list(ast.walk(ast.parse(source, name)))
    for line, column, before in sorted(_insertions(nodes, name), reverse=True):
        text = lines[line].encode()  # columns are counted in bytes
        if text[column - 2 : column] == b"  " or text[column : column + 1] in b" \\":
            raise ValueError(f"{name}:{line + 1}: write this import in one line, with single spaces")
        lines[line] = (text[:column] + before.encode() + text[column:]).decode()
    later = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values[1:]}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module == PACKAGE and node.names[0].name == "checkout":
            lines[node.lineno - 1] = "\n"
        if id(node) in later or not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if names_module(node.value, root):
            raise ValueError(f"{name}:{node.lineno}: put MODULE_PREFIX before this name of a module: {node.value}")
    return "".join(lines)


def _insertions(nodes: list[ast.AST], name: str) -> Iterator[tuple[int, int, str]]:
    """Yield line and column, from zero, and what is put there, for each import of a module of the folders."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.level == 0 and _is_ours(node.module):
            yield node.lineno - 1, node.col_offset + len("from "), f"{PACKAGE}."
        if not isinstance(node, ast.Import) or not any(_is_ours(alias.name) for alias in node.names):
            continue
        (alias, *others) = node.names
        if others or ("." in alias.name and alias.asname is None):
            raise ValueError(f"{name}:{alias.lineno}: write `from … import` or `import … as`: {alias.name}")
        if alias.asname is None:
            yield node.lineno - 1, node.col_offset, f"from {PACKAGE} "
        else:
            yield alias.lineno - 1, alias.col_offset, f"{PACKAGE}."


def _is_ours(module: str | None) -> bool:
    return (module or "").partition(".")[0] in FOLDERS


def names_module(text: str, root: Path) -> bool:
    """Return whether a text begins with the full name of a module of the folders, as `contracts.base:Contract` does."""
    found = MODULE.match(text)
    if found is None or " " in text:
        return False
    path = root.joinpath(*found[0].split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()
