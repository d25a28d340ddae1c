"""Write `requirements.md`: what each code in a test's docstring asks for, the tests that prove it, and what differs.

usage: python docs/generate_requirements.py      (a test compares the page with what this script would write)

The lines stand in `requirements.toml`, at its end the table `differs`: what the designs ask for and the product does
otherwise, with the reason. The tests are found by their docstrings, which end with their codes:
"…the behaviour in one sentence (S0-103 to S0-106, C0-3)." or "(F16, invariants 3 and 12)."
"""  # noqa: INP001 - a folder of pages is no package

import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("requirements.md")
LINES = Path(__file__).with_name("requirements.toml")
TESTS = Path(__file__).parents[1] / "tests"

GROUPS = {
    "S0": "Supervisor and specialists",
    "S1": "Five agents with reflection",
    "S2": "Approval and living report",
    "S3": "Orchestrator and research agents",
    "S4": "Recursive research",
    "C0": "Clarifications of S0",
    "C1": "Clarifications of S1",
    "C2": "Clarifications of S2",
    "C3": "Clarifications of S3",
    "C4": "Clarifications of S4",
    "X": "Shared by all strategies",
    "invariant": "Invariants: true of every run, at every moment",
    "F": "Faults that are survived",
}
"""Kind of code → heading, in the order of the page."""

CODE = r"(?:[SC]\d-\d+|X-\d+|F\d+)"
ITEM = rf"(?:{CODE}(?: to {CODE})?|invariants? \d+(?:(?:, | and )\d+)*)"
AT_THE_END = re.compile(rf"\s\(({ITEM}(?:, {ITEM})*)\)\.$")

DIFFERS = "differs"
"""Table of the file with what differs."""

OTHERWISE = """
## What the product does otherwise

What the designs ask for in another form than the product has, and why its user is better off. A code that also has a
line above is done in part.

"""

HEAD = """\
# Requirements

What is promised, by the codes that tests name at the end of their docstrings, and the tests that prove it. Generated
from `docs/requirements.toml` and the tests: after a change of either run `make requirements`.
"""


def split_docstring(docstring: str) -> tuple[str, list[str]]:
    """The sentence of a docstring and the codes at its end, ranges written out."""
    found = AT_THE_END.search(docstring)
    return (docstring[: found.start()], list(codes_of(found[1]))) if found else (docstring, [])


def codes_of(named: str) -> Iterator[str]:
    """The single codes of a list such as `S0-103 to S0-106, C0-3, invariants 3 and 12`."""
    for item in re.findall(ITEM, named):
        numbers = re.findall(r"\d+", item)
        if item.startswith("invariant"):
            yield from (f"invariant {number}" for number in numbers)
        elif " to " in item:
            first, last = item.split(" to ")
            start, width = re.sub(r"\d+$", "", first), len(re.findall(r"\d+$", first)[0])
            numbers = [int(re.findall(r"\d+$", code)[0]) for code in (first, last)]
            yield from (f"{start}{number:0{width}}" for number in range(numbers[0], numbers[1] + 1))
        else:
            yield item


@cache
def test_functions(path: Path) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef, ...]:
    """Each test of a file, in the order in which they stand."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    functions = (node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return tuple(node for node in functions if node.name.startswith("test_"))


def tests_by_code() -> dict[str, list[str]]:
    """For each code the tests that name it, as `path::name` below `tests`."""
    tests: dict[str, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in test_functions(path):
            for code in split_docstring(ast.get_docstring(node) or "")[1]:
                tests[code].append(f"{path.relative_to(TESTS).as_posix()}::{node.name}")
    return dict(tests)


def load() -> dict[str, Any]:
    """The lines by code, and under `differs` what the product does otherwise."""
    return tomllib.loads(LINES.read_text(encoding="utf-8"))


def load_lines() -> dict[str, str]:
    """What each code asks for, in one line."""
    return {code: line for code, line in load().items() if code != DIFFERS}


def load_differences() -> dict[str, tuple[str, str]]:
    """By code what the designs ask for, and what the product does instead with the reason."""
    return {code: (entry["asks"], entry["here"]) for code, entry in load()[DIFFERS].items()}


def place(code: str) -> tuple[int, int]:
    """Where a code stands: its group, then its number. Raises ValueError for a code of no group."""
    for position, group in enumerate(GROUPS):
        if found := re.fullmatch(rf"{group}[- ]?(\d+)", code):
            return position, int(found[1])
    raise ValueError(f"{code} is of no group: add one to GROUPS")


def page(
    lines: Mapping[str, str], tests: Mapping[str, Sequence[str]], differences: Mapping[str, tuple[str, str]]
) -> str:
    """The whole page: every code that has a line, under the heading of its group; then what differs."""
    text = HEAD
    for number, (group, title) in enumerate(GROUPS.items()):
        if codes := sorted((code for code in lines if place(code)[0] == number), key=place):
            text += f"\n## {group}: {title}\n\n"
            text += "".join(entry(code, lines[code], tests.get(code, ())) for code in codes)
    text += OTHERWISE
    for code in sorted(differences, key=place):
        asks, here = differences[code]
        text += f"- **{code}** *Asked for:* {asks}\n  *Here:* {here}\n"
    return text


def entry(code: str, line: str, tests: Sequence[str]) -> str:
    """One code with its line, and its tests below."""
    return f"- **{code}** {line}\n  " + " ·\n  ".join(f"`{test}`" for test in tests) + "\n"


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(load_lines(), tests_by_code(), load_differences()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
