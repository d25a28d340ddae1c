"""One name, one thing: classes of the product."""

import ast
from collections import Counter

from tests.architecture.repository import PACKAGES, python_files, syntax


def test_no_two_classes_share_a_name() -> None:
    """A class is found by its name alone, wherever it is used."""
    names = [
        node.name for path in python_files(*PACKAGES) for node in syntax(path).body if isinstance(node, ast.ClassDef)
    ]
    assert not [name for name, count in Counter(names).items() if count > 1 and not name.startswith("_")]
