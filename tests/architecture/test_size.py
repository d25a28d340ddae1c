"""The size of the product: budgets of code by package, and rules against shredded files and a private dialect."""

import ast
import io
import re
import tokenize
from collections import Counter, defaultdict
from pathlib import Path

from tests.architecture.repository import PACKAGES, ROOT, python_files, relative, syntax

BUDGET = {
    "activities": 1_080,
    "activities/assessment": 140,
    "activities/reporting": 2_626,
    "activities/roles": 1_250,
    "activities/verifying": 330,
    "client": 695,
    "client/cli": 2_655,
    "client/exchange": 445,
    "client/view": 450,
    "contracts": 5_040,
    "providers": 375,
    "providers/extractive": 800,
    "providers/isolation": 205,
    "providers/models": 990,
    "providers/reading": 1_350,
    "providers/search": 1_610,
    "providers/shared": 620,
    "providers/storage": 620,
    "providers/tokens": 180,
    "providers/verification": 515,
    "workers": 1_405,
    "workers/settings": 420,
    "workflows": 880,
    "workflows/phases": 1_890,
    "workflows/rules": 825,
    "workflows/run": 1_595,
    "workflows/strategies": 2_955,
}
"""Lines of code, without blank lines, comments and docstrings, by package of the first or second level.

Over budget: delete, or raise the budget in a commit of its own that says why; never together with new code.
"""
LONGEST_FILE = 700
SHORTEST_FOR_ONE = 120
"""Lines that a module which one other module imports should have: else it belongs into that one."""
ALLOWED_FOR_ONE = 25
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


def code_lines(path: Path) -> int:
    """Return how many lines hold code: no blank line, comment or docstring."""
    text = path.read_text(encoding="utf-8")
    docstrings = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    nothing = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in nothing:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings)


def package_of(path: Path) -> str:
    """Return the package of the first or second level that a file belongs to."""
    parts = relative(path).split("/")[:-1]
    return "/".join(parts[:2])


def test_every_package_keeps_its_budget() -> None:
    """Growth is a decision and never a side effect."""
    sizes: Counter[str] = Counter()
    for path in python_files(*PACKAGES):
        sizes[package_of(path)] += code_lines(path)
    over = {name: (size, BUDGET.get(name, 0)) for name, size in sizes.items() if size > BUDGET.get(name, 0)}
    assert not over, "delete, or raise the budget in a commit of its own"
    assert set(BUDGET) == set(sizes)


def test_no_file_is_longer_than_one_sitting() -> None:
    """A file is one whole thing that can be read at once."""
    lengths = {relative(path): len(path.read_text("utf-8").splitlines()) for path in python_files(*PACKAGES)}
    assert not {name: length for name, length in lengths.items() if length > LONGEST_FILE}


def importers() -> dict[str, set[str]]:
    """Return for each module of the product the modules of the product that import it."""
    names = {relative(path)[:-3].replace("/", "."): path for path in python_files(*PACKAGES)}
    found: dict[str, set[str]] = defaultdict(set)
    for name, path in names.items():
        for node in ast.walk(syntax(path)):
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
    nodes = (node for path in python_files(*PACKAGES) for node in ast.walk(syntax(path)) if isinstance(node, kinds))
    return [text for node in nodes if (text := ast.get_docstring(node))]


def test_docstrings_are_plain_english() -> None:
    """They name their noun or begin with a verb, in words that a person from the field uses."""
    texts = docstrings()
    words = sum(len(text.split()) for text in texts)
    assert 1_000 * sum(len(DIALECT.findall(text)) for text in texts) / words <= MOST_DIALECT
    questions = [text for text in texts if re.match(r"(What|How|Where|Which|Whether|Why|Those|Nothing)\b", text)]
    assert len(questions) <= MOST_QUESTIONS * len(texts), questions[:20]


def test_recordings_are_small() -> None:
    """What is recorded for tests takes a megabyte at most: nobody reads more."""
    recorded = [path for path in (ROOT / "tests").rglob("*") if path.suffix in {".gz", ".json", ".txt", ".md", ".html"}]
    assert sum(path.stat().st_size for path in recorded) <= 1_000_000
