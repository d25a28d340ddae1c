"""Every pattern of the product, found by importing all of it; run as a child, for it watches `re` while it imports."""

import ast
import importlib
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.architecture.repository import PACKAGES, ROOT, python_files, relative, syntax

SCANS = ("search", "match", "fullmatch", "finditer")
"""The ways to scan; `sub`, `subn`, `split` and `findall` go through a text as `finditer` does."""
AS_FINDITER = ("finditer", "findall", "sub", "subn", "split")
FUNCTIONS = ("search", "match", "fullmatch", *AS_FINDITER)
FLAGS = re.IGNORECASE | re.MULTILINE | re.DOTALL | re.VERBOSE | re.ASCII | re.UNICODE

Key = tuple[str, bool, int]
"""The text of a pattern, whether it is one of bytes, and its flags."""


class Collection:
    """Patterns with the places where they stand and the ways in which they scan."""

    def __init__(self) -> None:
        self.places: dict[Key, set[str]] = {}
        self.scans: dict[Key, set[str]] = {}
        self.of_run_time: list[str] = []

    def add(self, compiled: re.Pattern[Any], place: str) -> None:
        """Note a pattern and where it stands."""
        self.places.setdefault(key_of(compiled), set()).add(place)

    def used(self, compiled: re.Pattern[Any], scan: str) -> None:
        """Note a way in which a pattern scans."""
        self.scans.setdefault(key_of(compiled), set()).add("finditer" if scan in AS_FINDITER else scan)


def key_of(compiled: re.Pattern[Any]) -> Key:
    """What tells two patterns apart."""
    text = compiled.pattern if isinstance(compiled.pattern, str) else compiled.pattern.decode("latin-1")
    return text, isinstance(compiled.pattern, bytes), int(compiled.flags & FLAGS)


def collect() -> Collection:
    """All patterns of the product."""
    found = Collection()
    made = _import_all(found)
    for path in python_files(*PACKAGES):
        module = importlib.import_module(_module_name(path))
        _look_through(path, vars(module), made, found)
    return found


def _import_all(found: Collection) -> set[tuple[str, int]]:
    """Import the product, noting each pattern that its modules make meanwhile, by file and line."""
    made: set[tuple[str, int]] = set()
    compile_pattern = re.compile

    def noting(pattern: Any, flags: Any = 0) -> re.Pattern[Any]:
        compiled = compile_pattern(pattern, flags)
        frame = sys._getframe(1)
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in PACKAGES:
            made.add((relative(path), frame.f_lineno))
            found.add(compiled, f"{relative(path)}:{frame.f_lineno}")
        return compiled

    re.compile = noting  # type: ignore[assignment]
    try:
        for path in python_files(*PACKAGES):
            importlib.import_module(_module_name(path))
    finally:
        re.compile = compile_pattern
    return made


def _module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _look_through(path: Path, names: dict[str, Any], made: set[tuple[str, int]], found: Collection) -> None:
    """Note how a module scans with the patterns that it names, and the patterns that it writes where it scans."""
    handled: set[int] = set()
    for node in ast.walk(syntax(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _named(node.func.value, names) is re:
            _inline(path, node, node.func.attr, names, made, found)
        if isinstance(node, ast.Attribute):
            handled.add(id(node.value))
            owner = _named(node.value, names)
            if isinstance(owner, re.Pattern) and node.attr in FUNCTIONS:
                found.used(owner, node.attr)
    for node in ast.walk(syntax(path)):
        if id(node) not in handled and isinstance(handed_on := _named(node, names), re.Pattern):
            for scan in SCANS:  # it may be used in any way
                found.used(handed_on, scan)


def _named(node: ast.AST, names: dict[str, Any]) -> Any:
    """What a name of a module, or of a module that it imported, stands for."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        return names.get(node.id)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        owner = names.get(node.value.id)
        return getattr(owner, node.attr, None) if isinstance(owner, ModuleType) else None
    return None


def _inline(
    path: Path, call: ast.Call, function: str, names: dict[str, Any], made: set[tuple[str, int]], found: Collection
) -> None:
    if function == "compile" and any(
        (relative(path), line) in made for line in range(call.lineno, call.end_lineno + 1)
    ):
        return
    if function not in {"compile", *FUNCTIONS}:
        return
    place = f"{relative(path)}:{call.lineno}"
    given = [keyword.value for keyword in call.keywords if keyword.arg == "flags"]
    position = {"compile": 1, "sub": 4, "subn": 4, "split": 3}.get(function, 2)
    given.extend(call.args[position : position + 1])
    try:
        pattern, *flags = (
            eval(compile(ast.Expression(expression), place, "eval"), dict(names))
            for expression in [call.args[0], *given]
        )
    except NameError:
        found.of_run_time.append(place)
        return
    compiled = re.compile(pattern, *flags)
    found.add(compiled, place)
    for scan in SCANS if function == "compile" else [function]:
        found.used(compiled, scan)


def scans_of(found: Collection, key: Key) -> list[str]:
    """How a pattern is to be tried: what goes through a whole text tries all that a single look does."""
    known = found.scans.get(key)
    if known is None:  # it stands in a table: nobody says its name where it is used
        return ["finditer"]
    for widest in ("finditer", "search"):
        if widest in known:
            return [widest, *known & {"fullmatch"}]
    return sorted(known)


def main() -> None:
    """Write what was found to the standard output."""
    everything = collect()
    sys.stdout.write(
        json.dumps(
            {
                "patterns": [
                    {
                        "pattern": key[0],
                        "bytes": key[1],
                        "flags": key[2],
                        "places": sorted(places),
                        "scans": scans_of(everything, key),
                    }
                    for key, places in sorted(everything.places.items())
                ],
                "of_run_time": everything.of_run_time,
            }
        )
    )


if __name__ == "__main__":
    main()
