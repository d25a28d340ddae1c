"""The documents of the demo: the documentation that every CPython carries, written into a folder.

Two sources: the chapters of the language reference that `help()` shows (`pydoc_data.topics`), and the docstrings of
the standard library, read from its source files. Nothing of the library is imported or run, nothing is downloaded, and
nothing of it is part of this product: the text is that of the Python that runs it.
"""

import ast
import inspect
import platform
import sys
import sysconfig
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Final

from client.cli.output import CommandError

UNINTERESTING: Final = {"antigravity", "idlelib", "lib2to3", "pydoc_data", "test", "tests", "this", "turtledemo"}
SMALLEST_PAGE: Final = 600
"""Characters: a module whose docstrings are shorter has nothing to quote."""

SHORTEST_PARAGRAPH: Final = 60
"""Characters: what is shorter (a heading, a line of code) does not make a chapter new."""

REPEATED_SHARE: Final = 0.25
"""A chapter with no more new paragraphs than this is a copy: links between chapters read a little differently."""

LONGEST_HEADING: Final = 90
"""Characters; longer signatures are cut."""

MARKER: Final = ".python-docs"
"""File that marks a folder as one of ours, so that no other folder is ever tidied; it names the version of Python."""


UNDERLINES: Final = "*-~^"
"""Signs that underline headings, from the title downwards."""


def write_documents(folder: Path) -> bool:
    """Write all pages into a folder; return false if an earlier call has written those of this Python.

    Pages of another version that no longer belong are removed; equal ones are untouched, so that an index stays valid.
    Raises OSError, and `CommandError` for a folder with other files, or a Python without its documentation.
    """
    marker = folder / MARKER
    version = f"Python {platform.python_version()}\n"
    if marker.is_file() and marker.read_text(encoding="utf-8") == version:
        return False
    if folder.exists() and any(folder.iterdir()) and not marker.exists():
        raise CommandError(f"{folder} has other files: name another folder, or an empty one")
    pages = dict([*_language_pages(), *_library_pages()])
    if not pages:
        raise CommandError("this Python came without its documentation and sources: ask a folder of your own documents")
    folder.mkdir(parents=True, exist_ok=True)
    marker.touch()  # its version comes last: a killed export is repeated
    for name, text in pages.items():
        _write_if_changed(folder / name, text)
    for path in folder.rglob("*.txt"):
        if path.relative_to(folder).as_posix() not in pages:
            path.unlink()
    marker.write_text(version, encoding="utf-8")
    return True


def count_documents(folder: Path) -> int:
    """Return the number of documents in a folder that `write_documents` has filled."""
    return sum(1 for _ in folder.rglob("*.txt"))


def _language_pages() -> Iterator[tuple[str, str]]:
    """Yield path and text of each chapter of the language reference, as `help()` shows it.

    `help()` repeats parts of long chapters as short ones; these are skipped, since a copy would count as a second
    document with the same text.
    """
    try:
        topics: dict[str, str] = import_module("pydoc_data.topics").topics
    except ImportError:  # some systems package it on its own
        return
    seen: set[str] = set()
    for name, text in sorted(topics.items(), key=lambda topic: (-len(topic[1]), topic[0])):
        paragraphs = {" ".join(part.split()) for part in text.split("\n\n") if len(part) >= SHORTEST_PARAGRAPH}
        if len(paragraphs - seen) > len(paragraphs) * REPEATED_SHARE:
            yield f"language/{name.lower()}.txt", text.strip() + "\n"
        seen |= paragraphs


def _library_pages() -> Iterator[tuple[str, str]]:
    """Yield path and text of each public module of the standard library that explains itself."""
    root = Path(sysconfig.get_paths()["stdlib"])
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if parts[0] in sys.stdlib_module_names and not _is_hidden(parts):
            page = _module_page(name, path.read_text(encoding="utf-8", errors="replace"))
            if len(page) >= SMALLEST_PAGE:
                yield f"library/{name}.txt", page


def _is_hidden(parts: tuple[str, ...]) -> bool:
    """Return true for a module that is private, a test, or of no interest to a reader."""
    return any(part in UNINTERESTING or (part.startswith("_") and part != "__init__") for part in parts)


def _module_page(name: str, source: str) -> str:
    """Return the docstrings of a module as one page: its own, then those of public classes and functions."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return ""
    parts = [_heading(f"Module {name}", 0), _described(tree)]
    for node in tree.body:
        parts.extend(_sections(node, 1))
    return "\n\n".join(part for part in parts if part) + "\n"


def _sections(node: ast.stmt, level: int) -> Iterator[str]:
    """Yield heading and docstring of a public class or function, then those of a class's methods."""
    if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("_"):
        return
    if text := _described(node):
        yield _heading(_signature(node), level)
        yield text
    if isinstance(node, ast.ClassDef):
        for child in node.body:
            yield from _sections(child, level + 1)


def _heading(text: str, level: int) -> str:
    """Return a line, underlined according to its level."""
    line = text if len(text) <= LONGEST_HEADING else text[: LONGEST_HEADING - 1] + "…"
    return f"{line}\n{UNDERLINES[min(level, len(UNDERLINES) - 1)] * len(line)}"


def _signature(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Return `class Name`, or `name(arguments)`."""
    if isinstance(node, ast.ClassDef):
        return f"class {node.name}"
    return f"{node.name}({ast.unparse(node.args)})"


def _described(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Return the docstring without its indentation; empty without one."""
    text = ast.get_docstring(node, clean=False)
    return inspect.cleandoc(text).strip() if text else ""


def _write_if_changed(path: Path, text: str) -> None:
    data = text.encode("utf-8", "replace")
    if path.exists() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
