"""Write the documentation that every CPython carries into a folder: a corpus of real documents, without a download.

Two sources: the chapters of the language reference that `help()` shows (`pydoc_data.topics`), and the docstrings of
the standard library, read from its source files. Nothing of the library is imported or run. The same interpreter
gives the same files; files of an earlier export that no longer belong are removed.

usage: python examples/export_python_docs.py FOLDER
"""

import argparse
import ast
import inspect
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from pydoc_data.topics import topics

UNINTERESTING = {"antigravity", "idlelib", "lib2to3", "pydoc_data", "test", "tests", "this", "turtledemo"}
SMALLEST_PAGE = 600
"""Characters: a module whose docstrings are shorter has nothing to quote."""

SHORTEST_PARAGRAPH = 60
"""Characters: what is shorter (a heading, a line of code) does not make a chapter new."""

REPEATED_SHARE = 0.25
"""A chapter with no more new paragraphs than this is a copy: links between chapters read a little differently."""

LONGEST_HEADING = 90

MARKER = ".python-docs"
"""Marks a folder as one of our exports, so that no other folder is ever tidied."""

UNDERLINES = "*-~^"
"""Signs that underline headings, from the title downwards."""


def language_pages() -> Iterator[tuple[str, str]]:
    """Path and text of each chapter of the language reference, as `help()` shows it.

    `help()` repeats parts of long chapters as short ones; these are left out, since a copy would count as a second
    document that says the same.
    """
    seen: set[str] = set()
    for name, text in sorted(topics.items(), key=lambda topic: (-len(topic[1]), topic[0])):
        paragraphs = {" ".join(part.split()) for part in text.split("\n\n") if len(part) >= SHORTEST_PARAGRAPH}
        if len(paragraphs - seen) > len(paragraphs) * REPEATED_SHARE:
            yield f"language/{name.lower()}.txt", text.strip() + "\n"
        seen |= paragraphs


def library_pages() -> Iterator[tuple[str, str]]:
    """Path and text of each public module of the standard library that explains itself."""
    root = Path(sysconfig.get_paths()["stdlib"])
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if parts[0] in sys.stdlib_module_names and not hidden(parts):
            page = module_page(name, path.read_text(encoding="utf-8", errors="replace"))
            if len(page) >= SMALLEST_PAGE:
                yield f"library/{name}.txt", page


def hidden(parts: tuple[str, ...]) -> bool:
    """Whether a module is private, a test, or of no interest to a reader."""
    return any(part in UNINTERESTING or (part.startswith("_") and part != "__init__") for part in parts)


def module_page(name: str, source: str) -> str:
    """The docstrings of a module as one page: the module's own, then each public class and function."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return ""
    parts = [heading(f"Module {name}", 0), described(tree)]
    for node in tree.body:
        parts.extend(sections(node, 1))
    return "\n\n".join(part for part in parts if part) + "\n"


def sections(node: ast.stmt, level: int) -> Iterator[str]:
    """Heading and docstring of a public class or function, then those of a class's methods."""
    if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("_"):
        return
    if text := described(node):
        yield heading(signature(node), level)
        yield text
    if isinstance(node, ast.ClassDef):
        for child in node.body:
            yield from sections(child, level + 1)


def heading(text: str, level: int) -> str:
    """A line, underlined as its level asks for; long signatures are cut."""
    line = text if len(text) <= LONGEST_HEADING else text[: LONGEST_HEADING - 1] + "…"
    return f"{line}\n{UNDERLINES[min(level, len(UNDERLINES) - 1)] * len(line)}"


def signature(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """How the thing is written down: `class Name`, or `name(arguments)`."""
    if isinstance(node, ast.ClassDef):
        return f"class {node.name}"
    return f"{node.name}({ast.unparse(node.args)})"


def described(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """The docstring with its indentation removed; empty where there is none."""
    text = ast.get_docstring(node, clean=False)
    return inspect.cleandoc(text).strip() if text else ""


def export(folder: Path) -> int:
    """Write all pages and remove stale ones; the number of pages. Raises OSError, ValueError for a foreign folder."""
    marker = folder / MARKER
    if folder.exists() and any(folder.iterdir()) and not marker.exists():
        raise ValueError(f"{folder} is not empty and was not made by this script: name another folder")
    folder.mkdir(parents=True, exist_ok=True)
    marker.touch()
    pages = dict([*language_pages(), *library_pages()])
    for name, text in pages.items():
        write_if_changed(folder / name, text)
    for path in folder.rglob("*.txt"):
        if path.relative_to(folder).as_posix() not in pages:
            path.unlink()
    return len(pages)


def write_if_changed(path: Path, text: str) -> None:
    """Leave an equal file alone, so that an index of the folder stays valid."""
    data = text.encode("utf-8", "replace")
    if path.exists() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def main() -> int:
    """Export, and say how many files there are."""
    parser = argparse.ArgumentParser(description="Export the documentation that CPython carries into a folder.")
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    try:
        count = export(folder)
    except (OSError, ValueError) as error:
        print(f"export_python_docs: {error}", file=sys.stderr)
        return 2
    version = ".".join(map(str, sys.version_info[:3]))
    print(f"{count} documents of Python {version} in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
