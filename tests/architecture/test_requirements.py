"""Codes of requirements: where they stand, and that docs/requirements.md resolves them."""

import ast
import re
from pathlib import Path

from tests.architecture.repository import ROOT, found_in, load_script, python_files

GENERATOR = load_script(ROOT / "docs" / "generate_requirements.py")
CODE = re.compile(r"\b[SC]\d-\d|\bX-\d|_[sc]\d_\d|\b[Ii]nvariants? \d|\(F\d+[,)]")
FAULT = re.compile(r"\bF\d+\b")


def code_in(text: str) -> str:
    """The first line of a text that holds a code; empty if none does."""
    return next((line.strip() for line in text.splitlines() if CODE.search(line)), "")


def test_the_page_of_requirements_is_generated() -> None:
    """docs/requirements.md says what the lines and the tests say: run `make requirements` after a change."""
    page = (ROOT / "docs" / "requirements.md").read_text(encoding="utf-8")
    made = GENERATOR.page(GENERATOR.load_lines(), GENERATOR.tests_by_code(), GENERATOR.load_differences())
    assert page == made, "run `make requirements`"


def test_every_code_has_a_line_and_every_line_a_test() -> None:
    """A reader finds each code that a test names, and each promise of the page has a test."""
    named, explained = set(GENERATOR.tests_by_code()), set(GENERATOR.load_lines())
    assert not named - explained, "write a line for each in docs/requirements.toml, then run `make requirements`"
    assert not explained - named, "no test names these: take their lines out of docs/requirements.toml"


def test_every_difference_says_what_is_asked_for_and_why_it_is_otherwise() -> None:
    """Each in whole sentences, under a code of a known group."""
    differences = GENERATOR.load_differences()
    assert differences
    for code, texts in differences.items():
        assert GENERATOR.place(code), code
        assert all(len(text) > 20 and text.endswith(".") for text in texts), code


def codes_of_the_product(path: Path) -> str:
    return code_in(path.read_text(encoding="utf-8"))


def test_the_product_gives_reasons_and_no_codes() -> None:
    """Where a requirement is the reason for a line, the reason stands there in words."""
    product = python_files("activities", "client", "contracts", "deploy", "providers", "workers", "workflows")
    assert found_in(product, codes_of_the_product) == {}


def misplaced_codes(path: Path) -> list[str]:
    """Tests that name a code before the end of their docstring, and the first line elsewhere that holds one."""
    rest, odd = path.read_text(encoding="utf-8").splitlines(), []
    for node in GENERATOR.test_functions(path):
        docstring = ast.get_docstring(node) or ""
        sentence, _ = GENERATOR.split_docstring(docstring)
        if code_in(sentence) or FAULT.search(sentence):
            odd.append(f"{node.name}: end the docstring with its codes, in parentheses")
        if docstring:
            place = node.body[0]
            rest[place.lineno - 1 : place.end_lineno] = [""] * ((place.end_lineno or 0) - place.lineno + 1)
    elsewhere = code_in("\n".join(rest))
    return [*odd, *([f"say it in words, only a test's docstring names codes: {elsewhere}"] if elsewhere else [])]


def test_codes_are_the_last_words_of_a_test() -> None:
    """A code stands in parentheses at the end of a test's docstring, and nowhere else in the code of tests."""
    assert found_in(python_files("tests"), misplaced_codes) == {}
