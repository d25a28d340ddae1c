"""The shape of the product: no overlong and no shredded files, tests in proportion, and no private dialect."""

import ast
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from tests.architecture.repository import PACKAGES, ROOT, nodes, python_files, relative

LONGEST_FILE = 700
MOST_TESTS = 0.9
"""Lines of tests for each line of the product: a test that nobody has time to read guards nothing."""
SHORTEST_FOR_ONE = 120
"""Lines that a module which one other module imports should have: else it belongs into that one."""
ALLOWED_FOR_ONE = 12
"""Such modules that are left: a concept that others will look for is right at any size. May only shrink."""
MOST_DIALECT = 5.0
"""Words of a private dialect in 1,000 words of docstrings; well-kept projects of the field have 1.5 to 3."""
MOST_QUESTIONS = 0.01
"""Share of docstrings that begin with a question word."""
DIALECT = re.compile(
    r"\b(told|tells?|said|heard|hears?|wanted|wish(?:es)?|kept|held|begun|goes on|went on|left out|leaves? out|stood"
    r"|stands?|whoever|anew|meanwhile|nobody)\b",
    re.IGNORECASE,
)


def test_no_file_is_longer_than_one_sitting() -> None:
    """A file is one whole thing that can be read at once."""
    lengths = {relative(path): len(path.read_text("utf-8").splitlines()) for path in python_files(*PACKAGES)}
    assert not {name: length for name, length in lengths.items() if length > LONGEST_FILE}


def test_tests_are_shorter_than_the_product(record_property: Callable[[str, object], None]) -> None:
    """Tests stay readable beside the product that they guard; both totals are recorded."""
    product = sum(len(path.read_text("utf-8").splitlines()) for path in python_files(*PACKAGES))
    tests = sum(len(path.read_text("utf-8").splitlines()) for path in python_files("tests"))
    record_property("lines", f"product {product}, tests {tests}")
    assert tests <= MOST_TESTS * product


def importers() -> dict[str, set[str]]:
    """Return for each module of the product the modules of the product that import it."""
    names = {relative(path)[:-3].replace("/", "."): path for path in python_files(*PACKAGES)}
    found: dict[str, set[str]] = defaultdict(set)
    for name, path in names.items():
        for node in nodes(path):
            if isinstance(node, ast.ImportFrom) and node.module:
                for target in {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)} & names.keys():
                    found[target].add(name)
    return found


def test_small_modules_have_more_than_one_reader() -> None:
    """A short module that one other module imports is a part of that one."""
    short = [
        name
        for name, readers in importers().items()
        if len(readers) == 1
        and len(Path(ROOT, *name.split(".")).with_suffix(".py").read_text("utf-8").splitlines()) < SHORTEST_FOR_ONE
    ]
    assert len(short) <= ALLOWED_FOR_ONE, sorted(short)


def docstrings() -> list[str]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = (node for path in python_files(*PACKAGES) for node in nodes(path) if isinstance(node, kinds))
    return [text for node in found if (text := ast.get_docstring(node))]


def test_docstrings_are_plain_english() -> None:
    """They name their noun or begin with a verb, in words that a person from the field uses."""
    texts = docstrings()
    words = sum(len(text.split()) for text in texts)
    assert 1_000 * sum(len(DIALECT.findall(text)) for text in texts) / words <= MOST_DIALECT
    questions = [text for text in texts if re.match(r"(What|How|Where|Which|Whether|Why|Those|Nothing)\b", text)]
    assert len(questions) <= MOST_QUESTIONS * len(texts), questions[:20]


OLD_WORDS = frozenset(
    "heard hear hears told said nobody somebody whoever meanwhile anew stood stands wish wishes borne begun kept held".split()
)
"""Words of an old dialect, which are no terms of the field."""


def test_names_of_tests_are_plain_english() -> None:
    """A failed test is read by its name first: it says what does not hold in words of the field."""
    names = [
        node.name
        for path in python_files("tests")
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    ]
    assert [name for name in names if not OLD_WORDS.isdisjoint(name.split("_"))] == []


def test_recordings_are_small() -> None:
    """What is recorded for tests takes a megabyte at most: nobody reads more."""
    recorded = [path for path in (ROOT / "tests").rglob("*") if path.suffix in {".gz", ".json", ".txt", ".md", ".html"}]
    assert sum(path.stat().st_size for path in recorded) <= 1_000_000
