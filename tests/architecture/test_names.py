"""One name, one thing: classes and files of the product."""

import ast
from collections import Counter

from tests.architecture.repository import PACKAGES, python_files, relative, syntax

ENTRIES = ("__init__.py", "__main__.py")


def test_no_two_classes_share_a_name() -> None:
    """A class is found by its name alone, wherever it is used."""
    names = [
        node.name for path in python_files(*PACKAGES) for node in syntax(path).body if isinstance(node, ast.ClassDef)
    ]
    assert not [name for name, count in Counter(names).items() if count > 1 and not name.startswith("_")]


def test_no_two_files_share_a_name() -> None:
    """A file needs no folder to be told from another one."""
    paths = [path for path in python_files(*PACKAGES) if path.name not in ENTRIES]
    twice = {name for name, count in Counter(path.name for path in paths).items() if count > 1}
    assert not sorted(relative(path) for path in paths if path.name in twice)
