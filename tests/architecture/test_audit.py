"""`make audit-dependencies`: only what was looked up and is clean counts as clean."""

import json
from pathlib import Path
from types import ModuleType

import pytest

from tests.architecture.repository import ROOT, load_script

FLAW = {"id": "ADVISORY-1", "fix_versions": ["2.0"]}


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, with a program of the test's in the place of pip-audit."""
    module = load_script(ROOT / "deploy" / "audit_dependencies.py")
    monkeypatch.setattr(module, "PROGRAM", tmp_path / "pip-audit")
    return module


def answering(script: ModuleType, output: str, *, error: str = "", code: int = 0) -> None:
    (script.PROGRAM.with_name("output")).write_text(output)
    (script.PROGRAM.with_name("error")).write_text(error)
    script.PROGRAM.write_text(f'#!/bin/sh\ncd "$(dirname "$0")" && cat output && cat error >&2\nexit {code}\n')
    script.PROGRAM.chmod(0o755)


@pytest.mark.parametrize(
    ("packages", "code", "words"),
    [
        ([{"name": "a", "version": "1", "vulns": []}], 0, "nothing is known against its 1 packages"),
        ([{"name": "a", "version": "1", "vulns": [FLAW]}], 1, "a 1: ADVISORY-1, mended in 2.0"),
        ([{"name": "a", "version": "1", "vulns": [FLAW]}, {"name": "b", "skip_reason": "x"}], 1, "ADVISORY-1"),
        ([{"name": "a", "version": "1", "vulns": []}, {"name": "b", "skip_reason": "x"}], 3, "1 of 2 packages"),
        ([{"name": name, "skip_reason": "x"} for name in "abcdefgh"], 3, "(a, b, c, d, e …)"),
        ([], 3, "0 of 0 packages"),
    ],
    ids=["clean", "flaw", "flaw-and-unknown", "partly-unknown", "unknown", "nothing"],
)
def test_what_an_answer_means(
    script: ModuleType, capsys: pytest.CaptureFixture[str], packages: list[dict], code: int, words: str
) -> None:
    """pip-audit calls packages clean that it could not look up; here they are unknown, with an exit code of their own."""
    answering(script, json.dumps({"dependencies": packages, "fixes": []}), code=1 if code == 1 else 0)
    assert script.audit("some.lock", []) == code
    said = capsys.readouterr()
    assert words in (said.err if code else said.out)


@pytest.mark.parametrize("output", ["", "no json", "[]", "{}"])
def test_a_database_that_is_not_reachable_is_told(
    script: ModuleType, capsys: pytest.CaptureFixture[str], output: str
) -> None:
    """By the last line of what went wrong; nothing is called clean."""
    answering(script, output, error="Traceback\nName or service not known", code=1)
    assert script.audit("some.lock", []) == 3
    assert "not reachable: Name or service not known" in capsys.readouterr().err
