"""Functions in memory with the code of a changed file."""

import importlib.util
from pathlib import Path

from benchmarks.changed_functions import change_functions

BEFORE = """
def first(n):
    return n + 1

class Pair:
    def first(self):
        return [self._add(n) for n in (1, 2)]

    def _add(self, n):
        def inner():
            return n + 1
        return inner()

    @property
    def last(self):
        return 3
"""


def test_functions_and_methods_do_what_the_changed_file_says(tmp_path: Path) -> None:
    """Who holds the function already calls the changed one; nothing else changes, and lines may move."""
    file = tmp_path / "changed.py"
    file.write_text(BEFORE, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("changed", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    held, pair = module.first, module.Pair()
    assert (held(1), pair.first(), pair.last) == (2, [2, 3], 3)
    after = BEFORE.replace("return n + 1\n\nclass", "return (\n        n - 1)\n\nclass").replace(
        "            return n + 1", "            return n * 5"
    )
    assert change_functions(file, BEFORE, after) == 4
    assert (held(1), pair.first(), pair.last) == (0, [5, 10], 3)
    assert change_functions(file.with_name("other.py"), BEFORE, after) == 0
